"""What must be configured before WhatsApp can work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004

NEEDED = {
    "WHATSAPP_ACCESS_TOKEN": ("whatsapp.E001", "Put the system user's token into WHATSAPP_ACCESS_TOKEN."),
    "WHATSAPP_PHONE_NUMBER_ID": (
        "whatsapp.E002",
        "Put the sending number's id into WHATSAPP_PHONE_NUMBER_ID.",
    ),
    "WHATSAPP_APP_SECRETS": (
        "whatsapp.E003",
        "Put the app secret into WHATSAPP_APP_SECRET (two, with a comma, while one replaces the other);"
        " without it every webhook post is refused.",
    ),
}
ADVISED = {
    "WHATSAPP_VERIFY_TOKEN": (
        "whatsapp.W001",
        "Invent a WHATSAPP_VERIFY_TOKEN; without it Meta's handshake with the webhook is refused.",
    ),
    "WHATSAPP_BUSINESS_ACCOUNT_ID": (
        "whatsapp.W002",
        "Put the account's id into WHATSAPP_BUSINESS_ACCOUNT_ID; without it templates cannot be read.",
    ),
}


@register()
def check_credentials(**_kwargs: Any) -> list[CheckMessage]:
    """What is missing while the channel is switched on: an error, on a developer's machine a warning."""
    if "whatsapp" not in settings.REMINDER_CHANNELS:
        return []
    return list(_missing())


def _missing() -> Iterator[CheckMessage]:
    needed = Warning if settings.IS_LOCAL else Error
    for level, table in ((needed, NEEDED), (Warning, ADVISED)):
        for name, (code, hint) in table.items():
            if not getattr(settings, name):
                hint_ = f"{hint} Or set REMINDER_CHANNELS=none until there is an account."
                yield level(f"WhatsApp is switched on, and {name} is empty.", hint=hint_, id=code)
