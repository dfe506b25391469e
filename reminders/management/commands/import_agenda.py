from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from appointments import agenda_import, clock, signals
from appointments.agenda_import import Report
from appointments.models import Doctor, Patient
from reminders import consent, planner


class Command(BaseCommand):
    """Reading is the agenda's work; what is added here is the consent and the plan."""

    # Whether WhatsApp is set up has no bearing on reading a file.
    requires_system_checks: list[str] = []
    help = "Take a clinic's exported agenda in (CSV): visits, patients and their consent to WhatsApp."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="the CSV file as the clinic exported it")
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would happen, and change nothing"
        )
        parser.add_argument(
            "--consent",
            metavar="SOURCE",
            default="",
            help="the evidence that the patients of this file agreed to WhatsApp, such as a form's name;"
            " a «no» in the file's own column still counts",
        )

    def handle(self, *, file: Path, dry_run: bool, consent: str, **options: Any) -> None:
        try:
            raw = file.read_bytes()
        except OSError as error:
            raise CommandError(
                _("No se puede leer %(file)s: %(why)s") % {"file": file, "why": error.strerror}
            ) from None
        with consent_noted(source=consent):
            report = agenda_import.take_in(
                agenda_import.read(raw), doctors=Doctor.objects.all(), now=clock.now(), dry_run=dry_run
            )
        if not dry_run:
            planner.plan_marked(now=clock.now())
        self.tell(report, dry_run=dry_run)
        if report.bad and not (report.created or report.moved or report.unchanged):
            raise CommandError(_("No entró ninguna línea."))

    def tell(self, report: Report, *, dry_run: bool) -> None:
        """Print what came of each line that deserves a word, and the sums."""
        for bad in report.bad:
            self.stdout.write(self.style.ERROR(_("Línea %d: no entró. %s") % (bad.number, bad.reason)))
        for note in report.notes:
            self.stdout.write(self.style.WARNING(_("Línea %d: %s") % (note.number, note.text)))
        sums = _("%(created)d nuevas, %(moved)d movidas, %(unchanged)d sin cambios, %(bad)d no entraron.") % {
            "created": report.created,
            "moved": report.moved,
            "unchanged": report.unchanged,
            "bad": len(report.bad),
        }
        self.stdout.write(f"{_('Simulación:')} {sums}" if dry_run else sums)


@contextmanager
def consent_noted(*, source: str) -> Iterator[None]:
    """Write what each line says about WhatsApp, in the line's own transaction."""

    def note(patient_id: int, accepts_whatsapp: bool | None, **_kwargs: Any) -> None:
        if accepts_whatsapp is None and not source:
            return
        consent.note_from_agenda(
            Patient.objects.get(pk=patient_id),
            agrees=accepts_whatsapp is not False,
            evidence=source or _("Columna «acepta WhatsApp» de la agenda"),
        )

    signals.line_read.connect(note)
    try:
        yield
    finally:
        signals.line_read.disconnect(note)
