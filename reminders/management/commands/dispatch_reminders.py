from __future__ import annotations

import signal
import threading
from argparse import ArgumentParser, ArgumentTypeError
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand
from django.db import InterfaceError, OperationalError, close_old_connections

from reminders.tick import tick

LONGEST_TURN = 50.0
LONGEST_REST = 30.0


class Command(BaseCommand):
    """The dispatcher by hand, or as a process of its own beside the cluster or instead of it."""

    help = "Plan what changed and send what is due: once, or until stopped with --loop."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--loop", action="store_true", help="go on until SIGTERM or Ctrl-C")
        parser.add_argument("--limit", type=positive, help="send at most this many messages, then end")

    def handle(self, *, loop: bool, limit: int | None, **options: Any) -> None:
        stop = threading.Event()

        def stop_claiming(signum: int, frame: FrameType | None) -> None:
            stop.set()

        if loop:
            # The calls in the air land and are recorded; nothing new is claimed.
            signal.signal(signal.SIGTERM, stop_claiming)
            signal.signal(signal.SIGINT, stop_claiming)
        sent = self.run_until(stop, limit) if loop else tick(limit=limit)
        self.stdout.write(f"{sent} calls started.")

    def run_until(self, stop: threading.Event, limit: int | None) -> int:
        """Turn after turn, also across a restart of the database."""
        sent, rest = 0, 1.0
        while not stop.is_set() and (limit is None or sent < limit):
            try:
                sent += tick(seconds=LONGEST_TURN, limit=None if limit is None else limit - sent, stop=stop)
                rest = 1.0
            except (OperationalError, InterfaceError) as error:
                self.stderr.write(
                    f"The database does not answer ({type(error).__name__}); next try in {rest:.0f} s."
                )
                close_old_connections()
                stop.wait(rest)
                rest = min(rest * 2, LONGEST_REST)
        return sent


def positive(text: str) -> int:
    """A whole number above zero; raises ArgumentTypeError."""
    if not text.isdigit() or int(text) < 1:
        raise ArgumentTypeError(f"must be a whole number above zero, and is {text!r}")
    return int(text)
