"""The last look at a claimed row before the call: send it, and with what, or why not.

Row, visit, contacts and opt-outs are read again under lock; a plan that is a
second old still sends nothing wrong. Call within a transaction: what is decided
here and the ledger row commit together, before the provider is called.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

from django.db import connection
from django.db.models import Exists, Field, ForeignKey, Model, OuterRef
from django.db.models.base import ModelState

from appointments.models import Appointment, Patient
from reminders import answers, calendar_file, giving_up, links, reach, same_day, taps, timeline, wording
from reminders.channels import get_channel
from reminders.channels.base import Button, ChannelError, Message, Undeliverable
from reminders.flight import Call
from reminders.models import DeliveryAttempt, ReminderDelivery, ReminderRule, Reply
from reminders.models.each import array_type, as_array, insert_each, update_each
from reminders.models.outgoing import O, OutgoingMessage
from reminders.outcomes import after_error
from reminders.reach import Reach
from reminders.spacing import Spacing
from reminders.taps import Word
from reminders.timeline import Reason, ReminderType
from reminders.visits import is_virtual, quiet_hours_of, why_void, words_of

logger = logging.getLogger(__name__)
Status = OutgoingMessage.Status
M = TypeVar("M", bound=Model)
# To read an instant costs more than most of what is done with it.
_UNREAD = {
    *("created_at", "sent_at", "delivered_at", "read_at", "deliver_by", "lease_until", "told_by_phone_at"),
    *("booked_at", "sequence_at", "confirmed_at", "checked_in_at", "completed_at", "cancelled_at"),
}


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


_Decision = _Letter | _Stop


def deliveries(
    claimed: Sequence[ReminderDelivery], *, now: datetime, spacing: Spacing | None = None
) -> list[Call]:
    """The calls to make for claimed reminders; the others end here with their reason, or wait.

    ``spacing`` remembers to whom the batches before this one wrote.
    """
    visits = _locked_visits(row.appointment_id for row in claimed)
    patients = _locked_patients(visits.values(), claimed)
    rows = _locked_rows(ReminderDelivery, claimed)
    # Read only now: what was committed while we waited for a lock counts.
    reaches = reach.of(list(patients.values()))
    preparations = _preparations_not_sent(rows)
    with_later = _with_a_later_visit([visits[row.appointment_id] for row in rows if _is_check_up(row)], now)
    spaced = spacing or Spacing()
    known = [*rows, *_others_that_may_speak(rows, now)]
    _attach("rule", known)
    siblings: dict[UUID, list[ReminderDelivery]] = defaultdict(list)
    for sibling in known:
        siblings[sibling.appointment_id].append(sibling)

    together = same_day.Groups(now)

    def decide(row: ReminderDelivery) -> _Decision:
        visit = visits[row.appointment_id]
        if same_day.is_early(row, now) and not together.lead_of(row, visit):
            return _wait_for_its_own_moment(row)
        decision = decide_now(row, visit)
        if same_day.is_early(row, now) and isinstance(decision, _Stop):
            return _wait_for_its_own_moment(row)
        if isinstance(decision, _Letter):
            together.add(row, visit)
        return decision

    def decide_now(row: ReminderDelivery, visit: Appointment) -> _Decision:
        others = [other for other in siblings[visit.pk] if other.pk != row.pk]
        its_reach = reaches[row.patient_id]
        if _is_check_up(row) and visit.pk in with_later:
            return _Stop.at(Status.SKIPPED, Reason.HAS_LATER_VISIT)
        if stop := _stop(row, visit, patients[row.patient_id], its_reach, others, now):
            return stop
        if row.channel != timeline.SILENT_CHANNEL and not together.lead_of(row, visit):
            turn = spaced.turn(its_reach.addresses[row.channel], now)
            if turn > now:
                return _Stop(changes={"status": Status.PENDING, "next_attempt_at": turn})
        giving_up.set_deadlines(
            row,
            starts_at=row.useful_until if row.reminder_type in timeline.NOTICES else visit.starts_at,
            now=now,
            gives_receipts=get_channel(row.channel).gives_receipts,
            is_extra=any(other.given_up_at and _moment(other) == _moment(row) for other in others),
        )
        told = _as_known(row, visit, patients[row.patient_id])
        # Whoever had the visit before has no page of it any more.
        has_page = row.patient_id == visit.patient_id
        return _letter(row, told, its_reach, preparations.get(visit.pk), now, has_page=has_page)

    # Of two for one number the nearer visit's goes first.
    # What was claimed early to go along with another comes behind all that are due.
    in_turn = sorted(
        rows, key=lambda row: (same_day.is_early(row, now), visits[row.appointment_id].starts_at)
    )
    decisions = [(row, _guarded(row, now, decide)) for row in in_turn]
    return _carry_out(decisions, now, together)


def _wait_for_its_own_moment(row: ReminderDelivery) -> _Stop:
    return _Stop(changes={"status": Status.PENDING, "next_attempt_at": row.next_attempt_at})


def replies(claimed: Sequence[Reply], *, now: datetime) -> list[Call]:
    """The calls to make for claimed answers."""
    visits = _locked_visits(row.appointment_id for row in claimed)
    _locked_patients(visits.values(), claimed)
    rows = _locked_rows(Reply, claimed)

    def decide(row: Reply) -> _Decision:
        return _answer(row, visits[row.appointment_id], now)

    return _carry_out([(row, _guarded(row, now, decide)) for row in rows], now)


def _guarded(row: O, now: datetime, decide: Callable[[O], _Decision]) -> _Decision:
    """The decision; for a row that cannot be decided or composed, a later try and then the end.

    One broken row must not stop the others, nor come back for ever.
    """
    try:
        return decide(row)
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


def _carry_out(
    decisions: Sequence[tuple[OutgoingMessage, _Decision]],
    now: datetime,
    together: same_day.Groups | None = None,
) -> list[Call]:
    letters = [(row, decision) for row, decision in decisions if isinstance(decision, _Letter)]
    withheld = _withheld(letters)
    for row, decision in decisions:
        if isinstance(decision, _Stop):
            _stop_at(row, decision)
        elif reason := withheld.get(decision.message.reference):
            _stop_at(row, _Stop.at(Status.SKIPPED, reason))
    going = [(row, letter) for row, letter in letters if row.reference not in withheld]
    groups: Sequence[Sequence[UUID]] = together.of([row.pk for row, _ in going]) if together else []
    going, groups = _in_one_letter(going, groups)
    return _put_together(_write_down(going, now), groups)


def _in_one_letter(
    letters: Sequence[tuple[OutgoingMessage, _Letter]], groups: Sequence[Sequence[UUID]]
) -> tuple[list[tuple[OutgoingMessage, _Letter]], list[Sequence[UUID]]]:
    """The letters, each row of a group with the one that speaks for all of them, and these groups."""
    if not groups:
        return list(letters), []
    made: list[Sequence[UUID]] = []
    of = {row.pk: (row, letter) for row, letter in letters}
    for group in groups:
        row = of[group[0]][0]
        first, *rest = (of[pk][1].message for pk in group)
        message = replace(first, also=tuple(rest))
        try:
            letter = _Letter(message=message, payload=get_channel(row.channel).payload(message))
        except Exception as error:  # then each goes by itself, as it was composed already
            logger.exception("one mail for rows=%d broken kind=%s", len(group), type(error).__name__)
            continue
        made.append(group)
        of |= {pk: (of[pk][0], letter) for pk in group}
    return [of[row.pk] for row, _ in letters], made


def _put_together(calls: list[Call], groups: Sequence[Sequence[UUID]]) -> list[Call]:
    """One call for each group, which carries the others' rows and attempts."""
    if not groups:
        return calls
    of = {call.row.pk: call for call in calls}
    for first, *rest in groups:
        of[first] = replace(of[first], also=tuple(of.pop(pk) for pk in rest))
    return [of[call.row.pk] for call in calls if call.row.pk in of]


def _withheld(letters: Sequence[tuple[OutgoingMessage, _Letter]]) -> dict[str, Reason]:
    """Reference → why a channel cannot carry a message at present."""
    by_channel: dict[str, list[Message]] = defaultdict(list)
    for row, letter in letters:
        by_channel[row.channel].append(letter.message)
    withheld: dict[str, Reason] = {}
    for channel, messages in by_channel.items():
        withheld |= get_channel(channel).withheld(messages)
    return withheld


def _stop_at(row: OutgoingMessage, stop: _Stop) -> None:
    """End a row, or put it off. A trigger marks the visit: another channel may still reach the patient."""
    for name, value in {**stop.changes, "lease_until": None}.items():
        setattr(row, name, value)
    row.save(update_fields=[*stop.changes, "lease_until"])
    logger.info(
        "%s id=%s attempt=%d %s reason=%s",
        row._meta.model_name, row.pk, row.attempt, row.status, row.reason or "-",
    )  # fmt: skip


def _write_down(letters: Sequence[tuple[OutgoingMessage, _Letter]], now: datetime) -> list[Call]:
    """The ledger rows and the stamps that say "attempted", before anything leaves."""
    if not letters:
        return []
    attempts = []
    stamps: list[dict[str, object]] = []
    for row, letter in letters:
        row.called_at = row.called_at or now
        row.address = letter.message.to
        stamp: dict[str, object] = {"pk": row.pk, "called_at": row.called_at, "address": row.address}
        if isinstance(row, ReminderDelivery):
            stamp |= {"deliver_by": row.deliver_by, "read_by": row.read_by}
        stamps.append(stamp | ({"says": row.says} if isinstance(row, Reply) else {}))
        attempts.append(
            {
                "delivery": row.pk if isinstance(row, ReminderDelivery) else None,
                "reply": row.pk if isinstance(row, Reply) else None,
                "number": row.attempt,
                "claimed_at": now,
                "called_at": now,
                "address": letter.message.to,
                "payload": letter.payload,
                "message_id": "",
                "outcome": DeliveryAttempt.Outcome.OPEN,
                "error_code": "",
                "error_message": "",
            }
        )
    # All of one queue.
    update_each(type(letters[0][0]), stamps)
    written = {
        delivery or reply: pk
        for pk, delivery, reply in insert_each(
            DeliveryAttempt, attempts, returning=("pk", "delivery", "reply")
        )
    }
    return [
        Call(row=row, message=letter.message, payload=letter.payload, attempt_id=written[row.pk])
        for row, letter in letters
    ]


# --- A reminder --------------------------------------------------------------------


def _letter(
    row: ReminderDelivery,
    visit: Appointment,
    its_reach: Reach,
    preparation: ReminderRule | None,
    now: datetime,
    *,
    has_page: bool,
) -> _Letter:
    kind = ReminderType(row.reminder_type)
    values = words_of(visit, now=now)
    asks = kind in _ASKS and visit.status == Appointment.Status.SCHEDULED
    bodies = _bodies(visit)
    message = Message(
        to=its_reach.addresses[row.channel],
        reference=row.reference,
        kind=kind,
        subject=_words(row.rule, kind, "subject_template", wording.DEFAULT_SUBJECTS, values),
        text=_words(row.rule, kind, "body_template", bodies, values),
        values=values,
        is_virtual=is_virtual(visit),
        buttons=_buttons(visit, kind, asks=asks),
        asks_to_confirm=asks,
        time_left=visit.starts_at - now,
    )
    if preparation:
        said = _words(preparation, ReminderType.PREPARACION, "body_template", bodies, values)
        message = replace(message, preparation=said, text=f"{message.text}\n\n{said}")
    channel = get_channel(row.channel)
    if channel.shows_pages:
        message = replace(
            message,
            visit_link=links.visit_url(visit) if has_page else "",
            preferences_link=links.preferences_url(row),
            entry=calendar_file.entry_of(visit),
        )
    return _Letter(message=message, payload=channel.payload(message))


def _as_known(row: ReminderDelivery, visit: Appointment, patient: Patient) -> Appointment:
    """The visit as the row's patient knows it: of one that is off, the time at which they expect it."""
    if row.reminder_type != ReminderType.CANCELACION:
        return visit
    known = copy(visit)
    known.patient = patient
    known.status = Appointment.Status.CANCELLED
    known.starts_at = row.useful_until
    return known


def _is_check_up(row: ReminderDelivery) -> bool:
    return row.reminder_type == ReminderType.CONTROL


def _with_a_later_visit(visits: Sequence[Appointment], now: datetime) -> set[UUID]:
    """Those whose patient has a visit to the same doctor ahead: nobody need call them in."""
    if not visits:
        return set()
    ahead = Appointment.objects.open().filter(
        doctor=OuterRef("doctor"), patient=OuterRef("patient"), starts_at__gt=now
    )
    asked = Appointment.objects.filter(pk__in=[visit.pk for visit in visits])
    return set(asked.filter(Exists(ahead)).values_list("pk", flat=True))


def _preparations_not_sent(rows: Sequence[ReminderDelivery]) -> dict[UUID, ReminderRule]:
    """Visit → the rule of a preparation that comes too late to be sent, where a notice can carry it."""
    carriers = {row.appointment_id: row.sequence for row in rows if row.reminder_type in _CARRIES}
    if not carriers:
        return {}
    missed = ReminderDelivery.objects.select_related("rule").filter(
        appointment__in=carriers,
        reminder_type=ReminderType.PREPARACION,
        reason__in=[Reason.BOOKED_LATE, Reason.COVERED_BY_NOTICE],
        rule__is_enabled=True,
    )
    return {
        row.appointment_id: row.rule
        for row in missed
        if row.rule and row.sequence == carriers[row.appointment_id]
    }


def _stop(
    row: ReminderDelivery,
    visit: Appointment,
    patient: Patient,
    its_reach: Reach,
    others: Sequence[ReminderDelivery],
    now: datetime,
) -> _Stop | None:
    """Why the row is not to be called now; None when it is."""
    if gone := why_void(row, visit) or _rule_gone(row):
        return _Stop.at(Status.CANCELLED, gone)
    if now >= row.useful_until:
        return _Stop.at(Status.EXPIRED, Reason.TOO_LATE)
    if _has_arrived_elsewhere(row, others):
        return _Stop.at(Status.CANCELLED, Reason.CHANNEL_REPLACED)
    if _is_superseded(row, others, now):
        return _Stop.at(Status.SKIPPED, Reason.SUPERSEDED)
    kind = ReminderType(row.reminder_type)
    if obstacle := its_reach.obstacle(row.channel, kind):
        return _Stop.at(Status.SKIPPED, obstacle)
    if kind is ReminderType.RESERVA and now < row.scheduled_for + timeline.GRACE:
        return None  # whoever has just booked is awake
    starts_at = row.useful_until if kind in timeline.NOTICES else visit.starts_at
    quiet = quiet_hours_of(visit, patient)
    chance = timeline.next_chance(now, type=kind, channel=row.channel, starts_at=starts_at, quiet=quiet)
    if chance is None:
        return _Stop.at(Status.SKIPPED, Reason.QUIET_HOURS)
    if chance > now:
        return _Stop(changes={"status": Status.PENDING, "next_attempt_at": chance})
    return None


def _rule_gone(row: ReminderDelivery) -> Reason | None:
    if row.rule is None:
        return Reason.RULE_DELETED
    return None if row.rule.is_enabled else Reason.RULE_DISABLED


def _has_arrived_elsewhere(row: ReminderDelivery, others: Sequence[ReminderDelivery]) -> bool:
    """Whether late good news came of the step in whose place this one goes."""
    return any(
        _moment(other) == _moment(row)
        and other.channel != row.channel
        and other.status in (Status.SENT, Status.DELIVERED, Status.READ)
        and not other.is_given_up
        for other in others
    )


def _moment(row: ReminderDelivery) -> tuple[int, str, int, str]:
    """What a rule says once, whichever rule it is and on whichever channel."""
    return row.sequence, row.reminder_type, row.offset_minutes, row.offset_unit


def _is_superseded(row: ReminderDelivery, others: Sequence[ReminderDelivery], now: datetime) -> bool:
    """Whether another row speaks in this one's place: for the same moment, or nearer the visit."""
    if any(
        other.called_at and other.channel == row.channel and _moment(other) == _moment(row)
        for other in others
    ):
        return True
    waiting = (Status.PENDING, Status.SENDING)
    come = [
        other.as_planned()
        for other in others
        if _was_called_for_both(other, row) or (other.status in waiting and _goes(other, now))
    ]
    return timeline.superseded_by(row.as_planned(), come)


def _others_that_may_speak(rows: Sequence[ReminderDelivery], now: datetime) -> list[ReminderDelivery]:
    """Other rows that were called or whose moment has come, as near to the visit as one of these."""
    sql = f"""
        SELECT {_columns(ReminderDelivery)} FROM reminders_reminderdelivery t
        WHERE t.appointment_id = ANY(%(visits)s::uuid[]) AND t.id <> ALL(%(claimed)s::uuid[])
          AND (t.called_at IS NOT NULL
               OR (t.status IN ('pending', 'sending') AND t.next_attempt_at <= %(now)s))
          AND EXISTS (
            SELECT FROM reminders_reminderdelivery q
            WHERE q.id = ANY(%(claimed)s::uuid[]) AND q.appointment_id = t.appointment_id
              AND q.sequence = t.sequence AND q.reminder_type = t.reminder_type
              AND abs(q.offset_minutes) >= abs(t.offset_minutes)
          )"""  # noqa: S608
    asked = {
        "visits": as_array({row.appointment_id for row in rows}),
        "claimed": as_array(row.pk for row in rows),
        "now": now,
    }
    return _read(ReminderDelivery, sql, asked)


def _was_called_for_both(other: ReminderDelivery, row: ReminderDelivery) -> bool:
    """Whether a row that was called leaves nothing to say for this one.

    Before the visit the nearer one does. After it one that went when this one was
    not due yet was about another moment: the second follow-up follows the first.
    """
    if other.called_at is None:
        return False
    is_before = ReminderType(row.reminder_type) in timeline.MINIMUM_LEAD
    return is_before or other.called_at >= row.scheduled_for


def _goes(row: ReminderDelivery, now: datetime) -> bool:
    """Whether a row that waits has come to its moment and is still wanted."""
    return row.next_attempt_at <= now < row.useful_until and not _rule_gone(row)


def _words(
    rule: ReminderRule | None,
    kind: ReminderType,
    field: str,
    defaults: Mapping[ReminderType, str],
    values: Mapping[str, str],
) -> str:
    """The rule's words; ours, where a path around the form left words that cannot be filled."""
    template = getattr(rule, field)
    if template in ("", wording.DEFAULT_BODIES[kind]):
        template = defaults[kind]
    try:
        return wording.render(template, values)
    except wording.BadTemplate:
        logger.error("rule id=%s has a bad %s; the default words go out", rule and rule.pk, field)
        return wording.render(defaults[kind], values)


def _bodies(visit: Appointment) -> Mapping[ReminderType, str]:
    """Our own words, which are others where there is no place to come to."""
    return (
        {**wording.DEFAULT_BODIES, **wording.VIRTUAL_BODIES} if is_virtual(visit) else wording.DEFAULT_BODIES
    )


# A change is asked about whatever the status: staff may have confirmed for the patient.
_ASKS = {ReminderType.CITA_PROXIMA, ReminderType.CAMBIO}
_CARRIES = {ReminderType.RESERVA, ReminderType.CAMBIO}


def _buttons(visit: Appointment, kind: ReminderType, *, asks: bool) -> tuple[Button, ...]:
    words = {
        ReminderType.CITA_PROXIMA: [Word.CONFIRM] * asks + [Word.RESCHEDULE, Word.CANCEL],
        ReminderType.PREPARACION: [Word.RESCHEDULE, Word.CANCEL],
        ReminderType.LLEGADA: [] if is_virtual(visit) else [Word.ARRIVED],
        ReminderType.RESERVA: [Word.RESCHEDULE, Word.CANCEL],
        ReminderType.CAMBIO: [Word.CONFIRM, Word.RESCHEDULE, Word.CANCEL],
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
    visits = _locked(Appointment, ids)
    for relation in ("office", "doctor", "specialty"):
        _attach(relation, list(visits.values()))
    return visits


def _locked_patients(
    visits: Collection[Appointment], claimed: Iterable[OutgoingMessage]
) -> dict[int, Patient]:
    """The patients of the visits, and those of whom somebody else has the visit now."""
    ids = {visit.patient_id for visit in visits} | {row.patient_id for row in claimed}
    patients = _locked(Patient, ids, "FOR NO KEY UPDATE")
    for visit in visits:
        visit.patient = patients[visit.patient_id]
    return patients


def _locked_rows(queue: type[O], claimed: Sequence[O]) -> list[O]:
    """The rows as they are now, without those whose claim stands no more."""
    attempts = {row.pk: row.attempt for row in claimed}
    rows = _locked(queue, attempts)
    return [row for row in rows.values() if row.status == Status.SENDING and row.attempt == attempts[row.pk]]


def _locked(model: type[M], ids: Iterable[Any], how: str = "FOR UPDATE") -> dict[Any, M]:
    """The rows with these keys as they are now, locked in the order of the keys."""
    # Put together by Django each time, with a parameter for each key, it would cost
    # more than to read the rows. Every name is ours.
    table = model._meta.db_table
    sql = f"SELECT {_columns(model)} FROM {table} t WHERE id = ANY(%s{array_type(model)}) ORDER BY id {how}"  # noqa: S608
    return {row.pk: row for row in _read(model, sql, [as_array(set(ids))])}


def _attach(relation: str, rows: Sequence[Model]) -> None:
    """Read what rows refer to, once for all: a batch has many visits and few doctors."""
    if rows:
        field = rows[0]._meta.get_field(relation)
        assert isinstance(field, ForeignKey)  # noqa: S101
        ids = {getattr(row, field.attname) for row in rows} - {None}
        found = _locked(field.related_model, ids, how="") if ids else {}
        for row in rows:
            field.set_cached_value(row, found.get(getattr(row, field.attname)))


def _read(model: type[M], sql: str, asked: Any) -> list[M]:
    """The rows that a statement brings, which reads ``_columns``."""
    known = [field.attname for field in _fields(model)]
    with connection.cursor() as cursor:
        cursor.execute(sql, asked)
        alias = connection.alias
        return [_as_read(model, dict(zip(known, row, strict=True)), alias) for row in cursor.fetchall()]


def _as_read(model: type[M], values: dict[str, Any], alias: str) -> M:
    """A row of a table, made as unpickling makes it: ``from_db`` costs as much as to read it."""
    row = model.__new__(model)
    row.__dict__.update(values)
    row._state = ModelState()
    row._state.adding = False
    row._state.db = alias
    return row


@cache
def _columns(model: type[Model]) -> str:
    return ", ".join(f"t.{field.column}" for field in _fields(model))


def _fields(model: type[Model]) -> list[Field[Any, Any]]:
    """What a last look reads of a table, in the order in which the model declares it."""
    return [field for field in model._meta.concrete_fields if field.name not in _UNREAD]
