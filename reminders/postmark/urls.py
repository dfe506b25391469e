from django.urls import path

from reminders.postmark.tracking import TrackingView

urlpatterns = [path("tracking/", TrackingView.as_view(), name="postmark_tracking")]
