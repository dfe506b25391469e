"""A clinic's exported agenda, as bytes, into lines. Pure: no database, no clock."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import TypeVar

from django.utils.translation import gettext as _

from appointments import agenda_cells as cells
from appointments import names

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Line:
    """One visit as the file tells it, with nothing looked up yet."""

    number: int
    """As a spreadsheet counts: the heading is row 1."""
    patient: str
    doctor: str
    date: date
    start: time
    """Local to the office."""
    duration_minutes: int | None = None
    """None: the file does not say."""
    phone: str = ""
    """As typed."""
    email: str = ""
    specialty: str = ""
    office: str = ""
    external_id: str = ""
    booked_at: datetime | None = None
    """Naive: local to the office."""
    accepts_whatsapp: bool | None = None
    """None: the file does not say."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BadLine:
    """A row that cannot be taken in, and why, in one Spanish sentence."""

    number: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Remark:
    """What a person should know of a row that was taken in, in one Spanish sentence."""

    number: int
    text: str


# Folded headings that name a column; the best name first.
COLUMNS = {
    "patient": ["paciente", "nombre del paciente", "nombre y apellido", "nombres y apellidos",
                "nombre completo", "patient", "patient name", "nombre", "nombres", "name"],
    "surname": ["apellido", "apellidos", "last name", "surname"],
    "phone": ["telefono", "celular", "telefono celular", "movil", "telefono movil", "telefonos", "whatsapp",
              "phone", "mobile", "phone number", "tlf", "telf"],
    "email": ["correo", "correo electronico", "email", "e mail", "mail"],
    "doctor": ["medico", "doctor", "doctora", "medica", "doctor a", "medico tratante", "nombre del medico",
               "profesional", "physician", "doctor name"],
    "specialty": ["especialidad", "specialty"],
    "office": ["consultorio", "sede", "office", "lugar", "location"],
    "date": ["fecha", "fecha de la cita", "fecha cita", "dia", "date"],
    "start": ["hora", "hora de inicio", "hora inicio", "inicio", "hora de la cita", "start", "start time",
              "time"],
    "duration": ["duracion", "duracion min", "duracion minutos", "duracion en minutos", "minutos",
                 "duration", "duration minutes"],
    "external id": ["id", "external id", "identificador", "id externo", "id de la cita", "id cita",
                    "codigo", "nro de cita", "numero de cita"],
    "booked at": ["reservada", "reservada el", "fecha de reserva", "reserva", "booked at", "created at"],
    "accepts whatsapp": ["acepta whatsapp", "accepts whatsapp", "consentimiento", "consentimiento whatsapp",
                         "autoriza whatsapp", "acepta mensajes", "consent"],
}  # fmt: skip
REQUIRED = {"patient": "paciente", "doctor": "médico", "date": "fecha", "start": "hora"}
NOT_TEXT = {
    b"PK\x03\x04": "Excel (.xlsx)",
    b"\xd0\xcf\x11\xe0": "Excel (.xls)",
    b"%PDF": "PDF",
}


def read(raw: bytes) -> Iterator[Line | BadLine | Remark]:
    """Each row of the file, in order; blank rows are passed over.

    A file that is no agenda at all comes out as one BadLine of its row 1.
    """
    for start, kind in NOT_TEXT.items():
        if raw.startswith(start):
            problem = _("El archivo es de %s: ábralo y guárdelo como CSV, y traiga ese.") % kind
            yield BadLine(number=1, reason=problem)
            return
    physical = list(io.StringIO(_decoded(raw).replace("\0", ""), newline=""))
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
    missing = [name for column, name in REQUIRED.items() if column not in columns]
    if missing:
        yield BadLine(number=heading.number, reason=_missing(missing, heading.cells))
        return
    yield from _remarks(heading, columns)
    for row in rows:
        yield _line(row, columns, len(heading.cells))


@dataclass(frozen=True, kw_only=True)
class _Row:
    number: int
    cells: list[str] | None
    """None: its quotation marks are beyond reading."""


def _decoded(raw: bytes) -> str:
    for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if raw.startswith(mark):
            return raw.decode(encoding, errors="replace")
    # Latin-1 last: it takes any byte, also the five that cp1252 leaves undefined.
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return raw.decode("latin-1")


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


def _line(row: _Row, columns: dict[str, list[int]], width: int) -> Line | BadLine:
    if row.cells is None:
        return BadLine(
            number=row.number,
            reason=_("Las comillas de esta línea no se cierran bien, o una celda pasa de 131.072 letras."),
        )
    reach = max(columns[column][0] for column in REQUIRED)
    if any(row.cells[width:]) or len(row.cells) <= reach:
        reason = _("La línea tiene %(cells)d columnas y el encabezado %(width)d: falta o sobra un separador.")
        return BadLine(number=row.number, reason=reason % {"cells": len(row.cells), "width": width})
    values = {column: _value(row.cells, column, places) for column, places in columns.items()}
    notes: list[str] = []
    try:
        for column, name in REQUIRED.items():
            if not values[column]:
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
            booked_at=_or_nothing(cells.moment, values.get("booked at", ""), _("Reservada"), notes),
            accepts_whatsapp=_or_nothing(
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


def _or_nothing(read_cell: Callable[[str], T | None], text: str, name: str, notes: list[str]) -> T | None:
    """An optional cell: what cannot be read counts as not said, with a note."""
    try:
        return read_cell(text)
    except cells.BadCell as problem:
        notes.append(f"{name}: {problem}")
        return None
