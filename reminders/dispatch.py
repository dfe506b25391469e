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
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from django.conf import settings
from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    connection,
    connections,
    transaction,
)
from psycopg.errors import DeadlockDetected

from reminders import backoff, giving_up, known_as, last_look, meters, same_day
from reminders.channels.base import AnswerLost, ChannelError, Receipt, Throttled
from reminders.flight import Call, Flight, Outcome
from reminders.known_as import KnownAs
from reminders.line import Line, Room
from reminders.meters import Ended
from reminders.models import DeliveryAttempt, ReminderDelivery, Reply
from reminders.models.each import update_each
from reminders.models.outgoing import OutgoingMessage, QueueQuerySet
from reminders.outcomes import after_error, unknown_wait
from reminders.spacing import Spacing
from reminders.timeline import Reason

logger = logging.getLogger(__name__)
Status = OutgoingMessage.Status
Landed = Sequence[tuple[Call, Outcome]]
PATIENCE = 0.2
"""Seconds to wait for a call to end before looking for new work."""
MEANWHILE_SECONDS = 1.0
"""How often a long run lets the rest of the turn have its part."""


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Who is next in the two queues, and to whom was just written."""

    replies: Line[Reply] = field(default_factory=lambda: Line(Reply.objects.all(), fresh_seconds=0.1))
    deliveries: Line[ReminderDelivery] = field(
        default_factory=lambda: Line(ReminderDelivery.objects.all(), fresh_seconds=3)
    )
    spacing: Spacing = field(default_factory=Spacing)


def run(
    *,
    clock: Callable[[], datetime],
    flight: Flight,
    limit: int | None = None,
    may_go_on: Callable[[], bool] = lambda: True,
    meanwhile: Callable[[datetime], object] = lambda _now: None,
    scribe: Scribe | None = None,
) -> int:
    """Send until nothing is due, the limit is reached or ``may_go_on`` says no.

    ``meanwhile`` is called with the time about once a second; ``scribe`` records
    beside the sending. Returns how many calls were started. Those that are in the
    air at the end have landed and are recorded.
    """
    started = 0
    landed: Landed = []
    lines = Lines()
    scribe = scribe or Scribe()
    last_meanwhile = time.monotonic()
    try:
        while True:
            calls: list[Call] = []
            now = clock()
            seats = flight.free if limit is None else min(flight.free, limit - started)
            if seats and flight.is_worth_boarding and may_go_on():
                calls = prepare(seats, now=now, lines=lines, room=Room(flight.room))
            flight.take_off(calls)
            started += len(calls)
            # While the next ones are in the air.
            scribe.record(landed, now=now)
            landed = []
            if flight.is_empty:
                scribe.finish()
                return started
            if time.monotonic() - last_meanwhile > MEANWHILE_SECONDS:
                meanwhile(now)
                last_meanwhile = time.monotonic()
            landed = flight.landed(patience=PATIENCE)
    finally:
        # Whatever goes wrong above, what is in the air has an end that must be
        # kept. To record one twice changes nothing.
        landed = [*scribe.unwritten, *landed]
        while landed or not flight.is_empty:
            connection.close_if_unusable_or_obsolete()
            record(landed or flight.landed(patience=PATIENCE), now=clock())
            landed = []


class Scribe:
    """Records how calls ended. As a context it does so in a thread and a connection of its own:
    what waits for the database then keeps no seat empty. Otherwise at once, in the caller's.
    """

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._written: Future[None] | None = None
        self.unwritten: Landed = []

    def __enter__(self) -> Self:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="scribe")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread:
            self._thread.submit(connections.close_all).result()
            self._thread.shutdown()
            self._thread = None

    def record(self, landed: Landed, *, now: datetime) -> None:
        """Write these down, when those before are. Raises what went wrong with those before."""
        self.finish()
        if not landed:
            return
        self.unwritten = landed
        if self._thread:
            self._written = self._thread.submit(record, landed, now=now)
        else:
            record(landed, now=now)
            self.unwritten = []

    def finish(self) -> None:
        """Wait until all is written. Raises what went wrong; ``unwritten`` then has the calls."""
        if self._written:
            written, self._written = self._written, None
            written.result()
            self.unwritten = []


def prepare(
    seats: int,
    *,
    now: datetime,
    lines: Lines | None = None,
    room: Room | None = None,
) -> list[Call]:
    """Claim up to ``seats`` due rows and write their attempts down.

    Patients who wait for an answer come before reminders. Rows that turn out
    not to be sendable end here with their reason, and others take their seats.
    """
    lines = lines or Lines()
    calls: list[Call] = []
    while len(calls) < seats and (answers := lines.replies.claim(seats - len(calls), now=now, room=room)):
        calls += _look(last_look.replies, answers, now)
    while len(calls) < seats and (due := lines.deliveries.claim(seats - len(calls), now=now, room=room)):
        due = [*due, *same_day.claim_companions(due, now=now)]
        calls += _look(partial(last_look.deliveries, spacing=lines.spacing), due, now)
    return calls


def _look(look: Callable[..., list[Call]], claimed: Sequence[OutgoingMessage], now: datetime) -> list[Call]:
    """The last look at claimed rows: all at once, and one by one where that does not work.

    Nothing is called whose attempt is not written down. A row that is left out
    waits again when its lease ends.
    """
    try:
        with transaction.atomic():
            return look(claimed, now=now)
    except (OperationalError, InterfaceError) as error:
        if not isinstance(error.__cause__, DeadlockDetected):
            raise
        logger.warning("last look rows=%d undone by a deadlock", len(claimed))
    except DatabaseError as error:
        logger.exception("last look rows=%d undone kind=%s", len(claimed), type(error).__name__)
    if len(claimed) == 1:
        return []
    return [call for row in claimed for call in _look(look, [row], now)]


def record(landed: Landed, *, now: datetime) -> None:
    """Write down how calls ended. A worker that lost its row to another changes none.

    Acceptances all at once; where that does not work, each by itself: an odd
    answer must not cost its neighbours their outcome.
    """
    landed = [pair for call, outcome in landed for pair in call.apart(outcome)]
    accepted = [(call, outcome) for call, outcome in landed if isinstance(outcome, Receipt)]
    one_by_one: Landed = [(call, outcome) for call, outcome in landed if not isinstance(outcome, Receipt)]
    try:
        with transaction.atomic():
            kept = _accept(accepted, now)
    except Exception as error:
        if _is_lost(error):
            raise  # the ledger knows of the calls, and receipts will tell
        logger.warning("record rows=%d one by one kind=%s", len(accepted), type(error).__name__)
        one_by_one = landed
    else:
        for call, receipt in accepted:
            status = Status.DELIVERED if receipt.is_delivered else Status.SENT
            _tell(call.row, {"status": status}, now, was_kept=call.row.pk in kept)
        _remember(accepted)
    for call, outcome in one_by_one:
        _record_alone(call, outcome, now)
    meters.note([_ended(call.row, outcome, now) for call, outcome in landed])


def _is_lost(error: Exception) -> bool:
    """Whether it is the database that is gone, and not one transaction that it undid."""
    return isinstance(error, OperationalError | InterfaceError) and not isinstance(
        error.__cause__, DeadlockDetected
    )


def _accept(accepted: Sequence[tuple[Call, Receipt]], now: datetime) -> set[Any]:
    """Write acceptances into queues and ledger; returns the rows whose claim still stood.

    Reminders, answers, ledger: in the order in which receipts lock them.
    """
    kept: set[Any] = set()
    for queue in (ReminderDelivery, Reply):
        kept |= update_each(
            queue,
            [
                {
                    "pk": call.row.pk,
                    "attempt": call.row.attempt,
                    "status": Status.DELIVERED if receipt.is_delivered else Status.SENT,
                    "message_id": receipt.message_id,
                    "sent_at": now,
                    "delivered_at": now if receipt.is_delivered else None,
                    "lease_until": None,
                }
                for call, receipt in accepted
                if isinstance(call.row, queue)
            ],
            keys=("pk", "attempt"),
            only_if={"status": [Status.SENDING, Status.UNKNOWN]},
        )
    update_each(
        DeliveryAttempt,
        [
            {
                "pk": call.attempt_id,
                "outcome": DeliveryAttempt.Outcome.ACCEPTED,
                "message_id": receipt.message_id,
            }
            for call, receipt in accepted
        ],
        # A receipt may have been quicker, and have told that it failed afterwards.
        only_if={
            "outcome": [
                DeliveryAttempt.Outcome.OPEN,
                DeliveryAttempt.Outcome.LOST,
                DeliveryAttempt.Outcome.ACCEPTED,
            ]
        },
    )
    return kept


def _record_alone(call: Call, outcome: Outcome, now: datetime) -> None:
    """Write down how one call ended. What cannot be written is left: the lease ends, a receipt may tell."""
    try:
        if not (isinstance(outcome, Receipt) and _has_accepted(call, outcome, now)):
            _refuse(call, AnswerLost("odd_answer") if isinstance(outcome, Receipt) else outcome, now)
    except Exception as error:
        if _is_lost(error):
            raise
        logger.exception("call ref=%s not recorded kind=%s", call.message.reference, type(error).__name__)


def _has_accepted(call: Call, receipt: Receipt, now: datetime) -> bool:
    """Write one acceptance; False for an answer that cannot be stored."""
    try:
        with transaction.atomic():
            kept = bool(_accept([(call, receipt)], now))
    except (OperationalError, InterfaceError):
        raise  # nothing is wrong with the answer
    except Exception as error:
        logger.exception("call ref=%s odd answer kind=%s", call.message.reference, type(error).__name__)
        return False
    _tell(call.row, {"status": Status.SENT}, now, was_kept=kept)
    _remember([(call, receipt)])
    return True


def _refuse(call: Call, error: ChannelError, now: datetime) -> None:
    """Write one refusal, or that the answer was lost."""
    lost = isinstance(error, AnswerLost)
    changes = after_error(call.row, error, now)
    with transaction.atomic():
        was_kept = queue_of(call.row).held(call.row).update(**changes)
        # A receipt that was quicker knows better: it has given the attempt its id.
        DeliveryAttempt.objects.filter(pk=call.attempt_id, message_id="").update(
            outcome=DeliveryAttempt.Outcome.LOST if lost else DeliveryAttempt.Outcome.REFUSED,
            error_code=error.code,
            error_message=error.detail,
        )
    _tell(call.row, changes, now, was_kept=bool(was_kept))


def _remember(accepted: Sequence[tuple[Call, Receipt]]) -> None:
    known_as.remember(
        [
            KnownAs(
                patient_id=call.row.patient_id,
                address=call.row.address,
                wa_id=receipt.wa_id,
                bsuid=receipt.user_id,
            )
            for call, receipt in accepted
        ]
    )


def _tell(row: OutgoingMessage, changes: Mapping[str, object], now: datetime, *, was_kept: bool) -> None:
    logger.info(
        "%s id=%s attempt=%d channel=%s %s code=%s late_s=%d%s",
        row._meta.model_name, row.pk, row.attempt, row.channel, changes["status"],
        changes.get("error_code") or "-", (now - row.scheduled_for).total_seconds(),
        "" if was_kept else " settled_elsewhere",
    )  # fmt: skip


def _ended(row: OutgoingMessage, outcome: Outcome, now: datetime) -> Ended:
    if isinstance(outcome, Receipt):
        late = (now - row.scheduled_for).total_seconds()
        return Ended(channel=row.channel, outcome="accepted", late_seconds=late)
    kinds = {AnswerLost: "lost", Throttled: "throttled"}
    return Ended(channel=row.channel, outcome=kinds.get(type(outcome), "refused"), late_seconds=None)


def tidy(*, now: datetime, asked: Collection[UUID] = ()) -> None:
    """Put right what time or a crash left behind. Part of every tick; safe beside itself.

    Of the rows ``asked`` a provider is about to tell: they are not given up yet.
    """
    for queue in (Reply.objects.all(), ReminderDelivery.objects.all()):
        _rescue(queue, now)
        _settle(queue.unsettled(now).exclude(pk__in=asked), status=Status.FAILED, reason=Reason.NO_ANSWER)
        _settle(queue.useless(now), status=Status.EXPIRED, reason=Reason.TOO_LATE)
    giving_up.give_up(now=now)


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
            # One that was claimed early, to go along with another, keeps its own moment.
            changes |= {"status": Status.PENDING}
            changes |= {"next_attempt_at": max(row.next_attempt_at, now + backoff.delay(1))}
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
