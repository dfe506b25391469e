"""Fills the dates of a demonstration agenda in, counted from the present.

A placeholder is ``{word:offset}``. The words:

``fecha``      the local date, dd/mm/aaaa
``hora``       the local time in 12 hours, 2:31 p. m.
``hora24``     the local time in 24 hours, 14:31
``reservada``  date and time together, dd/mm/aaaa 14:31

The offset is a sign and numbers of days, hours and minutes, in this order:
``+2h1m``, ``-5d``, ``+1d``. It is elapsed time, and seconds are cut off: at
12:00:30, ``{hora24:+2h1m}`` is 14:01.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from appointments import local_time

PLACEHOLDER = re.compile(r"\{([^{}:]*):?([^{}]*)\}")
OFFSET = re.compile(r"([+-])(?=\d)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?")


class UnknownPlaceholder(ValueError):
    """The template holds a word or an offset that is none of the above."""


def expand(template: str, *, now: datetime, zone: ZoneInfo) -> str:
    """The template with every placeholder filled in, in the clinic's zone.

    ``now`` is aware. Raises UnknownPlaceholder.
    """
    return PLACEHOLDER.sub(lambda found: _filled(found, now=now, zone=zone), template)


def _filled(found: re.Match[str], *, now: datetime, zone: ZoneInfo) -> str:
    moment = (now + _offset(found)).astimezone(zone)
    match found[1]:
        case "fecha":
            return f"{moment:%d/%m/%Y}"
        case "hora":
            return local_time.as_told(moment.time())
        case "hora24":
            return f"{moment:%H:%M}"
        case "reservada":
            return f"{moment:%d/%m/%Y %H:%M}"
    raise UnknownPlaceholder(f"{found[0]} is no placeholder of a demonstration agenda")


def _offset(found: re.Match[str]) -> timedelta:
    parts = OFFSET.fullmatch(found[2])
    if not parts:
        raise UnknownPlaceholder(f"{found[0]} holds no offset such as +2h1m")
    days, hours, minutes = (int(part or 0) for part in parts.groups()[1:])
    length = timedelta(days=days, hours=hours, minutes=minutes)
    return length if parts[1] == "+" else -length
