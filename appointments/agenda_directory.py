"""Whom and what the words of an agenda's line mean: doctor, place, specialty, phone, hour."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import lru_cache

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import models
from django.utils.translation import gettext as _

from appointments import local_time, names, phones
from appointments.agenda_lines import Line
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
        self._by_name: dict[str, list[Doctor]] = defaultdict(list)
        for doctor in self._doctors:
            self._by_name[names.fold_without_title(doctor.name)].append(doctor)
        self._specialties = list(Specialty.objects.all())
        self._now = now

    def entry(self, line: Line) -> Entry:
        """The line, understood. Raises Refused."""
        notes = list(line.notes)
        doctor = self._doctor(line.doctor) if line.doctor else self._host(line)
        office = self._office(line, doctor, notes)
        day, start = self._hour(line, office, notes)
        return Entry(
            line=line,
            doctor=doctor,
            office=office,
            specialty=self._specialty(line.specialty),
            date=day,
            start=start,
            phone=_phone(line.phone, office, notes),
            email=_email(line.email, notes),
            booked_at=self._booked_at(line.booked_at, office, notes),
            notes=tuple(notes),
        )

    def doctors(self, name: str) -> list[Doctor]:
        """The doctor of that name, or without a name all who may be named. Raises Refused."""
        return [self._doctor(name)] if name else self._doctors

    def _doctor(self, name: str) -> Doctor:
        found = self._by_name.get(names.fold_without_title(name), [])
        if len(found) > 1:
            raise Refused(_("Hay más de un médico llamado «%s».") % name)
        if not found:
            problem = _("No hay ningún médico llamado «%s».") % name
            raise Refused(_with_nearest(problem, name, [str(doctor) for doctor in self._doctors]))
        return found[0]

    def _host(self, line: Line) -> Doctor:
        """The one doctor whom a host, or the calendar's own name, names."""
        texts = [f" {names.fold_without_title(host)} " for host in line.hosts]
        found = {
            doctor
            for name, doctors in self._by_name.items()
            for doctor in doctors
            if any(f" {name} " in text for text in texts)
        }
        if len(found) != 1:
            raise Refused(
                _("Falta el médico: escriba «Médico: …» en la descripción, o importe con --doctor.")
            )
        return found.pop()

    def _office(self, line: Line, doctor: Doctor, notes: list[str]) -> Office:
        offices = list(doctor.offices.all())
        place = f" {names.fold(line.location)} "
        if told := [
            office for office in offices if line.location and f" {names.fold(office.name)} " in place
        ]:
            # «Torre Médica, piso 3» names also «Torre Médica».
            return max(told, key=lambda office: len(office.name))
        if line.office:
            return self._office_named(line.office, doctor, offices)
        if len(offices) != 1:
            places = ", ".join(f"«{office}»" for office in offices) or _("ningún consultorio")
            raise Refused(
                _("Falta el consultorio: %(doctor)s atiende en %(places)s.")
                % {"doctor": doctor, "places": places}
            )
        if line.location:
            notes.append(
                _("El lugar «%(location)s» no es un consultorio de %(doctor)s: se tomó «%(office)s».")
                % {"location": line.location[:80], "doctor": doctor, "office": offices[0]}
            )
        return offices[0]

    def _office_named(self, name: str, doctor: Doctor, offices: list[Office]) -> Office:
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
        zone = line.zone or office.zone
        # In the clock of the office: the file may tell it in another.
        kept = local_time.instant(line.date, line.start, zone).astimezone(office.zone)
        day, start = kept.date(), kept.time().replace(fold=0)
        if not local_time.exists(line.date, line.start, zone):
            notes.append(
                _("A las %(typed)s de ese día el reloj se adelanta: se tomó %(kept)s")
                % {"typed": local_time.as_told(line.start), "kept": local_time.as_told(start)}
            )
        if local_time.is_repeated(day, start, office.zone):
            notes.append(
                _("Las %s ocurren dos veces ese día, porque el reloj se atrasa: se tomó la primera.")
                % local_time.as_told(start)
            )
        return day, start

    def _booked_at(self, told: datetime | None, office: Office, notes: list[str]) -> datetime | None:
        if told is None:
            return None
        booked_at = told if told.tzinfo else local_time.instant(told.date(), told.time(), office.zone)
        if booked_at > self._now:
            notes.append(_("La fecha de la reserva está por venir: no se tomó."))
            return None
        return booked_at.astimezone(UTC)


def _phone(typed: str, office: Office, notes: list[str]) -> str:
    if not typed:
        return ""
    try:
        phone = phones.normalise(typed)
    except phones.NotAPhone as problem:
        notes.append(_("%s La cita entra sin teléfono, y no habrá WhatsApp.") % problem)
        return ""
    if phone.e164 == _dialled(office.phone):
        notes.append(_("%s es el teléfono del consultorio: la cita entra sin teléfono.") % phone.e164)
        return ""
    notes.extend(phone.notes)
    return phone.e164


@lru_cache
def _dialled(typed: str) -> str:
    try:
        return phones.normalise(typed).e164
    except phones.NotAPhone:
        return ""


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
