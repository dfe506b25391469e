"""The addresses of the patient's pages. ``reminders.links`` writes the same into messages."""

from django.urls import path

from reminders.patient_pages import preferences_views, visit_views

app_name = "patient"

urlpatterns = [
    path("cita/<str:token>/", visit_views.visit_page, name="visit"),
    path("cita/<str:token>/cancelar/", visit_views.cancel_page, name="cancel"),
    path("cita/<str:token>/cita.ics", visit_views.calendar, name="calendar"),
    path("preferencias/<str:token>/", preferences_views.preferences_page, name="preferences"),
]
