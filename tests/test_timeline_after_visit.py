"""What follows a visit: section E of the timeline, by number."""

# Told elsewhere: a check-up of who has a later visit, in test_check_up.

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from appointments import booking
from appointments.models import Appointment
from reminders.timeline import ReminderType
from tests.days import Days, ends
from tests.factories import make_doctor, make_user

pytestmark = pytest.mark.django_db
FOLLOW_UP, CHECK_UP = ReminderType.SEGUIMIENTO, ReminderType.CONTROL


@pytest.fixture
def days(settings, set_clock) -> Days:
    return Days(settings, set_clock)


def mark(days: Days, visit: Appointment, text: str, verb: Callable[..., bool] = booking.complete) -> None:
    days.now_is(text)
    assert verb(visit, actor=booking.SYSTEM)


FOLLOW_UPS = [
    ("E1", "2026-09-17T10:00", "24h", "2026-09-17T11:05", ["24h whatsapp 2026-09-18T11:05"]),
    (
        "beside E1: marked the day after",
        "2026-09-17T10:00", "24h", "2026-09-18T09:00", ["24h whatsapp 2026-09-19T09:00"],
    ),
    (
        "beside E1: marked before the planned start",
        "2026-09-17T10:00", "24h", "2026-09-17T09:40", ["24h whatsapp 2026-09-18T09:40"],
    ),
    (
        "beside E1: at night it waits for the morning",
        "2026-09-17T19:00", "2h", "2026-09-17T19:30", ["2h whatsapp 2026-09-18T07:00"],
    ),
    (
        "beside E1: over a leap day",
        "2028-02-28T10:00", "2d", "2028-02-28T11:05", ["2d whatsapp 2028-03-01T11:05"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("start", "offset", "marked", "left"), [case[1:] for case in FOLLOW_UPS], ids=[c[0] for c in FOLLOW_UPS]
)
def test_a_follow_up_counts_from_the_mark(days, start, offset, marked, left):
    days.rules(offset, kind=FOLLOW_UP)
    visit = days.book(start, booked=f"{start[:7]}-01T09:00")
    mark(days, visit, marked)
    assert days.until(f"{start[:4]}-12-31T12:00") == left


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(
            ["24h whatsapp 2026-09-18T11:05", "72h whatsapp 2026-09-20T11:05"], id="beside E1: two follow-ups"
        )
    ],
)
def test_a_later_follow_up_leaves_although_an_earlier_one_has_left(days, left):
    days.rules("24h", "72h", kind=FOLLOW_UP)
    visit = days.book()
    mark(days, visit, "2026-09-17T11:05")
    assert days.until("2026-09-25T12:00") == left


@pytest.mark.parametrize("marked", [pytest.param("2026-09-17T10:45", id="E2")])
def test_who_did_not_come_is_not_asked_how_it_went(days, marked):
    days.rules("24h", kind=FOLLOW_UP)
    days.rules("6mo", kind=CHECK_UP)
    visit = days.book()
    mark(days, visit, marked, booking.mark_no_show)
    assert days.until("2027-04-01T12:00") == []
    assert ends(visit) == []


@pytest.mark.parametrize(
    ("looked", "listed"),
    [
        pytest.param("2026-09-18T10:31", True, id="E3"),
        pytest.param("2026-09-18T09:59", False, id="beside E3: not yet a day"),
    ],
)
def test_of_a_visit_that_nobody_marked_nothing_leaves_and_it_is_on_the_list(days, looked, listed):
    days.rules("24h", kind=FOLLOW_UP)
    doctor = make_doctor(user=make_user(is_superuser=True))
    visit = days.book(doctor=doctor)
    assert days.until(looked) == []
    client = Client()
    client.force_login(doctor.user)
    page = client.get(reverse("admin:appointments_appointment_changelist"), {"unclosed": "1"})
    assert list(page.context["cl"].result_list) == ([visit] if listed else [])


CORRECTIONS = [
    ("E4", "2026-09-17T15:00", booking.mark_no_show, [], ["24h whatsapp visit_closed"]),
    (
        "beside E4: after the follow-up has left",
        "2026-09-18T15:00",
        booking.mark_no_show,
        ["24h whatsapp 2026-09-18T11:05"],
        ["24h whatsapp sent"],
    ),
]


@pytest.mark.parametrize(
    ("corrected", "verb", "left", "rows"), [c[1:] for c in CORRECTIONS], ids=[c[0] for c in CORRECTIONS]
)
def test_a_correction_takes_the_follow_up_back_while_it_is_here(days, corrected, verb, left, rows):
    days.rules("24h", kind=FOLLOW_UP)
    visit = days.book()
    mark(days, visit, "2026-09-17T11:05")
    sent = days.until(corrected)
    mark(days, visit, corrected, verb)
    assert sent + days.until("2026-09-25T12:00") == left
    assert ends(visit) == rows


@pytest.mark.parametrize(
    ("came_after_all", "left"),
    [
        pytest.param(
            "2026-09-17T15:00", ["24h whatsapp 2026-09-18T15:00"], id="beside E4: the other way round"
        )
    ],
)
def test_who_came_after_all_is_asked_from_then_on(days, came_after_all, left):
    days.rules("24h", kind=FOLLOW_UP)
    visit = days.book()
    mark(days, visit, "2026-09-17T10:45", booking.mark_no_show)
    days.until("2026-09-17T14:59")
    mark(days, visit, came_after_all)
    assert days.until("2026-09-25T12:00") == left


CHECK_UPS = [
    ("E6", "2026-08-31T10:00", ["6mo"], ["6mo whatsapp 2027-02-28T10:00"]),
    (
        "E8",
        "2026-08-31T10:00",
        ["6mo", "12mo", "18mo"],
        ["6mo whatsapp 2027-02-28T10:00", "12mo whatsapp 2027-08-31T10:00", "18mo whatsapp 2028-02-29T10:00"],
    ),
    ("beside E6: of a leap day", "2028-02-29T10:00", ["12mo"], ["12mo whatsapp 2029-02-28T10:00"]),
    ("beside E6: to a leap day", "2027-12-31T10:00", ["2mo"], ["2mo whatsapp 2028-02-29T10:00"]),
    (
        "beside E6: of the evening, in the morning after",
        "2026-08-31T21:30",
        ["6mo"],
        ["6mo whatsapp 2027-03-01T07:00"],
    ),
    (
        "beside E8: the thirtieth",
        "2026-11-30T08:00",
        ["3mo", "6mo"],
        ["3mo whatsapp 2027-02-28T08:00", "6mo whatsapp 2027-05-30T08:00"],
    ),
]


@pytest.mark.parametrize(
    ("start", "offsets", "left"), [case[1:] for case in CHECK_UPS], ids=[case[0] for case in CHECK_UPS]
)
def test_check_ups_leave_on_calendar_months_without_drift(days, start, offsets, left):
    days.rules(*offsets, kind=CHECK_UP)
    visit = days.book(start, booked=f"{start[:7]}-01T09:00")
    mark(days, visit, f"{start[:10]}T23:00")
    assert days.until(f"{int(start[:4]) + 3}-01-01T00:00") == left
