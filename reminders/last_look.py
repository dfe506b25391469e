"""The last look at a claimed row before the call: send it, and with what, or why not.

Row, visit, contacts and opt-outs are read again under lock; a plan that is a
second old still sends nothing wrong. Call within a transaction: what is decided
here and the ledger row commit together, before the provider is called.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from appointments.models import Appointment, Patient
from reminders import answers, reach, taps, timeline, wording
from reminders.channels import get_channel
from reminders.channels.base import Button, ChannelError, Message, Undeliverable
from reminders.flight import Call
from reminders.models import DeliveryAttempt, Mark, ReminderDelivery, Reply
from reminders.models.outgoing import O, OutgoingMessage, QueueQuerySet
from reminders.outcomes import after_error
from reminders.reach import Reach
from reminders.taps import Word
from reminders.timeline import Reason, ReminderType
from reminders.visits import quiet_hours_of, why_void, words_of

logger = logging.getLogger(__name__)
Status = OutgoingMessage.Status


@dataclass(frozen=True, kw_only=True)
class _Letter:
    """That a row is to be called, and what goes over the wire."""

    message: Message
    payload: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class _Stop:
    """That a row is not called now, and what becomes of it."""

    changes: Mapping[str, object]

    @classmethod
    def at(cls, status: str, reason: str) -> _Stop:
        return cls(changes={"status": status, "reason": reason})


def deliveries(claimed: Sequence[ReminderDelivery], *, now: datetime) -> list[Call]:
    """The calls to make for claimed reminders; the others end here with their reason."""
    visits = _locked_visits(row.appointment_id for row in claimed)
    patients = _locked_patients(visits.values())
    rows = _locked_rows(ReminderDelivery.objects.select_related("rule"), claimed)
    # Read only now: what was committed while we waited for a lock counts.
    reaches = reach.of(patients)
    siblings: dict[UUID, list[ReminderDelivery]] = defaultdict(list)
    for sibling in ReminderDelivery.objects.filter(appointment__in=visits).select_related("rule"):
        siblings[sibling.appointment_id].append(sibling)
    calls = []
    for row in rows:
        visit = visits[row.appointment_id]
        its_reach = reaches[visit.patient_id]
        if _is_still_ours(row, claimed):
            others = [other for other in siblings[visit.pk] if other.pk != row.pk]
            decision = _guarded(row, now, lambda: _reminder(row, visit, its_reach, others, now))  # noqa: B023
            calls += _carry_out(row, decision, now)
    return calls


def replies(claimed: Sequence[Reply], *, now: datetime) -> list[Call]:
    """The calls to make for claimed answers."""
    visits = _locked_visits(row.appointment_id for row in claimed)
    _locked_patients(visits.values())
    calls = []
    for row in _locked_rows(Reply.objects.all(), claimed):
        if _is_still_ours(row, claimed):
            decision = _guarded(row, now, lambda: _answer(row, visits[row.appointment_id], now))  # noqa: B023
            calls += _carry_out(row, decision, now)
    return calls


def _is_still_ours(row: OutgoingMessage, claimed: Iterable[OutgoingMessage]) -> bool:
    return row.status == Status.SENDING and any(
        (row.pk, row.attempt) == (mine.pk, mine.attempt) for mine in claimed
    )


def _guarded(row: OutgoingMessage, now: datetime, decide: Callable[[], _Letter | _Stop]) -> _Letter | _Stop:
    """The decision; for a row that cannot be decided or composed, a later try and then the end.

    One broken row must not stop the others, nor come back for ever.
    """
    try:
        return decide()
    except Exception as error:
        logger.exception(
            "%s id=%s attempt=%d broken kind=%s",
            row._meta.model_name,
            row.pk,
            row.attempt,
            type(error).__name__,
        )
        # What the channel cannot carry today it cannot carry in an hour.
        verdict = Undeliverable if isinstance(error, ValueError) else ChannelError
        return _Stop(changes=after_error(row, verdict("bad_message"), now))


def _carry_out(row: OutgoingMessage, decision: _Letter | _Stop, now: datetime) -> list[Call]:
    if isinstance(decision, _Letter):
        return [_write_down(row, decision, now)]
    for name, value in {**decision.changes, "lease_until": None}.items():
        setattr(row, name, value)
    row.save(update_fields=[*decision.changes, "lease_until"])
    logger.info(
        "%s id=%s attempt=%d %s reason=%s",
        row._meta.model_name, row.pk, row.attempt, row.status, row.reason or "-",
    )  # fmt: skip
    if isinstance(row, ReminderDelivery) and row.status == Status.SKIPPED:
        # Another channel of the rule may still reach the patient: the planner knows.
        Mark.objects.create(
            subject=Mark.Subject.APPOINTMENT, subject_id=str(row.appointment_id), changes_rules=False, at=now
        )
    return []


def _write_down(row: OutgoingMessage, letter: _Letter, now: datetime) -> Call:
    """The ledger row and the stamp that says "attempted", before anything leaves."""
    row.called_at = row.called_at or now
    row.address = letter.message.to
    row.save(update_fields=["called_at", "address", *(["says"] if isinstance(row, Reply) else [])])
    DeliveryAttempt.objects.create(
        **{"delivery" if isinstance(row, ReminderDelivery) else "reply": row},
        number=row.attempt,
        claimed_at=now,
        called_at=now,
        address=letter.message.to,
        payload=letter.payload,
    )
    return Call(row=row, message=letter.message, payload=letter.payload)


# --- A reminder --------------------------------------------------------------------


def _reminder(
    row: ReminderDelivery,
    visit: Appointment,
    its_reach: Reach,
    others: Sequence[ReminderDelivery],
    now: datetime,
) -> _Letter | _Stop:
    if stop := _stop(row, visit, its_reach, others, now):
        return stop
    kind = ReminderType(row.reminder_type)
    values = words_of(visit, now=now)
    asks = kind == ReminderType.CITA_PROXIMA and visit.status == Appointment.Status.SCHEDULED
    message = Message(
        to=its_reach.addresses[row.channel],
        reference=row.reference,
        kind=kind,
        subject=_words(row, "subject_template", wording.DEFAULT_SUBJECTS[kind], values),
        text=_words(row, "body_template", wording.DEFAULT_BODIES[kind], values),
        values=values,
        buttons=_buttons(visit, kind, asks=asks),
        asks_to_confirm=asks,
        time_left=visit.starts_at - now,
    )
    return _Letter(message=message, payload=get_channel(row.channel).payload(message))


def _stop(
    row: ReminderDelivery,
    visit: Appointment,
    its_reach: Reach,
    others: Sequence[ReminderDelivery],
    now: datetime,
) -> _Stop | None:
    """Why the row is not to be called now; None when it is."""
    if gone := why_void(row, visit) or _rule_gone(row):
        return _Stop.at(Status.CANCELLED, gone)
    if now >= row.useful_until:
        return _Stop.at(Status.EXPIRED, Reason.TOO_LATE)
    if _is_superseded(row, others, now):
        return _Stop.at(Status.SKIPPED, Reason.SUPERSEDED)
    kind = ReminderType(row.reminder_type)
    if obstacle := its_reach.obstacles(kind)[row.channel]:
        return _Stop.at(Status.SKIPPED, obstacle)
    chance = timeline.next_chance(
        now, type=kind, channel=row.channel, starts_at=visit.starts_at, quiet=quiet_hours_of(visit)
    )
    if chance is None:
        return _Stop.at(Status.SKIPPED, Reason.QUIET_HOURS)
    if chance > now:
        return _Stop(changes={"status": Status.PENDING, "next_attempt_at": chance})
    return None


def _rule_gone(row: ReminderDelivery) -> Reason | None:
    if row.rule is None:
        return Reason.RULE_DELETED
    return None if row.rule.is_enabled else Reason.RULE_DISABLED


def _is_superseded(row: ReminderDelivery, others: Sequence[ReminderDelivery], now: datetime) -> bool:
    """Whether another row speaks in this one's place: nearer the visit, or for the same moment."""
    group = (row.sequence, row.reminder_type, row.channel)
    alike = [other for other in others if (other.sequence, other.reminder_type, other.channel) == group]
    same_moment = (row.offset_minutes, row.offset_unit)
    if any(other.called_at and (other.offset_minutes, other.offset_unit) == same_moment for other in alike):
        return True
    waiting = (Status.PENDING, Status.SENDING)
    come = [
        other.as_planned()
        for other in alike
        if other.called_at or (other.status in waiting and _goes(other, now))
    ]
    return timeline.superseded_by(row.as_planned(), come)


def _goes(row: ReminderDelivery, now: datetime) -> bool:
    """Whether a row that waits has come to its moment and is still wanted."""
    return row.next_attempt_at <= now < row.useful_until and not _rule_gone(row)


def _words(row: ReminderDelivery, field: str, default: str, values: Mapping[str, str]) -> str:
    """The rule's words; ours, where a path around the form left words that cannot be filled."""
    template = getattr(row.rule, field) or default
    try:
        return wording.render(template, values)
    except wording.BadTemplate:
        logger.error("rule id=%s has a bad %s; the default words go out", row.rule_id, field)
        return wording.render(default, values)


def _buttons(visit: Appointment, kind: ReminderType, *, asks: bool) -> tuple[Button, ...]:
    words = {
        ReminderType.CITA_PROXIMA: [Word.CONFIRM] * asks + [Word.RESCHEDULE, Word.CANCEL],
        ReminderType.PREPARACION: [Word.RESCHEDULE, Word.CANCEL],
        ReminderType.LLEGADA: [Word.ARRIVED],
    }
    return tuple(_button(visit, word) for word in words.get(kind, []))


def _button(visit: Appointment, word: Word) -> Button:
    return Button(title=taps.TITLES[word], payload=taps.payload(word, visit))


# --- An answer ---------------------------------------------------------------------


def _answer(row: Reply, visit: Appointment, now: datetime) -> _Letter:
    row.says = answers.still_true(row, visit, now=now)
    message = Message(
        to=row.address,
        reference=row.reference,
        kind="reply",
        text=answers.text(row.says, visit, now=now),
        buttons=(_button(visit, Word.CONFIRM),) if row.says == Reply.Says.MOVED else (),
        time_left=visit.starts_at - now,
        in_answer_to=row.cause,
    )
    return _Letter(message=message, payload=get_channel(row.channel).payload(message))


# --- Locks: taken in one order by all who wait for them, or two would wait for each other


def _locked_visits(ids: Iterable[UUID]) -> dict[UUID, Appointment]:
    visits = (
        Appointment.objects.filter(pk__in=set(ids))
        .select_related("office", "doctor")
        .select_for_update(of=("self",))
        .order_by("pk")
    )
    return {visit.pk: visit for visit in visits}


def _locked_patients(visits: Collection[Appointment]) -> list[Patient]:
    patients = {
        patient.pk: patient
        for patient in Patient.objects.filter(pk__in={visit.patient_id for visit in visits})
        .select_for_update(no_key=True)
        .order_by("pk")
    }
    for visit in visits:
        visit.patient = patients[visit.patient_id]
    return list(patients.values())


def _locked_rows(queue: QueueQuerySet[O], claimed: Sequence[O]) -> list[O]:
    return list(
        queue.filter(pk__in=[row.pk for row in claimed]).select_for_update(of=("self",)).order_by("pk")
    )
