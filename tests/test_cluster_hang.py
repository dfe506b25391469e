"""The known hang of django-q2: an idle worker dies, and no task runs any more."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django_q.models import Success
from django_q.tasks import async_task

from amedi.sandbox import Sandbox
from amedi.supervisor import Program, Supervisor
from appointments import clock
from reminders.models import Heartbeat
from reminders.tick import HEARTBEAT
from tests.engine import database_url, due_visit, wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_hung_cluster_is_restarted_and_what_is_due_leaves(sandbox, supervisor):
    supervisor.start(cluster(sandbox))
    assert ticks()

    kill_idle_workers(supervisor)
    assert not ticks(seconds=6), "the hang is gone: then the watch over the cluster can go, too"
    visit = due_visit()

    limit = timedelta(seconds=3)
    assert supervisor.restart_if_silent("cluster", since=Heartbeat.age(HEARTBEAT, clock.now()), limit=limit)
    assert ticks()
    wait_for(lambda: visit.deliveries.filter(status__in=["sent", "delivered"]).exists())
    assert list(sandbox.accepted_per_delivery().values()) == [1]
    # The new cluster is given time for its first sign of life.
    assert not supervisor.restart_if_silent("cluster", since=None, limit=timedelta(seconds=150))


@pytest.fixture
def supervisor(tmp_path: Path, sandbox: Sandbox) -> Iterator[Supervisor]:
    supervisor = Supervisor(tmp_path)
    supervisor.take_over()
    yield supervisor
    # Before the test's tables are emptied.
    supervisor.stop()


def cluster(sandbox: Sandbox) -> Program:
    """A real cluster on the test's database, which sends to the sandbox."""
    return Program(
        name="cluster",
        command=[sys.executable, str(settings.BASE_DIR / "manage.py"), "qcluster"],
        environment={
            **os.environ,
            "DATABASE_URL": database_url(),
            "WHATSAPP_API_URL": sandbox.url,
            "REMINDER_QUIET_HOURS": "00:00-00:00",
            "REMINDER_TICK_SECONDS": "1",
        },
    )


def ticks(*, seconds: float = 20) -> bool:
    """Whether a tick that is asked for now runs in that time."""
    asked_at, ends, pause = clock.now(), time.monotonic() + seconds, threading.Event()
    async_task("reminders.tick.scheduled_tick")
    while not Heartbeat.objects.filter(at__gt=asked_at).exists():
        if time.monotonic() > ends:
            return False
        pause.wait(0.05)
    return True


def kill_idle_workers(supervisor: Supervisor) -> None:
    """All of them wait for work; one holds the lock of the queue, and takes it along."""
    log, count = supervisor.log("cluster"), settings.Q_CLUSTER["workers"]
    wait_for(lambda: log.read_text().count("ready for work at") == count)
    wait_for(Success.objects.exists), "the first tick has not ended"
    for pid in re.findall(r"ready for work at (\d+)", log.read_text()):
        os.kill(int(pid), signal.SIGKILL)
