"""Workers that claim at once never share a row, and only the holder may finish it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connection, transaction

from appointments import clock
from appointments.models import Appointment
from reminders import dispatch
from reminders.channels.base import ChannelError, Message, Receipt
from reminders.flight import Call
from reminders.line import Line
from reminders.models import DeliveryAttempt, ReminderDelivery
from tests.factories import make_appointment, make_delivery, make_doctor, soon

LEASE = timedelta(minutes=2)


def call_for(row: ReminderDelivery) -> Call:
    message = Message(to="+584125550000", reference=row.reference, kind="x", text="x")
    attempt = row.attempts.filter(number=row.attempt).first()
    return Call(row=row, message=message, payload={}, attempt_id=attempt.pk if attempt else 0)


@pytest.mark.django_db(transaction=True)
def test_four_workers_that_claim_at_once_never_share_a_row():
    doctor = make_doctor()
    for number in range(40):
        make_delivery(appointment=make_appointment(at=soon(3 + number), doctor=doctor))
    start = Barrier(4)

    def work(_: int) -> list:
        start.wait()
        try:
            claimed = Line(ReminderDelivery.objects.all()).claim(15, now=clock.now())
            return [row.pk for row in claimed]
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        taken = [pk for pks in pool.map(work, range(4)) for pk in pks]
    assert len(taken) == len(set(taken)) == 40
    assert ReminderDelivery.objects.filter(status="sending", attempt=1).count() == 40


@pytest.mark.django_db(transaction=True)
def test_a_visit_that_the_desk_holds_is_left_for_later_and_not_waited_for():
    row = make_delivery()
    results = []

    def work() -> None:
        results.append(Line(ReminderDelivery.objects.all()).claim(5, now=clock.now()))
        connection.close()

    with transaction.atomic(), ThreadPoolExecutor(1) as pool:
        Appointment.objects.select_for_update().get(pk=row.appointment_id)
        pool.submit(work).result(timeout=10)
    assert results == [[]]
    assert len(Line(ReminderDelivery.objects.all()).claim(5, now=clock.now())) == 1


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", [Receipt(message_id="wamid.late"), ChannelError("131016")])
def test_a_worker_that_lost_its_lease_changes_nothing(outcome):
    row = make_delivery()
    [stale] = Line(ReminderDelivery.objects.all()).claim(1, now=clock.now())
    # Its lease ran out before the call; another worker holds the row by now.
    dispatch.tidy(now=clock.now() + LEASE + timedelta(seconds=1))
    ReminderDelivery.objects.update(next_attempt_at=clock.now())
    [holder] = Line(ReminderDelivery.objects.all()).claim(1, now=clock.now())
    before = ReminderDelivery.objects.values().get(pk=row.pk)
    dispatch.record([(call_for(stale), outcome)], now=clock.now())
    assert ReminderDelivery.objects.values().get(pk=row.pk) == before
    assert holder.attempt == 2
    dispatch.record([(call_for(holder), Receipt(message_id="wamid.mine"))], now=clock.now())
    row.refresh_from_db()
    assert (row.status, row.message_id) == ("sent", "wamid.mine")


@pytest.mark.django_db
def test_a_worker_dead_before_the_call_leaves_the_row_pending_and_the_death_counts():
    row = make_delivery()
    Line(ReminderDelivery.objects.all()).claim(1, now=clock.now())
    dispatch.tidy(now=clock.now() + LEASE + timedelta(seconds=1))
    row.refresh_from_db()
    assert (row.status, row.attempt, row.retry_count, row.lease_until) == ("pending", 1, 1, None)
    assert row.next_attempt_at > clock.now()


@pytest.mark.django_db
def test_a_worker_dead_after_the_call_leaves_the_row_unknown_and_then_without_answer(settings):
    row = make_delivery()
    assert len(dispatch.prepare(1, now=clock.now())) == 1
    dispatch.tidy(now=clock.now() + LEASE + timedelta(seconds=1))
    row.refresh_from_db()
    assert (row.status, row.lease_until) == ("unknown", None)
    assert row.attempts.get().outcome == "lost"
    wait = timedelta(seconds=settings.REMINDER_UNKNOWN_WAIT_SECONDS)
    dispatch.tidy(now=row.next_attempt_at - timedelta(seconds=1))
    row.refresh_from_db()
    assert row.status == "unknown"
    dispatch.tidy(now=clock.now() + LEASE + wait + timedelta(minutes=1))
    row.refresh_from_db()
    assert (row.status, row.reason) == ("failed", "no_answer")
    assert DeliveryAttempt.objects.filter(delivery=row).count() == 1


@pytest.mark.django_db
def test_a_row_that_kills_its_workers_ends(settings):
    row = make_delivery(useful_until=clock.now() + timedelta(days=30))
    now = clock.now()
    for _ in range(settings.REMINDER_MAX_ATTEMPTS):
        assert Line(ReminderDelivery.objects.all()).claim(1, now=now)
        now += timedelta(hours=1)
        dispatch.tidy(now=now)
        now += timedelta(hours=1)
    row.refresh_from_db()
    assert (row.status, row.reason) == ("failed", "attempts_exhausted")
    assert not Line(ReminderDelivery.objects.all()).claim(1, now=now)


@pytest.mark.django_db
def test_no_more_rows_are_claimed_than_can_be_called_at_once():
    for hours in range(3, 8):
        make_delivery(appointment=make_appointment(at=soon(hours)))
    assert len(dispatch.prepare(2, now=clock.now())) == 2
    assert ReminderDelivery.objects.filter(status="sending").count() == 2
    assert ReminderDelivery.objects.filter(status="pending").count() == 3
