"""What leaves around the quiet hours, and with which words: section B of the timeline, by number."""

# The rows alone: test_timeline_quiet_hours.

from __future__ import annotations

import pytest

from appointments import clock
from reminders import call_list
from reminders.timeline import ReminderType
from tests.days import Days, ends
from tests.factories import make_patient

pytestmark = pytest.mark.django_db


@pytest.fixture
def days(settings, set_clock) -> Days:
    return Days(settings, set_clock)


NIGHTS = [
    # visit, rule, what leaves, and the day as the message says it
    ("B1", "2026-09-18T22:00", "24h", "2026-09-18T07:00", "hoy, viernes 18 de septiembre"),
    ("B2", "2026-09-18T06:30", "2h", "2026-09-17T20:45", "mañana, viernes 18 de septiembre"),
    ("B3", "2026-09-18T07:20", "2h", "2026-09-17T20:45", "mañana, viernes 18 de septiembre"),
    ("B5", "2026-09-18T09:00", "2h", "2026-09-18T07:00", "hoy, viernes 18 de septiembre"),
    (
        "beside B2: they end as the visit begins",
        "2026-09-18T07:00",
        "2h",
        "2026-09-17T20:45",
        "mañana, viernes 18 de septiembre",
    ),
    (
        "beside B5: they begin",
        "2026-09-18T23:00",
        "2h",
        "2026-09-18T20:45",
        "hoy, viernes 18 de septiembre",
    ),
    (
        "beside B5: the last minute before them",
        "2026-09-18T22:59",
        "2h",
        "2026-09-18T20:59",
        "hoy, viernes 18 de septiembre",
    ),
]


@pytest.mark.complaint(
    "What was held back at night never comes, or comes at night after all.",
    about="nights",
    source="tasks/tasks #282, #370; quarck/CalendarNotification #58; aashutoshkumarbhardwaj/CreatorOs #982",
)
@pytest.mark.parametrize(
    ("start", "offset", "moment", "said"), [case[1:] for case in NIGHTS], ids=[case[0] for case in NIGHTS]
)
def test_what_falls_into_the_night_leaves_by_day_and_says_which_day_it_is(days, start, offset, moment, said):
    days.rules(offset)
    days.book(start)
    assert days.until("2026-09-19T12:00") == [f"{offset} whatsapp {moment}"]
    assert f"su cita es {said}" in days.sent[0].message.text


@pytest.mark.complaint(
    "What does not fit into the day is dropped, and nobody learns of it.",
    about="nights",
    source="help pages of ICANotes and SimplePractice",
)
@pytest.mark.parametrize("booked", [pytest.param("2026-09-17T21:10", id="B4")])
def test_what_cannot_be_said_by_day_is_for_the_call_list(days, booked):
    days.rules("2h")
    visit = days.book("2026-09-18T06:30", booked=booked)
    assert days.until("2026-09-17T21:11") == []
    assert [(row.appointment_id, row.reason) for row in call_list.unreached(clock.now())] == [
        (visit.pk, "quiet_hours")
    ]
    assert days.until("2026-09-18T08:00") == []
    assert ends(visit) == ["2h whatsapp quiet_hours"]


@pytest.mark.parametrize("start", [pytest.param("2026-09-18T05:00", id="B7")])
def test_equal_ends_mean_no_quiet_hours_and_not_all_day(days, start):
    days.quiet("00:00", "00:00")
    days.rules("2h")
    days.book(start)
    assert days.until("2026-09-18T12:00") == ["2h whatsapp 2026-09-18T03:00"]


@pytest.mark.parametrize("start", [pytest.param("2026-09-18T08:00", id="B9")])
def test_of_two_that_the_night_brings_together_the_nearer_one_goes(days, start):
    days.rules("10h", "1h")
    visit = days.book(start)
    assert days.until("2026-09-18T12:00") == ["1h whatsapp 2026-09-18T07:00"]
    assert ends(visit) == ["10h whatsapp superseded", "1h whatsapp sent"]


@pytest.mark.parametrize("start", [pytest.param("2026-09-18T10:00", id="beside B9")])
def test_of_another_type_both_go(days, start):
    days.rules("10h", kind=ReminderType.PREPARACION)
    days.rules("3h")
    visit = days.book(start)
    # The preparation needs twelve hours: it leaves ahead of the night.
    assert days.until("2026-09-18T12:00") == ["10h whatsapp 2026-09-17T20:45", "3h whatsapp 2026-09-18T07:00"]
    assert ends(visit) == ["10h whatsapp sent", "3h whatsapp sent"]


@pytest.mark.complaint(
    "Quiet hours are those of the server and not of whoever is woken.",
    about="nights",
    source="novuhq/novu #2808, PR#9128, PR#11965",
)
@pytest.mark.parametrize(
    ("start", "left"),
    [
        # In Madrid 17:00 of Caracas is 23:00, and 07:00 there is 01:00 here.
        pytest.param("2026-09-17T17:00", ["24h whatsapp 2026-09-17T01:00"], id="beside B1: in Madrid"),
        pytest.param("2026-09-17T14:00", ["24h whatsapp 2026-09-16T14:00"], id="beside B1: their evening"),
    ],
)
def test_the_night_is_that_of_the_patient(days, start, left):
    days.rules("24h")
    days.book(start, patient=make_patient(time_zone="Europe/Madrid"))
    assert days.until("2026-09-17T18:00") == left
