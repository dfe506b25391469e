"""News of the apps below, each handed to the verb that answers it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.dispatch import receiver
from django_q.tasks import async_task

from appointments import clock
from appointments.models import AppointmentHistory
from appointments.signals import changed
from reminders import conversation, planner, receipts
from whatsapp import signals
from whatsapp.events import MessageReceived, StatusReceived
from whatsapp.models import WebhookPost

logger = logging.getLogger(__name__)


@receiver(changed)
def plan_after_commit(appointment_id: UUID, source: str, **_: Any) -> None:
    """Plan a visit right after its change, so that the screen shows it; a tick does it otherwise.

    Not for an import, which plans all its lines at its end.
    """
    if source == AppointmentHistory.Source.IMPORT:
        return
    transaction.on_commit(lambda: _plan(appointment_id))


def _plan(appointment_id: UUID) -> None:
    try:
        planner.plan_marked(now=clock.now(), visit=appointment_id)
    except Exception as error:  # the booking is made, and the mark stands: a tick plans it
        logger.exception("plan appointment=%s failed kind=%s", appointment_id, type(error).__name__)


@receiver(signals.post_stored)
def work_off_at_once(post: WebhookPost, **_: Any) -> None:
    """Call a worker for a webhook post, unless one is on its way; if this fails, the next tick finds it."""
    if not post.is_awaited:
        async_task("reminders.tick.work_off_posts")


@receiver(signals.message_received)
def carry_out_tap(event: MessageReceived, now: datetime, **_: Any) -> None:
    """A button under a message of ours. Other messages are kept for a person to read."""
    if event.payload and not event.is_group:
        conversation.tapped(
            conversation.Tapped(
                message_id=event.wamid,
                phone=event.phone,
                user_id=event.user_id,
                payload=event.payload,
                in_answer_to=event.context_wamid,
                at=event.at,
            ),
            now=now,
        )


_STEPS = {"sent": "sent", "delivered": "delivered", "read": "read", "played": "read", "failed": "failed"}


@receiver(signals.statuses_received)
def move_deliveries(events: Sequence[StatusReceived], **_: Any) -> list[bool]:
    """Receipts of Meta's; a status that we do not know tells nothing and is settled."""
    known = iter(receipts.advance_all([_receipt(event) for event in events if event.status in _STEPS]))
    return [next(known) if event.status in _STEPS else True for event in events]


def _receipt(event: StatusReceived) -> receipts.Receipt:
    fault = event.errors[0] if event.errors else None
    return receipts.Receipt(
        reference=event.reference,
        message_id=event.wamid,
        status=_STEPS[event.status],
        at=event.at,
        wa_id=event.recipient_phone,
        user_id=event.recipient_user_id,
        error_code=str(fault.code or "") if fault else "",
        error_message=fault.details if fault else "",
    )
