"""What a provider tells us afterwards.

Receipts come late, twice and in any order, and the end does not depend on it.
The ledger keeps what became of each attempt, and the row follows from all of
them. Of one attempt "failed" outweighs "sent": it was taken first, and then did
not arrive. "Delivered" and "read" outweigh "failed": what arrived has arrived.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Model

from reminders import known_as
from reminders.foreign_words import CODE_LENGTH, DETAIL_LENGTH, ID_LENGTH, is_storable, storable
from reminders.known_as import KnownAs
from reminders.models import DeliveryAttempt, ReminderDelivery, Reply
from reminders.models.each import update_each
from reminders.models.outgoing import OutgoingMessage
from reminders.timeline import Reason

logger = logging.getLogger(__name__)
Status = OutgoingMessage.Status
Outcome = DeliveryAttempt.Outcome

# In the order in which they are locked.
_QUEUES: dict[str, type[OutgoingMessage]] = {ReminderDelivery.kind: ReminderDelivery, Reply.kind: Reply}

# From which states good news lifts a row, whichever attempt it is of. SENDING is
# among them: a provider can be quicker to say "delivered" than we are to write
# down that it was sent. So are PENDING and FAILED: the refused attempt got there
# after all, and sending again would make two.
_OPEN_OR_LOST = [Status.PENDING, Status.SENDING, Status.UNKNOWN, Status.FAILED]
_CLIMBS_FROM = {
    Status.SENT: _OPEN_OR_LOST,
    Status.DELIVERED: [*_OPEN_OR_LOST, Status.SENT],
    Status.READ: [*_OPEN_OR_LOST, Status.SENT, Status.DELIVERED],
}
_FAILS_FROM = [Status.PENDING, Status.SENDING, Status.UNKNOWN, Status.SENT]
_ARRIVED = [Status.DELIVERED, Status.READ]
_STAMPS = {Status.SENT: "sent_at", Status.DELIVERED: "delivered_at", Status.READ: "read_at"}
_OF_A_ROW = (
    "status", "reason", "message_id", "error_code", "error_message",
    "sent_at", "delivered_at", "read_at", "lease_until",
)  # fmt: skip
_OF_AN_ATTEMPT = ("message_id", "outcome", "error_code", "error_message")


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """One piece of news about one message, in our words."""

    reference: str
    """Ours, as it came back; "" when the provider did not echo it."""
    message_id: str
    status: str
    """sent, delivered, read or failed."""
    at: datetime
    wa_id: str = ""
    user_id: str = ""
    error_code: str = ""
    error_message: str = ""


@dataclass(frozen=True)
class _Name:
    """Which attempt of which row a receipt is about."""

    queue: type[OutgoingMessage]
    row: UUID
    number: int


@dataclass(frozen=True, kw_only=True)
class _News:
    """A receipt with the locked row and the attempt that it is about."""

    receipt: Receipt
    row: OutgoingMessage
    attempt: DeliveryAttempt
    attempts: Collection[DeliveryAttempt]
    """All of the row."""


def advance(receipt: Receipt) -> bool:
    """Apply a receipt; True when it names a message of ours, whether or not it changed it."""
    return advance_all([receipt])[0]


def advance_all(receipts: Sequence[Receipt]) -> list[bool]:
    """Apply receipts in their order; for each True when it names a message of ours.

    The message is found by our own reference, which is there even when the
    provider's answer never reached us; without one by the provider's id. All or
    nothing is written.
    """
    receipts = [_storable(receipt) for receipt in receipts]
    with transaction.atomic():
        names = _names(receipts)
        rows = _locked(names)
        ledger = _ledger(rows.values())
        news = [
            _News(receipt=receipt, row=rows[name.row], attempt=attempt, attempts=ledger[name.row].values())
            for name, receipt in zip(names, receipts, strict=True)
            if name and (attempt := ledger[name.row].get(name.number))
        ]
        attempts = [attempt for of_row in ledger.values() for attempt in of_row.values()]
        rows_before = {row.pk: _values(row, _OF_A_ROW) for row in rows.values()}
        attempts_before = {attempt.pk: _values(attempt, _OF_AN_ATTEMPT) for attempt in attempts}
        moved = [_apply(item) for item in news]
        for queue in _QUEUES.values():
            _write(queue, [row for row in rows.values() if isinstance(row, queue)], rows_before)
        _write(DeliveryAttempt, attempts, attempts_before)
        known_as.remember(
            [
                KnownAs(
                    patient_id=item.row.patient_id,
                    address=item.attempt.address,
                    wa_id=item.receipt.wa_id,
                    bsuid=item.receipt.user_id,
                )
                for item in news
            ]
        )
    for item, has_moved in zip(news, moved, strict=True):
        logger.info(
            "%s id=%s attempt=%d receipt=%s code=%s%s",
            item.row._meta.model_name, item.row.pk, item.attempt.number, item.receipt.status,
            item.receipt.error_code or "-", "" if has_moved else " unchanged",
        )  # fmt: skip
    return [name is not None and name.number in ledger[name.row] for name in names]


def _storable(receipt: Receipt) -> Receipt:
    return replace(
        receipt,
        message_id=receipt.message_id if is_storable(receipt.message_id, ID_LENGTH) else "",
        error_code=storable(receipt.error_code, CODE_LENGTH),
        error_message=storable(receipt.error_message, DETAIL_LENGTH),
    )


# --- What receipts are about -------------------------------------------------------


def _names(receipts: Sequence[Receipt]) -> list[_Name | None]:
    named = [_read(receipt.reference) for receipt in receipts]
    others = {
        receipt.message_id
        for receipt, name in zip(receipts, named, strict=True)
        if name is None and receipt.message_id
    }
    by_id = _names_by_id(others) if others else {}
    return [name or by_id.get(receipt.message_id) for receipt, name in zip(receipts, named, strict=True)]


def _read(reference: str) -> _Name | None:
    """What a reference of ours names; None for anything else."""
    kind, _, rest = reference.partition(":")
    pk, _, number = rest.partition(":")
    if kind not in _QUEUES or not re.fullmatch(r"[0-9]{1,9}", number):
        return None
    try:
        return _Name(_QUEUES[kind], UUID(pk), int(number))
    except ValueError:
        return None


def _names_by_id(message_ids: Collection[str]) -> dict[str, _Name]:
    known = DeliveryAttempt.objects.filter(message_id__in=message_ids)
    return {
        message_id: _Name(ReminderDelivery if delivery else Reply, delivery or reply, number)
        for message_id, delivery, reply, number in known.values_list(
            "message_id", "delivery_id", "reply_id", "number"
        )
    }


def _locked(names: Sequence[_Name | None]) -> dict[UUID, OutgoingMessage]:
    """The rows that are named.

    Reminders first, then answers, each by id, and the ledger behind them: whoever
    writes several waits in this order, or two could wait for each other.
    """
    rows: dict[UUID, OutgoingMessage] = {}
    for queue in _QUEUES.values():
        if ids := {name.row for name in names if name and name.queue is queue}:
            locked = queue._default_manager.filter(pk__in=ids).order_by("pk").select_for_update(no_key=True)
            rows |= {row.pk: row for row in locked}
    return rows


def _ledger(rows: Collection[OutgoingMessage]) -> Mapping[UUID, dict[int, DeliveryAttempt]]:
    """All attempts of locked rows, by number. Read behind the lock, so that none of it is old."""
    ledger: dict[UUID, dict[int, DeliveryAttempt]] = defaultdict(dict)
    for field, queue in (("delivery", ReminderDelivery), ("reply", Reply)):
        if ids := [row.pk for row in rows if isinstance(row, queue)]:
            for attempt in DeliveryAttempt.objects.filter(**{f"{field}__in": ids}).defer("payload"):
                ledger[getattr(attempt, f"{field}_id")][attempt.number] = attempt
    return ledger


# --- What becomes of them, in memory -----------------------------------------------


def _apply(news: _News) -> bool:
    """Let the news change row and attempt; False when the row stays in its state."""
    _note(news.attempt, news.receipt, has_arrived=news.row.status in _ARRIVED)
    moved = _fail(news) if news.receipt.status == Status.FAILED else _climb(news)
    if not moved:
        _stamp(news.row, news.receipt)
    return moved


def _note(attempt: DeliveryAttempt, receipt: Receipt, *, has_arrived: bool) -> None:
    """What the news tells of its attempt. One whose answer was lost gets its id: it was accepted."""
    was_told_failed = attempt.outcome == Outcome.REFUSED and attempt.message_id
    attempt.message_id = attempt.message_id or receipt.message_id
    if receipt.status == Status.FAILED:
        if not has_arrived:
            attempt.outcome = Outcome.REFUSED
            attempt.error_code, attempt.error_message = receipt.error_code, receipt.error_message
    elif not (was_told_failed and receipt.status == Status.SENT):
        attempt.outcome = Outcome.ACCEPTED


def _fail(news: _News) -> bool:
    row = news.row
    if row.status not in _FAILS_FROM or any(a.outcome != Outcome.REFUSED for a in news.attempts):
        return False
    # A later attempt that a worker is about to make is not ended by an earlier one.
    if row.status == Status.SENDING and row.attempt != news.attempt.number:
        return False
    row.status, row.reason = Status.FAILED, Reason.REFUSED
    row.error_code, row.error_message = news.receipt.error_code, news.receipt.error_message
    row.lease_until, row.message_id = None, news.attempt.message_id
    return True


def _climb(news: _News) -> bool:
    row, to = news.row, Status(news.receipt.status)
    # That it was sent says nothing new of an attempt that failed afterwards.
    if row.status not in _CLIMBS_FROM[to] or news.attempt.outcome == Outcome.REFUSED:
        return False
    row.status, row.reason = to, ""
    row.sent_at = row.sent_at or news.receipt.at
    setattr(row, _STAMPS[to], news.receipt.at)
    row.lease_until, row.message_id = None, news.attempt.message_id
    return True


def _stamp(row: OutgoingMessage, receipt: Receipt) -> None:
    """Late news of a lower step: the state stays, the stamp is filled in."""
    name = _STAMPS.get(Status(receipt.status))
    if name and row.status in _STAMPS and not getattr(row, name):
        setattr(row, name, receipt.at)


def _values(thing: Model, names: Iterable[str]) -> dict[str, object]:
    return {name: getattr(thing, name) for name in names}


def _write(model: type[Model], things: Iterable[Model], before: Mapping[Any, Mapping[str, object]]) -> None:
    """Write those that have changed."""
    now = {thing.pk: _values(thing, before[thing.pk]) for thing in things}
    update_each(model, [{"pk": pk, **values} for pk, values in now.items() if values != before[pk]])
