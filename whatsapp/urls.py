"""Where Meta calls. The path is given to Meta with its slash: a redirect loses a POST."""

from django.urls import path

from whatsapp.views import Webhook

urlpatterns = [path("", Webhook.as_view(), name="whatsapp-webhook")]
