"""A message as the sandbox understood it, and the two books that it keeps of them."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

ChoiceKind = Literal["template", "button", "row", "link"]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Something under a message that the patient can tap."""

    kind: ChoiceKind
    """Template quick reply, session button or row of a list; a link sends nothing back."""
    title: str
    payload: str = ""
    description: str = ""
    section: str = ""


@dataclass(frozen=True, kw_only=True)
class Message:
    """What the patient will see, its parameters filled in."""

    to: str
    """E.164 with its plus sign, or a BSUID."""
    reference: str
    """``biz_opaque_callback_data``: comes back with every status."""
    kind: Literal["template", "text", "interactive"]
    body: str
    header: str = ""
    footer: str = ""
    choices: tuple[Choice, ...] = ()
    list_label: str = ""
    """The button that opens a list; empty for every other message."""
    answers_to: str = ""
    category: str = "service"


@dataclass(frozen=True, kw_only=True)
class AcceptedMessage:
    """One POST that was answered with 200, or whose answer was lost on purpose."""

    wamid: str
    to: str
    reference: str
    body: Mapping[str, object] = field(repr=False)
    """Exactly what was posted."""
    at: datetime
    """Aware, UTC."""

    @property
    def delivery(self) -> str:
        """The reference without its attempt: ``d:<id>`` of ``d:<id>:<attempt>``."""
        return self.reference.rpartition(":")[0] or self.reference


@dataclass(frozen=True, kw_only=True)
class RefusedMessage:
    """One POST that was answered with an error."""

    code: int
    to: str
    reference: str
    details: str


def is_bsuid(recipient: str) -> bool:
    """A business-scoped user id (``VE.1a2b``) rather than a phone number."""
    return not recipient.startswith("+")


def wa_id(recipient: str) -> str:
    """WhatsApp's own id of a phone: the number without its plus sign."""
    return recipient.removeprefix("+")


def canonical(number: str) -> str:
    """A phone's number with its plus sign, also where it was left out; a BSUID as it is."""
    return f"+{number}" if number.isdigit() else number


def new_wamid() -> str:
    """An id as WhatsApp makes them: base64, with slashes and plus signs in it."""
    return f"wamid.{base64.b64encode(secrets.token_bytes(30)).decode()}"
