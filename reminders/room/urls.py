"""The addresses of the room, below /sala/."""

from django.urls import path

from reminders.room import views

app_name = "room"

urlpatterns = [
    path("", views.board_page, name="board"),
    path("espera/", views.waiting_page, name="waiting"),
    path("eventos/", views.events, name="events"),
    path("citas/<uuid:visit_id>/<slug:action_name>/", views.act, name="act"),
]
