"""A clinic's own agenda becomes appointments, line by line.

Two steps: ``read`` makes lines of bytes, ``take_in`` makes visits of lines. A
line stands or falls alone, in a transaction of its own, and taking a file in
twice changes nothing. A visit that the file no longer names stays as it is.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from itertools import permutations

from django.db import models, transaction
from django.utils.translation import gettext as _

from appointments import booking, local_time, signals
from appointments.agenda_directory import Directory, Entry, Refused
from appointments.agenda_patients import PatientBook
from appointments.agenda_reading import BadLine, Line, Remark, read
from appointments.models import Appointment, AppointmentHistory, Doctor, Patient

__all__ = ["BadLine", "Line", "Remark", "Report", "read", "take_in"]

logger = logging.getLogger(__name__)

IMPORT = booking.Actor(source=AppointmentHistory.Source.IMPORT)


@dataclass(kw_only=True)
class Report:
    """What came of a file. It repeats the file's words: for whoever imports, not for a log."""

    created: int = 0
    moved: int = 0
    unchanged: int = 0
    notes: list[Remark] = field(default_factory=list)
    bad: list[BadLine] = field(default_factory=list)


def take_in(
    lines: Iterable[Line | BadLine | Remark],
    *,
    doctors: models.QuerySet[Doctor],
    now: datetime,
    dry_run: bool,
) -> Report:
    """Book, move and complete what the lines say, for these doctors only.

    A dry run does all of it, and undoes it at the end.
    """
    with transaction.atomic() if dry_run else nullcontext():
        report = _Intake(doctors, now=now).take_in(lines)
        if dry_run:
            transaction.set_rollback(True)
    return report


class _Intake:
    def __init__(self, doctors: models.QuerySet[Doctor], *, now: datetime) -> None:
        self._directory = Directory(doctors, now=now)
        self._patients = PatientBook([])
        self._now = now
        self._report = Report()

    def take_in(self, lines: Iterable[Line | BadLine | Remark]) -> Report:
        entries = list(self._entries(lines))
        self._patients = PatientBook(entries)
        waiting = self._without_doubles(entries)
        # A visit may move to a time that a later line frees: ask those again
        # for as long as it helps.
        while refused := [entry for entry in waiting if not self._take_in_or_wait(entry)]:
            if len(refused) == len(waiting):
                break
            waiting = refused
        for entry in refused:
            self._refuse(entry.line, str(booking.SlotTaken()))
        self._report.notes.sort(key=lambda note: note.number)
        self._report.bad.sort(key=lambda line: line.number)
        return self._report

    def _entries(self, lines: Iterable[Line | BadLine | Remark]) -> Iterator[Entry]:
        for line in lines:
            if isinstance(line, BadLine):
                self._report.bad.append(line)
            elif isinstance(line, Remark):
                self._report.notes.append(line)
            else:
                try:
                    yield self._directory.entry(line)
                except Refused as problem:
                    self._refuse(line, str(problem))

    def _without_doubles(self, entries: list[Entry]) -> list[Entry]:
        doubles = _doubles(entries)
        for entry in entries:
            if problem := doubles.get(entry.line.number):
                self._refuse(entry.line, problem)
        return [entry for entry in entries if entry.line.number not in doubles]

    def _take_in_or_wait(self, entry: Entry) -> bool:
        """Whether the line is settled, one way or another; if not, its time is taken."""
        notes = list(entry.notes)
        try:
            with transaction.atomic():
                outcome = self._settle(entry, notes)
        except booking.SlotTaken:
            return False
        except Refused as problem:
            self._refuse(entry.line, str(problem))
        except Exception as fault:
            # A receiver's, or the database's: it costs this line alone. Its words
            # may hold the patient's, so the log has only its kind.
            logger.error("agenda line=%d outcome=fault kind=%s", entry.line.number, type(fault).__name__)
            self._refuse(entry.line, _("No se pudo guardar por un fallo interno; intente de nuevo."))
        else:
            setattr(self._report, outcome, getattr(self._report, outcome) + 1)
            self._report.notes += [Remark(number=entry.line.number, text=note) for note in notes]
        return True

    def _settle(self, entry: Entry, notes: list[str]) -> str:
        """Find or book the visit and make it what the line says; which counter of the report it is."""
        _lock_visits(entry)
        visit = _visit_by_identifier(entry)
        if visit:
            patient = self._patients.of_visit(visit, entry, notes)
        else:
            patient = self._patients.of_line(entry, notes)
            visit = _visit_by_day(entry, patient)
        if visit:
            outcome = "moved" if _bring_up_to_date(visit, entry, notes) else "unchanged"
        else:
            visit = _book(entry, patient)
            outcome = "created"
        signals.line_read.send(
            sender=Line,
            appointment_id=visit.pk,
            patient_id=patient.pk,
            accepts_whatsapp=entry.line.accepts_whatsapp,
            now=self._now,
        )
        return outcome

    def _refuse(self, line: Line, reason: str) -> None:
        self._report.bad.append(BadLine(number=line.number, reason=reason))


def _doubles(entries: list[Entry]) -> dict[int, str]:
    """Lines that cannot be told apart, by number, each with its sentence."""
    problems = {}
    same_identifier, same_day = defaultdict(list), defaultdict(list)
    for entry in entries:
        if entry.line.external_id:
            same_identifier[entry.doctor.pk, entry.line.external_id].append(entry)
        same_day[entry.doctor.pk, entry.folded_name, entry.date].append(entry)
    for group in same_identifier.values():
        for entry, other in permutations(group, 2):
            problems[entry.line.number] = _(
                "El identificador «%(id)s» está también en la línea %(other)d: cada cita necesita el suyo."
            ) % {"id": entry.line.external_id, "other": other.line.number}
    for group in same_day.values():
        for entry, other in permutations(group, 2):
            are_one_person = not entry.phone or not other.phone or entry.phone == other.phone
            if are_one_person and not entry.line.external_id:
                problems[entry.line.number] = (
                    _("El paciente tiene otra cita ese día en la línea %d: cada una necesita identificador.")
                    % other.line.number
                )
    return problems


def _lock_visits(entry: Entry) -> None:
    """Take the visits that the line may mean before its patient: the order in which sending takes them."""
    of_line = models.Q(date=entry.date)
    if entry.line.external_id:
        of_line |= models.Q(external_id=entry.line.external_id)
    visits = Appointment.objects.filter(of_line, doctor=entry.doctor).order_by("pk")
    list(visits.select_for_update(of=("self",)).values_list("pk"))


def _visit_by_identifier(entry: Entry) -> Appointment | None:
    if not entry.line.external_id:
        return None
    known = Appointment.objects.filter(doctor=entry.doctor, external_id=entry.line.external_id)
    return known.select_related("patient", "office").first()


def _visit_by_day(entry: Entry, patient: Patient) -> Appointment | None:
    """The patient's visit of that day; of a cancelled one, only if it was for the same time."""
    that_day = Appointment.objects.filter(doctor=entry.doctor, patient=patient, date=entry.date)
    visits = list(that_day.select_related("office"))
    same_time = [visit for visit in visits if visit.start_time == entry.start]
    if entry.line.external_id:
        # Booked before the agenda gave it an identifier.
        return next((visit for visit in same_time if not visit.external_id), None)
    standing = [visit for visit in visits if visit.status != Appointment.Status.CANCELLED]
    if len(standing) > 1:
        standing = [visit for visit in standing if visit in same_time]
        if not standing:
            raise Refused(_("El paciente tiene varias citas ese día: hace falta un identificador."))
    return next(iter(standing or same_time), None)


def _book(entry: Entry, patient: Patient) -> Appointment:
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
        actor=IMPORT,
        **length,
    )


def _bring_up_to_date(visit: Appointment, entry: Entry, notes: list[str]) -> bool:
    """Make an existing visit what the line says; whether that moved it."""
    _complete(visit, entry)
    if visit.status in Appointment.OPEN:
        return booking.reschedule(
            visit,
            date=entry.date,
            start_time=entry.start,
            office=entry.office,
            duration_minutes=entry.line.duration_minutes,
            actor=IMPORT,
        )
    if visit.status == Appointment.Status.CANCELLED:
        notes.append(_("La cita está cancelada aquí: sigue cancelada; si vale, repóngala a mano."))
    elif (visit.date, visit.start_time) != (entry.date, entry.start):
        notes.append(
            _("La cita ya está «%(status)s»: sigue a las %(start)s del %(date)s.")
            % {
                "status": visit.get_status_display(),
                "start": local_time.as_told(visit.start_time),
                "date": f"{visit.date:%d/%m/%Y}",
            }
        )
    return False


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
