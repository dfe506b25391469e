"""What a provider tells us afterwards. Receipts only ever move a row upwards."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from reminders import known_as
from reminders.known_as import KnownAs
from reminders.models import DeliveryAttempt, ReminderDelivery, Reply
from reminders.models.each import update_each
from reminders.models.outgoing import OutgoingMessage
from reminders.timeline import Reason

logger = logging.getLogger(__name__)
Status = OutgoingMessage.Status

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
_FAILS_FROM = [Status.SENDING, Status.UNKNOWN, Status.SENT]
_STAMPS = {Status.SENT: "sent_at", Status.DELIVERED: "delivered_at", Status.READ: "read_at"}
_WRITTEN = (
    "status", "reason", "message_id", "error_code", "error_message",
    "sent_at", "delivered_at", "read_at", "lease_until",
)  # fmt: skip


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


def advance(receipt: Receipt) -> bool:
    """Apply a receipt; True when it names a message of ours, whether or not it changed it."""
    return advance_all([receipt])[0]


def advance_all(receipts: Sequence[Receipt]) -> list[bool]:
    """Apply receipts in their order; for each True when it names a message of ours.

    The message is found by our own reference first, which is there even when
    the provider's answer never reached us, then by the provider's id. All or
    nothing is written.
    """
    with transaction.atomic():
        attempts = _attempts_of(receipts)
        _name(attempts, receipts)
        rows = _locked(attempts)
        changed: dict[UUID, OutgoingMessage] = {}
        news = []
        for receipt, attempt in zip(receipts, attempts, strict=True):
            if attempt is not None:
                row = rows[attempt.delivery_id or attempt.reply_id]
                moved = _move(row, attempt, receipt)
                if moved or _stamp(row, receipt):
                    changed[row.pk] = row
                news.append((row, attempt, receipt, moved))
        for queue in _QUEUES.values():
            update_each(
                queue,
                [
                    {"pk": row.pk, **{name: getattr(row, name) for name in _WRITTEN}}
                    for row in changed.values()
                    if isinstance(row, queue)
                ],
            )
        known_as.remember(
            [
                KnownAs(
                    patient_id=row.patient_id,
                    address=attempt.address,
                    wa_id=receipt.wa_id,
                    bsuid=receipt.user_id,
                )
                for row, attempt, receipt, _ in news
            ]
        )
    for row, attempt, receipt, moved in news:
        logger.info(
            "%s id=%s attempt=%d receipt=%s code=%s%s",
            row._meta.model_name, row.pk, attempt.number, receipt.status, receipt.error_code or "-",
            "" if moved else " unchanged",
        )  # fmt: skip
    return [attempt is not None for attempt in attempts]


def _attempts_of(receipts: Sequence[Receipt]) -> list[DeliveryAttempt | None]:
    named = [_read(receipt.reference) for receipt in receipts]
    by_reference = {
        (attempt.delivery_id or attempt.reply_id, attempt.number): attempt
        for field, queue in (("delivery", ReminderDelivery), ("reply", Reply))
        if (ids := {pk for kind, pk, _ in filter(None, named) if _QUEUES[kind] is queue})
        for attempt in DeliveryAttempt.objects.filter(**{f"{field}__in": ids}).defer("payload")
    }
    found = [by_reference.get(name[1:]) if name else None for name in named]
    others = {
        receipt.message_id
        for receipt, attempt in zip(receipts, found, strict=True)
        if attempt is None and receipt.message_id
    }
    by_id = (
        {a.message_id: a for a in DeliveryAttempt.objects.filter(message_id__in=others).defer("payload")}
        if others
        else {}
    )
    return [
        attempt or by_id.get(receipt.message_id) for receipt, attempt in zip(receipts, found, strict=True)
    ]


def _read(reference: str) -> tuple[str, UUID, int] | None:
    """Queue, row and attempt that a reference of ours names; None for anything else."""
    kind, _, rest = reference.partition(":")
    pk, _, number = rest.partition(":")
    if kind not in _QUEUES or not re.fullmatch(r"[0-9]{1,9}", number):
        return None
    try:
        return kind, UUID(pk), int(number)
    except ValueError:
        return None


def _name(attempts: Sequence[DeliveryAttempt | None], receipts: Sequence[Receipt]) -> None:
    """Give attempts whose answer was lost the provider's id: they were accepted after all."""
    nameless = {
        attempt.pk: receipt.message_id
        for attempt, receipt in zip(attempts, receipts, strict=True)
        if attempt is not None and not attempt.message_id
    }
    update_each(
        DeliveryAttempt,
        [
            {"pk": pk, "message_id": message_id, "outcome": DeliveryAttempt.Outcome.ACCEPTED}
            for pk, message_id in nameless.items()
        ],
        only_if={"message_id": [""]},
    )


def _locked(attempts: Sequence[DeliveryAttempt | None]) -> dict[UUID | None, OutgoingMessage]:
    rows: dict[UUID | None, OutgoingMessage] = {}
    for queue, ids in (
        (ReminderDelivery, {attempt.delivery_id for attempt in attempts if attempt} - {None}),
        (Reply, {attempt.reply_id for attempt in attempts if attempt} - {None}),
    ):
        if ids:
            locked = queue._default_manager.filter(pk__in=ids).order_by("pk").select_for_update(no_key=True)
            rows |= {row.pk: row for row in locked}
    return rows


def _move(row: OutgoingMessage, attempt: DeliveryAttempt, receipt: Receipt) -> bool:
    """Let the news move a locked row, in memory; False when it tells nothing new."""
    if receipt.status == Status.FAILED:
        # Of the attempt that the row is at: an earlier one's end is known already.
        if row.status not in _FAILS_FROM or row.attempt != attempt.number:
            return False
        row.status, row.reason = Status.FAILED, Reason.REFUSED
        row.error_code, row.error_message = receipt.error_code, receipt.error_message[:500]
    else:
        to = Status(receipt.status)
        if row.status not in _CLIMBS_FROM[to]:
            return False
        row.status, row.reason = to, ""
        row.sent_at = row.sent_at or receipt.at
        setattr(row, _STAMPS[to], receipt.at)
    row.lease_until, row.message_id = None, receipt.message_id
    return True


def _stamp(row: OutgoingMessage, receipt: Receipt) -> bool:
    """Late news of a lower step: the state stays, the stamp is filled in."""
    name = _STAMPS.get(Status(receipt.status))
    if name is None or row.status not in _STAMPS or getattr(row, name):
        return False
    setattr(row, name, receipt.at)
    return True
