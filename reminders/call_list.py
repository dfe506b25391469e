"""Whom the consulting room has to call: visits of which no message told the patient."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef, Q

from appointments.models import Appointment
from reminders.models.delivery import (
    CALLS_FOR_A_PERSON,
    ReminderDelivery,
    ReminderDeliveryQuerySet,
    Unreached,
)
from reminders.timeline import MINIMUM_LEAD, USEFUL_AFTER, Reason

STAYS = timedelta(days=1)
"""How long after the visit, or after its use, a reminder that reached nobody is still shown."""
KNOWN_WHEN_PLANNED = [Reason.NO_CHANNEL, Reason.QUIET_HOURS]

_Status = ReminderDelivery.Status
_ARRIVED = [_Status.SENT, _Status.DELIVERED, _Status.READ]
_OPEN = [_Status.PENDING, _Status.SENDING, _Status.UNKNOWN]


def unreached(now: datetime) -> ReminderDeliveryQuerySet:
    """One row for each rule of a visit that ran out of ways to reach the patient, nearest visit first.

    The row is the rule's last; its reason says why. A visit leaves the list when
    it is over or called off, when a later reminder arrived, and when it was
    confirmed since.
    """
    its_rule = {
        name: OuterRef(name)
        for name in ("appointment_id", "sequence", "reminder_type", "offset_minutes", "offset_unit")
    }
    others = ReminderDelivery.objects.all()
    may_arrive = others.filter(**its_rule, status__in=[*_OPEN, *_ARRIVED])
    came_later = others.filter(
        appointment=OuterRef("appointment"),
        sequence=OuterRef("sequence"),
        reminder_type=OuterRef("reminder_type"),
        status__in=_ARRIVED,
        scheduled_for__gte=OuterRef("scheduled_for"),
    )
    heard_since = Q(appointment__confirmed_at__gte=F("scheduled_for")) | Q(
        reason__in=KNOWN_WHEN_PLANNED, appointment__confirmed_at__gte=F("created_at")
    )
    ended = (
        Unreached.objects.filter(_is_wanted(now), reason__in=CALLS_FOR_A_PERSON)
        .filter(sequence=F("appointment__sequence"))
        .exclude(heard_since & Q(appointment__status=Appointment.Status.CONFIRMED))
        .exclude(Exists(may_arrive))
        .exclude(Exists(came_later))
    )
    last = ended.order_by(*its_rule, "-created_at", "-pk").distinct(*its_rule)
    return Unreached.objects.filter(pk__in=last.values("pk")).order_by("appointment__starts_at", "pk")


def _is_wanted(now: datetime) -> Q:
    """The rows of visits that still want a reminder of their type."""
    before = Q(
        reminder_type__in=list(MINIMUM_LEAD),
        appointment__status__in=[Appointment.Status.SCHEDULED, Appointment.Status.CONFIRMED],
        appointment__ends_at__gt=now - STAYS,
    )
    after = Q(
        reminder_type__in=list(USEFUL_AFTER),
        appointment__status=Appointment.Status.COMPLETED,
        useful_until__gt=now - STAYS,
    )
    return before | after
