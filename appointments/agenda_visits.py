"""Which visit a line of an agenda means, and making it what the line says."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db.models import F, Q
from django.utils.translation import gettext as _

from appointments import booking, local_time
from appointments.agenda_directory import Entry, Refused
from appointments.agenda_lines import CalledOff
from appointments.models import Appointment, AppointmentHistory, Doctor, Patient

IMPORT = booking.Actor(source=AppointmentHistory.Source.IMPORT)
Status = Appointment.Status


def meant(entry: Entry, namesakes: Collection[int]) -> list[Appointment]:
    """The visits that the line may mean, locked, by start: with its identifier, or its patient's of that day.

    ``namesakes`` are the ids of those who may be its patient. Locked before any
    of them is: the order in which sending takes them.
    """
    of_line = Q(date=entry.date, patient__in=namesakes)
    if entry.line.external_id:
        of_line |= Q(external_id=entry.line.external_id)
    elif not namesakes:
        return []
    visits = Appointment.objects.filter(of_line, doctor=entry.doctor).select_related("patient")
    return sorted(visits.select_for_update(of=("self",)).order_by("pk"), key=lambda visit: visit.starts_at)


def by_identifier(visits: list[Appointment], entry: Entry) -> Appointment | None:
    """The visit with the line's identifier."""
    identifier = entry.line.external_id
    return next((visit for visit in visits if identifier and visit.external_id == identifier), None)


def by_day(visits: list[Appointment], entry: Entry, patient: Patient) -> Appointment | None:
    """The patient's visit of that day; a cancelled one only if it was for the same time. Raises Refused."""
    that_day = [visit for visit in visits if (visit.patient_id, visit.date) == (patient.pk, entry.date)]
    same_time = [visit for visit in that_day if visit.start_time == entry.start]
    if entry.line.external_id:
        # Booked before the agenda gave it an identifier.
        return next((visit for visit in same_time if not visit.external_id), None)
    standing = [visit for visit in that_day if visit.status != Status.CANCELLED]
    if len(standing) > 1:
        standing = [visit for visit in standing if visit in same_time]
        if not standing:
            raise Refused(_("El paciente tiene varias citas ese día: hace falta un identificador."))
    return next(iter(standing or same_time), None)


def book(entry: Entry, patient: Patient, *, notify: bool) -> Appointment:
    """A new visit; with ``notify`` the patient is told that it is booked. Raises booking.SlotTaken."""
    length = {"duration_minutes": entry.line.duration_minutes} if entry.line.duration_minutes else {}
    return booking.book(
        doctor=entry.doctor,
        patient=patient,
        office=entry.office,
        specialty=entry.specialty,
        date=entry.date,
        start_time=entry.start,
        booked_at=entry.booked_at,
        external_id=entry.line.external_id,
        announces_booking=notify,
        actor=IMPORT,
        **length,
    )


def bring_up_to_date(visit: Appointment, entry: Entry, notes: list[str]) -> bool:
    """Make a locked visit what the line says; whether that moved it. Raises booking.SlotTaken."""
    _complete(visit, entry)
    length = entry.line.duration_minutes or visit.duration_minutes
    is_elsewhen = (visit.date, visit.start_time) != (entry.date, entry.start)
    if visit.status == Status.CANCELLED:
        notes.append(_("La cita está cancelada aquí: sigue cancelada; si vale, repóngala a mano."))
    elif visit.status not in Appointment.OPEN:
        if is_elsewhen:
            notes.append(
                _("La cita ya está «%(status)s»: sigue a las %(start)s del %(date)s.")
                % {"status": visit.get_status_display(), **_told(visit)}
            )
    elif is_elsewhen or (visit.office_id, visit.duration_minutes) != (entry.office.pk, length):
        if _was_settled_here(visit, entry.line.changed_at):
            notes.append(
                _("Se cambió aquí después que en el calendario: sigue a las %(start)s del %(date)s.")
                % _told(visit)
            )
        else:
            return booking.reschedule(
                visit,
                date=entry.date,
                start_time=entry.start,
                office=entry.office,
                duration_minutes=length,
                actor=IMPORT,
            )
    return False


def call_off(called_off: CalledOff, doctors: Collection[Doctor], notes: list[str], *, now: datetime) -> int:
    """Cancel what the file says will not take place; returns how many visits."""
    of_line = Q(external_id=called_off.external_id)
    ahead = Q(starts_at__gt=now)
    if called_off.takes_series:
        of_line |= ahead & Q(external_id__startswith=f"{called_off.external_id}/")
    if called_off.until:
        of_line &= ahead & Q(starts_at__lt=called_off.until) & ~Q(external_id__in=called_off.keeps)
    visits = Appointment.objects.filter(of_line, doctor__in=doctors).order_by("pk")
    cancelled = 0
    for visit in visits.select_for_update(of=("self",)):
        if visit.status == Status.CANCELLED:
            continue
        if visit.status not in Appointment.OPEN:
            notes.append(
                _("La cita ya está «%(status)s»: sigue a las %(start)s del %(date)s.")
                % {"status": visit.get_status_display(), **_told(visit)}
            )
        elif _was_settled_here(visit, called_off.changed_at):
            notes.append(
                _("Se cambió aquí después de cancelarse allí: sigue a las %(start)s del %(date)s.")
                % _told(visit)
            )
        else:
            cancelled += booking.cancel(visit, actor=IMPORT)
    return cancelled


def _was_settled_here(visit: Appointment, changed_at: datetime | None) -> bool:
    """Whether a person or the patient moved or reinstated it here since its last change in the agenda."""
    if changed_at is None:
        return False
    moved = Q(old_starts_at__isnull=False) & ~Q(old_starts_at=F("new_starts_at"))
    since = visit.history.filter(moved | Q(from_status=Status.CANCELLED), at__gt=changed_at)
    return since.exclude(source=IMPORT.source).exists()


def _told(visit: Appointment) -> dict[str, str]:
    return {"start": local_time.as_told(visit.start_time), "date": f"{visit.date:%d/%m/%Y}"}


def _complete(visit: Appointment, entry: Entry) -> None:
    """Fill in what is no part of the schedule."""
    news: dict[str, object] = {}
    if entry.line.external_id != visit.external_id and entry.line.external_id:
        news["external_id"] = entry.line.external_id
    if entry.specialty and entry.specialty.pk != visit.specialty_id:
        news["specialty"] = entry.specialty
    if entry.booked_at and not visit.booked_at:
        news["booked_at"] = entry.booked_at
    if news:
        Appointment.objects.filter(pk=visit.pk).update(**news)
