from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RemindersConfig(AppConfig):
    """The product: rules, timeline, queue, channels, conversation."""

    name = "reminders"
    verbose_name = _("Recordatorios")

    def ready(self) -> None:
        """Connect the receivers and the system checks."""
        from reminders import checks, mail_checks, receivers  # noqa: F401
        from reminders.postmark import tracking  # noqa: F401
        from reminders.room import checks as room_checks  # noqa: F401
