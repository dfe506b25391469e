"""What goes wrong beside a call does not cost the call its outcome."""

from __future__ import annotations

import threading

import pytest
from django.db import OperationalError, connection, connections, transaction

from appointments import clock
from appointments.models import Appointment, Patient
from reminders import dispatch
from reminders.flight import Flight
from reminders.line import Line
from reminders.models import ReminderDelivery
from tests.engine import wait_for
from tests.factories import make_appointment, make_delivery, make_doctor, soon

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def outbox(settings):
    settings.CHANNEL_BACKENDS = {"whatsapp": {"BACKEND": "reminders.channels.locmem.LocmemChannel"}}
    settings.REMINDER_QUIET_HOURS = (settings.REMINDER_QUIET_HOURS[0],) * 2


def test_calls_in_the_air_are_recorded_when_the_database_fails_meanwhile():
    row = make_delivery()
    # The second reading of the clock, after the take-off, meets a database that is gone.
    answers = iter([False, True])

    def failing_clock():
        if next(answers, False):
            raise OperationalError
        return clock.now()

    with Flight(4) as flight, pytest.raises(OperationalError):
        dispatch.run(clock=failing_clock, flight=flight)
    row.refresh_from_db()
    assert (row.status, bool(row.message_id)) == ("sent", True)


def test_locks_that_cross_ours_cost_one_turn_and_nothing_else():
    """The desk holds the patient and then wants the visit, as the last look does the other way round."""
    visit = make_appointment(at=soon(), doctor=make_doctor())
    row = make_delivery(appointment=visit)
    [claimed] = Line(ReminderDelivery.objects.all()).claim(1, now=clock.now())
    outcomes: list[object] = []

    def look() -> None:
        outcomes.append(dispatch._look(dispatch.last_look.deliveries, [claimed], clock.now()))
        connections.close_all()

    def is_waiting() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            return cursor.fetchone()[0] > 0

    thread = threading.Thread(target=look)
    try:
        with transaction.atomic():
            Patient.objects.select_for_update().get(pk=visit.patient_id)
            thread.start()
            wait_for(is_waiting)
            Appointment.objects.select_for_update().get(pk=visit.pk)
    except OperationalError:
        outcomes.append("the desk gave way")
    thread.join(20)
    row.refresh_from_db()
    if [] in outcomes:
        assert (row.status, row.called_at) == ("sending", None)
    else:
        assert row.called_at is not None
    assert len(outcomes) in (1, 2)
