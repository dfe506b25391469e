"""What an outage costs, of ours and of a provider: section D of the timeline, by number."""

# Told elsewhere: Meta's code 131016 over real HTTP, in test_outcomes; a worker
# that is killed after the call (D7), in test_workers.

from __future__ import annotations

from datetime import timedelta

import pytest

from appointments import booking, clock
from reminders import call_list, dispatch, receipts
from reminders.channels.base import ChannelError
from reminders.models import Heartbeat, ReminderDelivery
from reminders.timeline import ReminderType
from tests.days import Days, ends

pytestmark = pytest.mark.django_db
UPCOMING, FOLLOW_UP = ReminderType.CITA_PROXIMA, ReminderType.SEGUIMIENTO
PREPARATION, ARRIVAL = ReminderType.PREPARACION, ReminderType.LLEGADA


@pytest.fixture
def days(settings, set_clock) -> Days:
    return Days(settings, set_clock)


OUTAGES = [
    # type, rules, visit, the last turn before, the first after, what leaves then, and the rows at the end
    (
        "D1", UPCOMING, ["24h"], "2026-09-17T10:00", "2026-09-16T08:59", "2026-09-16T15:00",
        ["24h whatsapp 2026-09-16T15:00"], ["24h whatsapp sent"],
    ),
    (
        "D2", UPCOMING, ["2h"], "2026-09-17T10:00", "2026-09-17T06:59", "2026-09-17T13:00",
        [], ["2h whatsapp too_late"],
    ),
    (
        "D4", UPCOMING, ["24h"], "2026-09-17T18:00", "2026-09-16T16:59", "2026-09-16T23:00",
        ["24h whatsapp 2026-09-17T07:00"], ["24h whatsapp sent"],
    ),
    (
        "beside D2: of the last minute that is of use", UPCOMING, ["2h"],
        "2026-09-17T10:00", "2026-09-17T06:59", "2026-09-17T09:29",
        ["2h whatsapp 2026-09-17T09:29"], ["2h whatsapp sent"],
    ),
    (
        "beside D2: a minute after the minimum lead", UPCOMING, ["2h"],
        "2026-09-17T10:00", "2026-09-17T06:59", "2026-09-17T09:31",
        [], ["2h whatsapp too_late"],
    ),
    (
        "beside D3: of two that are overdue the nearer goes", UPCOMING, ["24h", "2h"],
        "2026-09-17T10:00", "2026-09-16T08:59", "2026-09-17T08:30",
        ["2h whatsapp 2026-09-17T08:30"], ["24h whatsapp superseded", "2h whatsapp sent"],
    ),
    (
        "beside D4: the night is too long for it", UPCOMING, ["12h"],
        "2026-09-17T07:20", "2026-09-16T18:00", "2026-09-16T22:00",
        [], ["12h whatsapp quiet_hours"],
    ),
    (
        "beside D4: the whole night was an outage", UPCOMING, ["24h"],
        "2026-09-17T18:00", "2026-09-16T16:59", "2026-09-17T07:00",
        ["24h whatsapp 2026-09-17T07:00"], ["24h whatsapp sent"],
    ),
    (
        "beside D5: a preparation needs twelve hours", PREPARATION, ["1d"],
        "2026-09-17T20:00", "2026-09-16T19:00", "2026-09-17T08:01",
        [], ["1d whatsapp too_late"],
    ),
    (
        "beside D5: and has them", PREPARATION, ["1d"],
        "2026-09-17T20:00", "2026-09-16T19:00", "2026-09-17T07:59",
        ["1d whatsapp 2026-09-17T07:59"], ["1d whatsapp sent"],
    ),
    (
        "beside D5: an arrival until the start", ARRIVAL, ["15min"],
        "2026-09-17T10:00", "2026-09-17T09:30", "2026-09-17T09:59",
        ["15min whatsapp 2026-09-17T09:59"], ["15min whatsapp sent"],
    ),
]  # fmt: skip


@pytest.mark.complaint(
    "After an outage reminders are lost, or come for visits that are over.",
    about="clocks",
    source="odoo/odoo PR#189340; calcom/cal.diy PR#3007; Wunderbyte-GmbH/moodle-mod_booking #128; "
    "Szotasz/marveen PR#781; theexperiencecompany/gaia PR#753; simpledotorg/simple-server and "
    "LibreBooking, read in their code",
)
@pytest.mark.parametrize(
    ("kind", "rules", "start", "last", "first", "left", "rows"),
    [case[1:] for case in OUTAGES],
    ids=[case[0] for case in OUTAGES],
)
def test_after_an_outage_what_is_of_use_leaves_and_the_rest_says_why_not(
    days, kind, rules, start, last, first, left, rows
):
    days.rules(*rules, kind=kind)
    visit = days.book(start)
    assert days.until(last) == []
    days.now_is(first)
    assert days.until(start) == left
    assert ends(visit) == rows
    assert days.until("2026-09-18T12:00") == []


@pytest.mark.parametrize(
    ("first", "listed"), [pytest.param("2026-09-17T13:00", ["No se le recordó: ya era tarde"], id="D2")]
)
def test_who_was_not_reminded_is_on_the_call_list(days, first, listed):
    days.rules("2h")
    days.book()
    days.until("2026-09-17T06:59")
    days.now_is(first)
    assert days.until(first) == []
    assert [call_list.why(row) for row in call_list.unreached(clock.now())] == listed


@pytest.mark.parametrize(
    ("first", "left"),
    [
        pytest.param("2026-09-21T11:04", ["24h whatsapp 2026-09-21T11:04"], id="72 hours"),
        pytest.param("2026-09-21T11:06", [], id="and no more"),
    ],
)
def test_a_follow_up_is_of_use_for_three_days(days, first, left):
    days.rules("24h", kind=FOLLOW_UP)
    visit = days.book()
    days.now_is("2026-09-17T11:05")
    booking.complete(visit, actor=booking.SYSTEM)
    days.until("2026-09-18T11:04")
    days.now_is(first)
    assert days.until(first) == left


@pytest.mark.parametrize("planner", ["down too", "at work"])
def test_the_rows_are_the_same_whether_the_planner_was_down_too(days, planner):
    """P17."""
    days.rules("24h", "2h")
    visit = days.book()
    if planner == "at work":
        days.until("2026-09-16T08:59")
    days.now_is("2026-09-16T15:00")
    assert days.until("2026-09-17T12:00") == ["24h whatsapp 2026-09-16T15:00", "2h whatsapp 2026-09-17T08:00"]
    assert ends(visit) == ["24h whatsapp sent", "2h whatsapp sent"]


@pytest.mark.complaint(
    "Sending fails for a while, and on recovery each copy that queued up leaves.",
    about="twice",
    source="civicrm/civicrm-core PR#31600",
)
@pytest.mark.parametrize("back", [pytest.param("2026-09-16T10:40", id="D6")])
def test_an_outage_of_whatsapp_costs_half_an_hour_and_then_the_mail_goes_alone(days, back):
    days.rules("24h")
    visit = days.book()
    days.until("2026-09-16T09:59")
    days.refuse({"whatsapp": ChannelError("131016")})
    assert days.until(back) == ["24h email 2026-09-16T10:30"]
    days.refuse({})
    assert days.until("2026-09-17T12:00") == []
    assert ends(visit) == ["24h whatsapp attempts_exhausted", "24h email sent"]


@pytest.mark.parametrize("back", [pytest.param("2026-09-16T10:20", id="beside D6: back in time")])
def test_a_shorter_outage_costs_no_channel(days, back):
    days.rules("24h")
    visit = days.book()
    days.until("2026-09-16T09:59")
    days.refuse({"whatsapp": ChannelError("131016")})
    assert days.until("2026-09-16T10:19") == []
    days.now_is(back)
    days.refuse({})
    [left] = days.until("2026-09-17T12:00")
    assert left.startswith("24h whatsapp 2026-09-16T10:")
    assert ends(visit) == ["24h whatsapp sent"]


@pytest.fixture
def dead_after_the_call(days) -> tuple[Days, ReminderDelivery]:
    """The provider has R24, and the process died before it wrote that down."""
    days.rules("24h")
    days.book()
    days.until("2026-09-16T09:59")
    days.now_is("2026-09-16T10:00")
    [call] = dispatch.prepare(1, now=clock.now())
    row = call.row
    assert isinstance(row, ReminderDelivery)
    assert days.until("2026-09-16T10:03") == []
    row.refresh_from_db()
    assert (row.status, row.attempt) == ("unknown", 1)
    return days, row


@pytest.mark.parametrize("told", [pytest.param("2026-09-16T10:09", id="D7 with a receipt")])
def test_what_a_dead_process_had_handed_over_is_settled_by_its_receipt(dead_after_the_call, told):
    days, row = dead_after_the_call
    days.now_is(told)
    news = receipts.Receipt(
        reference=row.reference, message_id="wamid.one", status="delivered", at=clock.now()
    )
    assert receipts.advance(news)
    assert days.until("2026-09-17T12:00") == []
    assert ends(row.appointment) == ["24h whatsapp delivered"]


@pytest.mark.parametrize("until", [pytest.param("2026-09-17T12:00", id="D7 without")])
def test_without_a_receipt_the_next_channel_goes_and_the_same_is_not_repeated(dead_after_the_call, until):
    days, row = dead_after_the_call
    [left] = days.until(until)
    assert left.startswith("24h email 2026-09-16T10:1")
    assert ends(row.appointment) == ["24h whatsapp no_answer", "24h email sent"]
    row.refresh_from_db()
    assert row.attempt == 1


@pytest.mark.parametrize("back_to", [pytest.param("2026-09-16T09:05", id="D8")])
def test_a_clock_that_jumps_back_sends_nothing_again(days, back_to):
    days.rules("24h")
    visit = days.book()
    days.until("2026-09-16T10:05")
    assert [sent.told("Caracas") for sent in days.sent] == ["24h whatsapp 2026-09-16T10:00"]
    days.now_is(back_to)
    assert days.until("2026-09-17T12:00") == []
    assert ends(visit) == ["24h whatsapp sent"]


@pytest.mark.parametrize("ahead", [pytest.param(timedelta(hours=1), id="D8")])
def test_a_stamp_from_the_future_holds_no_turn_up(set_clock, ahead):
    now = set_clock("2026-09-16T10:05")
    Heartbeat.beat("tick", now + ahead)
    assert Heartbeat.take_turn("tick", now, every=timedelta(seconds=30))
    assert not Heartbeat.take_turn("tick", now, every=timedelta(seconds=30))
