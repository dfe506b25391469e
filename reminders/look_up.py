"""Asks providers about messages whose answers were lost, where a provider can be asked.

A message that it knows was accepted; one that it does not know yet may be on its
way, so the row goes on waiting, and the wait's end decides.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DataError, IntegrityError

from reminders import receipts
from reminders.channels import get_channel
from reminders.channels.base import Receipt as Accepted
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
    """Settle what providers have told, and ask again each half minute; returns how many rows were settled.

    Nothing is waited for: what they tell is heard by a later call, with the same flight.
    """
    settled = _settle(flight.told(patience=0), now)
    channels = [name for name in settings.REMINDER_CHANNELS if get_channel(name).can_look_up]
    if channels and not flight.asked and Heartbeat.take_turn(HEARTBEAT, now, every=EVERY):
        waiting = ReminderDelivery.objects.filter(status=OutgoingMessage.Status.UNKNOWN, channel__in=channels)
        flight.look_up(list(waiting.order_by("next_attempt_at")[:AT_ONCE]))
    return settled


def hear_providers(flight: Flight, *, now: datetime, seconds: float) -> int:
    """Wait up to ``seconds`` for what providers were asked, and then no longer; returns as above."""
    ends = time.monotonic() + seconds
    settled = 0
    while flight.asked and (left := ends - time.monotonic()) > 0:
        settled += _settle(flight.told(patience=left), now)
    flight.stop_asking()
    return settled


def _settle(told: Sequence[tuple[OutgoingMessage, Accepted | None]], now: datetime) -> int:
    found = [
        Receipt(
            reference=row.reference,
            message_id=accepted.message_id,
            status=OutgoingMessage.Status.SENT,
            at=now,
        )
        for row, accepted in told
        if accepted
    ]
    settled = sum(_is_settled(receipt) for receipt in found)
    if told:
        logger.info("look-up told=%d settled=%d", len(told), settled)
    return settled


def _is_settled(receipt: Receipt) -> bool:
    try:
        return receipts.advance(receipt)
    except (DataError, IntegrityError) as error:  # an odd id must not cost its neighbours theirs
        logger.error("look-up ref=%s outcome=%s", receipt.reference, type(error).__name__)
        return False
