"""What a change of a rule would do to what is pending, before it is saved."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from appointments.models import Appointment
from reminders import marks, timeline
from reminders.models import Mark, ReminderDelivery, ReminderRule
from reminders.outlook import SHOWN, Outcome, desks, outcome_of
from reminders.planner import Desk
from reminders.timeline import Rule
from reminders.visits import quiet_hours_of, visit_of

_UNSAVED = 0
"""The key of a rule that is not saved yet: no row names it."""


@dataclass(frozen=True, kw_only=True)
class Move:
    """A pending reminder that would go at another moment."""

    before: datetime
    after: datetime
    visit: UUID
    reminder_type: str
    channel: str
    zone: ZoneInfo
    """Of the place of care."""


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What would become of the pending rows."""

    moved: int
    kept: int
    """Rows that keep their moment, because the one that is named now is past already (P12)."""
    vanished: int
    new: int
    first_moves: tuple[Move, ...]
    """The moves of what was due soonest."""
    unplannable: int
    """Visits of which nothing can be said; the log names them."""


def of_rule(changed: ReminderRule, *, now: datetime) -> Preview:
    """What saving a rule, new or edited, would do to what is pending. Writes nothing.

    The rule must be one that can be saved. What its visits wait to be planned
    for anyway is counted along.
    """
    stored = ReminderRule.objects.filter(pk=changed.pk).first()
    return _of(_Edit(before=stored, after=_as_saved(changed, stored, now)), now)


def of_deletion(rule: ReminderRule, *, now: datetime) -> Preview:
    """What deleting a rule would do to what is pending. Writes nothing."""
    return _of(_Edit(before=ReminderRule.objects.get(pk=rule.pk), after=None), now)


@dataclass(frozen=True, kw_only=True)
class _Edit:
    """A rule as it is stored, and as it would be; None where there is none."""

    before: ReminderRule | None
    after: ReminderRule | None

    def concerned(self, now: datetime) -> set[UUID]:
        """The visits that the rule governs or would govern, as far as they can still change."""
        if self.before and self.after and _terms(self.before) == _terms(self.after):
            return set()  # new words plan nothing anew
        rules = [rule for rule in (self.before, self.after) if rule]
        return {visit for rule in rules for visit in _governed_by(rule, now)}

    def made_on(self, desk: Desk) -> Desk:
        """The desk as the planner would find it after the change."""
        key = self.before and self.before.pk
        rules = [rule for rule in desk.rules if rule.pk != key]
        if self.after:
            return replace(desk, rules=[*rules, self.after])
        for row in (row for rows in desk.rows.values() for row in rows if row.rule_id == key):
            row.rule_id = None
        return replace(desk, rules=rules)


def _as_saved(changed: ReminderRule, stored: ReminderRule | None, now: datetime) -> ReminderRule:
    """The rule as reminders_rule_in_force(), the trigger of migration 0002_marks, would leave it."""
    saved = copy.copy(changed)
    saved.pk = changed.pk or _UNSAVED
    stands = stored is not None and _moment_of(stored) == _moment_of(changed)
    saved.in_force_since = stored.in_force_since if stored and stands else now
    return saved


def _moment_of(rule: ReminderRule) -> tuple[object, ...]:
    """By what the database tells that a rule came into force anew."""
    level = (rule.doctor_id, rule.specialty_id)
    return (*level, rule.is_enabled, rule.reminder_type, rule.offset_minutes, rule.offset_unit)


def _terms(rule: ReminderRule) -> tuple[object, ...]:
    """What makes the planner plan anew: the same as in reminders_mark_rules(), of the same migration."""
    return (*_moment_of(rule), tuple(rule.channels), rule.fallback_after_minutes)


def _governed_by(rule: ReminderRule, now: datetime) -> Iterable[UUID]:
    mark = Mark(subject=Mark.Subject.EVERYTHING)
    if rule.doctor_id:
        mark = Mark(subject=Mark.Subject.DOCTOR, subject_id=str(rule.doctor_id))
    visits = marks.covered(mark, now=now)
    if rule.specialty_id is None:
        return visits
    return Appointment.objects.filter(pk__in=visits, specialty=rule.specialty_id).values_list("pk", flat=True)


def _of(edit: _Edit, now: datetime) -> Preview:
    waiting = marks.waiting(now=now)
    moves: list[Move] = []
    counts: Counter[str] = Counter()
    for desk in desks(edit.concerned(now)):
        changed = edit.made_on(desk)
        for visit in desk.appointments:
            change = Mark(
                subject=Mark.Subject.APPOINTMENT, subject_id=str(visit.pk), changes_rules=True, at=now
            )
            outcome = outcome_of(changed, visit, [*waiting.get(visit.pk, []), change])
            if outcome is None:
                counts["unplannable"] += 1
                continue
            moves += _moves(outcome)
            counts["vanished"] += len(outcome.was_pending - outcome.is_pending)
            counts["new"] += len(outcome.is_pending - outcome.was_pending)
            counts["kept"] += _count_kept(outcome, edit, before=desk.rules, after=changed.rules, now=now)
    return Preview(
        moved=len(moves),
        kept=counts["kept"],
        vanished=counts["vanished"],
        new=counts["new"],
        first_moves=tuple(sorted(moves, key=lambda move: (move.before, move.visit, move.channel))[:SHOWN]),
        unplannable=counts["unplannable"],
    )


def _moves(outcome: Outcome) -> list[Move]:
    return [
        Move(
            before=outcome.before[pk].scheduled_for,
            after=outcome.after[pk].scheduled_for,
            visit=outcome.visit.pk,
            reminder_type=outcome.after[pk].reminder_type,
            channel=outcome.after[pk].channel,
            zone=outcome.zone,
        )
        for pk in outcome.was_pending & outcome.is_pending
        if not outcome.is_unmoved(pk)
    ]


def _count_kept(
    outcome: Outcome,
    edit: _Edit,
    *,
    before: Sequence[ReminderRule],
    after: Sequence[ReminderRule],
    now: datetime,
) -> int:
    unmoved = [row for row in outcome.rows if outcome.is_unmoved(row.pk)]
    if not unmoved:
        return 0
    ruled, rules = _in_force(before, outcome.visit), _in_force(after, outcome.visit)
    key = edit.after and edit.after.pk
    return sum(
        # Its rule was replaced just now, by one whose moments are past.
        row.rule_id in ruled
        if row.rule_id not in rules
        else row.rule_id == key and _has_missed(row, rules[row.rule_id], outcome.visit, now)
        for row in unmoved
    )


def _in_force(rules: Sequence[ReminderRule], visit: Appointment) -> Mapping[int | str | None, Rule]:
    known = [rule.as_planned() for rule in rules]
    level = timeline.effective(known, doctor=visit.doctor_id, specialty=visit.specialty_id)
    return {rule.key: rule for rule in level}


def _has_missed(row: ReminderDelivery, rule: Rule, visit: Appointment, now: datetime) -> bool:
    """Whether the moment that the rule names is another one, and past."""
    if row.called_at or row.fallback_of_id:
        return False  # it goes on with what was begun
    named = timeline.moment(rule, visit_of(visit))
    if named and row.channel != timeline.SILENT_CHANNEL:
        quiet = quiet_hours_of(visit)
        shifted = timeline.out_of_quiet_hours(named, type=rule.type, starts_at=visit.starts_at, quiet=quiet)
        named = shifted or named
    return named is not None and named != row.scheduled_for and named <= now
