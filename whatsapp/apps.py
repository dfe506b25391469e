from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class WhatsAppConfig(AppConfig):
    """Meta's Cloud API in our words. Knows no clinic."""

    name = "whatsapp"
    verbose_name = _("WhatsApp")

    def ready(self) -> None:
        from whatsapp import checks  # noqa: F401
