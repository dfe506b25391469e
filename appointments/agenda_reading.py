"""A clinic's exported agenda, as bytes, into lines. Pure: no database, no clock."""

from __future__ import annotations

import re
from collections.abc import Iterator

from django.utils.translation import gettext as _

from appointments import agenda_calendar, agenda_csv
from appointments.agenda_calendar import Piece
from appointments.agenda_encoding import decoded
from appointments.agenda_lines import BadLine, Told

NOT_TEXT = {
    b"PK\x03\x04": "Excel (.xlsx)",
    b"\xd0\xcf\x11\xe0": "Excel (.xls)",
    b"%PDF": "PDF",
}


def read(raw: bytes, *, name: str = "", told: Told | None = None) -> Iterator[Piece]:
    """Each row of a CSV, or each event of an iCalendar file, in order.

    ``name`` is the file's: its ending tells what was meant where the content
    does not. A file that is no agenda at all comes out as one BadLine of its
    line 1.
    """
    told = told or Told()
    if problem := _no_text(raw):
        yield BadLine(number=1, reason=problem)
        return
    text = decoded(raw)
    if re.match(r"\s*BEGIN:V(CALENDAR|EVENT)\b", text, re.IGNORECASE):
        yield from agenda_calendar.read(raw, told)
    elif name.lower().endswith((".ics", ".ical", ".icalendar")):
        yield BadLine(number=1, reason=_no_calendar(text))
    else:
        yield from agenda_csv.read(text, told)


def _no_text(raw: bytes) -> str:
    if raw.startswith(b"PK\x03\x04") and b".ics" in raw:
        return _("El archivo es un ZIP con calendarios: descomprímalo y traiga cada archivo .ics.")
    for start, kind in NOT_TEXT.items():
        if raw.startswith(start):
            return _("El archivo es de %s: ábralo y guárdelo como CSV, y traiga ese.") % kind
    return ""


def _no_calendar(text: str) -> str:
    if not text.strip("\0 \r\n\t"):
        return _("El archivo está vacío: no trae ninguna cita.")
    return _("El archivo no es un calendario: no empieza con BEGIN:VCALENDAR. Expórtelo de nuevo como .ics.")
