"""A table that a clinic exported as CSV, into lines. Pure: no database, no clock."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.translation import gettext as _

from appointments import agenda_cells as cells
from appointments import names
from appointments.agenda_lines import BadLine, Line, Remark, Told
from appointments.agenda_words import COLUMNS

REQUIRED = {"patient": "paciente", "doctor": "médico", "date": "fecha", "start": "hora"}


def read(text: str, told: Told) -> Iterator[Line | BadLine | Remark]:
    """Each row of the table, in order; blank rows are passed over.

    A text that is no table of visits at all comes out as one BadLine of its row 1.
    """
    physical = list(io.StringIO(text.replace("\0", ""), newline=""))
    delimiter = _delimiter(physical)
    if physical and physical[0].lower().startswith("sep="):
        # A hint for the spreadsheet, which shows no row for it.
        del physical[0]
    rows = (row for row in _rows(physical, delimiter) if row.cells is None or any(row.cells))
    heading = next(rows, None)
    if heading is None or heading.cells is None:
        yield BadLine(number=1, reason=_("El archivo está vacío: no trae ni encabezado ni citas."))
        return
    columns = _columns(heading.cells)
    usual = {"doctor": told.doctor, "office": told.office}
    missing = [name for column, name in REQUIRED.items() if not (column in columns or usual.get(column))]
    if missing:
        yield BadLine(number=heading.number, reason=_missing(missing, heading.cells))
        return
    yield from _remarks(heading, columns)
    for row in rows:
        yield _line(row, columns, len(heading.cells), usual)


@dataclass(frozen=True, kw_only=True)
class _Row:
    number: int
    cells: list[str] | None
    """None: its quotation marks are beyond reading."""


def _delimiter(physical: list[str]) -> str:
    """The separator under which the heading shows the most columns that we know."""
    heading = next(
        (line for line in physical if names.fold(line) and not line.lower().startswith("sep=")), ""
    )
    return max(";,\t", key=lambda mark: len(_columns(next(csv.reader([heading], delimiter=mark), []))))


def _rows(physical: list[str], delimiter: str) -> Iterator[_Row]:
    """Rows numbered as a spreadsheet does. A quote that never closes costs its own line alone."""
    number = at = 0
    while at < len(physical):
        number += 1
        rest = (physical[index] for index in range(at, len(physical)))
        reader = csv.reader(rest, delimiter=delimiter, strict=True)
        try:
            row = [cells.cleaned(cell) for cell in next(reader)]
        except csv.Error:
            yield _Row(number=number, cells=None)
            at += 1
        else:
            yield _Row(number=number, cells=row)
            at += reader.line_num


def _columns(heading: list[str]) -> dict[str, list[int]]:
    """Where each column stands; several places when several headings mean one."""
    folded = [names.fold(cell) for cell in heading]
    places = {
        column: [index for word in words for index, cell in enumerate(folded) if cell == word]
        for column, words in COLUMNS.items()
    }
    return {column: found for column, found in places.items() if found}


def _missing(missing: list[str], heading: list[str]) -> str:
    found = ", ".join(f"«{cell}»" for cell in heading if cell)
    if len(missing) == 1:
        return _("Falta la columna «%(missing)s»; el encabezado trae: %(found)s.") % {
            "missing": missing[0],
            "found": found,
        }
    return _("Faltan las columnas %(missing)s; el encabezado trae: %(found)s.") % {
        "missing": ", ".join(f"«{name}»" for name in missing),
        "found": found,
    }


def _remarks(heading: _Row, columns: dict[str, list[int]]) -> Iterator[Remark]:
    known = {index for places in columns.values() for index in places}
    unknown = [cell for index, cell in enumerate(heading.cells or []) if cell and index not in known]
    if unknown:
        listed = ", ".join(f"«{cell}»" for cell in unknown)
        yield Remark(number=heading.number, text=_("Columnas que no se usan: %s.") % listed)


def _line(row: _Row, columns: dict[str, list[int]], width: int, usual: dict[str, str]) -> Line | BadLine:
    if row.cells is None:
        return BadLine(
            number=row.number,
            reason=_("Las comillas de esta línea no se cierran bien, o una celda pasa de 131.072 letras."),
        )
    reach = max(columns[column][0] for column in REQUIRED if column in columns)
    if any(row.cells[width:]) or len(row.cells) <= reach:
        reason = _("La línea tiene %(cells)d columnas y el encabezado %(width)d: falta o sobra un separador.")
        return BadLine(number=row.number, reason=reason % {"cells": len(row.cells), "width": width})
    given = {column: _value(row.cells, column, places) for column, places in columns.items()}
    values = usual | {column: value for column, value in given.items() if value}
    notes: list[str] = []
    try:
        for column, name in REQUIRED.items():
            if not values.get(column):
                raise cells.BadCell(_("Falta: %s.") % name)
        return Line(
            number=row.number,
            patient=cells.person(_full_name(values)),
            doctor=values["doctor"],
            date=cells.day(values["date"]),
            start=cells.clock(values["start"]),
            duration_minutes=cells.minutes(values.get("duration", "")),
            phone=values.get("phone", ""),
            email=values.get("email", ""),
            specialty=values.get("specialty", ""),
            office=values.get("office", ""),
            external_id=cells.identifier(values.get("external id", "")),
            booked_at=cells.or_nothing(cells.moment, values.get("booked at", ""), _("Reservada"), notes),
            accepts_whatsapp=cells.or_nothing(
                cells.yes_or_no, values.get("accepts whatsapp", ""), _("Acepta WhatsApp"), notes
            ),
            notes=tuple(notes),
        )
    except cells.BadCell as problem:
        return BadLine(number=row.number, reason=str(problem))


def _value(row: list[str], column: str, places: list[int]) -> str:
    given = [row[place] for place in places if place < len(row) and row[place]]
    # Two numbers are both worth a look; of other doubles the better heading wins.
    return " / ".join(given) if column == "phone" else next(iter(given), "")


def _full_name(values: dict[str, str]) -> str:
    return f"{values['patient']} {values.get('surname', '')}".strip()
