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

from appointments.models import Appointment, AppointmentHistory, Patient
from reminders import backoff, marks, notices, reach, timeline
from reminders.models import Mark, ReminderDelivery, ReminderRule, RulesChange
from reminders.models.each import insert_each, update_each
from reminders.notices import History, Version
from reminders.reach import Reach
from reminders.timeline import NOTICES, Planned, Reason, ReminderType, Row, Rule
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
    versions: dict[UUID, list[Version]]
    patients: dict[int, Patient]
    """Those of the visits, and those who had them before."""

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
        versions = _versions_of(appointments)
        patients = {appointment.patient_id: appointment.patient for appointment in appointments}
        before = {version.patient for its in versions.values() for version in its} - patients.keys() - {None}
        if before:
            patients |= Patient.objects.in_bulk(before)
        return cls(
            appointments=appointments,
            rules=list(ReminderRule.objects.filter(Q(doctor__isnull=True) | Q(doctor__in=doctors))),
            rows=by_visit,
            reaches=reach.of(list(patients.values())),
            rules_changes={
                change.pk: [change.at] for change in RulesChange.objects.filter(appointment__in=appointments)
            },
            versions=versions,
            patients=patients,
        )

    def plan(self, appointment: Appointment, its_marks: Sequence[Mark]) -> Plan:
        """What the timeline says of one visit, as changes to its rows."""
        changed = [mark.at for mark in its_marks if mark.changes_rules]
        rows = self.rows.get(appointment.pk, [])
        known = [row.as_planned() for row in rows]
        rules = [rule.as_planned() for rule in self.rules]
        level = {"doctor": appointment.doctor_id, "specialty": appointment.specialty_id}
        history = self._history(appointment, rows, timeline.notices_since(rules, **level))
        changed_at, same_as = notices.what_is_known(history, appointment.patient_id)
        its_reach = self.reaches[appointment.patient_id]
        say = partial(
            timeline.plan,
            visit_of(appointment, changed_at=changed_at, same_as=same_as),
            reach={kind: its_reach.obstacles(kind) for kind in ReminderType},
            quiet=quiet_hours_of(appointment),
            rows=known,
            rules_changed_at=max([*changed, *self.rules_changes.get(appointment.pk, [])], default=None),
            unplanned_since=min((mark.at for mark in its_marks if not mark.changes_rules), default=None),
        )
        in_force = timeline.effective(rules, **level)
        wanted = say(rules=in_force)
        present = [row for row in known if row.sequence == appointment.sequence]
        if held_over := timeline.held_over(rules, **level, rows=present, planned=wanted):
            in_force += held_over
            wanted += say(rules=held_over)
        wishes = [
            _Wish(planned=planned, patient=appointment.patient_id, sequence=appointment.sequence)
            for planned in wanted
        ]
        wishes += self._notices(appointment, history, in_force, known)
        plan = Plan(appointment=appointment, marks=its_marks, rules_changed_at=max(changed, default=None))
        names: dict[int | str, ReminderRule] = {rule.pk: rule for rule in self.rules}
        current: dict[tuple[int, int | str | None, str], ReminderDelivery] = {
            (row.sequence, row.rule_id, row.channel): row for row in rows
        }
        left = dict(current)
        for wish in wishes:
            row = left.pop((wish.sequence, wish.planned.rule, wish.planned.channel), None)
            fallen = current.get((wish.sequence, wish.planned.rule, wish.planned.in_place_of))
            fields = _fields(names[wish.planned.rule], wish, fallen if wish.planned.in_place_of else None)
            if row is None:
                plan.created.append(_new(appointment, fields))
            elif row.called_at is None and row.status != Status.SENDING:
                plan.adjusted.extend(_adjustment(row, fields))
        keys = {rule.key for rule in in_force}
        for row in left.values():
            if gone := self._why_gone(row, appointment, keys):
                plan.cancelled.append({"pk": row.pk, "status": Status.CANCELLED, "reason": gone})
        return plan

    def _history(
        self,
        appointment: Appointment,
        rows: Sequence[ReminderDelivery],
        since: Mapping[ReminderType, datetime],
    ) -> History:
        return History(
            versions=self.versions.get(appointment.pk, []),
            announces_booking=appointment.announces_booking,
            told={
                (row.sequence, row.patient_id, row.reminder_type == ReminderType.CANCELACION)
                for row in rows
                if row.reminder_type in NOTICES
                and (row.told_by_phone_at or (row.called_at and row.status in _MAY_HAVE_ARRIVED))
            },
            phoned=[(row.patient_id, row.told_by_phone_at) for row in rows if row.told_by_phone_at],
            since=since,
        )

    def _notices(
        self,
        appointment: Appointment,
        history: History,
        rules: Sequence[Rule],
        rows: Sequence[Row],
    ) -> list[_Wish]:
        """What the visit's patient, or whoever had it before, has to be told at once."""
        return [
            _Wish(planned=planned, patient=notice.patient, sequence=notice.sequence)
            for notice in notices.of(history)
            if notice.patient != appointment.patient_id or timeline.is_wanted(notice.type, appointment.status)
            for rule in rules
            if rule.type is notice.type
            for planned in notices.plan(
                notice,
                rule,
                obstacles=self.reaches[notice.patient].obstacles(notice.type),
                quiet=quiet_hours_of(appointment, self.patients[notice.patient]),
                rows=[row for row in rows if row.sequence == notice.sequence],
            )
        ]

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


@dataclass(frozen=True, kw_only=True)
class _Wish:
    """A row as it ought to be, and for whom."""

    planned: Planned
    patient: int
    sequence: int


def _versions_of(appointments: Sequence[Appointment]) -> dict[UUID, list[Version]]:
    """What each visit went through, oldest first."""
    versions: dict[UUID, list[Version]] = defaultdict(list)
    transitions = AppointmentHistory.objects.filter(appointment__in=appointments).order_by("pk")
    for visit, *facts in transitions.values_list("appointment_id", *_FACTS):
        versions[visit].append(Version(*facts))
    return versions


_FACTS = (
    "sequence", "to_status", "patient_id", "new_starts_at", "date", "start_time", "modality", "office_id",
    "doctor_id", "source", "at",
)  # fmt: skip
"""The columns of a transition, in the order of Version."""
_MAY_HAVE_ARRIVED = [Status.SENDING, Status.UNKNOWN, Status.SENT, Status.DELIVERED, Status.READ]
_STORED_AS = {"rule": "rule_id", "fallback_of": "fallback_of_id", "patient": "patient_id"}


def _new(appointment: Appointment, fields: Mapping[str, object]) -> dict[str, object]:
    return {
        "pk": uuid4(),
        "appointment": appointment.pk,
        **fields,
        **dict.fromkeys(("attempt", "retry_count"), 0),
        **dict.fromkeys(("address", "message_id", "error_code", "error_message"), ""),
    }


def _adjustment(row: ReminderDelivery, wanted: Mapping[str, object]) -> list[dict[str, object]]:
    """The row's columns as they ought to be; nothing when they are so."""
    fields = dict(wanted)
    if (row.status, row.scheduled_for) == (wanted["status"], wanted["scheduled_for"]):
        # Keep the next look: a row that waits for the end of quiet hours goes on waiting.
        fields["next_attempt_at"] = row.next_attempt_at
    present = {name: getattr(row, _STORED_AS.get(name, name)) for name in fields}
    return [] if present == fields else [{"pk": row.pk, **fields}]


def _fields(rule: ReminderRule, wish: _Wish, fallen: ReminderDelivery | None) -> dict[str, object]:
    planned = wish.planned
    # What goes in a step's place is about its moment, whatever the rule says by now.
    moment = fallen or rule
    return {
        "patient": wish.patient,
        "sequence": wish.sequence,
        "rule": rule.pk,
        "rule_name": str(rule),
        "reminder_type": rule.reminder_type,
        "offset_minutes": moment.offset_minutes,
        "offset_unit": moment.offset_unit,
        "channel": planned.channel,
        "status": planned.status,
        "reason": planned.reason,
        "scheduled_for": planned.scheduled_for,
        "next_attempt_at": planned.scheduled_for,
        "useful_until": planned.useful_until,
        "fallback_of": fallen and fallen.pk,
    }
