from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from appointments import agenda_import, clock, signals
from appointments.agenda_import import BadLine, NotVisit, Remark, Report, Told
from appointments.models import Doctor, Patient
from reminders import consent, planner


class Command(BaseCommand):
    """Reading is the agenda's work; what is added here is the consent and the plan."""

    # Whether WhatsApp is set up has no bearing on reading a file.
    requires_system_checks: list[str] = []
    help = (
        "Take a clinic's exported agenda in, a CSV or an iCalendar file (.ics): visits, patients and their"
        " consent to WhatsApp."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="the CSV or .ics file as the clinic exported it")
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would happen, and change nothing"
        )
        parser.add_argument(
            "--notify",
            action="store_true",
            help="tell the patients of new visits that they are booked; of a move they are always told",
        )
        parser.add_argument(
            "--consent",
            metavar="SOURCE",
            default="",
            help="the evidence that the patients of this file agreed to WhatsApp, such as a form's name;"
            " a «no» in the file itself still counts",
        )
        parser.add_argument(
            "--doctor", metavar="NAME", default="", help="the doctor of what names none in the file"
        )
        parser.add_argument(
            "--office", metavar="NAME", default="", help="the office of what names none in the file"
        )
        parser.add_argument(
            "--titles-are-patients",
            action="store_true",
            help="the title of an event that says no more is its patient's name, such as «Ana Paz»",
        )

    def handle(
        self,
        *,
        file: Path,
        dry_run: bool,
        notify: bool,
        consent: str,
        doctor: str,
        office: str,
        titles_are_patients: bool,
        **options: Any,
    ) -> None:
        try:
            raw = file.read_bytes()
        except OSError as error:
            raise CommandError(
                _("No se puede leer %(file)s: %(why)s") % {"file": file, "why": error.strerror}
            ) from None
        told = Told(doctor=doctor, office=office, titles_are_patients=titles_are_patients)
        with consent_noted(source=consent):
            report = agenda_import.take_in(
                agenda_import.read(raw, name=file.name, told=told),
                doctors=Doctor.objects.all(),
                now=clock.now(),
                notify=notify,
                dry_run=dry_run,
            )
        if not dry_run:
            planner.plan_marked(now=clock.now())
        self.tell(report, dry_run=dry_run)
        if report.bad and not (report.created or report.moved or report.unchanged or report.cancelled):
            raise CommandError(_("No entró ninguna línea."))

    def tell(self, report: Report, *, dry_run: bool) -> None:
        """Print what came of each line that deserves a word, and the sums."""
        for other in report.not_visits:
            self.stdout.write(_("%(place)s: no es una cita: %(why)s") % _of(other, other.reason))
        for bad in report.bad:
            self.stdout.write(self.style.ERROR(_("%(place)s: no entró. %(why)s") % _of(bad, bad.reason)))
        for note in report.notes:
            self.stdout.write(self.style.WARNING(_("%(place)s: %(why)s") % _of(note, note.text)))
        sums = _("%(created)d nuevas, %(moved)d movidas, %(unchanged)d sin cambios, %(bad)d no entraron") % {
            "created": report.created,
            "moved": report.moved,
            "unchanged": report.unchanged,
            "bad": len(report.bad),
        }
        if report.cancelled:
            sums += _(", %d canceladas") % report.cancelled
        if report.not_visits:
            sums += _(", %d no son citas") % len(report.not_visits)
        self.stdout.write(f"{_('Simulación:')} {sums}." if dry_run else f"{sums}.")


def _of(piece: BadLine | Remark | NotVisit, why: str) -> dict[str, str]:
    place = _("Línea %d") % piece.number
    return {"place": f"{place} ({piece.title})" if piece.title else place, "why": why}


@contextmanager
def consent_noted(*, source: str) -> Iterator[None]:
    """Write what each line says about WhatsApp, in the line's own transaction."""

    def note(patient_id: int, accepts_whatsapp: bool | None, **_kwargs: Any) -> None:
        if accepts_whatsapp is None and not source:
            return
        consent.note_from_agenda(
            Patient(pk=patient_id),  # its id is all that is asked of it
            agrees=accepts_whatsapp is not False,
            evidence=source or _("Columna «acepta WhatsApp» de la agenda"),
        )

    signals.line_read.connect(note)
    try:
        yield
    finally:
        signals.line_read.disconnect(note)
