"""The verbs of a visit. Each is safe to repeat, and says whether it changed anything.

A verb names the states that it may come from; the database decides by the row
count. Who acted and from where reaches the history trigger by two settings that
live as long as the transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.utils.translation import gettext as _

from appointments import local_time, signals
from appointments.models import Appointment, AppointmentHistory, Care, Doctor, Office, Patient, Specialty

Status = Appointment.Status
Source = AppointmentHistory.Source


class SlotTaken(Exception):
    """The doctor has another visit at that time."""

    def __init__(self) -> None:
        super().__init__(_("El médico ya tiene una cita a esa hora."))


@dataclass(frozen=True, kw_only=True)
class Actor:
    """Who changes a visit, and from where."""

    source: str
    user_id: int | None = None


SYSTEM = Actor(source=Source.SYSTEM)


@contextmanager
def acting(actor: Actor) -> Iterator[None]:
    """A transaction whose changes the history ascribes to the actor.

    Raises SlotTaken instead of the database's refusal of an overlap.
    """
    try:
        with transaction.atomic():
            outer = _ascribe(str(actor.user_id or ""), str(actor.source))
            yield
            # Within another's transaction what follows is theirs again.
            _ascribe(*outer)
    except IntegrityError as error:
        if "appointment_no_overlap" in str(error):
            # The database's words hold the other visit's row.
            raise SlotTaken from None
        raise


def _ascribe(user_id: str, source: str) -> tuple[str, str]:
    """Name the actor to the history trigger, and return whom it knew before."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(current_setting('amedi.actor', true), ''),"
            "       coalesce(current_setting('amedi.source', true), ''),"
            "       set_config('amedi.actor', %s, true), set_config('amedi.source', %s, true)",
            [user_id, source],
        )
        before: tuple[str, str] = cursor.fetchone()[:2]
    return before


def book(
    *,
    doctor: Doctor,
    patient: Patient,
    office: Office,
    date: date,
    start_time: time,
    actor: Actor,
    booked_at: datetime | None,
    duration_minutes: int = 30,
    specialty: Specialty | None = None,
    **details: Any,
) -> Appointment:
    """Book a visit and note that the doctor treats the patient.

    ``date`` and ``start_time`` are local to the office. ``booked_at`` is when it
    was really booked; None says that nobody knows, as for an import. ``details``
    are further fields of Appointment. Raises SlotTaken, and
    local_time.DoesNotExist for an hour that the clocks skip.
    """
    local_time.require(date, start_time, office.zone)
    with acting(actor):
        appointment = Appointment.objects.create(
            doctor=doctor,
            patient=patient,
            office=office,
            specialty=specialty,
            date=date,
            start_time=start_time,
            duration_minutes=duration_minutes,
            booked_at=booked_at,
            **details,
        )
        Care.objects.bulk_create([Care(doctor=doctor, patient=patient)], ignore_conflicts=True)
        # The insert has brought the triggers' columns back.
        signals.changed.send(sender=Appointment, appointment_id=appointment.pk, source=actor.source)
    return appointment


def reschedule(
    appointment: Appointment,
    *,
    date: date,
    start_time: time,
    actor: Actor,
    office: Office | None = None,
    duration_minutes: int | None = None,
    **details: Any,
) -> bool:
    """Move an open visit, which is then to be confirmed again.

    ``details`` are further fields of Appointment, changed in the same stroke.
    Raises SlotTaken, and local_time.DoesNotExist for an hour that the clocks skip.
    """
    place = office or appointment.office
    local_time.require(date, start_time, place.zone)
    target = {
        "date": date,
        "start_time": start_time,
        "office": place,
        "duration_minutes": duration_minutes or appointment.duration_minutes,
        **details,
    }
    with acting(actor):
        moved = Appointment.objects.filter(pk=appointment.pk).open().exclude(**target).update(**target)
        if moved and details.keys() & {"doctor", "patient"}:
            # The new pair may never have met.
            seen = Appointment.objects.get(pk=appointment.pk)
            Care.objects.get_or_create(doctor_id=seen.doctor_id, patient_id=seen.patient_id)
        _announce(appointment, actor, is_changed=bool(moved))
    return bool(moved)


def confirm(appointment: Appointment, *, actor: Actor) -> bool:
    """Note that the patient will come. A second tap changes nothing."""
    return _move_on(appointment, Status.CONFIRMED, [Status.SCHEDULED], actor)


def cancel(appointment: Appointment, *, actor: Actor) -> bool:
    """Call the visit off."""
    return _move_on(appointment, Status.CANCELLED, Appointment.OPEN, actor)


def check_in(appointment: Appointment, *, actor: Actor) -> bool:
    """Note that the patient has arrived."""
    return _move_on(appointment, Status.CHECKED_IN, [Status.SCHEDULED, Status.CONFIRMED], actor)


def start(appointment: Appointment, *, actor: Actor) -> bool:
    """Note that the patient is with the doctor."""
    return _move_on(appointment, Status.IN_CONSULTATION, Appointment.OPEN, actor)


def complete(appointment: Appointment, *, actor: Actor) -> bool:
    """Note that the visit took place; also corrects a no-show.

    Raises SlotTaken when the time of the no-show was given away meanwhile.
    """
    before = [*Appointment.OPEN, Status.IN_CONSULTATION, Status.NO_SHOW]
    return _move_on(appointment, Status.COMPLETED, before, actor)


def mark_no_show(appointment: Appointment, *, actor: Actor) -> bool:
    """Note that the patient did not come; also corrects a completed visit."""
    return _move_on(appointment, Status.NO_SHOW, [*Appointment.OPEN, Status.COMPLETED], actor)


def reinstate(appointment: Appointment, *, actor: Actor) -> bool:
    """Bring a cancelled visit back, as a new version to be confirmed.

    Raises SlotTaken when its time was given away meanwhile.
    """
    return _move_on(appointment, Status.SCHEDULED, [Status.CANCELLED], actor)


def _move_on(appointment: Appointment, to: str, before: list[str], actor: Actor) -> bool:
    with acting(actor):
        changed = Appointment.objects.filter(pk=appointment.pk, status__in=before).update(status=to)
        _announce(appointment, actor, is_changed=bool(changed))
    return bool(changed)


def _announce(appointment: Appointment, actor: Actor, *, is_changed: bool) -> None:
    appointment.refresh_from_db()
    if is_changed:
        signals.changed.send(sender=Appointment, appointment_id=appointment.pk, source=actor.source)
