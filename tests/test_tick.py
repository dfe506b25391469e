"""One turn of the engine, and what its tasks say when they fail."""

from __future__ import annotations

import threading
import traceback

import pytest
from django.db import connection

from appointments import clock
from reminders import tick as turns
from reminders.flight import Flight
from reminders.models import Heartbeat, Mark
from tests.factories import MARK, make_appointment, make_patient

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
