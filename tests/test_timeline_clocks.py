"""Which instant a rule names (P2, P3): sections E, F and G of the timeline, by number."""

# Told elsewhere: F5 (staff who type a skipped hour) and the instant of F9 in
# test_local_time; F12 and G5 (what a message shows) in test_wording.

import pytest

from reminders import timeline
from reminders.timeline import ReminderType
from tests.timeline_values import (
    NO_QUIET_HOURS,
    at,
    plan,
    quiet_hours,
    rule,
    told,
    utc,
    visit,
)

BEFORE = [
    ("F1", "2026-03-08T10:00 NewYork", "24h", "2026-03-07T14:00Z"),
    ("F1", "2026-03-08T10:00 NewYork", "1d", "2026-03-07T15:00Z"),
    ("F2", "2026-11-01T10:00 NewYork", "24h", "2026-10-31T15:00Z"),
    ("F2", "2026-11-01T10:00 NewYork", "1d", "2026-10-31T14:00Z"),
    (
        "beside F3: the clock of the day before skips it",
        "2026-03-09T02:30 NewYork",
        "1d",
        "2026-03-08T07:30Z",
    ),
    ("F4", "2026-11-02T01:30 NewYork", "1d", "2026-11-01T05:30Z"),
    ("beside F4: elapsed", "2026-11-02T01:30 NewYork", "24h", "2026-11-01T06:30Z"),
    ("beside F5: a gap at midnight", "2026-09-07T00:30 Santiago", "1d", "2026-09-06T04:30Z"),
    ("beside F6: a double hour before midnight", "2026-04-05T23:30 Santiago", "1d", "2026-04-05T02:30Z"),
    ("F9", "2026-04-15T10:00 Madrid", "1d", "2026-04-14T08:00Z"),
    ("beside F9: from summer time into winter", "2026-04-15T10:00 Madrid", "2mo", "2026-02-15T09:00Z"),
    ("F11", "2026-03-29T09:00 Madrid", "24h", "2026-03-28T07:00Z"),
    ("F11", "2026-03-29T09:00 Madrid", "1d", "2026-03-28T08:00Z"),
    ("beside F11: an hour over the jump", "2026-03-29T03:30 Madrid", "1h", "2026-03-29T00:30Z"),
    ("G1", "2007-12-09T10:00 Caracas", "24h", "2007-12-08T14:30Z"),
    ("G1", "2007-12-09T10:00 Caracas", "1d", "2007-12-08T14:00Z"),
    ("beside G2: in the repeated half hour", "2007-12-10T02:45 Caracas", "1d", "2007-12-09T06:45Z"),
    ("G3", "2016-05-01T10:00 Caracas", "24h", "2016-04-30T14:00Z"),
    ("beside G3: calendar", "2016-05-01T10:00 Caracas", "1d", "2016-04-30T14:30Z"),
    ("beside G4: in the skipped half hour", "2016-05-02T02:40 Caracas", "1d", "2016-05-01T07:10Z"),
    ("weeks are days", "2026-09-17T10:00", "14d", "2026-09-03T14:00Z"),
    ("half an hour", "2026-09-17T10:00", "30min", "2026-09-17T13:30Z"),
    ("over a leap day", "2028-03-01T10:00", "1d", "2028-02-29T14:00Z"),
    ("months before, clamped", "2026-03-31T10:00", "1mo", "2026-02-28T14:00Z"),
    ("months before, over the year", "2026-01-15T10:00", "2mo", "2025-11-15T14:00Z"),
    ("months before, of a leap day", "2028-02-29T10:00", "12mo", "2027-02-28T14:00Z"),
    ("months before, leap day to leap day", "2028-02-29T10:00", "48mo", "2024-02-29T14:00Z"),
    ("months before, into a gap", "2026-04-08T02:30 NewYork", "1mo", "2026-03-08T07:30Z"),
    ("midnight", "2026-09-17T00:00", "1d", "2026-09-16T04:00Z"),
    ("midnight of a new month", "2026-03-01T00:00", "1d", "2026-02-28T04:00Z"),
    ("the minute before a new year", "2026-01-01T00:00", "1min", "2026-01-01T03:59Z"),
    ("no change in Bogota", "2026-11-01T10:00 Bogota", "24h", "2026-10-31T15:00Z"),
    ("no change in Bogota", "2026-11-01T10:00 Bogota", "1d", "2026-10-31T15:00Z"),
    ("a gap in Madrid", "2026-03-30T02:30 Madrid", "1d", "2026-03-29T01:30Z"),
    ("a double hour in Madrid", "2026-10-26T02:30 Madrid", "1d", "2026-10-25T00:30Z"),
    ("a gap of half an hour", "2026-10-05T02:15 LordHowe", "1d", "2026-10-03T15:45Z"),
    ("a double half hour", "2026-04-06T01:45 LordHowe", "1d", "2026-04-04T14:45Z"),
    ("elapsed over half an hour", "2026-10-04T10:00 LordHowe", "24h", "2026-10-02T23:00Z"),
]


@pytest.mark.parametrize(
    ("start", "offset", "expected"), [case[1:] for case in BEFORE], ids=[f"{c[0]} {c[2]}" for c in BEFORE]
)
def test_hours_are_elapsed_and_days_are_the_same_clock(start, offset, expected):
    assert utc(timeline.moment(rule(offset), visit(start))) == expected


CHECK_UPS = [
    ("E6", "2026-08-31T10:00", "6mo", "2027-02-28T14:00Z"),
    ("E8", "2026-08-31T10:00", "12mo", "2027-08-31T14:00Z"),
    ("E8", "2026-08-31T10:00", "18mo", "2028-02-29T14:00Z"),
    ("beside E7: a month of its own length", "2026-01-30T10:00", "1mo", "2026-02-28T14:00Z"),
    ("beside E7: not from the clamped day", "2026-01-31T10:00", "2mo", "2026-03-31T14:00Z"),
    ("in days", "2026-08-31T10:00", "180d", "2027-02-27T14:00Z"),
    ("over the change of clocks", "2026-09-15T09:00 NewYork", "3mo", "2026-12-15T14:00Z"),
]


@pytest.mark.parametrize(
    ("start", "offset", "expected"),
    [case[1:] for case in CHECK_UPS],
    ids=[f"{c[0]} {c[2]}" for c in CHECK_UPS],
)
def test_a_check_up_counts_calendar_months_from_the_visit_without_drift(start, offset, expected):
    done = visit(start, status="completed", completed_at=at("2026-12-24T20:00"))
    assert utc(timeline.moment(rule(offset, ReminderType.CONTROL), done)) == expected


FOLLOW_UPS = [
    ("E1", "2026-09-17T11:05", "24h", "2026-09-18T15:05Z"),
    ("in days", "2026-09-17T11:05", "1d", "2026-09-18T15:05Z"),
    ("24 hours over the change of clocks", "2026-03-07T11:05 NewYork", "24h", "2026-03-08T16:05Z"),
    ("1 day over the change of clocks", "2026-03-07T11:05 NewYork", "1d", "2026-03-08T15:05Z"),
]


@pytest.mark.parametrize(
    ("completed", "offset", "expected"), [case[1:] for case in FOLLOW_UPS], ids=[c[0] for c in FOLLOW_UPS]
)
def test_a_follow_up_counts_from_the_mark_that_the_visit_is_over(completed, offset, expected):
    place = completed.partition(" ")[2]
    done = visit(f"2026-09-17T10:00 {place}".strip(), status="completed", completed_at=at(completed))
    assert utc(timeline.moment(rule(offset, ReminderType.SEGUIMIENTO), done)) == expected


def test_a_follow_up_without_that_mark_has_no_moment():
    follow_up = rule("24h", ReminderType.SEGUIMIENTO)
    assert timeline.moment(follow_up, visit(status="completed")) is None
    assert plan(visit(status="completed"), follow_up) == []


def test_f4_a_double_hour_gives_one_row():
    planned = plan(
        visit("2026-11-02T01:30 NewYork"), rule("1d"), quiet=quiet_hours(*NO_QUIET_HOURS, "NewYork")
    )
    assert told(planned, "NewYork") == ["1d whatsapp 2026-11-01T01:30"]
    assert utc(planned[0].scheduled_for) == "2026-11-01T05:30Z"


def test_an_hour_is_elapsed_also_for_an_instant_that_carries_a_zone():
    its_visit = visit("2026-03-08T10:00 NewYork")
    local = its_visit.starts_at.astimezone(its_visit.zone)
    assert (
        utc(timeline.moment(rule("24h"), visit("2026-03-08T10:00 NewYork", starts_at=local)))
        == "2026-03-07T14:00Z"
    )
