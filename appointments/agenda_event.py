"""One event of an iCalendar file (VEVENT, RFC 5545): when it is, which one it is, and what it says."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

from django.utils.translation import gettext as _
from icalendar import vDuration
from icalendar.parser import Contentline

from appointments import agenda_cells as cells
from appointments import agenda_text, names
from appointments.agenda_lines import Line, Told
from appointments.agenda_wall import Wall, read_clock, titled, when
from appointments.agenda_who import Guest, Words, who
from appointments.agenda_zones import Zones, instant

USED = {
    "DTSTART", "DTEND", "DURATION", "UID", "RECURRENCE-ID", "SEQUENCE", "LAST-MODIFIED", "DTSTAMP", "CREATED",
    "STATUS", "RRULE", "RDATE", "EXDATE", "SUMMARY", "DESCRIPTION", "LOCATION", "COMMENT", "CONTACT",
    "ORGANIZER", "ATTENDEE",
}  # fmt: skip
LONGEST_UID = 80
"""With the day of an occurrence behind it, it must fit LONGEST_IDENTIFIER."""
PLACES_AND_THINGS = {"ROOM", "RESOURCE", "GROUP"}


@dataclass(frozen=True, kw_only=True)
class Property:
    """One line of an event, split and without backslashes."""

    parameters: Mapping[str, str]
    value: str


class Event:
    """An event as its lines tell it. What cannot be read raises BadCell, when it is asked for."""

    def __init__(self, number: int, lines: Iterable[str], zones: Zones, calendar: Mapping[str, str]) -> None:
        self.number = number
        self._properties = _properties(lines)
        self._zones = zones
        self._calendar = calendar

    @cached_property
    def summary(self) -> str:
        return cells.cleaned(self._text("SUMMARY"))

    @property
    def title(self) -> str:
        """By which a person finds the event in their calendar."""
        try:
            return titled(self.summary, self.starts)
        except cells.BadCell:
            return f"«{self.summary[:60]}»"

    @cached_property
    def identifier(self) -> str:
        """The UID; one that is too long for a visit's external_id, by its digest. Maybe blank."""
        uid = cells.cleaned(self._text("UID"))
        return uid if len(uid) <= LONGEST_UID else f"sha256:{hashlib.sha256(uid.encode()).hexdigest()}"

    @cached_property
    def starts(self) -> Wall:
        given = self._first("DTSTART")
        if given is None:
            raise cells.BadCell(_("Falta la hora de comienzo (DTSTART)."))
        return self._wall(given)

    @property
    def first_day(self) -> date | None:
        """On which it starts; None where that cannot be read."""
        try:
            return self.starts.date
        except cells.BadCell:
            return None

    @property
    def replaces(self) -> date | None:
        """Of an occurrence of a series that differs: the day on which it would have been."""
        given = self._first("RECURRENCE-ID")
        if given is None:
            return None
        if given.parameters.get("RANGE"):
            raise cells.BadCell(
                _("El cambio vale para «esta cita y las siguientes»: en la agenda, cámbielas una por una.")
            )
        return self._wall(given).on_clock_of(self.starts.zone).date

    @property
    def is_called_off(self) -> bool:
        return self._text("STATUS").strip().upper() == "CANCELLED" or self._method == "CANCEL"

    @property
    def is_answer(self) -> bool:
        """Whether it only says that a guest will come, or asks for something (iTIP, RFC 5546)."""
        return self._method in {"REPLY", "REFRESH", "COUNTER", "DECLINECOUNTER"}

    @property
    def _method(self) -> str:
        return self._calendar.get("METHOD", "").strip().upper()

    @cached_property
    def changed_at(self) -> datetime | None:
        return self._instant("LAST-MODIFIED") or self._instant("DTSTAMP")

    @cached_property
    def rank(self) -> tuple[int, datetime]:
        """Of two versions of one event the one with the higher rank is newer."""
        told = self._text("SEQUENCE").strip()
        oldest = datetime.min.replace(tzinfo=UTC)
        return (int(told) if re.fullmatch(r"\d{1,9}", told) else 0), self.changed_at or oldest

    @property
    def rules(self) -> list[str]:
        return [given.value for given in self._properties["RRULE"]]

    def days(self, name: str) -> list[Wall]:
        """What RDATE or EXDATE lists, by the clock of the event; of a period, its beginning."""
        return [
            self._wall(Property(parameters=given.parameters, value=value.partition("/")[0])).on_clock_of(
                self.starts.zone
            )
            for given in self._properties[name]
            for value in given.value.split(",")
            if value.strip()
        ]

    def line(self, told: Told, *, external_id: str) -> Line:
        """The visit. Raises also NoPatient."""
        its = who(self.words, told)
        starts = self.starts
        day, start, zone = when(starts)
        return Line(
            number=self.number,
            title=self.title,
            patient=its.patient,
            doctor=its.doctor,
            hosts=its.hosts,
            date=day,
            start=start,
            zone=zone,
            duration_minutes=self._minutes(starts),
            phone=its.phone,
            email=its.email,
            specialty=its.specialty,
            office=its.office,
            location=its.location,
            external_id=external_id,
            booked_at=its.booked_at or self._instant("CREATED"),
            changed_at=self.changed_at,
            accepts_whatsapp=its.accepts_whatsapp,
            notes=its.notes,
        )

    @property
    def words(self) -> Words:
        """All that the event says freely."""
        description = agenda_text.plain(self._text("DESCRIPTION"))
        location = self._text("LOCATION")
        free = [description, self._text("COMMENT"), self._text("CONTACT"), self.summary, location]
        own = {
            column: cells.cleaned(given[0].value)
            for name, given in self._properties.items()
            if name.startswith("X-") and (column := _column(name)) and given[0].value.strip()
        }
        return Words(
            title=self.summary,
            description=description,
            location=cells.cleaned(location),
            labelled=own | agenda_text.labelled("\n".join(free)),
            guests=tuple(self._guests()),
            calendar=cells.cleaned(self._calendar.get("X-WR-CALNAME", "")),
        )

    def _guests(self) -> Iterable[Guest]:
        hosts = {_address(given.value) for given in self._properties["ORGANIZER"]}
        for given in [*self._properties["ORGANIZER"], *self._properties["ATTENDEE"]]:
            if given.parameters.get("CUTYPE", "").upper() in PLACES_AND_THINGS:
                continue
            scheme, _colon, address = given.value.strip().partition(":")
            name = cells.cleaned(given.parameters.get("CN", "").strip('"'))
            yield Guest(
                name="" if "@" in name else name,
                email=address if scheme.lower() == "mailto" else "",
                phone=address if scheme.lower() == "tel" else "",
                is_host=_address(given.value) in hosts or given.parameters.get("ROLE", "").upper() == "CHAIR",
            )

    def _minutes(self, starts: Wall) -> int | None:
        """How long it lasts; None where that is not said, or nothing."""
        ends, lasts = self._first("DTEND"), self._first("DURATION")
        length = timedelta()
        if ends:
            end = self._wall(ends)
            zone = starts.zone or end.zone or UTC
            length = instant(end.naive, end.zone or zone) - instant(starts.naive, zone)
        elif lasts:
            try:
                length = vDuration.from_ical(lasts.value)  # type: ignore[no-untyped-call]
            except (ValueError, OverflowError):
                raise cells.BadCell(_("«%s» no es una duración de calendario.") % lasts.value[:40]) from None
        minutes = int(length.total_seconds() // 60)
        return cells.within_bounds(minutes, f"{minutes} min") if minutes else None

    def _wall(self, given: Property) -> Wall:
        try:
            day, clock, is_utc = read_clock(given.value.strip())
        except ValueError:
            problem = _("«%s» no es una fecha ni una hora de calendario.") % given.value[:40]
            raise cells.BadCell(problem) from None
        name = given.parameters.get("TZID", "") if clock else ""
        return Wall(date=day, time=clock, zone=UTC if is_utc else self._zones.find(name) if name else None)

    def _instant(self, name: str) -> datetime | None:
        """Of a stamp, which is always in UTC; None where it is missing or nonsense."""
        given = self._first(name)
        try:
            wall = self._wall(given) if given else None
        except cells.BadCell:
            return None
        return instant(wall.naive, wall.zone or UTC) if wall else None

    def _first(self, name: str) -> Property | None:
        return next(iter(self._properties[name]), None)

    def _text(self, name: str) -> str:
        return "\n".join(given.value for given in self._properties[name])


def _properties(lines: Iterable[str]) -> dict[str, list[Property]]:
    """Those that we use, by name. A line beyond reading counts as absent."""
    found: dict[str, list[Property]] = defaultdict(list)
    for line in lines:
        name = re.split("[;:]", line, maxsplit=1)[0].strip().upper()
        if name not in USED and not (name.startswith("X-") and _column(name)):
            continue
        try:
            _name, parameters, value = Contentline(line).parts()  # type: ignore[no-untyped-call]
        except ValueError:
            continue
        plain = {
            key.upper(): ",".join(given) if isinstance(given, list) else given
            for key, given in parameters.items()
        }
        found[name].append(Property(parameters=plain, value=value))
    return found


def _column(name: str) -> str:
    """X-PATIENT-NAME: the column of that heading, or nothing."""
    return agenda_text.COLUMN_OF.get(names.fold(name[2:].replace("-", " ")), "")


def _address(value: str) -> str:
    return value.strip().casefold()
