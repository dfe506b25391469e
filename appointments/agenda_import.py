"""A clinic's own agenda becomes appointments, line by line.

Two steps: ``read`` makes lines of bytes, ``take_in`` makes visits of lines. A
line stands or falls alone, in a transaction of its own, and taking a file in
twice changes nothing. A visit that the file no longer names stays as it is;
one that it calls off is cancelled.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from itertools import permutations
from typing import Literal

from django.db import models, transaction
from django.utils.translation import gettext as _

from appointments import agenda_visits as visits
from appointments import booking, signals
from appointments.agenda_calendar import Piece
from appointments.agenda_directory import FARTHEST_DAYS, Directory, Entry, Refused
from appointments.agenda_lines import BadLine, CalledOff, Line, NotVisit, Remark, Told
from appointments.agenda_patients import PatientBook
from appointments.agenda_reading import read
from appointments.agenda_series import Series
from appointments.models import Doctor

__all__ = ["BadLine", "Line", "NotVisit", "Remark", "Report", "Told", "read", "take_in"]

logger = logging.getLogger(__name__)

Outcome = Literal["created", "moved", "unchanged", "cancelled"]


@dataclass(kw_only=True)
class Report:
    """What came of a file. It repeats the file's words: for whoever imports, not for a log."""

    created: int = 0
    moved: int = 0
    unchanged: int = 0
    cancelled: int = 0
    notes: list[Remark] = field(default_factory=list)
    not_visits: list[NotVisit] = field(default_factory=list)
    bad: list[BadLine] = field(default_factory=list)


def take_in(
    lines: Iterable[Piece],
    *,
    doctors: models.QuerySet[Doctor],
    now: datetime,
    dry_run: bool,
    notify: bool = False,
) -> Report:
    """Book, move, complete and cancel what the lines say, for these doctors only.

    With ``notify`` the patients of new visits are told that they are booked; of
    a move they always are. A dry run does all of it, and undoes it at the end.
    """
    with transaction.atomic() if dry_run else nullcontext():
        report = _Intake(doctors, now=now, notify=notify).take_in(lines)
        if dry_run:
            transaction.set_rollback(True)
    return report


class _Intake:
    def __init__(self, doctors: models.QuerySet[Doctor], *, now: datetime, notify: bool) -> None:
        self._directory = Directory(doctors, now=now)
        self._patients = PatientBook([])
        self._now = now
        self._notify = notify
        self._called_off: list[CalledOff] = []
        self._report = Report()

    def take_in(self, lines: Iterable[Piece]) -> Report:
        entries = list(self._entries(lines))
        self._patients = PatientBook(entries)
        # First, so that what is called off leaves its time to others.
        for called_off in self._called_off:
            self._call_off(called_off)
        waiting = self._without_doubles(entries)
        # A visit may move to a time that a later line frees: ask those again
        # for as long as it helps.
        while refused := [entry for entry in waiting if not self._take_in_or_wait(entry)]:
            if len(refused) == len(waiting):
                break
            waiting = refused
        for entry in refused:
            self._refuse(entry.line, str(booking.SlotTaken()))
        for told in (self._report.notes, self._report.not_visits, self._report.bad):
            told.sort(key=lambda piece: piece.number)
        return self._report

    def _entries(self, lines: Iterable[Piece]) -> Iterator[Entry]:
        for line in lines:
            for piece in line.visits(now=self._now) if isinstance(line, Series) else [line]:
                match piece:
                    case BadLine():
                        self._report.bad.append(piece)
                    case Remark():
                        self._report.notes.append(piece)
                    case NotVisit():
                        self._report.not_visits.append(piece)
                    case CalledOff():
                        self._called_off.append(piece)
                    case Line() if piece.title and self._is_long_past(piece):
                        reason = _("es de hace más de dos años.")
                        self._report.not_visits.append(
                            NotVisit(number=piece.number, title=piece.title, reason=reason)
                        )
                    case Line():
                        try:
                            yield self._directory.entry(piece)
                        except Refused as problem:
                            self._refuse(piece, str(problem))

    def _is_long_past(self, line: Line) -> bool:
        """A table is cut to size before it is exported; a calendar always brings its whole past."""
        return (self._now.date() - line.date).days > FARTHEST_DAYS

    def _without_doubles(self, entries: list[Entry]) -> list[Entry]:
        doubles = _doubles(entries)
        for place, problem in doubles.items():
            self._refuse(entries[place].line, problem)
        return [entry for place, entry in enumerate(entries) if place not in doubles]

    def _take_in_or_wait(self, entry: Entry) -> bool:
        """Whether the line is settled, one way or another; if not, its time is taken."""
        notes = list(entry.notes)
        try:
            self._carry_out(entry.line, notes, lambda: self._settle(entry, notes))
        except booking.SlotTaken:
            return False
        return True

    def _call_off(self, called_off: CalledOff) -> None:
        notes: list[str] = []

        def cancel() -> dict[Outcome, int]:
            doctors = self._directory.doctors(called_off.doctor)
            cancelled = visits.call_off(called_off, doctors, notes, now=self._now)
            # What a series no longer holds has no line of its own.
            return {"cancelled": cancelled} if cancelled or called_off.until else {"unchanged": 1}

        self._carry_out(called_off, notes, cancel)

    def _carry_out(
        self, line: Line | CalledOff, notes: list[str], act: Callable[[], dict[Outcome, int]]
    ) -> None:
        """One line, in a transaction of its own, into the report."""
        try:
            with transaction.atomic():
                counts = act()
        except booking.SlotTaken:
            raise
        except Refused as problem:
            self._refuse(line, str(problem))
        except Exception as fault:
            # A receiver's, or the database's: it costs this line alone. Its words
            # may hold the patient's, so the log has only its kind.
            logger.error("agenda line=%d outcome=fault kind=%s", line.number, type(fault).__name__)
            self._refuse(line, _("No se pudo guardar por un fallo interno; intente de nuevo."))
        else:
            for outcome, count in counts.items():
                setattr(self._report, outcome, getattr(self._report, outcome) + count)
            self._report.notes += [Remark(number=line.number, title=line.title, text=note) for note in notes]

    def _settle(self, entry: Entry, notes: list[str]) -> dict[Outcome, int]:
        """Find or book the visit and make it what the line says."""
        outcome: Outcome
        known = visits.meant(entry, self._patients.namesakes(entry))
        visit = visits.by_identifier(known, entry)
        if visit:
            patient = self._patients.of_visit(visit, entry, notes)
        else:
            patient = self._patients.of_line(entry, known, notes)
            visit = visits.by_day(known, entry, patient)
        if visit:
            outcome = "moved" if visits.bring_up_to_date(visit, entry, notes) else "unchanged"
        else:
            visit = visits.book(entry, patient, notify=self._notify)
            outcome = "created"
        signals.line_read.send(
            sender=Line,
            appointment_id=visit.pk,
            patient_id=patient.pk,
            accepts_whatsapp=entry.line.accepts_whatsapp,
            now=self._now,
        )
        return {outcome: 1}

    def _refuse(self, line: Line | CalledOff, reason: str) -> None:
        self._report.bad.append(BadLine(number=line.number, title=line.title, reason=reason))


def _doubles(entries: list[Entry]) -> dict[int, str]:
    """Lines that cannot be told apart, by their place among the entries, each with its sentence."""
    problems = {}
    same_identifier, same_day = defaultdict(list), defaultdict(list)
    for place, entry in enumerate(entries):
        if entry.line.external_id:
            same_identifier[entry.doctor.pk, entry.line.external_id].append((place, entry))
        same_day[entry.doctor.pk, entry.folded_name, entry.date].append((place, entry))
    for group in same_identifier.values():
        for (place, entry), (_place, other) in permutations(group, 2):
            problems[place] = _(
                "El identificador «%(id)s» está también en la línea %(other)d: cada cita necesita el suyo."
            ) % {"id": entry.line.external_id, "other": other.line.number}
    for group in same_day.values():
        for (place, entry), (_place, other) in permutations(group, 2):
            are_one_person = not entry.phone or not other.phone or entry.phone == other.phone
            if are_one_person and not entry.line.external_id:
                problems[place] = (
                    _("El paciente tiene otra cita ese día en la línea %d: cada una necesita identificador.")
                    % other.line.number
                )
    return problems
