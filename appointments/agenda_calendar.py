"""An iCalendar file (RFC 5545), into its visits. Pure: no database, no clock."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date

from django.utils.translation import gettext as _

from appointments import agenda_who as people
from appointments.agenda_cells import BadCell
from appointments.agenda_encoding import decoded
from appointments.agenda_event import Event
from appointments.agenda_lines import BadLine, CalledOff, Line, NotVisit, Remark, Told
from appointments.agenda_series import Series, occurrence
from appointments.agenda_zones import Zones

Piece = Line | BadLine | Remark | NotVisit | CalledOff | Series
Key = tuple[str, date | None, str]
"""Identifier, the day of the occurrence that it replaces, and what tells events without identifier apart."""


def read(raw: bytes, told: Told) -> Iterator[Piece]:
    """Each event, in order. A broken one costs itself alone; of several versions the newest counts."""
    events: list[Event] = []
    for calendar in _calendars(_content_lines(raw)):
        zones = Zones(calendar.zones)
        for block in calendar.events:
            event = Event(block.number, block.lines, zones, calendar.properties)
            if block.is_whole:
                events.append(event)
            else:
                yield _bad(event, _("El evento no termina: el archivo quedó a medias; expórtelo de nuevo."))
    if not events:
        yield Remark(number=1, text=_("El calendario no trae ningún evento."))
    newest, bad = _newest(events)
    yield from bad
    replaced: dict[str, set[date]] = defaultdict(set)
    first_days: dict[str, date | None] = {}
    for (identifier, day, _other), event in newest.items():
        if identifier and day:
            replaced[identifier].add(day)
        elif identifier:
            first_days[identifier] = event.first_day
    for (identifier, day, _other), event in newest.items():
        name = occurrence(identifier, day, first=first_days.get(identifier)) if day else identifier
        yield _piece(event, told, name, is_occurrence=bool(day), replaced=frozenset(replaced[identifier]))


def _newest(events: Iterable[Event]) -> tuple[dict[Key, Event], list[BadLine]]:
    """Of each event its newest version, and those of which nobody can tell."""
    versions: dict[Key, list[Event]] = defaultdict(list)
    bad = []
    for event in events:
        try:
            key = (event.identifier, event.replaces, "" if event.identifier else str(event.number))
        except BadCell as problem:
            bad.append(_bad(event, str(problem)))
        else:
            versions[key].append(event)
    newest = {}
    for key, all_of_them in versions.items():
        highest = max(event.rank for event in all_of_them)
        rivals = [event for event in all_of_them if event.rank == highest]
        if len({event.title for event in rivals}) > 1:
            reason = _("El identificador (UID) está también en la línea %d: cada evento necesita el suyo.")
            for event in rivals:
                other = next(rival for rival in rivals if rival is not event)
                bad.append(_bad(event, reason % other.number))
        else:
            newest[key] = rivals[-1]
    return newest, bad


def _piece(
    event: Event, told: Told, identifier: str, *, is_occurrence: bool, replaced: frozenset[date]
) -> Piece:
    """What the event means; ``replaced`` are the days of its series that stand in the file by themselves."""
    try:
        if event.is_answer:
            return _no_visit(event, _("es la respuesta a una invitación."))
        if event.is_called_off:
            return _called_off(event, told, identifier, takes_series=not is_occurrence)
        starts = event.starts
        if starts.time is None:
            return _no_visit(event, _("dura todo el día."))
        line = event.line(told, external_id=identifier)
        added = event.days("RDATE")
        if is_occurrence or not (event.rules or added):
            return line
        return Series(
            line=line,
            summary=event.summary,
            starts=starts,
            rules=tuple(event.rules),
            added=tuple(added),
            dropped=frozenset(wall.date for wall in event.days("EXDATE")),
            replaced=replaced,
        )
    except people.NoPatient as problem:
        return _no_visit(event, str(problem))
    except BadCell as problem:
        return _bad(event, str(problem))


def _called_off(event: Event, told: Told, identifier: str, *, takes_series: bool) -> CalledOff | BadLine:
    if not identifier:
        return _bad(event, _("Está cancelado y no trae identificador (UID): cancele la cita a mano."))
    return CalledOff(
        number=event.number,
        title=event.title,
        doctor=people.doctor_of(event.words, told),
        external_id=identifier,
        changed_at=event.changed_at,
        takes_series=takes_series,
    )


def _bad(event: Event, reason: str) -> BadLine:
    return BadLine(number=event.number, title=event.title, reason=reason)


def _no_visit(event: Event, reason: str) -> NotVisit:
    return NotVisit(number=event.number, title=event.title, reason=reason)


@dataclass
class _Block:
    number: int
    lines: list[str] = field(default_factory=list)
    is_whole: bool = False


@dataclass
class _Calendar:
    properties: dict[str, str] = field(default_factory=dict)
    zones: list[list[str]] = field(default_factory=list)
    events: list[_Block] = field(default_factory=list)


def _content_lines(raw: bytes) -> Iterator[tuple[int, str]]:
    """Each line unfolded, with the number of its first physical one.

    Unfolded as bytes: a fold may cut a letter in two. Decoded line by line: one
    broken letter must not garble the accents of all others.
    """
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raw = decoded(raw).encode()
    number, whole = 1, b""
    for at, physical in enumerate(re.split(rb"\r\n|\r|\n", raw.replace(b"\0", b"")), start=1):
        if physical[:1] in (b" ", b"\t"):
            whole += physical[1:]
            continue
        if whole.strip():
            yield number, decoded(whole)
        number, whole = at, physical
    if whole.strip():
        yield number, decoded(whole)


def _calendars(lines: Iterable[tuple[int, str]]) -> Iterator[_Calendar]:
    """The parts of each VCALENDAR. An event that another begins within is cut short."""
    calendar = _Calendar()
    open_parts: list[str] = []
    event = _Block(number=0)
    for number, line in lines:
        mark, _colon, part = line.strip().upper().partition(":")
        part = part.strip()
        if mark == "BEGIN" and part in ("VCALENDAR", "VEVENT", "VTIMEZONE"):
            # Whatever is open here did not end.
            open_parts.clear()
        if mark == "BEGIN" and part == "VCALENDAR":
            yield calendar
            calendar = _Calendar()
            continue
        if mark == "BEGIN":
            open_parts.append(part)
            if part == "VEVENT":
                event = _Block(number=number)
                calendar.events.append(event)
            elif part == "VTIMEZONE":
                calendar.zones.append([])
        if not open_parts and mark != "END":
            name, _colon, value = line.partition(":")
            calendar.properties[name.split(";")[0].strip().upper()] = value
        elif open_parts == ["VEVENT"] and mark not in ("BEGIN", "END"):
            event.lines.append(line)
        elif open_parts[:1] == ["VTIMEZONE"]:
            calendar.zones[-1].append(line)
        if mark == "END" and part in open_parts:
            event.is_whole = event.is_whole or part == "VEVENT"
            del open_parts[open_parts.index(part) :]
    yield calendar
