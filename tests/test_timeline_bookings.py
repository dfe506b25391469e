"""What leaves for a visit, by when it was booked: section A of the timeline, by number."""

# Told elsewhere: the messages that tell of a booking, in test_notices; three
# processes at once (A2), in test_workers; the rows alone, in test_timeline_plan.

from __future__ import annotations

import pytest

from appointments import booking, clock
from reminders import dispatch
from reminders.models import ReminderDelivery
from reminders.timeline import ReminderType
from tests.days import Days, ends

pytestmark = pytest.mark.django_db
EVE, MORNING = "24h whatsapp 2026-09-16T10:00", "2h whatsapp 2026-09-17T08:00"
LATE_EVE = ["24h whatsapp booked_late", "2h whatsapp sent"]
LATE = ["24h whatsapp booked_late", "2h whatsapp booked_late"]


@pytest.fixture
def days(settings, set_clock) -> Days:
    days = Days(settings, set_clock)
    days.rules("24h", "2h")
    return days


BOOKINGS = [
    ("A1", "2026-09-10T09:00", [EVE, MORNING], ["24h whatsapp sent", "2h whatsapp sent"]),
    ("A3", "2026-09-17T07:00", [MORNING], LATE_EVE),
    ("A4a", "2026-09-17T07:30", [], LATE),
    ("A4b", "2026-09-17T07:29", [MORNING], LATE_EVE),
    ("A4c", "2026-09-17T06:30", [MORNING], LATE_EVE),
    ("A5", "2026-09-17T09:15", [], LATE),
    ("A6", "2026-09-16T10:00", [MORNING], LATE_EVE),
    ("beside A4: within the night's last minute", "2026-09-17T06:59", [MORNING], LATE_EVE),
    ("beside A6: half an hour and a minute ahead", "2026-09-16T09:29", [EVE, MORNING], None),
]


@pytest.mark.complaint(
    "A late booking brings all the reminders at once, or those of the day before.",
    about="rules",
    source="calcom/cal.diy #10749; onehashai/Cal-ID #1442; pretix/pretix #3757, #1106",
)
@pytest.mark.parametrize(
    ("booked", "left", "rows"), [case[1:] for case in BOOKINGS], ids=[case[0] for case in BOOKINGS]
)
def test_what_leaves_is_what_the_booking_left_time_for(days, booked, left, rows):
    visit = days.book(booked=booked)
    assert days.until("2026-09-17T12:00") == left
    assert rows is None or ends(visit) == rows


@pytest.mark.complaint(
    "A reminder of today says tomorrow.",
    about="words",
    source="Calnode/calnode, discussion 266",
)
@pytest.mark.parametrize("case", [pytest.param("2026-09-17T07:00", id="A3")])
def test_a_reminder_of_today_never_says_tomorrow(days, case):
    days.book(booked=case)
    days.until("2026-09-17T12:00")
    [only] = days.sent
    assert "hoy, jueves 17 de septiembre" in only.message.text
    assert "mañana" not in only.message.text


@pytest.mark.parametrize("moment", [pytest.param("2026-09-16T10:00", id="A2")])
def test_of_two_dispatchers_in_one_minute_the_loser_finds_the_row_claimed(days, moment):
    visit = days.book()
    days.until("2026-09-16T09:59")
    days.now_is(moment)
    first, second = (dispatch.prepare(5, now=clock.now()) for _ in range(2))
    assert [call.row.appointment_id for call in first] == [visit.pk]
    assert second == []
    assert ReminderDelivery.objects.filter(status="sending").count() == 1


PREPARATIONS = [
    ("A7", "2026-09-15T10:00", [], ["3d whatsapp booked_late"]),
    ("beside A7: in time", "2026-09-13T09:00", ["3d whatsapp 2026-09-14T10:00"], ["3d whatsapp sent"]),
    ("beside A7: half an hour ahead", "2026-09-14T09:30", [], ["3d whatsapp booked_late"]),
]


@pytest.mark.parametrize(
    ("booked", "left", "rows"), [case[1:] for case in PREPARATIONS], ids=[case[0] for case in PREPARATIONS]
)
def test_a_preparation_that_was_booked_too_late_is_kept_with_its_reason(
    settings, set_clock, booked, left, rows
):
    days = Days(settings, set_clock)
    days.rules("3d", kind=ReminderType.PREPARACION, body_template="Venga en ayunas, {nombre}.")
    visit = days.book(booked=booked)
    assert days.until("2026-09-17T12:00") == left
    assert ends(visit) == rows


@pytest.mark.parametrize("moment", [pytest.param("2026-09-16T10:05", id="A9")])
def test_who_confirmed_after_the_first_reminder_gets_the_second_without_a_question(days, moment):
    visit = days.book()
    days.until(moment)
    assert booking.confirm(visit, actor=booking.SYSTEM)
    days.until("2026-09-17T12:00")
    asked = [(sent.told("Caracas"), sent.message.asks_to_confirm) for sent in days.sent]
    assert asked == [(EVE, True), (MORNING, False)]
    assert "Confirmar" not in [button.title for button in days.sent[1].message.buttons]
