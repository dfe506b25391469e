"""Quiet hours: a moment in them moves to their end, or ahead of them (P4, P5, section B)."""

# Told elsewhere: what B1 and B2 say ("hoy", "mañana") in test_wording; the
# booking message of B4 belongs to the notices.

import pytest

from reminders import timeline
from reminders.timeline import ReminderType
from tests.timeline_values import (
    NO_QUIET_HOURS,
    at,
    minutes,
    plan,
    quiet_hours,
    reachable,
    rows_of,
    rule,
    told,
    utc,
    visit,
)

UPCOMING = [
    ("B1", "2026-09-18T22:00", "24h", "2026-09-18T07:00"),
    ("B2", "2026-09-18T06:30", "2h", "2026-09-17T20:45"),
    ("B3", "2026-09-18T07:20", "2h", "2026-09-17T20:45"),
    ("beside B3: exactly the lead", "2026-09-18T07:30", "2h", "2026-09-18T07:00"),
    ("beside B3: a minute less", "2026-09-18T07:29", "2h", "2026-09-17T20:45"),
    ("B5", "2026-09-18T09:00", "2h", "2026-09-18T07:00"),
    ("beside B5: near the visit too", "2026-09-18T07:20", "20min", "2026-09-18T07:00"),
    ("beside B6: the beginning is inside", "2026-09-18T21:00", "24h", "2026-09-18T07:00"),
    ("beside B6: a minute before it", "2026-09-18T20:59", "24h", "2026-09-17T20:59"),
    ("beside B6: a minute before the end", "2026-09-18T08:59", "2h", "2026-09-18T07:00"),
    ("beside B1: after midnight", "2026-09-19T00:10", "24h", "2026-09-18T07:00"),
    ("beside B1: a visit at midnight", "2026-09-19T00:00", "2h", "2026-09-18T20:45"),
    ("beside B2: they end as the visit begins", "2026-09-18T07:00", "2h", "2026-09-17T20:45"),
    ("beside B2: over a leap day", "2028-03-01T06:30", "2h", "2028-02-29T20:45"),
]


@pytest.mark.complaint(
    "Quiet hours over midnight hold always, or never.",
    about="nights",
    source="greghesp/assistant-relay #60; kmac/mindfulnotifier #7",
)
@pytest.mark.parametrize(
    ("start", "offset", "expected"), [c[1:] for c in UPCOMING], ids=[c[0] for c in UPCOMING]
)
def test_an_upcoming_reminder_leaves_the_quiet_hours(start, offset, expected):
    assert told(plan(visit(start), rule(offset))) == [f"{offset} whatsapp {expected}"]


OTHER_TYPES = [
    ("preparation keeps 12 hours", ReminderType.PREPARACION, "2026-09-18T19:00", "20h", "2026-09-18T07:00"),
    ("or goes ahead", ReminderType.PREPARACION, "2026-09-18T18:59", "20h", "2026-09-17T20:45"),
    ("arrival needs no lead", ReminderType.LLEGADA, "2026-09-18T07:01", "15min", "2026-09-18T07:00"),
    ("but leaves before the start", ReminderType.LLEGADA, "2026-09-18T07:00", "15min", "2026-09-17T20:45"),
]


@pytest.mark.parametrize(
    ("kind", "start", "offset", "expected"), [c[1:] for c in OTHER_TYPES], ids=[c[0] for c in OTHER_TYPES]
)
def test_each_type_has_its_own_minimum_lead(kind, start, offset, expected):
    assert told(plan(visit(start), rule(offset, kind))) == [f"{offset} whatsapp {expected}"]


@pytest.mark.parametrize("kind", [ReminderType.SEGUIMIENTO, ReminderType.CONTROL])
def test_after_the_visit_the_end_is_always_soon_enough(kind):
    done = visit("2026-09-17T22:00", status="completed", completed_at=at("2026-09-17T22:40"))
    assert told(plan(done, rule("1d", kind))) == ["1d whatsapp 2026-09-19T07:00"]


def test_b4_a_moment_ahead_of_the_quiet_hours_that_is_past_is_not_sent():
    late = visit("2026-09-18T06:30", booked="2026-09-17T21:10")
    assert told(plan(late, rule("2h"))) == ["2h whatsapp quiet_hours"]


@pytest.mark.parametrize(
    ("booked", "expected"),
    [
        ("2026-09-17T20:45", "quiet_hours"),
        ("2026-09-17T20:44", "booked_late"),
        ("2026-09-17T20:15", "booked_late"),
        ("2026-09-17T20:14", "2026-09-17T20:45"),
    ],
)
def test_beside_b4_a_moment_pulled_ahead_to_just_after_the_booking_is_late(booked, expected):
    assert told(plan(visit("2026-09-18T06:30", booked=booked), rule("2h"))) == [f"2h whatsapp {expected}"]


def test_after_a_move_past_is_measured_from_the_move():
    moved = visit("2026-09-18T06:30", sequence=1, changed_at=at("2026-09-17T22:00"))
    assert told(plan(moved, rule("2h"))) == ["2h whatsapp quiet_hours"]


def test_b7_equal_ends_mean_none():
    planned = plan(visit("2026-09-18T05:00"), rule("2h"), quiet=quiet_hours(*NO_QUIET_HOURS))
    assert told(planned) == ["2h whatsapp 2026-09-18T03:00"]


def test_beside_b8_quiet_hours_within_one_day():
    siesta = quiet_hours("12:00", "15:00")
    assert told(plan(visit("2026-09-17T15:40"), rule("2h"), quiet=siesta)) == ["2h whatsapp 2026-09-17T15:00"]
    assert told(plan(visit("2026-09-17T15:20"), rule("2h"), quiet=siesta)) == ["2h whatsapp 2026-09-17T11:45"]
    assert told(plan(visit("2026-09-17T17:00"), rule("2h"), quiet=siesta)) == ["2h whatsapp 2026-09-17T15:00"]


def test_quiet_hours_are_those_of_the_patients_own_zone():
    # 07:00 in Caracas is 13:00 in Madrid, and 18:00 is midnight there.
    planned = plan(visit("2026-09-18T18:00"), rule("24h"), rule("11h"), quiet=quiet_hours(place="Madrid"))
    assert told(planned) == ["24h whatsapp 2026-09-18T01:00", "11h whatsapp 2026-09-18T07:00"]


def test_b9_two_reminders_may_meet_at_the_end_and_one_goes():
    rules = [rule("10h"), rule("1h")]
    planned = plan(visit("2026-09-18T08:00"), *rules)
    assert told(planned) == ["10h whatsapp 2026-09-18T07:00", "1h whatsapp 2026-09-18T07:00"]
    far, near = rows_of(planned, rules)
    assert timeline.superseded_by(far, [far, near])
    assert not timeline.superseded_by(near, [far, near])


def test_hours_that_leave_no_room_end_in_a_reason():
    # Ten open minutes a day: 15 minutes ahead of the quiet hours is quiet again.
    nearly_always = quiet_hours("07:10", "07:00")
    planned = plan(visit("2026-09-18T07:20"), rule("2h"), quiet=nearly_always)
    assert told(planned) == ["2h whatsapp quiet_hours"]


def test_the_inbox_disturbs_nobody():
    inbox = rule("24h", channels=("in_app",))
    planned = plan(visit("2026-09-18T22:00"), inbox, reach=reachable(in_app=None))
    assert told(planned) == ["24h in_app 2026-09-17T22:00"]


NIGHTS = [
    # moment, quiet hours, place, where it moves to
    ("F7", "2026-04-04T23:00 Santiago²", ("22:30", "07:00"), "2026-04-05T11:00Z"),
    ("beside F7: the first time", "2026-04-04T23:00 Santiago", ("22:30", "07:00"), "2026-04-05T11:00Z"),
    (
        "beside F8: they begin in the double hour",
        "2026-04-04T23:15 Santiago²",
        ("23:30", "07:00"),
        "2026-04-05T11:00Z",
    ),
    ("they end in a double hour", "2026-11-01T00:30 NewYork", ("21:00", "01:30"), "2026-11-01T05:30Z"),
    ("and the hour comes again", "2026-11-01T01:15 NewYork²", ("21:00", "01:30"), "2026-11-01T06:30Z"),
    (
        "after the first end it is not quiet",
        "2026-11-01T01:45 NewYork",
        ("21:00", "01:30"),
        "2026-11-01T05:45Z",
    ),
    ("they end in a skipped hour", "2026-03-08T01:00 NewYork", ("21:00", "02:30"), "2026-03-08T07:30Z"),
    ("no change in Bogota", "2026-11-01T23:00 Bogota", ("21:00", "07:00"), "2026-11-02T12:00Z"),
    ("they begin at midnight", "2026-09-17T00:00 Caracas", ("00:00", "06:00"), "2026-09-17T10:00Z"),
    ("the minute before midnight", "2026-09-17T23:59 Caracas", ("00:00", "06:00"), "2026-09-18T03:59Z"),
    ("they end at midnight", "2026-09-17T23:30 Caracas", ("22:00", "00:00"), "2026-09-18T04:00Z"),
    ("they end in a skipped half hour", "2026-10-04T01:00 LordHowe", ("21:00", "02:15"), "2026-10-03T15:45Z"),
    ("they end in a double half hour", "2026-04-05T01:00 LordHowe", ("21:00", "01:45"), "2026-04-04T14:45Z"),
    ("and it comes again", "2026-04-05T01:40 LordHowe²", ("21:00", "01:45"), "2026-04-04T15:15Z"),
    ("in Madrid it comes again too", "2026-10-25T02:15 Madrid²", ("21:00", "02:30"), "2026-10-25T01:30Z"),
    ("they begin in a skipped hour", "2026-09-06T02:00 Santiago", ("00:00", "07:00"), "2026-09-06T10:00Z"),
]


@pytest.mark.parametrize(("moment", "hours", "expected"), [c[1:] for c in NIGHTS], ids=[c[0] for c in NIGHTS])
def test_quiet_hours_hold_in_nights_when_the_clock_jumps(moment, hours, expected):
    place = moment.removesuffix("²").split(" ")[1]
    moved = timeline.out_of_quiet_hours(
        at(moment),
        type=ReminderType.CITA_PROXIMA,
        starts_at=at(moment) + minutes(20 * 60),
        quiet=quiet_hours(*hours, place),
    )
    assert utc(moved) == expected


def test_ahead_of_quiet_hours_that_begin_in_a_skipped_hour_is_before_the_jump():
    moved = timeline.out_of_quiet_hours(
        at("2026-09-06T04:30 Santiago"),
        type=ReminderType.CITA_PROXIMA,
        starts_at=at("2026-09-06T06:30 Santiago"),
        quiet=quiet_hours("00:00", "07:00", "Santiago"),
    )
    assert moved == at("2026-09-05T23:45 Santiago")


def test_f7_as_a_plan():
    planned = plan(
        visit("2026-04-05T08:00 Santiago", booked="2026-03-01T09:00"),
        rule("9h"),
        quiet=quiet_hours("22:30", "07:00", "Santiago"),
    )
    assert told(planned, "Santiago") == ["9h whatsapp 2026-04-05T07:00"]


def test_the_inbox_takes_over_where_the_quiet_hours_leave_no_room():
    """As B4, with a channel that wakes nobody."""
    to_inbox = rule("2h", channels=("whatsapp", "email", "in_app"))
    late = visit("2026-09-18T06:30", booked="2026-09-17T21:10")
    reach = reachable(in_app=None)
    planned = plan(late, to_inbox, reach=reach)
    assert told(planned) == [
        "2h whatsapp quiet_hours", "2h email quiet_hours", "2h in_app 2026-09-18T04:30",
    ]  # fmt: skip
    assert plan(late, to_inbox, reach=reach, rows=rows_of(planned, [to_inbox])) == planned


def test_the_inbox_takes_over_what_the_last_look_kept_quiet():
    """An outage until the night: the message would have gone by day."""
    to_inbox = rule("2h", channels=("whatsapp", "in_app"))
    early = visit("2026-09-18T07:15")
    [planned] = plan(early, to_inbox, reach=reachable(in_app=None))
    kept = rows_of([planned], [to_inbox], status="skipped", reason="quiet_hours")
    again = plan(early, to_inbox, reach=reachable(in_app=None), rows=kept)
    assert told(again) == ["2h whatsapp quiet_hours", "2h in_app 2026-09-17T20:45"]
    assert plan(early, to_inbox, reach=reachable(in_app=None), rows=rows_of(again, [to_inbox])) == again
