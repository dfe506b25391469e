"""Which zone a calendar means by a TZID: the world's name, Windows' name, or rules of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

from django.utils.translation import gettext as _
from icalendar import Timezone
from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

from appointments.agenda_cells import BadCell


class Zones:
    """The zones of one calendar.

    A name that the zone database or Windows knows means their zone, also where
    the file brings rules: those are as old as the program that wrote them, and
    Venezuela's of 2007 to 2016 are still about.
    """

    def __init__(self, definitions: Iterable[list[str]]) -> None:
        """From the lines of each VTIMEZONE; one that cannot be used counts as absent."""
        self._own: dict[str, tzinfo] = {}
        for lines in definitions:
            try:
                definition = Timezone.from_ical("\r\n".join([*lines, ""]))
                name = str(definition["TZID"])
                known = _known(str(definition.get("X-LIC-LOCATION", "")))
                # from_ical() promises any component.
                assert isinstance(definition, Timezone)  # noqa: S101
                self._own[name] = known or definition.to_tz(lookup_tzid=False)
            except Exception:  # noqa: S112  (whatever the two libraries make of nonsense)
                continue

    def find(self, name: str) -> tzinfo:
        """The zone of that name. Raises BadCell."""
        zone = _known(name) or self._own.get(name) or _fixed(name)
        if zone is None:
            raise BadCell(
                _(
                    "No se conoce la zona horaria «%s», y el archivo no la define: "
                    "ponga el evento en la de su consultorio, por ejemplo America/Caracas."
                )
                % name[:60]
            )
        return zone


def instant(wall: datetime, zone: tzinfo) -> datetime:
    """The instant in UTC of a naive local time, by the rules of appointments.local_time.

    For any kind of zone: those made of a file's own rules do not keep PEP 495.
    """
    before = (wall - timedelta(days=1)).replace(tzinfo=zone).utcoffset()
    after = wall.replace(tzinfo=zone).utcoffset()
    moments = [(wall - offset).replace(tzinfo=UTC) for offset in (before, after) if offset is not None]
    for moment in moments:
        if moment.astimezone(zone).replace(tzinfo=None) == wall:
            return moment
    return moments[0]


@lru_cache
def _known(name: str) -> ZoneInfo | None:
    """By the zone database, by Windows, or behind a maker's path: /mozilla.org/2005/America/Caracas."""
    parts = name.strip('"/ ').split("/")
    for start in range(len(parts)):
        folded = "/".join(parts[start:]).casefold()
        if folded in _names():
            return ZoneInfo(_names()[folded])
    return None


@cache
def _names() -> dict[str, str]:
    names = {name.casefold(): name for name in available_timezones()}
    return names | {windows.casefold(): name for windows, name in WINDOWS_TO_OLSON.items()}


def _fixed(name: str) -> tzinfo | None:
    """UTC-04:00, GMT+2."""
    found = re.fullmatch(r"\(?(?:UTC|GMT)\s*([+-])(\d{1,2}):?([0-5]\d)?\)?", name.strip(), re.IGNORECASE)
    if not found or int(found[2]) > 14:
        return None
    offset = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
    return timezone(offset if found[1] == "+" else -offset)
