"""How the engine reads an appointment."""

from __future__ import annotations

import logging
from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo

from django.conf import settings

from appointments.models import Appointment, Patient
from reminders import links, timeline, wording
from reminders.models import ReminderDelivery
from reminders.timeline import Reason, ReminderType

logger = logging.getLogger(__name__)


def why_void(row: ReminderDelivery, appointment: Appointment) -> Reason | None:
    """Why the visit, as it is now, no longer wants this row; None while it does."""
    kind = ReminderType(row.reminder_type)
    if kind is ReminderType.CANCELACION:
        is_off = appointment.status == Appointment.Status.CANCELLED and row.sequence == appointment.sequence
        # Whoever had the visit before somebody else got it goes on needing to know.
        return None if is_off or row.patient_id != appointment.patient_id else Reason.UNDONE
    if appointment.status == Appointment.Status.CANCELLED:
        return Reason.VISIT_CANCELLED
    if row.sequence != appointment.sequence:
        return Reason.MOVED
    if not timeline.is_wanted(kind, appointment.status):
        return Reason.VISIT_CLOSED
    return None


def visit_of(
    appointment: Appointment,
    *,
    changed_at: datetime | None = None,
    same_as: frozenset[int] = frozenset(),
) -> timeline.Visit:
    """The visit as the timeline reads it; what the patient knows of it, as ``notices.what_is_known`` says."""
    return timeline.Visit(
        date=appointment.date,
        start_time=appointment.start_time,
        zone=appointment.office.zone,
        starts_at=appointment.starts_at,
        status=appointment.status,
        sequence=appointment.sequence,
        booked_at=appointment.booked_at,
        created_at=appointment.created_at,
        completed_at=appointment.completed_at,
        changed_at=changed_at,
        same_as=same_as,
    )


def quiet_hours_of(appointment: Appointment, patient: Patient | None = None) -> timeline.QuietHours:
    """The quiet hours in the patient's zone; in the office's where that is unknown (P4).

    Of the visit's patient, or of another whom it concerns.
    """
    start, end = settings.REMINDER_QUIET_HOURS
    zone = _own_zone(patient or appointment.patient) or appointment.office.zone
    return timeline.QuietHours(start=start, end=end, zone=zone)


def words_of(appointment: Appointment, *, now: datetime) -> wording.Words:
    """What each variable of a text says about the visit, in a message that leaves at ``now``."""
    doctor, office = appointment.doctor, appointment.office
    facts = wording.Facts(
        patient_name=appointment.patient.full_name,
        doctor=str(doctor),
        title=doctor.title,
        specialty=appointment.specialty.name if appointment.specialty else "",
        office=office.name,
        address=office.address,
        instructions=appointment.instructions,
        is_virtual=is_virtual(appointment),
        video_url=appointment.video_url,
        link=partial(links.visit_url, appointment),
        starts_at=appointment.starts_at,
        zone=office.zone,
        own_zone=_own_zone(appointment.patient),
    )
    return wording.values(facts, now=now)


def is_virtual(appointment: Appointment) -> bool:
    """Whether the visit is a video call, without a place to go to."""
    return appointment.modality == Appointment.Modality.VIRTUAL


def other_clock(appointment: Appointment) -> str:
    """The place whose clocks are meant, where the patient's own show another time; else empty."""
    own = _own_zone(appointment.patient)
    return wording.other_clock(appointment.starts_at, appointment.office.zone, own)


def _own_zone(patient: Patient) -> ZoneInfo | None:
    zone = wording.zone_named(patient.time_zone)
    if patient.time_zone and zone is None:
        logger.error("patient id=%s has no zone that exists; the office's counts", patient.pk)
    return zone
