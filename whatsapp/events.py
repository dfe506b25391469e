"""What a webhook can tell, in our words. ``webhook_body`` makes these of Meta's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from whatsapp.errors import Verdict, verdict

Json = Mapping[str, Any]

WAMID_LENGTH = 255
PHONE_LENGTH = 32
USER_ID_LENGTH = 160
TEXT_LENGTH = 4096
PAYLOAD_LENGTH = 256
"""Twice what a payload of ours may have: one that was cut is none of ours."""
TITLE_LENGTH = 100
REFERENCE_LENGTH = 512
WORD_LENGTH = 64
DETAIL_LENGTH = 1000
# From 2001 to 2100: whatever stands outside is no time of a message.
EARLIEST, LATEST = 1_000_000_000, 4_102_444_800

KNOWN_TYPES = frozenset(
    (
        *("text", "button", "interactive", "reaction", "image", "audio", "video", "document", "sticker"),
        *("location", "contacts", "order", "system", "unsupported", "edit", "revoke"),
    )
)
UNLIMITED = -1


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that a webhook told."""

    path: str = ""
    """Where it stood in the body, such as ``entry[0].changes[1].messages[2]``."""


@dataclass(frozen=True, kw_only=True)
class MessageReceived(Event):
    """Somebody wrote, or tapped a button."""

    wamid: str
    at: datetime
    """When Meta says it was sent, in UTC."""
    type: str
    """Meta's word; ``unsupported`` for one that we do not know."""
    phone: str = ""
    """The sender's WhatsApp number in digits; "" when they show us none. Never both ""."""
    user_id: str = ""
    """The sender's business-scoped id (BSUID)."""
    text: str = ""
    """What they wrote, as they wrote it: not to be trusted in any way."""
    payload: str = ""
    """Of a button or list row. Meta puts the label here when we gave none."""
    title: str = ""
    """What stood on the button or row."""
    context_wamid: str = ""
    """The message that it answers. May be missing even with a tap."""
    is_group: bool = False


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One of Meta's errors, as a receipt carries it."""

    code: int | None
    subcode: int | None = None
    details: str = ""


@dataclass(frozen=True, kw_only=True)
class StatusReceived(Event):
    """A receipt of a message of ours."""

    wamid: str
    status: str
    """Meta's word in lower case; new ones will come."""
    at: datetime
    """When it happened, in UTC."""
    reference: str = ""
    """Our own, as we gave it when we sent; "" when Meta leaves it out."""
    recipient_phone: str = ""
    recipient_user_id: str = ""
    errors: tuple[Fault, ...] = ()
    """Why it failed. Told once and never again."""
    category: str = ""
    """What Meta charges it as."""

    @property
    def verdict(self) -> Verdict | None:
        """What follows from the first error; None without any."""
        if not self.errors:
            return None
        first = self.errors[0]
        return verdict(first.code, subcode=first.subcode, details=first.details, in_receipt=True)


class TemplateAspect(StrEnum):
    STATUS = "status"
    QUALITY = "quality"
    CATEGORY = "category"
    COMPONENTS = "components"


@dataclass(frozen=True, kw_only=True)
class TemplateChanged(Event):
    """Meta decided about a template. An empty field says nothing about it."""

    aspect: TemplateAspect
    business_account_id: str
    name: str
    language: str
    """With an underscore, such as ``es_MX``."""
    at: datetime | None
    template_id: str = ""
    status: str = ""
    """As the API names it: APPROVED, REJECTED, PAUSED, …"""
    category: str = ""
    coming_category: str = ""
    """What Meta is about to make of it."""
    quality: str = ""
    reason: str = ""


class Urgency(StrEnum):
    NOTE = "note"
    """For the record."""
    ALERT = "alert"
    """Somebody should look today."""
    URGENT = "urgent"
    """Somebody should look now: an attack, or nothing goes out any more."""


@dataclass(frozen=True, kw_only=True)
class AccountChanged(Event):
    """News of our number or account."""

    kind: str
    """Meta's field, such as ``account_update``; ``errors`` for trouble told beside messages."""
    event: str
    """Meta's word in capitals; empty for ``errors``."""
    urgency: Urgency
    at: datetime | None = None
    error_code: int | None = None
    daily_limit: int | None = None
    """How many people we may write to first in 24 hours; UNLIMITED; None when not told."""
    may_send: bool | None = None
    """False: reminders are refused from now on. True: they go again. None: not told."""


@dataclass(frozen=True, kw_only=True)
class EchoSent(Event):
    """Somebody wrote from the clinic's own phone. Not a patient's message."""


@dataclass(frozen=True, kw_only=True)
class PreferenceNoted(Event):
    """A person's wish about marketing. Reminders are none, and go on."""


@dataclass(frozen=True, kw_only=True)
class Ignored(Event):
    """Nothing for us."""

    why: str


@dataclass(frozen=True, kw_only=True)
class Unreadable(Event):
    """Not in any shape that we know; for a person to look at."""

    reason: str
