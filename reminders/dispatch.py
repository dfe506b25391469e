"""Sends what is due: tidy, claim, call, record.

    claim   a short transaction makes due rows ours: attempt and lease
    call    a second one reads everything again under lock, writes the attempt
            into the ledger, and commits; then the provider is called, outside
            any transaction
    record  what came of it, if the claim still stands

A process may die between any two lines. Before the ledger row nothing was sent,
and the row waits again; after it the provider may have the message, and the row
is ``unknown`` until a receipt tells. The same step is never sent twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from psycopg.errors import DeadlockDetected

from reminders import backoff, last_look, reach
from reminders.channels.base import AnswerLost, Receipt
from reminders.flight import Call, Flight, Outcome
from reminders.models import DeliveryAttempt, ReminderDelivery, Reply
from reminders.models.outgoing import O, OutgoingMessage, QueueQuerySet
from reminders.outcomes import after_error, unknown_wait
from reminders.timeline import Reason

logger = logging.getLogger(__name__)
Status = OutgoingMessage.Status
PATIENCE = 0.2
"""Seconds to wait for a call to end before looking for new work."""


def run(
    *,
    clock: Callable[[], datetime],
    flight: Flight,
    limit: int | None = None,
    may_go_on: Callable[[], bool] = lambda: True,
) -> int:
    """Send until nothing is due, the limit is reached or ``may_go_on`` says no.

    Returns how many calls were started. The calls that are in the air at the
    end have landed and are recorded.
    """
    started = 0
    landed: list[tuple[Call, Outcome]] = []
    try:
        while True:
            calls: list[Call] = []
            seats = flight.free if limit is None else min(flight.free, limit - started)
            if seats and may_go_on():
                calls = prepare(seats, now=clock())
            for call in calls:
                flight.take_off(call)
            started += len(calls)
            if flight.is_empty:
                return started
            landed = flight.landed(patience=PATIENCE)
            record(landed, now=clock())
            landed = []
    finally:
        # Whatever goes wrong above, what is in the air has an end that must be
        # kept. To record one twice changes nothing.
        while landed or not flight.is_empty:
            connection.close_if_unusable_or_obsolete()
            record(landed or flight.landed(patience=PATIENCE), now=clock())
            landed = []


def prepare(seats: int, *, now: datetime) -> list[Call]:
    """Claim up to ``seats`` due rows and write their attempts down.

    Patients who wait for an answer come before reminders. Rows that turn out
    not to be sendable end here with their reason, and others take their seats.
    """
    calls: list[Call] = []
    while len(calls) < seats and (answers := claim(Reply.objects.all(), seats - len(calls), now=now)):
        calls += _look(last_look.replies, answers, now)
    while len(calls) < seats and (due := claim(ReminderDelivery.objects.all(), seats - len(calls), now=now)):
        calls += _look(last_look.deliveries, due, now)
    return calls


def _look(look: Callable[..., list[Call]], claimed: Sequence[OutgoingMessage], now: datetime) -> list[Call]:
    """The last look at claimed rows; none is called when somebody's locks crossed ours."""
    try:
        with transaction.atomic():
            return look(claimed, now=now)
    except OperationalError as error:
        if not isinstance(error.__cause__, DeadlockDetected):
            raise
        # Nothing was written: their lease ends, and they wait again.
        logger.warning("last look rows=%d undone by a deadlock", len(claimed))
        return []


def claim(queue: QueueQuerySet[O], places: int, *, now: datetime) -> list[O]:
    """Make up to ``places`` due rows ours until the lease ends."""
    with transaction.atomic():
        return queue.claim(places, now=now, lease=timedelta(seconds=settings.REMINDER_LEASE_SECONDS))


def record(landed: Sequence[tuple[Call, Outcome]], *, now: datetime) -> None:
    """Write down how calls ended. A worker that lost its row to another changes none.

    Each by itself: an odd answer must not cost its neighbours their outcome.
    """
    for call, outcome in landed:
        try:
            _record(call.row, outcome, now)
        except (OperationalError, InterfaceError):
            raise  # the database is gone: the ledger knows of the call, and a receipt will tell
        except Exception as error:
            logger.exception("call ref=%s odd answer kind=%s", call.message.reference, type(error).__name__)
            _record(call.row, AnswerLost("odd_answer"), now)


@transaction.atomic
def _record(row: OutgoingMessage, outcome: Outcome, now: datetime) -> None:
    attempt = DeliveryAttempt.objects.of(row).filter(number=row.attempt)
    if isinstance(outcome, Receipt):
        attempt.update(outcome=DeliveryAttempt.Outcome.ACCEPTED, message_id=outcome.message_id)
        changes: dict[str, object] = {
            "status": Status.SENT,
            "message_id": outcome.message_id,
            "sent_at": now,
            "lease_until": None,
        }
    else:
        lost = isinstance(outcome, AnswerLost)
        attempt.update(
            outcome=DeliveryAttempt.Outcome.LOST if lost else DeliveryAttempt.Outcome.REFUSED,
            error_code=outcome.code,
            error_message=outcome.detail[:500],
        )
        changes = after_error(row, outcome, now)
    kept = queue_of(row).held(row, also_unknown=isinstance(outcome, Receipt)).update(**changes)
    if isinstance(outcome, Receipt):
        reach.remember(row.patient_id, row.address, wa_id=outcome.wa_id, bsuid=outcome.user_id)
    logger.info(
        "%s id=%s attempt=%d channel=%s %s code=%s late_s=%d%s",
        row._meta.model_name, row.pk, row.attempt, row.channel, changes["status"],
        changes.get("error_code") or "-", (now - row.scheduled_for).total_seconds(),
        "" if kept else " settled_elsewhere",
    )  # fmt: skip


def tidy(*, now: datetime) -> None:
    """Put right what time or a crash left behind. Part of every tick; safe beside itself."""
    for queue in (Reply.objects.all(), ReminderDelivery.objects.all()):
        _rescue(queue, now)
        _settle(queue.unsettled(now), status=Status.FAILED, reason=Reason.NO_ANSWER)
        _settle(queue.useless(now), status=Status.EXPIRED, reason=Reason.TOO_LATE)


@transaction.atomic
def _rescue(queue: QueueQuerySet[Any], now: datetime) -> None:
    """Decide about rows whose worker let the lease run out, most probably by dying."""
    # Locked first and the ledger read afterwards: in one statement the ledger
    # would be seen as it was before whoever held the row let go of it.
    for row in queue.abandoned(now).select_for_update(skip_locked=True, of=("self",)):
        attempt = DeliveryAttempt.objects.of(row).filter(number=row.attempt)
        changes: dict[str, object] = {"lease_until": None}
        if attempt.exists():
            # Dead after the call: the provider may have the message.
            attempt.filter(outcome="").update(outcome=DeliveryAttempt.Outcome.LOST)
            changes |= {"status": Status.UNKNOWN, "next_attempt_at": now + unknown_wait()}
        elif row.retry_count + 1 >= settings.REMINDER_MAX_ATTEMPTS:
            changes |= {"status": Status.FAILED, "reason": Reason.ATTEMPTS_EXHAUSTED}
            changes |= {"retry_count": row.retry_count + 1}
        else:
            # Dead before it: nothing went out, but the death counts, or a row that
            # kills its worker would be taken for ever.
            changes |= {"status": Status.PENDING, "next_attempt_at": now + backoff.delay(1)}
            changes |= {"retry_count": row.retry_count + 1}
        queue.filter(pk=row.pk).update(**changes)
        _tell_tidied(row, changes)


def _settle(rows: QueueQuerySet[Any], **changes: object) -> None:
    """Change the rows that nobody else holds."""
    with transaction.atomic():
        locked = list(rows.select_for_update(skip_locked=True, of=("self",)))
        rows.model._default_manager.filter(pk__in=[row.pk for row in locked]).update(**changes)
    for row in locked:
        _tell_tidied(row, changes)


def _tell_tidied(row: OutgoingMessage, changes: Mapping[str, object]) -> None:
    logger.info(
        "%s id=%s attempt=%d tidied status=%s reason=%s",
        row._meta.model_name, row.pk, row.attempt, changes["status"], changes.get("reason", "-"),
    )  # fmt: skip


def queue_of(row: OutgoingMessage) -> QueueQuerySet[Any]:
    """The queue that a row stands in."""
    return Reply.objects.all() if isinstance(row, Reply) else ReminderDelivery.objects.all()
