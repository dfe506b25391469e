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
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from django.conf import settings

from reminders.channels import get_channel
from reminders.channels.base import AnswerLost, Channel, ChannelError, Message, Receipt
from reminders.models.outgoing import OutgoingMessage

logger = logging.getLogger(__name__)
Outcome = Receipt | ChannelError
LOOK_UP_SECONDS = 15.0
"""How long providers are asked about lost answers, all at once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Call:
    """A row whose attempt is written down, with the message that goes out for it."""

    row: OutgoingMessage
    message: Message
    payload: dict[str, Any]
    """The message as the channel puts it on the wire: what the ledger holds is what leaves."""
    attempt_id: int


class Flight:
    """Up to ``seats`` calls at once. Use as a context; leaving it waits for those in the air."""

    def __init__(self, seats: int) -> None:
        self._seats = seats
        self._in_air: Counter[str] = Counter()
        self._landed: queue.SimpleQueue[tuple[Call, Outcome]] = queue.SimpleQueue()
        self._channels: dict[str, Channel] = {}
        # Per channel the moment, on the monotonic clock, at which its next message may leave.
        self._next_start: dict[str, float] = defaultdict(float)
        self._calls: set[asyncio.Task[None]] = set()
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
        return self._seats - self._in_air.total()

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
        ended: list[tuple[Call, Outcome]] = []
        try:
            ended.append(self._landed.get(timeout=patience))
            while True:
                ended.append(self._landed.get_nowait())
        except queue.Empty:
            pass
        self._in_air.subtract(call.row.channel for call, _ in ended)
        return ended

    def look_up(self, rows: Sequence[OutgoingMessage]) -> dict[UUID, Receipt | None]:
        """What the providers know of messages whose answers were lost, by row.

        A row is missing where the provider could not tell.
        """
        asked = {row.pk: self._channel(row.channel).look_up(row.reference) for row in rows}
        return asyncio.run_coroutine_threadsafe(_ask(asked), self._loop).result()

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

    async def _make(self, call: Call, channel: Channel, start: float) -> None:
        if start and (pause := start - time.monotonic()) > 0:
            await asyncio.sleep(pause)
        self._landed.put((call, await _send(channel, call)))

    async def _end(self) -> None:
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


async def _ask(asked: dict[UUID, Coroutine[Any, Any, Receipt | None]]) -> dict[UUID, Receipt | None]:
    tasks = {pk: asyncio.ensure_future(question) for pk, question in asked.items()}
    if tasks:
        _, slow = await asyncio.wait(tasks.values(), timeout=LOOK_UP_SECONDS)
        for task in slow:
            task.cancel()
    known: dict[UUID, Receipt | None] = {}
    for pk, task in tasks.items():
        try:
            known[pk] = await task
        except (ChannelError, asyncio.CancelledError):
            logger.warning("look-up row=%s told nothing", pk)
        except Exception as error:
            logger.exception("look-up row=%s broke kind=%s", pk, type(error).__name__)
    return known
