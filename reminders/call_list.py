"""Whom the consulting room has to call: visits of which no message told the patient; and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils.translation import gettext as _

from appointments import booking
from appointments.booking import Actor
from appointments.models import Appointment
from reminders.models.delivery import (
    NEVER_ARRIVED,
    REACHED_NOBODY,
    ReminderDelivery,
    ReminderDeliveryQuerySet,
    Unreached,
)
from reminders.timeline import MINIMUM_LEAD, USEFUL_AFTER, Reason, ReminderType
from reminders.visits import why_void

STAYS = timedelta(days=1)
"""How long after the visit, or after its use, a reminder that reached nobody is still shown."""
KNOWN_WHEN_PLANNED = [Reason.NO_CHANNEL, Reason.QUIET_HOURS]

_BEFORE = [*MINIMUM_LEAD, ReminderType.CAMBIO]
_Status = ReminderDelivery.Status
_ARRIVED = [_Status.SENT, _Status.DELIVERED, _Status.READ]
_OPEN = [_Status.PENDING, _Status.SENDING, _Status.UNKNOWN]


def unreached(now: datetime) -> ReminderDeliveryQuerySet:
    """One row for each rule of a visit that ran out of ways to reach the patient, nearest visit first.

    The row is the rule's last; ``why()`` says the reason. A visit leaves the list
    when it is over or called off, when a later reminder arrived, and when it was
    confirmed, or the patient was told by phone, since.
    """
    its_kind = {name: OuterRef(name) for name in ("appointment_id", "sequence", "reminder_type")}
    its_rule = its_kind | {name: OuterRef(name) for name in ("offset_minutes", "offset_unit")}
    others = ReminderDelivery.objects.all()
    may_arrive = others.filter(**its_rule, status__in=[*_OPEN, *_ARRIVED]).exclude(NEVER_ARRIVED)
    came_later = others.filter(
        **its_kind, status__in=_ARRIVED, scheduled_for__gte=OuterRef("scheduled_for")
    ).exclude(NEVER_ARRIVED)
    told = others.filter(**its_kind, told_by_phone_at__isnull=False)
    told_since = Exists(told.filter(told_by_phone_at__gte=OuterRef("scheduled_for"))) | (
        Q(reason__in=KNOWN_WHEN_PLANNED) & Exists(told.filter(told_by_phone_at__gte=OuterRef("created_at")))
    )
    heard_since = Q(appointment__confirmed_at__gte=F("scheduled_for")) | Q(
        reason__in=KNOWN_WHEN_PLANNED, appointment__confirmed_at__gte=F("created_at")
    )
    ended = (
        Unreached.objects.filter(_is_wanted(now), REACHED_NOBODY)
        .exclude(heard_since & Q(appointment__status=Appointment.Status.CONFIRMED))
        .exclude(Exists(may_arrive))
        .exclude(Exists(came_later))
        .exclude(told_since | Exists(others.filter(**its_rule, told_by_phone_at__isnull=False)))
    )
    last = ended.order_by(*its_rule, "-created_at", "-pk").distinct(*its_rule)
    return Unreached.objects.filter(pk__in=last.values("pk")).order_by("appointment__starts_at", "pk")


def _is_wanted(now: datetime) -> Q:
    """The rows of visits that still want a message of their type; a booking is nothing to call about."""
    is_present = Q(sequence=F("appointment__sequence"))
    before = Q(
        is_present,
        reminder_type__in=_BEFORE,
        appointment__status__in=[Appointment.Status.SCHEDULED, Appointment.Status.CONFIRMED],
        appointment__ends_at__gt=now - STAYS,
    )
    after = Q(
        is_present,
        reminder_type__in=list(USEFUL_AFTER),
        appointment__status=Appointment.Status.COMPLETED,
        useful_until__gt=now - STAYS,
    )
    off = Q(is_present, appointment__status=Appointment.Status.CANCELLED) | ~Q(
        patient=F("appointment__patient")
    )
    return before | after | Q(off, reminder_type=ReminderType.CANCELACION, useful_until__gt=now - STAYS)


def why(row: ReminderDelivery) -> str:
    """Why the patient is to be called, for whoever calls."""
    if not row.reason:
        return _("No consta que llegara")
    if row.reason == Reason.TOO_LATE:
        return _("No se le recordó: ya era tarde")
    return str(row.get_reason_display())


class Answer(StrEnum):
    """What the patient said on the phone."""

    CONFIRMS = "confirma"
    CANCELS = "cancela"
    # No more than that they know of it.
    HEARD = "avisado"


_VERBS: Mapping[Answer, Callable[..., bool]] = {
    Answer.CONFIRMS: booking.confirm,
    Answer.CANCELS: booking.cancel,
}


def answers_to(row: ReminderDelivery, now: datetime) -> list[Answer]:
    """What can be noted of the call: after its start a visit is neither confirmed nor called off."""
    visit = row.appointment
    can_change = visit.starts_at > now and row.reminder_type in _BEFORE
    return [*([Answer.CONFIRMS, Answer.CANCELS] if can_change else []), Answer.HEARD]


class NoLonger(Exception):
    """The visit is another by now than the one that the patient was told of."""


def note(row: ReminderDelivery, answer: Answer, *, actor: Actor, now: datetime) -> bool:
    """Note that the patient was told by phone, and do as they said; a second time changes nothing.

    Raises NoLonger, and changes nothing, where the visit was moved, called off,
    begun or closed since.
    """
    with transaction.atomic():
        visit = Appointment.objects.select_for_update().get(pk=row.appointment_id)
        row = ReminderDelivery.objects.select_for_update().get(pk=row.pk)
        row.appointment = visit
        if why_void(row, visit) or answer not in answers_to(row, now):
            if row.told_by_phone_at:
                return False
            raise NoLonger
        verb = _VERBS.get(answer)
        is_changed = bool(verb and verb(visit, actor=actor))
        if row.told_by_phone_at:
            return is_changed
        row.told_by_phone_at, row.told_by_phone_by_id = now, actor.user_id
        row.save(update_fields=["told_by_phone_at", "told_by_phone_by"])
    return True
