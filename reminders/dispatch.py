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
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DataError, IntegrityError, transaction
from django.db.models import Exists, F, OuterRef

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
        record(flight.landed(patience=PATIENCE), now=clock())


def prepare(seats: int, *, now: datetime) -> list[Call]:
    """Claim up to ``seats`` due rows and write their attempts down.

    Patients who wait for an answer come before reminders. Rows that turn out
    not to be sendable end here with their reason, and others take their seats.
    """
    calls: list[Call] = []
    while len(calls) < seats and (answers := claim(Reply.objects.all(), seats - len(calls), now=now)):
        with transaction.atomic():
            calls += last_look.replies(answers, now=now)
    while len(calls) < seats and (due := claim(ReminderDelivery.objects.all(), seats - len(calls), now=now)):
        with transaction.atomic():
            calls += last_look.deliveries(due, now=now)
    return calls


def claim(queue: QueueQuerySet[O], places: int, *, now: datetime) -> list[O]:
    """Make up to ``places`` due rows ours until the lease ends."""
    with transaction.atomic():
        return queue.claim(places, now=now, lease=timedelta(seconds=settings.REMINDER_LEASE_SECONDS))


def record(landed: Sequence[tuple[Call, Outcome]], *, now: datetime) -> None:
    """Write down how calls ended. A worker that lost its claim changes no row."""
    with transaction.atomic():
        for call, outcome in landed:
            try:
                with transaction.atomic():
                    _record(call.row, outcome, now)
            except (IntegrityError, DataError) as error:
                # An id that the provider gave twice, or one that is none: a receipt will tell.
                logger.exception(
                    "call ref=%s odd answer kind=%s", call.message.reference, type(error).__name__
                )
                _record(call.row, AnswerLost("odd_answer"), now)
    # Apart: patients are locked in one order by whoever takes several.
    for call, outcome in landed:
        if isinstance(outcome, Receipt):
            row = call.row
            reach.remember(row.patient_id, row.address, wa_id=outcome.wa_id, bsuid=outcome.user_id)


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
    kept = queue_of(row).held(row).update(**changes)
    logger.info(
        "%s id=%s attempt=%d channel=%s %s code=%s late_s=%d%s",
        row._meta.model_name, row.pk, row.attempt, row.channel, changes["status"],
        changes.get("error_code") or "-", (now - row.scheduled_for).total_seconds(),
        "" if kept else " settled_elsewhere",
    )  # fmt: skip


def tidy(*, now: datetime) -> None:
    """Put right what time or a crash left behind. Part of every tick; safe beside itself."""
    for queue, attempts in (
        (Reply.objects, DeliveryAttempt.objects.filter(reply=OuterRef("pk"))),
        (ReminderDelivery.objects, DeliveryAttempt.objects.filter(delivery=OuterRef("pk"))),
    ):
        was_called = Exists(attempts.filter(number=OuterRef("attempt")))
        # Dead before the call: nothing went out, but the death counts, or a row
        # that kills its worker would be taken for ever.
        dead = {"lease_until": None, "retry_count": F("retry_count") + 1}
        uncalled = queue.abandoned(now).exclude(was_called)
        used_up = uncalled.filter(retry_count__gte=settings.REMINDER_MAX_ATTEMPTS - 1)
        _settle(used_up, status=Status.FAILED, reason=Reason.ATTEMPTS_EXHAUSTED, **dead)
        _settle(uncalled, status=Status.PENDING, next_attempt_at=now + backoff.delay(1), **dead)
        # Dead after it: the provider may have the message.
        wait = {"lease_until": None, "next_attempt_at": now + unknown_wait()}
        for row in _settle(queue.abandoned(now).filter(was_called), status=Status.UNKNOWN, **wait):
            open_attempt = DeliveryAttempt.objects.of(row).filter(number=row.attempt, outcome="")
            open_attempt.update(outcome=DeliveryAttempt.Outcome.LOST)
        _settle(queue.unsettled(now), status=Status.FAILED, reason=Reason.NO_ANSWER)
        _settle(queue.useless(now), status=Status.EXPIRED, reason=Reason.TOO_LATE)


def _settle(rows: QueueQuerySet[Any], **changes: object) -> list[OutgoingMessage]:
    """Change the rows that nobody else holds, and give them."""
    with transaction.atomic():
        locked = list(rows.select_for_update(skip_locked=True, of=("self",)))
        rows.model._default_manager.filter(pk__in=[row.pk for row in locked]).update(**changes)
    for row in locked:
        logger.info(
            "%s id=%s attempt=%d tidied status=%s reason=%s",
            row._meta.model_name, row.pk, row.attempt, changes["status"], changes.get("reason", "-"),
        )  # fmt: skip
    return locked


def queue_of(row: OutgoingMessage) -> QueueQuerySet[Any]:
    """The queue that a row stands in."""
    return Reply.objects.all() if isinstance(row, Reply) else ReminderDelivery.objects.all()
