"""What a channel is: one verb, a value in, a value out.

A channel sends once and raises; the queue decides when to try again. Values
only: no models, and no settings at import.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Button:
    """A quick answer under a message."""

    title: str
    payload: str
    """Signed; comes back with the tap."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message to one address, in words that are final."""

    to: str
    reference: str
    """Ours: names delivery or reply and attempt; comes back with receipts."""
    kind: str
    """The reminder type, or "reply"."""
    text: str
    subject: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    """The variables of the text, for channels that fill a template of their own."""
    buttons: tuple[Button, ...] = ()
    asks_to_confirm: bool = False
    time_left: timedelta = timedelta(0)
    """From the sending to the start of the visit."""
    in_answer_to: str = ""
    """The provider's id of the patient's message that this one answers."""


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """That the provider took the message; nothing more."""

    message_id: str
    wa_id: str = ""
    user_id: str = ""


class ChannelError(Exception):
    """A definite refusal: the provider did not take the message; it may later."""

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        retry_after: timedelta | None = None,
        tries: int | None = None,
    ) -> None:
        super().__init__(f"{type(self).__name__} {code}")
        self.code = code
        self.detail = detail
        """The provider's words. They may repeat what we sent: for the row, not for a log."""
        self.retry_after = retry_after
        self.tries = tries
        """How many refusals of this kind end it, where that is fewer than usual."""


class Throttled(ChannelError):
    """Too fast. Waiting is all it takes: it costs no retry."""


class Undeliverable(ChannelError):
    """No later attempt on this channel can succeed."""


class AnswerLost(ChannelError):
    """The message may be on its way: no answer came, or one that tells nothing.

    Never repeated: the provider has no idempotency key. A receipt settles it.
    """


class Channel(ABC):
    """A way to reach a patient. Declared in the setting CHANNEL_BACKENDS."""

    def payload(self, message: Message) -> dict[str, Any]:
        """What goes over the wire for a message, for the ledger.

        Raises ValueError for a message that this channel cannot carry.
        """
        return {"to": message.to, "subject": message.subject, "text": message.text}

    @abstractmethod
    def send(self, message: Message, payload: dict[str, Any]) -> Receipt:
        """Hand the message over once, or raise a ChannelError.

        ``payload`` is what ``payload()`` made of it and the ledger keeps. Called
        from a thread of its own, without a database connection.
        """
