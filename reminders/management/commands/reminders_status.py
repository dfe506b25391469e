from __future__ import annotations

import json
import shutil
import textwrap
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone
from django.utils.translation import gettext as _

from reminders import health
from reminders.health import Health, Measure, in_words
from reminders.signs import SIGNS

WIDEST = 100
INDENT = " " * 6


class Command(BaseCommand):
    """Ends with 0 when all is well, with 1 when something is bad, with 2 when no database answers."""

    help = "Say whether reminders go out, and what to do next where they do not."
    # Whoever looks for a fault must not be sent away because of one.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="for programs: what /readyz answers")
        parser.add_argument(
            "--only", choices=[sign.name for sign in SIGNS], metavar="MEASURE", help="look at one measure"
        )

    def handle(self, *, json: bool, only: str | None, **options: Any) -> None:
        found = health.current()
        if only:
            found = found.only(only)
        self.stdout.write(_as_json(found) if json else "\n".join(self._told(found)))
        if found.at is None:
            raise SystemExit(2)
        if not found.is_well:
            raise SystemExit(1)

    def _told(self, found: Health) -> Iterator[str]:
        if found.at:
            yield f"{timezone.localtime(found.at):%d/%m/%Y %H:%M:%S}"
        bad = [measure for measure in found.measures if measure.is_bad]
        widest = max(len(str(measure.sign.label)) for measure in found.measures)
        for measure in found.measures:
            yield self._line(measure, widest)
        for measure in bad:
            yield ""
            yield self.style.ERROR(f"{_('MAL')}   {measure.sign.label}")
            yield _paragraph(measure.sentence)
            yield _paragraph(_("Qué hacer: %(step)s") % {"step": measure.what_to_do})
        yield ""
        if not bad:
            yield self.style.SUCCESS(_("Todo está bien."))
        elif found.is_ready:
            yield self.style.WARNING(_("Los recordatorios salen, pero algo pide que alguien lo mire."))
        else:
            yield self.style.ERROR(_("Los recordatorios no están saliendo como deben."))

    def _line(self, measure: Measure, widest: int) -> str:
        is_bad, unit = measure.is_bad, measure.sign.unit
        mark = self.style.ERROR(f"{_('MAL'):<4}") if is_bad else self.style.SUCCESS(_("bien"))
        value = in_words(measure.value, unit)
        limit = _("hasta %(limit)s") % {"limit": in_words(measure.threshold, unit)}
        return f"{mark}  {measure.sign.label:<{widest}}  {value:<20} {limit}"


def _paragraph(text: str) -> str:
    width = min(shutil.get_terminal_size().columns, WIDEST)
    # A command stands on one line, to be copied.
    for begins in ("python manage.py ", "systemctl restart ", " --"):
        text = text.replace(begins, begins.replace(" ", "\N{NO-BREAK SPACE}"))
    wrapped = textwrap.fill(
        text, width, initial_indent=INDENT, subsequent_indent=INDENT,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return wrapped.replace("\N{NO-BREAK SPACE}", " ")


def _as_json(found: Health) -> str:
    return json.dumps(found.as_json(), indent=2, ensure_ascii=False)
