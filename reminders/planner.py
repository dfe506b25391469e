"""Makes the rows of marked visits equal to what the timeline says now.

Safe to repeat, and safe beside itself: whatever somebody else holds keeps its
mark and comes again. It never waits for a lock, so it can never be the reason
why a booking fails.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from uuid import UUID, uuid4

from django.db import DataError, IntegrityError, transaction
from django.db.models import Q, QuerySet

from appointments.models import Appointment
from reminders import backoff, marks, reach, timeline
from reminders.models import Mark, ReminderDelivery, ReminderRule, RulesChange
from reminders.models.each import insert_each, update_each
from reminders.reach import Reach
from reminders.timeline import Planned, Reason, ReminderType
from reminders.visits import quiet_hours_of, visit_of, why_void

logger = logging.getLogger(__name__)
Status = ReminderDelivery.Status
BATCH = 200


def plan_marked(*, now: datetime, visit: UUID | None = None, batches: int | None = None) -> int:
    """Plan every visit that has a mark, or just one; returns how many were planned.

    With ``batches`` at most so many times BATCH marks: the rest waits for the
    next call. A mark that cannot be worked on (somebody holds a row, or planning
    the visit fails) stays and is looked at again by a later call.
    """
    planned, after = 0, 0
    while batches is None or batches > 0:
        batches = None if batches is None else batches - 1
        with transaction.atomic():
            taken = list(
                Mark.objects.ready(now)
                .of(visit)
                .filter(pk__gt=after)
                .select_for_update(skip_locked=True)
                .order_by("pk")[:BATCH]
            )
            if not taken:
                break
            after = taken[-1].pk
            marks.widen([mark for mark in taken if mark.subject != Mark.Subject.APPOINTMENT], now=now)
            planned += _plan([mark for mark in taken if mark.subject == Mark.Subject.APPOINTMENT], now=now)
    return planned


def _plan(taken: Sequence[Mark], *, now: datetime) -> int:
    by_visit: dict[UUID, list[Mark]] = defaultdict(list)
    for mark in [*taken, *Mark.objects.besides(taken).select_for_update(skip_locked=True)]:
        by_visit[UUID(mark.subject_id)].append(mark)
    desk = Desk.open(by_visit.keys())
    plans: list[Plan] = []
    for appointment in desk.appointments:
        its_marks = by_visit[appointment.pk]
        try:
            plans.append(desk.plan(appointment, its_marks))
        except Exception as error:  # one visit's fault must not stop its neighbours
            _postpone(appointment.pk, its_marks, now, error)
    written = _write_all(plans, now)
    Mark.objects.filter(pk__in=[mark.pk for plan in written for mark in plan.marks]).delete()
    return len(written)


def _write_all(plans: Sequence[Plan], now: datetime) -> Sequence[Plan]:
    """Write the plans all at once, and one by one where that fails; returns those that were written."""
    try:
        with transaction.atomic():
            _write(plans)
    except (IntegrityError, DataError) as error:
        if len(plans) == 1:
            _postpone(plans[0].appointment.pk, plans[0].marks, now, error)
            return []
        return [written for plan in plans for written in _write_all([plan], now)]
    for plan in plans:
        plan.tell()
    return plans


def _write(plans: Sequence[Plan]) -> None:
    update_each(ReminderDelivery, [values for plan in plans for values in plan.cancelled])
    update_each(ReminderDelivery, [values for plan in plans for values in plan.adjusted])
    insert_each(ReminderDelivery, [values for plan in plans for values in plan.created])
    RulesChange.objects.bulk_create(
        (
            RulesChange(appointment=plan.appointment, at=plan.rules_changed_at)
            for plan in plans
            if plan.rules_changed_at
        ),
        update_conflicts=True,
        unique_fields=["appointment"],
        update_fields=["at"],
    )


def _postpone(appointment: UUID, its_marks: Sequence[Mark], now: datetime, error: Exception) -> None:
    logger.error("plan appointment=%s failed kind=%s", appointment, type(error).__name__, exc_info=error)
    for mark in its_marks:
        mark.tries += 1
        mark.not_before = now + backoff.delay(mark.tries)
        mark.save(update_fields=["tries", "not_before"])


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be written for one visit."""

    appointment: Appointment
    marks: Sequence[Mark]
    rules_changed_at: datetime | None
    created: list[dict[str, object]] = field(default_factory=list)
    adjusted: list[dict[str, object]] = field(default_factory=list)
    cancelled: list[dict[str, object]] = field(default_factory=list)

    def tell(self) -> None:
        """One line for the log, when anything changed."""
        if self.created or self.adjusted or self.cancelled:
            logger.info(
                "plan appointment=%s created=%d adjusted=%d cancelled=%d",
                self.appointment.pk, len(self.created), len(self.adjusted), len(self.cancelled),
            )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Desk:
    """All that planning a batch of visits needs, read once for the batch."""

    appointments: Sequence[Appointment]
    rules: Sequence[ReminderRule]
    rows: dict[UUID, list[ReminderDelivery]]
    reaches: dict[int, Reach]
    rules_changes: dict[UUID, list[datetime]]

    @classmethod
    def open(cls, ids: Collection[UUID]) -> Desk:
        """Lock the visits and their rows, leaving out what somebody else holds."""
        appointments = list(_visits(ids).select_for_update(skip_locked=True, of=("self",)))
        locked = ReminderDelivery.objects.filter(appointment__in=appointments)
        rows = list(locked.select_for_update(skip_locked=True))
        mine = {row.pk for row in rows}
        held = {
            appointment for pk, appointment in locked.values_list("pk", "appointment_id") if pk not in mine
        }
        return cls._with([appointment for appointment in appointments if appointment.pk not in held], rows)

    @classmethod
    def look(cls, ids: Collection[UUID]) -> Desk:
        """The same without a lock: for those who only want to know what would be written."""
        appointments = list(_visits(ids))
        return cls._with(appointments, ReminderDelivery.objects.filter(appointment__in=appointments))

    @classmethod
    def _with(cls, appointments: Sequence[Appointment], rows: Iterable[ReminderDelivery]) -> Desk:
        by_visit: dict[UUID, list[ReminderDelivery]] = defaultdict(list)
        for row in rows:
            by_visit[row.appointment_id].append(row)
        doctors = {appointment.doctor_id for appointment in appointments}
        return cls(
            appointments=appointments,
            rules=list(ReminderRule.objects.filter(Q(doctor__isnull=True) | Q(doctor__in=doctors))),
            rows=by_visit,
            reaches=reach.of([appointment.patient for appointment in appointments]),
            rules_changes={
                change.pk: [change.at] for change in RulesChange.objects.filter(appointment__in=appointments)
            },
        )

    def plan(self, appointment: Appointment, its_marks: Sequence[Mark]) -> Plan:
        """What the timeline says of one visit, as changes to its rows."""
        changed = [mark.at for mark in its_marks if mark.changes_rules]
        rows = self.rows.get(appointment.pk, [])
        known = [row.as_planned() for row in rows if row.sequence == appointment.sequence]
        rules = [rule.as_planned() for rule in self.rules]
        level = {"doctor": appointment.doctor_id, "specialty": appointment.specialty_id}
        its_reach = self.reaches[appointment.patient_id]
        say = partial(
            timeline.plan,
            visit_of(appointment),
            reach={kind: its_reach.obstacles(kind) for kind in ReminderType},
            quiet=quiet_hours_of(appointment),
            rows=known,
            rules_changed_at=max([*changed, *self.rules_changes.get(appointment.pk, [])], default=None),
            unplanned_since=min((mark.at for mark in its_marks if not mark.changes_rules), default=None),
        )
        in_force = timeline.effective(rules, **level)
        wanted = say(rules=in_force)
        if held_over := timeline.held_over(rules, **level, rows=known, planned=wanted):
            in_force += held_over
            wanted += say(rules=held_over)
        plan = Plan(appointment=appointment, marks=its_marks, rules_changed_at=max(changed, default=None))
        names: dict[int | str, ReminderRule] = {rule.pk: rule for rule in self.rules}
        current: dict[tuple[int | str | None, str], ReminderDelivery] = {
            (row.rule_id, row.channel): row for row in rows if row.sequence == appointment.sequence
        }
        left = dict(current)
        for planned in wanted:
            row = left.pop((planned.rule, planned.channel), None)
            fallen = current.get((planned.rule, planned.in_place_of)) if planned.in_place_of else None
            wish = _fields(names[planned.rule], planned, fallen)
            if row is None:
                plan.created.append(_new(appointment, wish))
            elif row.called_at is None and row.status != Status.SENDING:
                plan.adjusted.extend(_adjustment(row, wish))
        keys = {rule.key for rule in in_force}
        for row in [*left.values(), *(row for row in rows if row.sequence != appointment.sequence)]:
            if gone := self._why_gone(row, appointment, keys):
                plan.cancelled.append({"pk": row.pk, "status": Status.CANCELLED, "reason": gone})
        return plan

    def _why_gone(
        self, row: ReminderDelivery, appointment: Appointment, in_force: Collection[int | str]
    ) -> Reason | None:
        """Why a row that the timeline no longer names must not be sent; None to let it be."""
        is_closing = row.status == Status.SKIPPED and row.channel == "" and not row.called_at
        if row.status != Status.PENDING and not is_closing:
            return None
        if gone := why_void(row, appointment):
            return gone if row.status == Status.PENDING else None
        if row.rule_id is None:
            return Reason.RULE_DELETED
        if row.rule_id not in in_force:
            rule = next((rule for rule in self.rules if rule.pk == row.rule_id), None)
            return Reason.RULE_REPLACED if rule and rule.is_enabled else Reason.RULE_DISABLED
        # Once called, the row waits for its retry; the timeline does not name it.
        return None if row.called_at else Reason.CHANNEL_REPLACED


def _visits(ids: Collection[UUID]) -> QuerySet[Appointment]:
    return Appointment.objects.filter(pk__in=ids).select_related("patient", "office", "doctor").order_by("pk")


_STORED_AS = {"rule": "rule_id", "fallback_of": "fallback_of_id"}


def _new(appointment: Appointment, wish: Mapping[str, object]) -> dict[str, object]:
    return {
        "pk": uuid4(),
        "appointment": appointment.pk,
        "patient": appointment.patient_id,
        "sequence": appointment.sequence,
        **wish,
        **dict.fromkeys(("attempt", "retry_count"), 0),
        **dict.fromkeys(("address", "message_id", "error_code", "error_message"), ""),
    }


def _adjustment(row: ReminderDelivery, wish: Mapping[str, object]) -> list[dict[str, object]]:
    """The row's columns as they ought to be; nothing when they are so."""
    fields = dict(wish)
    if (row.status, row.scheduled_for) == (wish["status"], wish["scheduled_for"]):
        # Keep the next look: a row that waits for the end of quiet hours goes on waiting.
        fields["next_attempt_at"] = row.next_attempt_at
    present = {name: getattr(row, _STORED_AS.get(name, name)) for name in fields}
    return [] if present == fields else [{"pk": row.pk, **fields}]


def _fields(rule: ReminderRule, planned: Planned, fallen: ReminderDelivery | None) -> dict[str, object]:
    return {
        "rule": rule.pk,
        "rule_name": str(rule),
        "reminder_type": rule.reminder_type,
        "offset_minutes": rule.offset_minutes,
        "offset_unit": rule.offset_unit,
        "channel": planned.channel,
        "status": planned.status,
        "reason": planned.reason,
        "scheduled_for": planned.scheduled_for,
        "next_attempt_at": planned.scheduled_for,
        "useful_until": planned.useful_until,
        "fallback_of": fallen and fallen.pk,
    }
