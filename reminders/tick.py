"""One turn of the engine: plan what changed, work off what came in, send what is due."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django_q.tasks import async_task
from psycopg.errors import DeadlockDetected

from appointments import clock
from reminders import dispatch, look_up, marks, planner
from reminders.flight import Flight
from reminders.models import Heartbeat, Reply
from whatsapp import inbox

logger = logging.getLogger(__name__)
REST = 1.0
"""Seconds between two looks at an empty queue: how late a reminder may leave."""
LEFT_OVER = timedelta(seconds=5)
"""A webhook post this old was not worked off by the task that it started."""
LAST_WORDS = 3.0
"""Seconds that a turn with nothing left to send gives providers to tell of lost answers."""
ANSWERS_AT_ONCE = 10
PLAN_BATCHES = 3
HEARTBEAT = "tick"


def tick(
    *,
    seconds: float | None = None,
    limit: int | None = None,
    stop: threading.Event | None = None,
) -> int:
    """Work until ``seconds`` have passed, or until nothing is due when they are None.

    Ticks may overlap and run on many machines: rows are claimed, nothing else is
    locked. Returns how many calls were started.
    """
    stop = stop or threading.Event()
    ends = time.monotonic() + (seconds or 0)
    batches = PLAN_BATCHES if seconds else None
    started = idle = 0
    with Flight(settings.REMINDER_BATCH_SIZE) as flight, dispatch.Scribe() as scribe:
        while True:
            now = clock.now()
            Heartbeat.beat(HEARTBEAT, now)
            housekeep(now=now, flight=flight, plan_batches=batches)
            sent = dispatch.run(
                clock=clock.now,
                flight=flight,
                limit=None if limit is None else limit - started,
                may_go_on=lambda: not stop.is_set() and (seconds is None or time.monotonic() < ends),
                meanwhile=partial(_meanwhile, flight),
                scribe=scribe,
            )
            started += sent
            # Twice: what ended in the last look may have made its next channel due.
            idle = 0 if sent else idle + 1
            if started == limit:
                return started
            if seconds is None and idle == 2:
                if not flight.asked:
                    return started
                look_up.hear_providers(flight, now=clock.now(), seconds=LAST_WORDS)
                idle = 0
            if seconds and (time.monotonic() + REST >= ends or stop.wait(REST)):
                return started


def _meanwhile(flight: Flight, now: datetime) -> None:
    """A backlog that takes minutes is no reason to stop planning, or to look dead."""
    Heartbeat.beat(HEARTBEAT, now)
    housekeep(now=now, flight=flight, plan_batches=1)


def housekeep(*, now: datetime, flight: Flight, plan_batches: int | None = None) -> None:
    """Everything of a turn but the sending. Each part's fault is its own.

    With ``plan_batches`` no more is planned than that: what is due must not wait
    until a changed default has reached every visit there is.
    """
    parts: tuple[Callable[[], object], ...] = (
        lambda: marks.note_settings(now),
        lambda: inbox.work_off(now=now, older_than=LEFT_OVER),
        lambda: inbox.settle_parked(now=now),
        lambda: look_up.ask_providers(flight, now=now),
        lambda: dispatch.tidy(now=now, asked=flight.asked),
        lambda: planner.plan_marked(now=now, batches=plan_batches),
    )
    for part in parts:
        try:
            part()
        except Exception as error:  # a fault of one part must not stop the sending
            is_deadlock = isinstance(error.__cause__, DeadlockDetected)
            if isinstance(error, OperationalError | InterfaceError) and not is_deadlock:
                raise  # without a database nothing of the turn can go on
            logger.exception("tick part failed kind=%s", type(error).__name__)


def scheduled_tick() -> int:
    """What the django-q2 schedule calls each minute: ends shortly before the next one."""
    with _words_withheld("scheduled_tick"):
        return tick(seconds=settings.REMINDER_TICK_SECONDS)


def work_off_posts() -> None:
    """What django-q2 calls at once when a webhook post has come in and no worker is on its way.

    Takes all posts that wait. Whoever tapped waits for an answer: after each few
    posts the answers leave.
    """
    with _words_withheld("work_off_posts"):
        ends = time.monotonic() + settings.REMINDER_TICK_SECONDS
        while inbox.work_off(now=clock.now(), limit=inbox.POSTS_AT_ONCE):
            if answers := Reply.objects.due(clock.now()).count():
                with Flight(min(answers, ANSWERS_AT_ONCE)) as flight:
                    dispatch.run(clock=clock.now, flight=flight, limit=answers)
            if time.monotonic() > ends:
                # In time for the cluster, which ends what takes too long.
                async_task("reminders.tick.work_off_posts")
                return


class TaskFailed(Exception):
    """A task of django-q2 failed; the log has the place and the kind."""


@contextmanager
def _words_withheld(task: str) -> Iterator[None]:
    """django-q2 logs and keeps the words of what a task raises: they may be a patient's."""
    try:
        yield
    except Exception as error:
        logger.exception("task %s failed kind=%s", task, type(error).__name__)
        kind = type(error).__name__
    else:
        return
    raise TaskFailed(f"{task}: {kind}") from None
