"""What holds for every visit, rule and hour."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from appointments.local_time import instant
from reminders import timeline
from reminders.timeline import OffsetUnit, QuietHours, Reason, ReminderType, Rule, Visit
from tests.timeline_values import LONG_AGO, ZONES, rows_of

zones = st.sampled_from(list(ZONES.values()))
clocks = st.builds(time, st.integers(0, 23), st.sampled_from([0, 15, 20, 30, 45]))
quiet_hours = st.builds(QuietHours, start=clocks, end=clocks, zone=zones)
offsets = st.one_of(
    st.tuples(st.integers(1, 5_000), st.just(OffsetUnit.MINUTES)),
    st.tuples(st.integers(1, 100).map(lambda hours: hours * 60), st.just(OffsetUnit.HOURS)),
    st.tuples(st.integers(1, 30).map(lambda days: days * 1_440), st.just(OffsetUnit.DAYS)),
    st.tuples(st.integers(1, 24).map(lambda months: months * 43_200), st.just(OffsetUnit.MONTHS)),
)
channels = st.permutations(["whatsapp", "email", "in_app"]).flatmap(
    lambda order: st.integers(0, 3).map(lambda count: tuple(order[:count]))
)
obstacles = st.sampled_from(
    [None, None, Reason.NO_CONTACT, Reason.OPTED_OUT, Reason.NO_CONSENT, Reason.CHANNEL_OFF]
)
reaches = st.dictionaries(
    st.sampled_from(list(ReminderType)),
    st.fixed_dictionaries({"whatsapp": obstacles, "email": obstacles, "in_app": obstacles}),
)


@st.composite
def visits(draw: st.DrawFn) -> Visit:
    zone = draw(zones)
    # Around the nights in which some of these clocks jump.
    day = draw(st.sampled_from([(2026, 3, 8), (2026, 3, 29), (2026, 4, 5), (2026, 9, 6), (2026, 11, 1)]))
    date = (datetime(*day, tzinfo=UTC) + timedelta(days=draw(st.integers(-2, 2)))).date()
    clock = draw(clocks)
    starts_at = instant(date, clock, zone)
    created_at = starts_at - timedelta(minutes=draw(st.integers(-60, 9_000)))
    sequence = draw(st.integers(0, 1))
    return Visit(
        date=date,
        start_time=clock,
        zone=zone,
        starts_at=starts_at,
        status=draw(st.sampled_from(["scheduled", "confirmed", "completed", "cancelled", "checked_in"])),
        sequence=sequence,
        changed_at=created_at + timedelta(minutes=draw(st.integers(0, 9_000))) if sequence else None,
        booked_at=draw(st.sampled_from([None, created_at, created_at - timedelta(days=1)])),
        created_at=created_at,
        completed_at=draw(st.sampled_from([None, starts_at + timedelta(minutes=65)])),
    )


@st.composite
def rule_sets(draw: st.DrawFn) -> list[Rule]:
    rules = []
    for key in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(list(ReminderType)))
        minutes, unit = draw(offsets)
        rules.append(
            Rule(
                key=key,
                type=kind,
                offset_minutes=-minutes if kind in timeline.MINIMUM_LEAD else minutes,
                offset_unit=unit,
                channels=draw(channels),
                since=draw(st.sampled_from([LONG_AGO, datetime(2026, 3, 7, 12, tzinfo=UTC)])),
            )
        )
    return rules


def kind_of(key: int | str, rules: list[Rule]) -> ReminderType:
    return next(rule.type for rule in rules if rule.key == key)


@settings(deadline=None)
@given(visits(), rule_sets(), reaches, quiet_hours)
def test_planning_again_or_late_gives_the_same_rows(visit, rules, reach, quiet):
    first = timeline.plan(visit, rules=rules, reach=reach, quiet=quiet, rows=[])
    written = rows_of(first, rules, sequence=visit.sequence)
    assert timeline.plan(visit, rules=rules, reach=reach, quiet=quiet, rows=written) == first


@settings(deadline=None)
@given(visits(), rule_sets(), rule_sets(), reaches, quiet_hours, st.integers(0, 9_000))
def test_planning_again_after_a_change_of_rules_gives_the_same_rows(visit, rules, later, reach, quiet, ago):
    changed_at = visit.starts_at - timedelta(minutes=ago)
    later = [replace(rule, since=changed_at) for rule in later]
    written = rows_of(
        timeline.plan(visit, rules=rules, reach=reach, quiet=quiet, rows=[]), rules, sequence=visit.sequence
    )
    changed = timeline.plan(
        visit, rules=later, reach=reach, quiet=quiet, rows=written, rules_changed_at=changed_at
    )
    rows = rows_of(changed, later, sequence=visit.sequence)
    assert timeline.plan(visit, rules=later, reach=reach, quiet=quiet, rows=rows) == changed


@pytest.mark.complaint(
    "Switching a rule on writes to everybody at once.",
    about="rules",
    source="calcom/cal.diy #15672",
)
@settings(deadline=None)
@given(visits(), rule_sets(), rule_sets(), reaches, quiet_hours, st.integers(0, 9_000))
def test_saving_a_rule_never_sends(visit, rules, later, reach, quiet, ago):
    changed_at = visit.starts_at - timedelta(minutes=ago)
    assume(changed_at > max(visit.created_at, visit.changed_at or visit.created_at))
    later = [replace(rule, since=changed_at) for rule in later]
    written = rows_of(
        timeline.plan(visit, rules=rules, reach=reach, quiet=quiet, rows=[]), rules, sequence=visit.sequence
    )
    promised = {row.scheduled_for for row in written if row.status == "pending"}
    for row in timeline.plan(visit, rules=later, reach=reach, quiet=quiet, rows=written):
        assert row.status != "pending" or row.scheduled_for > changed_at or row.scheduled_for in promised


@settings(deadline=None)
@given(visits(), rule_sets(), reaches, quiet_hours)
def test_a_pending_row_leaves_before_the_start_and_while_it_is_useful(visit, rules, reach, quiet):
    for row in timeline.plan(visit, rules=rules, reach=reach, quiet=quiet, rows=[]):
        if row.status == "pending" and kind_of(row.rule, rules) in timeline.MINIMUM_LEAD:
            assert row.scheduled_for < visit.starts_at
            assert row.scheduled_for < row.useful_until <= visit.starts_at


@settings(deadline=None)
@given(visits(), rule_sets(), reaches, quiet_hours)
def test_no_pending_row_is_due_in_quiet_hours(visit, rules, reach, quiet):
    for row in timeline.plan(visit, rules=rules, reach=reach, quiet=quiet, rows=[]):
        if row.status == "pending" and row.channel != "in_app":
            # The quiet hours lie on the zone's clock; only a skipped beginning is later than it says.
            clock = row.scheduled_for.astimezone(quiet.zone).time()
            assert not _is_within(clock, quiet) or _begins_in_a_gap(row.scheduled_for, quiet)


def _is_within(clock: time, quiet: QuietHours) -> bool:
    if quiet.start <= quiet.end:
        return quiet.start <= clock < quiet.end
    return clock >= quiet.start or clock < quiet.end


def _begins_in_a_gap(moment: datetime, quiet: QuietHours) -> bool:
    day = moment.astimezone(quiet.zone).date()
    return instant(day, quiet.start, quiet.zone).astimezone(quiet.zone).time() != quiet.start


@pytest.mark.complaint(
    "Nothing was sent, and nothing says why.",
    about="twice",
    source="pretix/pretix #4478; Wunderbyte-GmbH/moodle-mod_booking #263",
)
@settings(deadline=None)
@given(visits(), rule_sets(), reaches, quiet_hours)
def test_every_row_has_a_state_and_a_reason_that_fit(visit, rules, reach, quiet):
    planned = timeline.plan(visit, rules=rules, reach=reach, quiet=quiet, rows=[])
    for row in planned:
        assert (row.status, bool(row.reason)) in {("pending", False), ("skipped", True)}
        assert row.channel or row.reason in {Reason.NO_CHANNEL, Reason.OPTED_OUT, Reason.DO_NOT_SEND}
    keys = [(row.rule, row.channel) for row in planned]
    assert len(set(keys)) == len(keys)
    waiting = [row.rule for row in planned if row.status == "pending"]
    assert len(set(waiting)) == len(waiting)


@settings(deadline=None)
@given(visits(), rule_sets(), reaches, quiet_hours)
def test_what_was_called_is_never_planned_again(visit, rules, reach, quiet):
    first = timeline.plan(visit, rules=rules, reach=reach, quiet=quiet, rows=[])
    sent = rows_of(first, rules, sequence=visit.sequence, status="sent", reason="", was_called=True)
    assert timeline.plan(
        visit, rules=[rule for rule in rules if rule.channels], reach=reach, quiet=quiet, rows=sent
    ) in (
        [],
        [row for row in first if row.rule not in {row.rule for row in sent}],
    )


@pytest.mark.complaint(
    "A date that changes brings a reminder twice, or suppresses the next.",
    about="moves",
    source="civicrm/civicrm-core PR#8025, PR#8987, PR#11239",
)
@settings(deadline=None)
@given(visits(), rule_sets(), reaches, quiet_hours)
def test_a_move_there_and_back_promises_the_same_moments(visit, rules, reach, quiet):
    assume(visit.sequence == 0 and visit.booked_at is not None)
    rules = [replace(rule, since=LONG_AGO) for rule in rules]
    there_and_back = replace(visit, sequence=2, same_as=frozenset({0}))

    def promises(of: Visit) -> list[tuple[object, ...]]:
        planned = timeline.plan(of, rules=rules, reach=reach, quiet=quiet, rows=[])
        return [(row.rule, row.channel, row.scheduled_for) for row in planned if row.status == "pending"]

    assert promises(there_and_back) == promises(visit)


@settings(deadline=None)
@given(visits(), quiet_hours, st.sampled_from(list(timeline.MINIMUM_LEAD)), st.integers(1, 3_000))
def test_a_chance_is_now_or_later_and_before_the_visit(visit, quiet, kind, ago):
    now = visit.starts_at - timedelta(minutes=ago)
    chance = timeline.next_chance(now, type=kind, starts_at=visit.starts_at, quiet=quiet)
    if chance is not None:
        assert now <= chance < visit.starts_at
        assert timeline.next_chance(chance, type=kind, starts_at=visit.starts_at, quiet=quiet) == chance
