"""One dispatcher, begun at a moment: what a tick does, with nothing around it.

    python -m bench.worker UNIX_TIME

Is ready before, sends until nothing is due, prints how many calls it started,
and stays until it is ended, so that others can read what it used.
"""

from __future__ import annotations

import signal
import sys
import time

import django


def work(begin: float) -> None:
    """Wait for the moment, and work the queue off."""
    from django.db import connection

    from reminders.tick import tick

    connection.ensure_connection()
    time.sleep(max(0.0, begin - time.time()))
    print(tick(), flush=True)
    signal.pause()


if __name__ == "__main__":
    django.setup()
    work(float(sys.argv[1]))
