"""Asks providers about messages whose answers were lost, where a provider can be asked.

A message that it knows was accepted; one that it does not know yet may be on its
way, so the row goes on waiting, and the wait's end decides.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.conf import settings

from reminders import receipts
from reminders.channels import get_channel
from reminders.flight import Flight
from reminders.models import Heartbeat, ReminderDelivery
from reminders.models.outgoing import OutgoingMessage
from reminders.receipts import Receipt

logger = logging.getLogger(__name__)
EVERY = timedelta(seconds=30)
"""A provider's search knows of a message some seconds after it was taken."""
AT_ONCE = 50
HEARTBEAT = "look_up"


def ask_providers(flight: Flight, *, now: datetime) -> int:
    """Settle what providers know of; returns how many rows were. Asks every half minute."""
    channels = [name for name in settings.REMINDER_CHANNELS if get_channel(name).can_look_up]
    if not channels or not Heartbeat.take_turn(HEARTBEAT, now, every=EVERY):
        return 0
    waiting = ReminderDelivery.objects.filter(status=OutgoingMessage.Status.UNKNOWN, channel__in=channels)
    rows = {row.pk: row for row in waiting.order_by("next_attempt_at")[:AT_ONCE]}
    settled = 0
    for pk, found in flight.look_up(list(rows.values())).items():
        if found is not None:
            settled += receipts.advance(
                Receipt(
                    reference=rows[pk].reference,
                    message_id=found.message_id,
                    status=OutgoingMessage.Status.SENT,
                    at=now,
                )
            )
    logger.info("look-up asked=%d settled=%d", len(rows), settled)
    return settled
