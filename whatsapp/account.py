"""Our business number at Meta, as the settings name it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Self

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

LARGEST_ANSWER = 4 * 1024 * 1024
"""Bytes, unpacked. Meta's answer to a message has some 300."""


class _Secret(str):
    """Text that does not show itself to whoever prints the variables of a frame."""

    def __repr__(self) -> str:
        return "'…'"


@dataclass(frozen=True, kw_only=True)
class Account:
    """One business number, and how long a call about it may take."""

    url: str
    """The API's address with its version."""
    phone_number_id: str
    business_account_id: str
    authorization: str = field(repr=False)
    connect_timeout: float
    """Seconds until there is a connection."""
    read_timeout: float
    """Seconds from there to the end of the answer."""

    @classmethod
    def from_settings(cls) -> Self:
        """The number of the settings WHATSAPP_*. Raises ImproperlyConfigured without a usable token."""
        token = _Secret(settings.WHATSAPP_ACCESS_TOKEN)
        # Anything else would be refused by the HTTP library, which then repeats it in its message.
        if not re.fullmatch(r"[\x21-\x7e]+", token):
            raise ImproperlyConfigured("WHATSAPP_ACCESS_TOKEN must be one word of plain characters.")
        return cls(
            url=f"{settings.WHATSAPP_API_URL}/{settings.WHATSAPP_API_VERSION}",
            phone_number_id=settings.WHATSAPP_PHONE_NUMBER_ID,
            business_account_id=settings.WHATSAPP_BUSINESS_ACCOUNT_ID,
            authorization=_Secret(f"Bearer {token}"),
            connect_timeout=settings.WHATSAPP_CONNECT_TIMEOUT_SECONDS,
            read_timeout=settings.WHATSAPP_READ_TIMEOUT_SECONDS,
        )
