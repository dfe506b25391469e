"""One turn of the engine, and what its tasks say when they fail."""

from __future__ import annotations

import threading
import traceback
from datetime import timedelta

import pytest
from django.db import OperationalError, connection

from appointments import clock
from reminders import tick as turns
from reminders.flight import Flight
from reminders.models import Heartbeat, Mark, PlanBasis, ReminderDelivery
from tests.deadlocks import SHUTDOWN, undone
from tests.factories import MARK, make_appointment, make_delivery, make_patient, soon
from tests.mail_values import attempt_of
from whatsapp import inbox
from whatsapp.models import StatusEvent

pytestmark = pytest.mark.django_db


def test_each_turn_beats(set_clock):
    now = set_clock("2026-09-16T10:00")
    assert Heartbeat.age("tick", now) is None
    turns.tick()
    assert Heartbeat.objects.get(name="tick").at == now


def test_a_tick_that_is_told_to_stop_claims_nothing_more():
    stop = threading.Event()
    stop.set()
    assert turns.tick(seconds=60, stop=stop) == 0


def test_a_fault_of_one_part_does_not_stop_the_others(no_patient_in_the_logs):
    make_appointment(patient=make_patient(full_name=f"Ana {MARK}"))
    Mark.objects.create(subject="appointment", subject_id="no-uuid", at=clock.now())
    with Flight(1) as flight:
        turns.housekeep(now=clock.now(), flight=flight)
    assert any("tick part failed kind=ValueError" in line for line in no_patient_in_the_logs.lines)


def test_a_deadlock_in_one_part_does_not_end_the_turn(no_patient_in_the_logs):
    visit = make_appointment(at=soon())
    assert not visit.deliveries.exists()
    PlanBasis.objects.all().delete()
    with undone("reminders_planbasis", times=1), Flight(1) as flight:
        turns.housekeep(now=clock.now(), flight=flight)
        assert visit.deliveries.exists()
        assert not PlanBasis.objects.exists()
        turns.housekeep(now=clock.now(), flight=flight)
    assert PlanBasis.objects.exists()
    assert any("tick part failed kind=OperationalError" in line for line in no_patient_in_the_logs.lines)


def test_a_database_that_is_lost_ends_the_turn():
    PlanBasis.objects.all().delete()
    with (
        undone("reminders_planbasis", times=1, code=SHUTDOWN),
        Flight(1) as flight,
        pytest.raises(OperationalError),
    ):
        turns.housekeep(now=clock.now(), flight=flight)


@pytest.mark.parametrize(("times", "settled"), [(1, 2), (2, 1)])
def test_parked_receipts_that_a_deadlock_undid_are_offered_one_by_one(times, settled):
    rows = [make_delivery(status="sent", attempt=1, called_at=clock.now()) for _ in range(2)]
    for row in rows:
        attempt_of(row, message_id=f"wamid.{row.pk}")
        StatusEvent.objects.create(
            wamid=f"wamid.{row.pk}", status="delivered", reference=row.reference, at=clock.now(), errors=[],
            received_at=clock.now(), next_offer_at=clock.now(),
        )  # fmt: skip
    with undone("reminders_reminderdelivery", times=times):
        assert inbox.settle_parked(now=clock.now()) == settled
    # What a deadlock undid a second time is offered again later.
    inbox.settle_parked(now=clock.now() + timedelta(minutes=1))
    assert all(
        row.status == "delivered" for row in ReminderDelivery.objects.in_bulk([r.pk for r in rows]).values()
    )


@pytest.mark.django_db(transaction=True)
def test_a_task_that_fails_tells_the_cluster_its_kind_and_no_words(settings):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE reminders_heartbeat RENAME TO elsewhere")
    try:
        with pytest.raises(turns.TaskFailed) as failed:
            turns.scheduled_tick()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE elsewhere RENAME TO reminders_heartbeat")
    told = "".join(traceback.format_exception(failed.value))
    assert str(failed.value) == "scheduled_tick: ProgrammingError"
    assert "does not exist" not in told
