"""What a clock on the wall of a place means, also in the nights when it jumps.

A local time that does not exist moves forward by the size of the gap; one that
exists twice means the first. The trigger of migration 0002 says the same in SQL.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _


class DoesNotExist(ValueError):
    """The clocks of the place skip this hour; ``first_valid`` is what they show instead."""

    def __init__(self, first_valid: datetime) -> None:
        self.first_valid = first_valid
        super().__init__(
            _(
                "Esa hora no existe ese día: el reloj se adelanta. "
                "La primera hora válida es las %(time)s del %(date)s."
            )
            % {"time": f"{first_valid:%H:%M}", "date": f"{first_valid:%d/%m/%Y}"}
        )


def instant(day: date, clock: time, zone: ZoneInfo) -> datetime:
    """The instant in UTC that a local date and time mean in a zone."""
    # fold=0 is both rules at once: the offset from before the jump.
    return datetime.combine(day, clock, tzinfo=zone).replace(fold=0).astimezone(UTC)


def moved_out_of_gap(day: date, clock: time, zone: ZoneInfo) -> datetime:
    """The same local time, or, where the clocks skip it, the one after the gap."""
    return instant(day, clock, zone).astimezone(zone)


def exists(day: date, clock: time, zone: ZoneInfo) -> bool:
    """Whether the clocks of the zone show this time on this day."""
    return moved_out_of_gap(day, clock, zone).replace(tzinfo=None) == datetime.combine(day, clock)


def is_repeated(day: date, clock: time, zone: ZoneInfo) -> bool:
    """Whether the clocks of the zone show this time twice on this day."""
    local = datetime.combine(day, clock, tzinfo=zone)
    return exists(day, clock, zone) and local.utcoffset() != local.replace(fold=1).utcoffset()


def as_told(clock: time) -> str:
    """A clock time as people write it here: 2:30 p. m."""
    # With ordinary spaces: message templates do not take the narrow ones.
    return f"{(clock.hour + 11) % 12 + 1}:{clock:%M} {'a. m.' if clock.hour < 12 else 'p. m.'}"


def require(day: date, clock: time, zone: ZoneInfo) -> None:
    """Raise DoesNotExist, with the first valid time, for a time that the clocks skip."""
    if exists(day, clock, zone):
        return
    first = moved_out_of_gap(day, clock, zone)
    while exists(*_parts(before := first.replace(tzinfo=None) - timedelta(minutes=1)), zone):
        first = before.replace(tzinfo=zone)
    raise DoesNotExist(first)


def _parts(wall: datetime) -> tuple[date, time]:
    return wall.date(), wall.time()
