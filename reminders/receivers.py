"""News of the apps below, each handed to the verb that answers it."""

from __future__ import annotations

import logging
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
def work_off_at_once(post_id: int, **_: Any) -> None:
    """Start on a webhook post; if this fails, the next tick finds it."""
    async_task("reminders.tick.work_off_post", post_id)


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


@receiver(signals.status_received)
def move_delivery(event: StatusReceived, **_: Any) -> bool:
    """A receipt of Meta's; a status that we do not know tells nothing and is settled."""
    if event.status not in _STEPS:
        return True
    fault = event.errors[0] if event.errors else None
    return receipts.advance(
        receipts.Receipt(
            reference=event.reference,
            message_id=event.wamid,
            status=_STEPS[event.status],
            at=event.at,
            wa_id=event.recipient_phone,
            user_id=event.recipient_user_id,
            error_code=str(fault.code or "") if fault else "",
            error_message=fault.details if fault else "",
        )
    )
