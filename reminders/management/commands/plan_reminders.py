from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand

from appointments import clock
from reminders import marks, outlook, planner
from reminders.models import Mark
from reminders.outlook import Going, Outlook


class Command(BaseCommand):
    """The planner by hand. Ids only: what is printed may be kept, or sent to whoever helps."""

    # What would be planned does not hang on whether it can be sent.
    requires_system_checks: list[str] = []
    help = "Plan now all that has changed; or only say what would go out, and what would not and why."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="say what would be, and change nothing")

    def handle(self, *, dry_run: bool, **options: Any) -> None:
        lines = _foreseen(outlook.of_all(now=clock.now())) if dry_run else _planned(clock.now())
        for line in lines:
            self.stdout.write(line)


def _planned(now: datetime) -> Iterator[str]:
    marks.note_settings(now)
    yield f"Visits planned: {planner.plan_marked(now=now)}"
    if left := Mark.objects.count():
        yield f"Marks left for a later look: {left} (somebody holds a row, or the planning failed)"


def _foreseen(found: Outlook) -> Iterator[str]:
    yield "Nothing was changed. If all that is marked were planned now:"
    yield f"Visits that can still change: {found.visits}, to be planned: {found.waiting}"
    if found.unplannable:
        yield f"Visits that cannot be planned: {found.unplannable} (the log names them)"
    yield f"Would go out: {found.going.total()}"
    yield from _table(found.going.items())
    yield f"Would not go out: {found.withheld.total()}"
    yield from _table(found.withheld.items())
    if found.first:
        yield f"The first {len(found.first)}, by the clock of the place:"
        yield from map(_line, found.first)


def _table(counts: Iterable[tuple[tuple[str, ...], int]]) -> Iterator[str]:
    for words, count in sorted(counts):
        yield f"{count:>8}  " + "  ".join(f"{word or '-':<12}" for word in words).rstrip()


def _line(going: Going) -> str:
    local = going.at.astimezone(going.zone)
    return f"{local:%Y-%m-%d %H:%M}  {going.reminder_type:<12}  {going.channel:<8}  {going.visit}"
