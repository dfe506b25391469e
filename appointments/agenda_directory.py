"""Whom and what the words of an agenda's line mean: doctor, place, specialty, phone, hour."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import models
from django.utils.translation import gettext as _

from appointments import local_time, names, phones
from appointments.agenda_reading import Line
from appointments.models import Doctor, Office, Specialty

FARTHEST_DAYS = 731
"""Two years. Beyond them a date is more probably a slip than a visit."""


class Refused(Exception):
    """A line cannot be taken in; the message is one Spanish sentence."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A line whose words are understood."""

    line: Line
    doctor: Doctor
    office: Office
    specialty: Specialty | None
    date: date
    start: time
    """Local to the office, and shown by its clocks."""
    phone: str
    """E.164, or nothing."""
    email: str
    booked_at: datetime | None
    notes: tuple[str, ...]

    @property
    def folded_name(self) -> str:
        return names.fold(self.line.patient)


class Directory:
    """The doctors who may be named, with their places, and every specialty."""

    def __init__(self, doctors: models.QuerySet[Doctor], *, now: datetime) -> None:
        self._doctors = list(doctors.prefetch_related("offices"))
        self._specialties = list(Specialty.objects.all())
        self._now = now

    def entry(self, line: Line) -> Entry:
        """The line, understood. Raises Refused."""
        notes = list(line.notes)
        doctor = self._doctor(line.doctor)
        office = self._office(line.office, doctor)
        day, start = self._hour(line, office, notes)
        return Entry(
            line=line,
            doctor=doctor,
            office=office,
            specialty=self._specialty(line.specialty),
            date=day,
            start=start,
            phone=_phone(line.phone, notes),
            email=_email(line.email, notes),
            booked_at=self._booked_at(line.booked_at, office, notes),
            notes=tuple(notes),
        )

    def _doctor(self, name: str) -> Doctor:
        wanted = names.fold_without_title(name)
        found = [doctor for doctor in self._doctors if names.fold_without_title(doctor.name) == wanted]
        if len(found) > 1:
            raise Refused(_("Hay más de un médico llamado «%s».") % name)
        if not found:
            problem = _("No hay ningún médico llamado «%s».") % name
            raise Refused(_with_nearest(problem, name, [str(doctor) for doctor in self._doctors]))
        return found[0]

    def _office(self, name: str, doctor: Doctor) -> Office:
        offices = list(doctor.offices.all())
        if not name:
            if len(offices) == 1:
                return offices[0]
            places = ", ".join(f"«{office}»" for office in offices) or _("ningún consultorio")
            raise Refused(
                _("Falta el consultorio: %(doctor)s atiende en %(places)s.")
                % {"doctor": doctor, "places": places}
            )
        for office in offices:
            if names.fold(office.name) == names.fold(name):
                return office
        problem = _("%(doctor)s no atiende en «%(name)s».") % {"doctor": doctor, "name": name}
        raise Refused(_with_nearest(problem, name, [office.name for office in offices]))

    def _specialty(self, name: str) -> Specialty | None:
        if not name:
            return None
        for specialty in self._specialties:
            if names.fold(specialty.name) == names.fold(name):
                return specialty
        problem = _("No hay ninguna especialidad «%s».") % name
        raise Refused(_with_nearest(problem, name, [specialty.name for specialty in self._specialties]))

    def _hour(self, line: Line, office: Office, notes: list[str]) -> tuple[date, time]:
        today = self._now.astimezone(office.zone).date()
        if abs((line.date - today).days) > FARTHEST_DAYS:
            raise Refused(
                _("La fecha %s está a más de dos años de hoy: parece un error al escribirla.")
                % f"{line.date:%d/%m/%Y}"
            )
        kept = local_time.moved_out_of_gap(line.date, line.start, office.zone)
        if not local_time.exists(line.date, line.start, office.zone):
            notes.append(
                _("A las %(typed)s de ese día el reloj se adelanta: se tomó %(kept)s")
                % {"typed": local_time.as_told(line.start), "kept": local_time.as_told(kept.time())}
            )
        if local_time.is_repeated(line.date, line.start, office.zone):
            notes.append(
                _("Las %s ocurren dos veces ese día, porque el reloj se atrasa: se tomó la primera.")
                % local_time.as_told(line.start)
            )
        return kept.date(), kept.time()

    def _booked_at(self, told: datetime | None, office: Office, notes: list[str]) -> datetime | None:
        if told is None:
            return None
        booked_at = told if told.tzinfo else local_time.instant(told.date(), told.time(), office.zone)
        if booked_at > self._now:
            notes.append(_("La fecha de la reserva está por venir: no se tomó."))
            return None
        return booked_at.astimezone(UTC)


def _phone(typed: str, notes: list[str]) -> str:
    if not typed:
        return ""
    try:
        phone = phones.normalise(typed)
    except phones.NotAPhone as problem:
        notes.append(_("%s La cita entra sin teléfono, y no habrá WhatsApp.") % problem)
        return ""
    notes.extend(phone.notes)
    return phone.e164


def _email(typed: str, notes: list[str]) -> str:
    if not typed:
        return ""
    try:
        validate_email(typed)
    except ValidationError:
        notes.append(_("«%s» no es un correo: la cita entra sin él.") % typed[:80])
        return ""
    return typed


def _with_nearest(problem: str, name: str, known: list[str]) -> str:
    nearest = names.nearest(name, known)
    return (
        _("%(problem)s ¿Será «%(nearest)s»?") % {"problem": problem, "nearest": nearest}
        if nearest
        else problem
    )
