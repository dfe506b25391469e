"""The calls that are under way: the one place for concurrency.

An event loop in a thread of its own holds the connections to the providers. It
touches no table of ours: what a call needs is in the message, what it brings is
an outcome. The thread that claims and records only hands over and collects.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID

from django.conf import settings

from reminders.channels import get_channel
from reminders.channels.base import AnswerLost, Channel, ChannelError, Message, Receipt, id_at
from reminders.models.outgoing import OutgoingMessage

logger = logging.getLogger(__name__)
T = TypeVar("T")
Outcome = Receipt | ChannelError
GATE_SECONDS = 0.1
"""How long a call that is written down may wait for a seat."""
SLOW = 10.0
"""Seconds that a call is taken to last until the first has ended."""
LOOK_UP_SECONDS = 15.0
"""How long providers are asked about lost answers, all at once."""
QUESTIONS_AT_ONCE = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Call:
    """A row whose attempt is written down, with the message that goes out for it."""

    row: OutgoingMessage
    message: Message
    payload: dict[str, Any]
    """The message as the channel puts it on the wire: what the ledger holds is what leaves."""
    attempt_id: int
    also: tuple[Call, ...] = ()
    """The other rows that the same message speaks for, each with its own attempt."""

    def apart(self, outcome: Outcome) -> list[tuple[Call, Outcome]]:
        """How each row of the call ended. The ledger knows an id once: the others add their place to it."""
        ended: list[tuple[Call, Outcome]] = [(self, outcome)]
        for place, call in enumerate(self.also, start=2):
            its_own = outcome
            if isinstance(outcome, Receipt):
                its_own = replace(outcome, message_id=id_at(outcome.message_id, place))
            ended.append((call, its_own))
        return ended


class Flight:
    """Up to ``seats`` calls at once. Use as a context; leaving it waits for those in the air.

    Some more may wait at the gate, or a seat would stay empty while the next
    calls are prepared.
    """

    def __init__(self, seats: int) -> None:
        self._seats = seats
        self._boarding = asyncio.Semaphore(seats)
        self._call_takes = SLOW
        self._in_air: Counter[str] = Counter()
        self._landed: queue.SimpleQueue[tuple[Call, Outcome]] = queue.SimpleQueue()
        self._channels: dict[str, Channel] = {}
        # Per channel the moment, on the monotonic clock, at which its next message may leave.
        self._next_start: dict[str, float] = defaultdict(float)
        self._calls: set[asyncio.Task[None]] = set()
        self._asked: set[UUID] = set()
        self._told: queue.SimpleQueue[tuple[OutgoingMessage, Receipt | None]] = queue.SimpleQueue()
        self._questions: set[asyncio.Task[None]] = set()
        self._may_ask = asyncio.Semaphore(QUESTIONS_AT_ONCE)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._fly, name="flight", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def free(self) -> int:
        """How many calls can start right now: claim no more than that."""
        return self._seats + self._gate - self._in_air.total()

    @property
    def is_worth_boarding(self) -> bool:
        """Whether enough can start to claim them: few at a time cost almost as much as many."""
        return self.free >= self._seats / 4

    @property
    def _gate(self) -> int:
        """How many may wait for a seat: no more than leave within a moment.

        What waits here would not hear of a visit that is cancelled meanwhile.
        """
        return int(self._seats * min(1.0, GATE_SECONDS / self._call_takes))

    def room(self, channel: str) -> int:
        """How many of them a channel can take that keeps a pace of its own.

        No more than leave within a second: what waits here would not hear of a
        visit that is cancelled meanwhile.
        """
        if channel not in settings.CHANNEL_BACKENDS:
            return self._seats  # the last look says what becomes of it
        pace = self._channel(channel).per_second
        if pace is None:
            return self._seats
        waiting = max(0.0, self._next_start[channel] - time.monotonic())
        return max(0, int(pace * (1 - waiting)))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in the air."""
        return not self._in_air.total()

    def take_off(self, calls: Sequence[Call]) -> None:
        """Start calls."""
        if not calls:
            return
        starts = [(call, self._channel(call.row.channel), self._start_of(call.row.channel)) for call in calls]
        self._in_air.update(call.row.channel for call in calls)
        self._loop.call_soon_threadsafe(self._start, starts)

    def landed(self, *, patience: float) -> list[tuple[Call, Outcome]]:
        """The calls that have ended; waits at most ``patience`` seconds for the first."""
        ended = _all_of(self._landed, patience)
        self._in_air.subtract(call.row.channel for call, _ in ended)
        return ended

    def look_up(self, rows: Sequence[OutgoingMessage]) -> None:
        """Begin to ask providers what they know of messages whose answers were lost.

        It costs no call its seat, and leaving the flight does not wait for it.
        """
        self._asked |= {row.pk for row in rows}
        self._loop.call_soon_threadsafe(self._ask, [(row, self._channel(row.channel)) for row in rows])

    def told(self, *, patience: float) -> list[tuple[OutgoingMessage, Receipt | None]]:
        """What providers have said since, None where one knows of none or cannot tell.

        Waits at most ``patience`` seconds for the first.
        """
        told = _all_of(self._told, patience)
        self._asked -= {row.pk for row, _ in told}
        return told

    @property
    def asked(self) -> frozenset[UUID]:
        """The rows of which a provider has not yet said what it knows."""
        return frozenset(self._asked)

    def stop_asking(self) -> None:
        """Wait for nothing more that providers have been asked."""
        self._asked.clear()
        self._loop.call_soon_threadsafe(self._cancel_questions)

    def _channel(self, name: str) -> Channel:
        if name not in self._channels:
            self._channels[name] = get_channel(name)
        return self._channels[name]

    def _start_of(self, channel: str) -> float:
        """The moment at which a call of the channel may start, which no other call then has."""
        pace = self._channel(channel).per_second
        if pace is None:
            return 0.0
        start = max(self._next_start[channel], time.monotonic())
        self._next_start[channel] = start + 1 / pace
        return start

    # --- On the loop's thread -----------------------------------------------------

    def _fly(self) -> None:
        self._loop.set_default_executor(ThreadPoolExecutor(self._seats, thread_name_prefix="call"))
        self._loop.run_forever()

    def _start(self, starts: Sequence[tuple[Call, Channel, float]]) -> None:
        for call, channel, start in starts:
            task = self._loop.create_task(self._make(call, channel, start))
            self._calls.add(task)
            task.add_done_callback(self._calls.discard)

    def _ask(self, questions: Sequence[tuple[OutgoingMessage, Channel]]) -> None:
        for row, channel in questions:
            task = self._loop.create_task(self._hear(row, channel))
            self._questions.add(task)
            task.add_done_callback(self._questions.discard)

    def _cancel_questions(self) -> None:
        for question in self._questions:
            question.cancel()

    async def _hear(self, row: OutgoingMessage, channel: Channel) -> None:
        known = None
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS), self._may_ask:
                known = await channel.look_up(row.reference)
        except (ChannelError, TimeoutError):
            logger.warning("look-up row=%s told nothing", row.pk)
        except Exception as error:
            logger.exception("look-up row=%s broke kind=%s", row.pk, type(error).__name__)
        self._told.put((row, known))

    async def _make(self, call: Call, channel: Channel, start: float) -> None:
        if start and (pause := start - time.monotonic()) > 0:
            await asyncio.sleep(pause)
        async with self._boarding:
            began = time.monotonic()
            outcome = await _send(channel, call)
            # Half the way towards each: a provider that becomes slow is noticed at once.
            self._call_takes = (self._call_takes + time.monotonic() - began) / 2
        self._landed.put((call, outcome))

    async def _end(self) -> None:
        self._cancel_questions()
        await asyncio.gather(*self._questions, return_exceptions=True)
        await asyncio.gather(*self._calls)
        for channel in self._channels.values():
            await channel.close()
        await self._loop.shutdown_default_executor()


async def _send(channel: Channel, call: Call) -> Outcome:
    try:
        return await channel.send(call.message, call.payload)
    except ChannelError as refused:
        return refused
    except Exception as error:  # a fault of ours, after which nobody knows what was sent
        logger.exception("call ref=%s broke kind=%s", call.message.reference, type(error).__name__)
        return AnswerLost("broken_channel")


def _all_of(waiting: queue.SimpleQueue[T], patience: float) -> list[T]:
    """What stands in a queue; waits at most ``patience`` seconds for the first."""
    taken: list[T] = []
    try:
        taken.append(waiting.get(timeout=patience))
        while True:
            taken.append(waiting.get_nowait())
    except queue.Empty:
        return taken
