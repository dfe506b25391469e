"""News for the open rooms: one database connection hears them for all rooms of a process.

A notification names a doctor, and an event says only that something changed: the
page reads its board again, as whoever is logged in. So what is lost while there
was no connection is made good by one event after it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import psycopg
from django.db import connections

logger = logging.getLogger(__name__)

Handler = Callable[[int, FrameType | None], Any]

CHANNEL = "amedi_room"
"""What the triggers of migration 0006 notify."""
LISTENER = "amedi room"
"""How the connection is called in ``pg_stat_activity``."""
PACE = 1.0
"""Seconds between two events to one room, at least."""
BEAT = 15.0
"""Seconds after which a room hears from us, at most: by that it knows that it is live."""
LIFE = (240.0, 360.0)
"""Seconds after which a stream ends, so that the rights of whoever listens are looked at again;
at random between these, or all rooms would come back at once."""
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 5.0
"""Seconds before the database is tried again."""
# A database host that vanished says nothing: by these the system finds out within half a minute.
KEEPALIVE = {"keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}

START = b"retry: 1000\n\n"
CHANGED = b"event: changed\ndata:\n\n"
"""Read the board again; from now on it is live."""
LOST = b"event: lost\ndata:\n\n"
"""We do not hear the database: what the room shows may be old."""
STILL = b"event: still\ndata:\n\n"
"""Nothing has changed."""


class Hub:
    """Hears which doctors' day changed, and rings the bells of the rooms that may see them."""

    def __init__(self) -> None:
        self.is_live = False
        self.is_closing = False
        self._bells: dict[asyncio.Event, frozenset[str]] = {}
        self._listening: asyncio.Task[None] | None = None

    @contextmanager
    def bell(self, doctors: frozenset[str]) -> Iterator[asyncio.Event]:
        """Set whenever one of these doctors' day changed, or the connection came or went.

        However often it rings unheard, it has rung once: this is all that is queued.
        """
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())
            _when_told_to_stop(self.close)
        bell = asyncio.Event()
        self._bells[bell] = doctors
        try:
            yield bell
        finally:
            del self._bells[bell]

    def close(self) -> None:
        """End every stream."""
        self.is_closing = True
        self._ring_all()

    async def _listen(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(**_address()) as connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    pause = FIRST_PAUSE
                    self._set_live(True)
                    async for note in connection.notifies():
                        self._ring(note.payload)
            except Exception as error:
                # Whatever it was: without this task every room would stay deaf.
                logger.warning("room_listener_lost error=%s next_try_s=%.2f", type(error).__name__, pause)
            self._set_live(False)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _set_live(self, is_live: bool) -> None:
        if is_live:
            logger.info("room_listener_live rooms=%d", len(self._bells))
        if is_live or self.is_live:
            self.is_live = is_live
            self._ring_all()

    def _ring_all(self) -> None:
        for bell in self._bells:
            bell.set()

    def _ring(self, doctor: str) -> None:
        for bell, doctors in self._bells.items():
            if doctor in doctors:
                bell.set()


hub = Hub()


async def events(doctors: frozenset[str]) -> AsyncIterator[bytes]:
    """What one open room is told: at once where it stands, then at most one event a second."""
    ends = time.monotonic() + random.uniform(*LIFE)  # noqa: S311
    with hub.bell(doctors) as bell:
        yield START
        has_rung = True
        while time.monotonic() < ends and not hub.is_closing:
            bell.clear()
            yield LOST if not hub.is_live else CHANGED if has_rung else STILL
            await asyncio.sleep(PACE)
            has_rung = await _rings(bell, within=BEAT - PACE)


async def _rings(bell: asyncio.Event, *, within: float) -> bool:
    try:
        return await asyncio.wait_for(bell.wait(), within)
    except TimeoutError:
        return False


def _when_told_to_stop(call: Callable[[], None]) -> None:
    """Have it called in this loop at SIGTERM or Ctrl-C, before the server's own handler.

    uvicorn waits for open streams, for ever unless it is given a limit, and tells an
    application of its end only after that.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        servers_own = signal.getsignal(number)
        if not callable(servers_own):
            continue

        def told(number: int, frame: FrameType | None, then: Handler = servers_own) -> None:
            loop.call_soon_threadsafe(call)
            then(number, frame)

        signal.signal(number, told)


def _address() -> dict[str, Any]:
    """The parameters of Django's own connection, for an asynchronous one that stays."""
    django_only = ("cursor_factory", "context")
    parameters = connections["default"].get_connection_params()
    kept = {name: value for name, value in parameters.items() if name not in django_only}
    return KEEPALIVE | {"connect_timeout": 5} | kept | {"application_name": LISTENER, "autocommit": True}
