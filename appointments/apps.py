from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AppointmentsConfig(AppConfig):
    """Who comes when. Knows nothing of reminders."""

    name = "appointments"
    verbose_name = _("Agenda")
