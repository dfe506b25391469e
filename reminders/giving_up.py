"""How long we wait to hear that a message arrived, or was read; and the end of the wait.

A row that is given up keeps its state: what comes of it later is recorded. A
trigger marks its visit, and the rule's next channel follows from the plan.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db import transaction

from appointments.models import Appointment
from reminders.models import ReminderDelivery
from reminders.models.delivery import ReminderDeliveryQuerySet
from reminders.timeline import ReminderType
from reminders.visits import why_void

logger = logging.getLogger(__name__)
LONGEST = timedelta(hours=4)
"""How long a message may take to arrive."""


def set_deadlines(
    row: ReminderDelivery,
    *,
    starts_at: datetime,
    now: datetime,
    gives_receipts: bool,
    is_extra: bool,
) -> None:
    """Put onto a row that is called ``now``, in memory, by when it is to be delivered and to be read.

    None where nothing could tell, and where a word more would come too late.
    ``is_extra`` says that it goes in place of one that was given up: it need not be read.
    """
    row.deliver_by = row.read_by = None
    if not gives_receipts:
        return
    row.deliver_by = deliver_by(now, starts_at)
    minutes = row.rule.fallback_after_minutes if row.rule else None
    if not minutes or is_extra:
        return
    read_by = now + timedelta(minutes=minutes)
    if read_by < row.useful_until:
        row.read_by = read_by
        # What was not even delivered by then was not read either.
        row.deliver_by = min(row.deliver_by, read_by)


def deliver_by(sent_at: datetime, starts_at: datetime) -> datetime:
    """Four hours after the sending, or when a quarter of the time to the visit has passed."""
    time_left = starts_at - sent_at
    return sent_at + (min(LONGEST, time_left / 4) if time_left > timedelta(0) else LONGEST)


def give_up(*, now: datetime) -> None:
    """Wait no longer for what is overdue by ``now``. Safe beside itself and beside receipts."""
    for overdue in (ReminderDelivery.objects.undelivered(now), ReminderDelivery.objects.unread(now)):
        _let_go(overdue, now)


@transaction.atomic
def _let_go(overdue: ReminderDeliveryQuerySet, now: datetime) -> None:
    # Unordered: the key's index would be walked for the few rows of the partial one.
    locked = overdue.order_by().select_for_update(skip_locked=True, of=("self",))
    rows = list(locked.select_related("appointment"))
    needless = {row.pk for row in rows if why_void(row, row.appointment) or _was_answered(row)}
    lost = [row for row in rows if row.pk not in needless]
    ReminderDelivery.objects.filter(pk__in=needless).update(deliver_by=None, read_by=None)
    ReminderDelivery.objects.filter(pk__in=[row.pk for row in lost]).update(given_up_at=now)
    for row in lost:
        logger.info("delivery id=%s attempt=%d given_up status=%s", row.pk, row.attempt, row.status)


def _was_answered(row: ReminderDelivery) -> bool:
    """Whether the visit was confirmed since: who says that they will come knows of it."""
    visit = row.appointment
    return bool(
        row.reminder_type == ReminderType.CITA_PROXIMA
        and visit.status == Appointment.Status.CONFIRMED
        and visit.confirmed_at
        and row.called_at
        and visit.confirmed_at >= row.called_at
    )
