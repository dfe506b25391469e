"""The calls that are under way: the one place for concurrency.

Threads, each of which keeps its own HTTP connection to the provider. They touch
no database: what they need is in the message, what they bring is an outcome.
"""

from __future__ import annotations

import logging
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from reminders.channels import get_channel
from reminders.channels.base import AnswerLost, ChannelError, Message, Receipt
from reminders.models.outgoing import OutgoingMessage

logger = logging.getLogger(__name__)
Outcome = Receipt | ChannelError


@dataclass(frozen=True, kw_only=True)
class Call:
    """A row whose attempt is written down, with the message that goes out for it."""

    row: OutgoingMessage
    message: Message
    payload: dict[str, Any]
    """The message as the channel puts it on the wire: what the ledger holds is what leaves."""


class Flight:
    """Up to ``seats`` calls at once. Use as a context; leaving it waits for those in the air."""

    def __init__(self, seats: int) -> None:
        self._seats = seats
        self._pool = ThreadPoolExecutor(seats, thread_name_prefix="call")
        self._calls: dict[Future[Outcome], Call] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    @property
    def free(self) -> int:
        """How many calls can start right now: claim no more than that."""
        return self._seats - len(self._calls)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in the air."""
        return not self._calls

    def take_off(self, call: Call) -> None:
        """Start a call."""
        self._calls[self._pool.submit(_send, call)] = call

    def landed(self, *, patience: float) -> list[tuple[Call, Outcome]]:
        """The calls that have ended, after at most ``patience`` seconds."""
        done, _ = wait(self._calls, timeout=patience, return_when=FIRST_COMPLETED)
        return [(self._calls.pop(future), future.result()) for future in done]


def _send(call: Call) -> Outcome:
    try:
        return get_channel(call.row.channel).send(call.message, call.payload)
    except ChannelError as refused:
        return refused
    except Exception as error:  # a fault of ours, after which nobody knows what was sent
        logger.exception("call ref=%s broke kind=%s", call.message.reference, type(error).__name__)
        return AnswerLost("broken_channel")
