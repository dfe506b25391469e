"""What a channel is: one verb, a value in, a value out.

A channel sends once and raises; the queue decides when to try again. Values
only: no models, and no settings at import.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from reminders.calendar_file import Entry
from reminders.foreign_words import CODE_LENGTH, DETAIL_LENGTH, storable
from reminders.timeline import Reason


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
    is_virtual: bool = False
    """That the visit is a video call."""
    time_left: timedelta = timedelta(0)
    """From the sending to the start of the visit."""
    in_answer_to: str = ""
    """The provider's id of the patient's message that this one answers."""
    visit_link: str = ""
    """Address of the patient's page about this version of the visit."""
    preferences_link: str = ""
    """Address where the patient stops these messages; also takes the one-click POST of RFC 8058."""
    entry: Entry | None = None
    """The visit as an entry for a calendar."""
    also: tuple[Message, ...] = ()
    """What is said of the patient's other visits of the day in the same mail, nearest first."""
    preparation: str = ""
    """Instructions whose own reminder would come too late, so that this message carries them."""


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """That the provider took the message; nothing more."""

    message_id: str
    wa_id: str = ""
    user_id: str = ""
    is_delivered: bool = False
    """That it is where the patient reads it already, as in an inbox of our own."""


def id_at(message_id: str, place: int) -> str:
    """A message's id as the ledger keeps it for its first, second, ... row: no two attempts share one."""
    return message_id if place == 1 or not message_id else f"{message_id}#{place}"


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
        self.code = storable(code, CODE_LENGTH)
        super().__init__(f"{type(self).__name__} {self.code}")
        self.detail = storable(detail, DETAIL_LENGTH)
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
    """A way to reach a patient. Declared in the setting CHANNEL_BACKENDS.

    One instance serves one run of the dispatcher, on one event loop.
    """

    per_second: float | None = None
    """How many messages a second one dispatcher starts at most; None for no limit."""
    shows_pages: bool = False
    """Whether its messages hold links to the patient's pages and an entry for the calendar."""
    gives_receipts: bool = False
    """Whether we hear afterwards that a message arrived, or was read; without, acceptance is success."""
    can_look_up: bool = False
    """Whether the provider can be asked about a message whose answer was lost."""

    def payload(self, message: Message) -> dict[str, Any]:
        """What goes over the wire for a message, for the ledger.

        Raises ValueError for a message that this channel cannot carry.
        """
        return {"to": message.to, "subject": message.subject, "text": message.text}

    def withheld(self, messages: Sequence[Message]) -> Mapping[str, Reason]:  # noqa: ARG002
        """Reference → why a message cannot take this channel now, for those that cannot.

        Asked once for a batch, within the last transaction before the calls.
        """
        return {}

    @abstractmethod
    async def send(self, message: Message, payload: dict[str, Any]) -> Receipt:
        """Hand the message over once, or raise a ChannelError.

        ``payload`` is what ``payload()`` made of it and the ledger keeps.
        """

    async def look_up(self, reference: str) -> Receipt | None:
        """What the provider says of a message by our reference; None when it knows of none.

        Raises ChannelError when it cannot tell now. Only where ``can_look_up``.
        """
        raise NotImplementedError

    async def close(self) -> None:  # noqa: B027 (many have none to let go of)
        """Let go of connections. No call follows."""


class BlockingChannel(Channel):
    """A channel whose library waits: each call has a thread of its own."""

    @abstractmethod
    def call(self, message: Message, payload: dict[str, Any]) -> Receipt:
        """Hand the message over once, or raise a ChannelError. Runs in a thread."""

    async def send(self, message: Message, payload: dict[str, Any]) -> Receipt:
        return await asyncio.to_thread(self.call, message, payload)
