"""What the timeline says of a row that is due: go, wait or never, and which of several (P7, P8, D4)."""

# Told elsewhere: D1, D2 and D6-D8 need the dispatcher.

from dataclasses import replace

import pytest

from reminders import timeline
from reminders.timeline import OffsetUnit, ReminderType, Row
from tests.timeline_values import at, quiet_hours, rule

CHANCES = [
    ("in the day it goes", "2026-09-16T17:00", "2026-09-17T18:00", "2026-09-16T17:00"),
    ("D4", "2026-09-16T23:00", "2026-09-17T18:00", "2026-09-17T07:00"),
    ("the end is outside", "2026-09-17T07:00", "2026-09-17T18:00", "2026-09-17T07:00"),
    ("beside D5: exactly the lead", "2026-09-16T23:00", "2026-09-17T07:30", "2026-09-17T07:00"),
    ("beside D5: too near the visit", "2026-09-16T23:00", "2026-09-17T07:29", None),
    ("the visit is at night", "2026-09-17T05:00", "2026-09-17T06:30", None),
]


@pytest.mark.parametrize(("now", "start", "expected"), [c[1:] for c in CHANCES], ids=[c[0] for c in CHANCES])
def test_a_row_that_is_overdue_obeys_quiet_hours(now, start, expected):
    chance = timeline.next_chance(
        at(now), type=ReminderType.CITA_PROXIMA, starts_at=at(start), quiet=quiet_hours()
    )
    assert chance == (at(expected) if expected else None)


def test_after_the_visit_it_waits_for_the_morning():
    chance = timeline.next_chance(
        at("2026-09-18T23:00"),
        type=ReminderType.SEGUIMIENTO,
        starts_at=at("2026-09-17T10:00"),
        quiet=quiet_hours(),
    )
    assert chance == at("2026-09-19T07:00")


def test_the_inbox_never_waits():
    night = at("2026-09-17T05:00")
    chance = timeline.next_chance(
        night,
        type=ReminderType.CITA_PROXIMA,
        channel="in_app",
        starts_at=at("2026-09-17T06:30"),
        quiet=quiet_hours(),
    )
    assert chance == night


def due(offset: str, kind: ReminderType = ReminderType.CITA_PROXIMA, **fields) -> Row:
    its_rule = rule(offset, kind)
    row = Row(
        rule=its_rule.key,
        type=kind,
        offset_minutes=its_rule.offset_minutes,
        offset_unit=its_rule.offset_unit,
        channel="whatsapp",
        sequence=0,
        status="pending",
        reason="",
        scheduled_for=at("2026-09-16T10:00"),
        was_called=False,
    )
    return replace(row, **fields)


def going(*rows: Row) -> list[Row]:
    return [row for row in rows if not timeline.superseded_by(row, rows)]


def test_before_the_visit_the_latest_reminder_goes():
    far, near, nearest = due("3d"), due("24h"), due("2h")
    assert going(near, nearest, far) == [nearest]


def test_after_the_visit_the_earliest_follow_up_goes():
    first, second = due("24h", ReminderType.SEGUIMIENTO), due("72h", ReminderType.SEGUIMIENTO)
    assert going(second, first) == [first]


@pytest.mark.parametrize(
    "other",
    [
        due("24h", ReminderType.PREPARACION),
        due("24h", channel="email"),
        due("24h", sequence=1),
    ],
    ids=["type", "channel", "version"],
)
def test_only_rows_of_one_type_channel_and_version_compete(other):
    assert going(other, due("2h")) == [other, due("2h")]


def test_of_two_equally_near_exactly_one_goes_in_any_order():
    hours, day = due("24h"), due("1d", offset_unit=OffsetUnit.DAYS)
    assert going(hours, day) == going(day, hours)
    assert len(going(hours, day)) == 1
