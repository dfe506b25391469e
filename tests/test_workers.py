"""Workers as real processes: several at once, and killed with -9 before and after the call.

Real processes, real connections; the worker is stopped at a line by the locks
and the provider that the test holds, never by a clock.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.db import transaction

from appointments import clock
from appointments.models import Patient
from reminders import dispatch
from reminders.models import ReminderDelivery
from tests.engine import database_url, due_visit, settle, wait_for
from tests.factories import MARK, PHONE_MARK, agree, make_appointment

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def worker(sandbox, tmp_path):
    """Starts `dispatch_reminders` as a process of its own, against the test's database and provider."""
    log = tmp_path / "worker.log"
    output = log.open("wb")
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "dispatch_reminders"],
            cwd=django_settings.BASE_DIR,
            env=os.environ
            | {
                "DATABASE_URL": database_url(),
                "WHATSAPP_API_URL": sandbox.url,
                "REMINDER_QUIET_HOURS": "00:00-00:00",
            },
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
    output.close()
    assert not [mark for mark in (MARK, PHONE_MARK) if mark in log.read_text()]


def the_row(visit) -> ReminderDelivery:
    return visit.deliveries.get(channel="whatsapp")


def after_the_lease() -> None:
    lease = timedelta(seconds=django_settings.REMINDER_LEASE_SECONDS + 1)
    dispatch.tidy(now=clock.now() + lease)


@pytest.mark.complaint(
    "Two runs at once send twice, and one that is missed never sends.",
    about="twice",
    source="londonhackspace/hackspace-foundation-sites #153; Wunderbyte-GmbH/moodle-mod_booking #685, #973",
)
def test_three_dispatchers_at_once_send_each_row_once(sandbox, worker):
    """Case A2 and T11, with the provider as the one who counts."""
    first = due_visit()
    visits = [first, *(make_appointment(at=first.starts_at) for _ in range(9))]
    for visit in visits[1:]:
        agree(visit.patient)
    processes = [worker() for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    settle(sandbox)
    counted = sandbox.accepted_per_delivery()
    assert set(counted.values()) == {1}
    assert set(counted) == {f"d:{the_row(visit).pk}" for visit in visits}


def test_killed_between_claim_and_call_the_row_waits_again_and_goes_once(sandbox, worker):
    visit = due_visit()
    with transaction.atomic():
        # The last look before the call waits for this patient.
        Patient.objects.select_for_update().get(pk=visit.patient_id)
        process = worker()
        wait_for(lambda: visit.deliveries.filter(status="sending").exists())
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    row = the_row(visit)
    assert (row.status, row.attempt, row.called_at) == ("sending", 1, None)
    assert not sandbox.accepted
    after_the_lease()
    row.refresh_from_db()
    assert (row.status, row.retry_count) == ("pending", 1)
    ReminderDelivery.objects.filter(pk=row.pk).update(next_attempt_at=clock.now())
    settle(sandbox)
    assert len(sandbox.accepted_for(f"d:{row.pk}")) == 1


def test_killed_after_the_call_the_row_is_unknown_until_the_receipt_tells(sandbox, worker):
    """T01 and case D7."""
    visit = due_visit()
    sandbox.change(delay_seconds=3, receipts=())
    process = worker()
    wait_for(lambda: bool(sandbox.accepted))
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    row = the_row(visit)
    assert (row.status, row.called_at is not None) == ("sending", True)
    after_the_lease()
    row.refresh_from_db()
    assert (row.status, row.reason) == ("unknown", "")
    sandbox.change(delay_seconds=0, receipts=("sent", "delivered"))
    sandbox.send_receipts(sandbox.accepted[0])
    settle(sandbox)
    row.refresh_from_db()
    assert row.status == "delivered"
    assert len(sandbox.accepted_for(f"d:{row.pk}")) == 1
