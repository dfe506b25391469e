"""Makes the rows of marked visits equal to what the timeline says now.

Safe to repeat, and safe beside itself: whatever somebody else holds keeps its
mark and comes again. It never waits for a lock, so it can never be the reason
why a booking fails.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from appointments.models import Appointment
from reminders import backoff, marks, reach, timeline
from reminders.models import Mark, ReminderDelivery, ReminderRule, RulesChange
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
    desk = _Desk.open(by_visit.keys())
    done: list[Mark] = []
    changes: list[RulesChange] = []
    for appointment in desk.appointments:
        its_marks = by_visit[appointment.pk]
        changed = [mark.at for mark in its_marks if mark.changes_rules]
        facts = [mark.at for mark in its_marks if not mark.changes_rules]
        try:
            with transaction.atomic():
                desk.make_equal(
                    appointment,
                    rules_changed_at=max(
                        [*changed, *desk.rules_changes.get(appointment.pk, [])], default=None
                    ),
                    unplanned_since=min(facts, default=None),
                )
        except Exception as error:  # one visit's fault must not stop its neighbours
            logger.exception("plan appointment=%s failed kind=%s", appointment.pk, type(error).__name__)
            _postpone(its_marks, now)
        else:
            done += its_marks
            if changed:
                changes.append(RulesChange(appointment=appointment, at=max(changed)))
    RulesChange.objects.bulk_create(
        changes, update_conflicts=True, unique_fields=["appointment"], update_fields=["at"]
    )
    Mark.objects.filter(pk__in=[mark.pk for mark in done]).delete()
    return len({mark.subject_id for mark in done})


def _postpone(its_marks: Sequence[Mark], now: datetime) -> None:
    for mark in its_marks:
        mark.tries += 1
        mark.not_before = now + backoff.delay(mark.tries)
        mark.save(update_fields=["tries", "not_before"])


@dataclass(frozen=True, kw_only=True)
class _Desk:
    """All that planning a batch of visits needs, read once for the batch."""

    appointments: Sequence[Appointment]
    rules: Sequence[ReminderRule]
    rows: dict[UUID, list[ReminderDelivery]]
    reaches: dict[int, Reach]
    rules_changes: dict[UUID, list[datetime]]

    @classmethod
    def open(cls, ids: Collection[UUID]) -> _Desk:
        """Lock the visits and their rows, leaving out what somebody else holds."""
        appointments = list(
            Appointment.objects.filter(pk__in=ids)
            .select_related("patient", "office", "doctor")
            .select_for_update(skip_locked=True, of=("self",))
            .order_by("pk")
        )
        locked = ReminderDelivery.objects.filter(appointment__in=appointments)
        rows: dict[UUID, list[ReminderDelivery]] = defaultdict(list)
        for row in locked.select_for_update(skip_locked=True):
            rows[row.appointment_id].append(row)
        mine = {row.pk for its_rows in rows.values() for row in its_rows}
        held = {
            appointment for pk, appointment in locked.values_list("pk", "appointment_id") if pk not in mine
        }
        free = [appointment for appointment in appointments if appointment.pk not in held]
        return cls(
            appointments=free,
            rules=list(
                ReminderRule.objects.filter(
                    Q(doctor__isnull=True) | Q(doctor__in={appointment.doctor_id for appointment in free})
                )
            ),
            rows=rows,
            reaches=reach.of([appointment.patient for appointment in free]),
            rules_changes={
                change.pk: [change.at] for change in RulesChange.objects.filter(appointment__in=free)
            },
        )

    def make_equal(
        self,
        appointment: Appointment,
        *,
        rules_changed_at: datetime | None,
        unplanned_since: datetime | None,
    ) -> None:
        """Write what the timeline says into the rows of one visit."""
        rows = self.rows.get(appointment.pk, [])
        effective = timeline.effective(
            [rule.as_planned() for rule in self.rules],
            doctor=appointment.doctor_id,
            specialty=appointment.specialty_id,
        )
        its_reach = self.reaches[appointment.patient_id]
        wanted = timeline.plan(
            visit_of(appointment),
            rules=effective,
            reach={kind: its_reach.obstacles(kind) for kind in ReminderType},
            quiet=quiet_hours_of(appointment),
            rows=[row.as_planned() for row in rows],
            rules_changed_at=rules_changed_at,
            unplanned_since=unplanned_since,
        )
        names: dict[int | str, ReminderRule] = {rule.pk: rule for rule in self.rules}
        current: dict[tuple[int | str | None, str], ReminderDelivery] = {
            (row.rule_id, row.channel): row for row in rows if row.sequence == appointment.sequence
        }
        for planned in wanted:
            row = current.pop((planned.rule, planned.channel), None)
            if row is None:
                _create(appointment, names[planned.rule], planned)
            elif row.called_at is None and row.status != Status.SENDING:
                _adjust(row, names[planned.rule], planned)
        left = [*current.values(), *(row for row in rows if row.sequence != appointment.sequence)]
        in_force = {rule.key for rule in effective}
        for row in left:
            if gone := self._why_gone(row, appointment, in_force):
                _cancel(row, gone)

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


def _create(appointment: Appointment, rule: ReminderRule, planned: Planned) -> None:
    ReminderDelivery.objects.create(
        appointment=appointment,
        patient_id=appointment.patient_id,
        rule=rule,
        sequence=appointment.sequence,
        channel=planned.channel,
        **_fields(rule, planned),
    )
    logger.info(
        "delivery appointment=%s rule=%s channel=%s planned status=%s reason=%s",
        appointment.pk, rule.pk, planned.channel or "-", planned.status, planned.reason or "-",
    )  # fmt: skip


def _adjust(row: ReminderDelivery, rule: ReminderRule, planned: Planned) -> None:
    fields = _fields(rule, planned)
    if row.status == planned.status and row.scheduled_for == planned.scheduled_for:
        # Keep the next look: a row that waits for the end of quiet hours goes on waiting.
        del fields["next_attempt_at"]
    if all(getattr(row, name) == value for name, value in fields.items()):
        return
    for name, value in fields.items():
        setattr(row, name, value)
    row.save(update_fields=fields)
    logger.info("delivery id=%s planned status=%s reason=%s", row.pk, row.status, row.reason or "-")


def _fields(rule: ReminderRule, planned: Planned) -> dict[str, object]:
    return {
        "rule_name": str(rule),
        "reminder_type": rule.reminder_type,
        "offset_minutes": rule.offset_minutes,
        "offset_unit": rule.offset_unit,
        "status": planned.status,
        "reason": planned.reason,
        "scheduled_for": planned.scheduled_for,
        "next_attempt_at": planned.scheduled_for,
        "useful_until": planned.useful_until,
    }


def _cancel(row: ReminderDelivery, reason: Reason) -> None:
    row.status, row.reason = Status.CANCELLED, reason
    row.save(update_fields=["status", "reason"])
    logger.info("delivery id=%s cancelled reason=%s", row.pk, reason)
