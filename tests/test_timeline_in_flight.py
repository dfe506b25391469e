"""What changes while a reminder is on its way: section C of the timeline, by number."""

# Told elsewhere: C1, C3, C10 and C11, and what the patient is told of a change, in test_notices.

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, time, timedelta

import psycopg
import pytest
from django.db import connection, connections, transaction

from appointments import booking, clock
from appointments.models import Appointment
from reminders import conversation, dispatch, last_look, receipts, taps
from reminders.channels.base import Receipt
from reminders.flight import Call
from reminders.models import DeliveryAttempt, ReminderDelivery, Reply
from reminders.room.stream import CHANNEL
from reminders.taps import Word
from tests.days import Days, ends
from tests.engine import database_url
from tests.factories import make_delivery
from tests.room import today

pytestmark = pytest.mark.django_db


@pytest.fixture
def days(settings, set_clock) -> Days:
    days = Days(settings, set_clock)
    days.rules("24h")
    return days


@pytest.fixture
def in_flight(days) -> tuple[Days, Appointment, Call]:
    """R24 of 2026-09-17 at ten is claimed at 10:00:00 of the day before; the provider has not answered."""
    visit = days.book()
    days.until("2026-09-16T09:59")
    days.now_is("2026-09-16T10:00:00")
    [call] = dispatch.prepare(1, now=clock.now())
    return days, visit, call


def move(visit: Appointment, day: date) -> None:
    assert booking.reschedule(visit, date=day, start_time=time(10), actor=booking.SYSTEM)


@pytest.mark.complaint(
    "Who was reminded once is not reminded of the new date.",
    about="moves",
    source="frappe/health, read in its code",
)
@pytest.mark.parametrize("to", [pytest.param(date(2026, 9, 18), id="C6")])
def test_a_visit_that_moves_during_the_call_is_reminded_of_in_its_new_place_too(in_flight, to):
    days, visit, call = in_flight
    days.now_is("2026-09-16T10:00:03")
    move(visit, to)
    days.now_is("2026-09-16T10:00:08")
    dispatch.record([(call, Receipt(message_id="wamid.one"))], now=clock.now())
    assert days.until("2026-09-18T09:00") == ["24h whatsapp 2026-09-17T10:00"]
    of_versions = ReminderDelivery.objects.order_by("sequence").values_list("sequence", "status", "reason")
    assert list(of_versions) == [(0, "sent", ""), (1, "sent", "")]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("days_later", [pytest.param(1, id="C6")])
def test_a_call_that_is_open_holds_no_lock(days_later):
    row = make_delivery()
    [call] = dispatch.prepare(1, now=clock.now())
    visit = row.appointment

    def move_beside() -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '1s'")
                later = visit.date + timedelta(days=days_later)
                booking.reschedule(visit, date=later, start_time=visit.start_time, actor=booking.SYSTEM)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(move_beside).result(20)
    dispatch.record([(call, Receipt(message_id="wamid.one"))], now=clock.now())
    row.refresh_from_db()
    assert (row.status, row.sequence) == ("sent", 0)
    assert Appointment.objects.get(pk=visit.pk).sequence == 1


@pytest.mark.complaint(
    "The button of an old message acts on another visit.",
    about="people",
    source="tactilenews/100eyes #1653, #2081, #2093",
)
@pytest.mark.parametrize("to", [pytest.param(date(2026, 9, 18), id="C7")])
def test_a_button_of_the_version_before_confirms_nothing_and_offers_the_new_time(in_flight, to):
    days, visit, call = in_flight
    old_button = taps.payload(Word.CONFIRM, visit)
    days.now_is("2026-09-16T10:00:03")
    move(visit, to)
    days.now_is("2026-09-16T10:00:08")
    dispatch.record([(call, Receipt(message_id="wamid.one"))], now=clock.now())
    days.now_is("2026-09-16T10:02")
    tap = conversation.Tapped(
        message_id="wamid.tap",
        phone=call.message.to.removeprefix("+"),
        user_id="",
        payload=old_button,
        in_answer_to="wamid.one",
        at=clock.now(),
    )
    assert conversation.tapped(tap, now=clock.now())
    assert Appointment.objects.get(pk=visit.pk).status == "scheduled"
    [answer] = dispatch.prepare(1, now=clock.now())
    assert isinstance(answer.row, Reply)
    assert "ahora es el viernes 18 de septiembre, a las 10:00 a. m." in answer.message.text
    assert answer.message.text.endswith("¿La confirma?")
    [button] = answer.message.buttons
    read = taps.read(button.payload)
    assert read is not None
    assert (button.title, read.word, read.sequence) == ("Confirmar", Word.CONFIRM, 1)


def cancel(visit: Appointment) -> None:
    assert booking.cancel(visit, actor=booking.SYSTEM)


def arrive(visit: Appointment) -> None:
    assert booking.check_in(visit, actor=booking.SYSTEM)


@pytest.mark.complaint(
    "Reminders still leave after the visit was called off.",
    about="moves",
    source="calcom/cal.diy #7225, #6973, PR#6991, PR#7232",
)
@pytest.mark.parametrize(
    ("change", "end"),
    [
        pytest.param(cancel, "visit_cancelled", id="C8"),
        pytest.param(arrive, "visit_closed", id="beside C8: arrived"),
        pytest.param(lambda visit: move(visit, date(2026, 9, 18)), "moved", id="beside C8: moved"),
    ],
)
def test_what_was_committed_before_the_call_counts_whatever_the_list_said(days, change, end):
    visit = days.book()
    days.until("2026-09-16T09:59")
    # The list is read and the row claimed; then the desk is quicker than the call.
    days.now_is("2026-09-16T10:00")
    claimed = dispatch.Lines().deliveries.claim(5, now=clock.now())
    assert [row.appointment_id for row in claimed] == [visit.pk]
    change(visit)
    assert last_look.deliveries(claimed, now=clock.now()) == []
    row = ReminderDelivery.objects.get(sequence=0)
    assert (row.status, row.reason, row.called_at) == ("cancelled", end, None)
    assert not DeliveryAttempt.objects.exists()
    if change is not cancel:
        return
    assert days.until("2026-09-17T09:00") == []
    assert ends(visit) == ["24h whatsapp visit_cancelled"]


Heard = Callable[[], int]


@pytest.fixture
def rings() -> Iterator[Heard]:
    """How often the rooms were told to look, since it was last asked."""
    with psycopg.connect(database_url(), autocommit=True) as listener:
        listener.execute(f"LISTEN {CHANNEL}")

        def since() -> int:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_notify(%s, 'end')", [CHANNEL])
            for count, note in enumerate(listener.notifies(timeout=20)):
                if note.payload == "end":
                    return count
            pytest.fail("the end was not notified")

        yield since


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "order",
    [
        pytest.param(["delivered", "sent", "sent", "read", "delivered"], id="C13"),
        pytest.param(["read", "sent", "delivered", "read"], id="beside C13: read first"),
    ],
)
def test_late_receipts_lower_nothing_and_ring_in_no_room_after_the_reading(rings, order):
    row = make_delivery(appointment=today())
    [call] = dispatch.prepare(1, now=clock.now())
    dispatch.record([(call, Receipt(message_id="wamid.one"))], now=clock.now())
    heard = []
    rings()
    for status in order:
        news = receipts.Receipt(
            reference=call.row.reference, message_id="wamid.one", status=status, at=clock.now()
        )
        assert receipts.advance(news)
        heard.append(rings())
    row.refresh_from_db()
    assert row.status == "read"
    assert heard[order.index("read")] == 1
    assert not any(heard[order.index("read") + 1 :])
