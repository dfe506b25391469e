"""Who is next in a queue, read now and then and not for each claim.

After an outage thousands are due, and to sort them all again for every twenty
that are claimed would cost more than to send them. Reading is no claim: what
another worker took meanwhile is passed over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Generic

from django.conf import settings

from reminders.models.outgoing import O, QueueQuerySet

DEPTH = 2_000


class Room:
    """How many more messages each channel can take in one round."""

    def __init__(self, of: Callable[[str], int]) -> None:
        """``of`` says how many a channel can take at the beginning."""
        self._of = of
        self._left: dict[str, int] = {}

    def take(self, channel: str) -> bool:
        """Take one place of a channel; False when it has none left."""
        if channel not in self._left:
            self._left[channel] = self._of(channel)
        self._left[channel] -= 1
        return self._left[channel] >= 0


class Line(Generic[O]):
    """The due rows of a queue, nearest visit first."""

    def __init__(self, queue: QueueQuerySet[O], *, fresh_seconds: float = 1.0) -> None:
        """After ``fresh_seconds`` it is read again: for who is nearer than all that stand in it."""
        self._queue = queue
        self._fresh_seconds = fresh_seconds
        self._waiting: list[tuple[Any, str]] = []
        self._read_at = float("-inf")

    def claim(self, places: int, *, now: datetime, room: Room | None = None) -> list[O]:
        """Make up to ``places`` due rows ours until the lease ends; ``room`` limits them by channel."""
        claimed: list[O] = []
        is_fresh = False
        while places > len(claimed):
            if not self._waiting or time.monotonic() - self._read_at > self._fresh_seconds:
                if is_fresh:
                    break
                self._waiting = self._queue.line_up(now, limit=DEPTH)[::-1]
                self._read_at = time.monotonic()
                is_fresh = True
            ids = self._next(places - len(claimed), room)
            if ids:
                lease = timedelta(seconds=settings.REMINDER_LEASE_SECONDS)
                claimed += self._queue.claim(ids, now=now, lease=lease)
            elif self._waiting:
                break  # those who are left keep a pace of their own
        return claimed

    def _next(self, places: int, room: Room | None) -> list[Any]:
        """Take the next ids out of the line, leaving those of channels without room in their places."""
        ids: list[Any] = []
        kept: list[tuple[Any, str]] = []
        while self._waiting and len(ids) < places:
            pk, channel = self._waiting.pop()
            if room is None or room.take(channel):
                ids.append(pk)
            else:
                kept.append((pk, channel))
        self._waiting += reversed(kept)
        return ids
