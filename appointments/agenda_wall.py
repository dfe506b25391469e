"""Times as a calendar tells them: by a clock on the wall of some place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, tzinfo
from zoneinfo import ZoneInfo

from django.utils.timezone import get_default_timezone

from appointments import local_time
from appointments.agenda_zones import instant


@dataclass(frozen=True, kw_only=True)
class Wall:
    """What a clock shows. Without ``zone``: the clock of the office; without ``time``: a whole day."""

    date: date
    time: time | None
    zone: tzinfo | None

    @property
    def naive(self) -> datetime:
        return datetime.combine(self.date, self.time or time())

    def on_clock_of(self, zone: tzinfo | None) -> Wall:
        """The same instant as another zone's clock shows it, where both are known."""
        if self.time is None or self.zone is None or zone is None or self.zone is zone:
            return self
        there = instant(self.naive, self.zone).astimezone(zone)
        return Wall(date=there.date(), time=there.time(), zone=zone)


def titled(summary: str, starts: Wall) -> str:
    """«Consulta», 17/09/2026 10:00 a. m."""
    if starts.zone is UTC:
        # A file often tells UTC and a calendar never shows it; which office it is nobody knows yet.
        starts = starts.on_clock_of(get_default_timezone())
    clock = f" {local_time.as_told(starts.time)}" if starts.time else ""
    return f"«{summary[:60]}», {starts.date:%d/%m/%Y}{clock}"


def when(starts: Wall) -> tuple[date, time, ZoneInfo | None]:
    """Date, start and zone of a Line."""
    if starts.zone is None or isinstance(starts.zone, ZoneInfo):
        return starts.date, starts.time or time(), starts.zone
    moment = instant(starts.naive, starts.zone)
    return moment.date(), moment.time(), ZoneInfo("UTC")


def read_clock(text: str) -> tuple[date, time | None, bool]:
    """20260917T140000Z; the time may be missing. Raises ValueError, also where no visit can be."""
    found = re.fullmatch(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?", text, re.IGNORECASE)
    if not found or not 1900 <= int(found[1]) <= 2200:
        raise ValueError
    day = date(int(found[1]), int(found[2]), int(found[3]))
    return day, time(int(found[4]), int(found[5])) if found[4] else None, bool(found[6])
