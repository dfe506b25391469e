"""What a provider tells us afterwards. Receipts only ever move a row upwards."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import models, transaction
from django.db.models.functions import Coalesce

from reminders import reach
from reminders.models import DeliveryAttempt, ReminderDelivery, Reply
from reminders.models.outgoing import OutgoingMessage
from reminders.timeline import Reason

logger = logging.getLogger(__name__)
Status = OutgoingMessage.Status

_QUEUES: dict[str, type[OutgoingMessage]] = {ReminderDelivery.kind: ReminderDelivery, Reply.kind: Reply}

# From which states good news lifts a row, whichever attempt it is of. SENDING is
# among them: a provider can be quicker to say "delivered" than we are to write
# down that it was sent. So are PENDING and FAILED: the refused attempt got there
# after all, and sending again would make two.
_CLIMBS_FROM = {
    Status.SENT: [Status.SENDING, Status.UNKNOWN, Status.FAILED],
    Status.DELIVERED: [Status.SENDING, Status.UNKNOWN, Status.FAILED, Status.SENT],
    Status.READ: [Status.SENDING, Status.UNKNOWN, Status.FAILED, Status.SENT, Status.DELIVERED],
}
_FAILS_FROM = [Status.SENDING, Status.UNKNOWN, Status.SENT]
_STAMPS = {Status.SENT: "sent_at", Status.DELIVERED: "delivered_at", Status.READ: "read_at"}


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
    """Apply a receipt; True when it names a message of ours, whether or not it changed it.

    The message is found by our own reference first, which is there even when
    the provider's answer never reached us, then by the provider's id.
    """
    with transaction.atomic():
        attempt = _attempt_of(receipt)
        if attempt is None:
            return False
        row = attempt.row
        if not attempt.message_id:
            DeliveryAttempt.objects.filter(pk=attempt.pk, message_id="").update(
                message_id=receipt.message_id, outcome=DeliveryAttempt.Outcome.ACCEPTED
            )
        moved = _move(row, attempt, receipt)
        reach.remember(row.patient_id, attempt.address, wa_id=receipt.wa_id, bsuid=receipt.user_id)
    logger.info(
        "%s id=%s attempt=%d receipt=%s code=%s%s",
        row._meta.model_name, row.pk, attempt.number, receipt.status, receipt.error_code or "-",
        "" if moved else " unchanged",
    )  # fmt: skip
    return True


def _attempt_of(receipt: Receipt) -> DeliveryAttempt | None:
    attempts = DeliveryAttempt.objects.select_related("delivery", "reply")
    kind, _, rest = receipt.reference.partition(":")
    pk, _, number = rest.partition(":")
    queue = _QUEUES.get(kind)
    if queue and re.fullmatch(r"[0-9]{1,9}", number) and _is_uuid(pk):
        field = "delivery" if queue is ReminderDelivery else "reply"
        if found := attempts.filter(**{f"{field}_id": pk}, number=int(number)).first():
            return found
    return attempts.filter(message_id=receipt.message_id).first() if receipt.message_id else None


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _move(row: OutgoingMessage, attempt: DeliveryAttempt, receipt: Receipt) -> bool:
    rows = type(row)._default_manager.filter(pk=row.pk)
    told: dict[str, object] = {"lease_until": None, "message_id": receipt.message_id}
    if receipt.status == Status.FAILED:
        # Of the attempt that the row is at: an earlier one's end is known already.
        failing = rows.filter(status__in=_FAILS_FROM, attempt=attempt.number)
        why = {"error_code": receipt.error_code, "error_message": receipt.error_message[:500]}
        return bool(failing.update(status=Status.FAILED, reason=Reason.REFUSED, **why, **told))
    to = Status(receipt.status)
    stamp = _STAMPS[to]
    waiting_again = models.Q(status=Status.PENDING, called_at__isnull=False)
    climbing = rows.filter(models.Q(status__in=_CLIMBS_FROM[to]) | waiting_again)
    stamps = {"sent_at": Coalesce("sent_at", models.Value(receipt.at)), stamp: receipt.at}
    if climbing.update(status=to, reason="", **stamps, **told):
        return True
    # Late news of a lower step: the state stays, the stamp is filled in.
    reached = rows.filter(status__in=list(_STAMPS), **{f"{stamp}__isnull": True})
    reached.update(**{stamp: receipt.at})
    return False
