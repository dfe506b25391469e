"""Visits, rules and rows for the tests of the timeline, written as a person would say them.

Unless a test says otherwise: a confirmed visit in Caracas on Thursday
2026-09-17 at 10:00, booked a week before; "upcoming" reminders by WhatsApp to a
patient who can be reached; quiet hours from 21:00 to 07:00.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from reminders import timeline
from reminders.timeline import OffsetUnit, Planned, QuietHours, Reason, ReminderType, Row, Rule, Visit

ZONES = {
    "Caracas": ZoneInfo("America/Caracas"),
    "NewYork": ZoneInfo("America/New_York"),
    "Santiago": ZoneInfo("America/Santiago"),
    "Madrid": ZoneInfo("Europe/Madrid"),
    "Bogota": ZoneInfo("America/Bogota"),
    "LordHowe": ZoneInfo("Australia/Lord_Howe"),
}
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
WHATSAPP_AND_MAIL = ("whatsapp", "email")
NO_QUIET_HOURS = ("00:00", "00:00")


def at(text: str) -> datetime:
    """``2026-09-17T10:00 Caracas``, or without the zone in Caracas; ``²`` is the second time of that hour."""
    local, _, place = text.removesuffix("²").partition(" ")
    moment = datetime.fromisoformat(local).replace(tzinfo=ZONES[place or "Caracas"], fold=text.endswith("²"))
    return moment.astimezone(UTC)


def utc(moment: datetime | None) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%MZ}" if moment else ""


def visit(start: str = "2026-09-17T10:00", *, booked: str = "2026-09-10T09:00", **fields: Any) -> Visit:
    local, _, place = start.partition(" ")
    wall = datetime.fromisoformat(local)
    booked_at = at(booked)
    defaults: dict[str, Any] = {
        "date": wall.date(),
        "start_time": wall.time(),
        "zone": ZONES[place or "Caracas"],
        "starts_at": at(start),
        "status": "confirmed",
        "sequence": 0,
        "booked_at": booked_at,
        "created_at": booked_at,
    }
    return Visit(**{**defaults, **fields})


_PARTS = {
    "min": (OffsetUnit.MINUTES, 1),
    "h": (OffsetUnit.HOURS, 60),
    "d": (OffsetUnit.DAYS, 1_440),
    "mo": (OffsetUnit.MONTHS, 43_200),
}


def rule(offset: str, kind: ReminderType = ReminderType.CITA_PROXIMA, **fields: Any) -> Rule:
    """``24h``, ``1d``, ``6mo`` or ``90min``: before the visit, or after it as the type has it."""
    number = offset.rstrip("minhdo")
    unit, minutes = _PARTS[offset.removeprefix(number)]
    sign = -1 if kind in timeline.MINIMUM_LEAD else 1
    defaults: dict[str, Any] = {
        "key": offset,
        "type": kind,
        "offset_minutes": sign * int(number) * minutes,
        "offset_unit": unit,
        "channels": ("whatsapp",),
        "since": LONG_AGO,
    }
    return Rule(**{**defaults, **fields})


def quiet_hours(start: str = "21:00", end: str = "07:00", place: str = "Caracas") -> QuietHours:
    return QuietHours(start=time.fromisoformat(start), end=time.fromisoformat(end), zone=ZONES[place])


def reachable(**obstacles: Reason | None) -> timeline.Reach:
    """WhatsApp and mail can be used, apart from the obstacles named."""
    channels: dict[str, Reason | None] = {"whatsapp": None, "email": None, **obstacles}
    return dict.fromkeys(ReminderType, channels)


def plan(
    its_visit: Visit,
    *rules: Rule,
    reach: timeline.Reach | None = None,
    quiet: QuietHours | None = None,
    rows: Iterable[Row] = (),
    rules_changed_at: datetime | None = None,
) -> list[Planned]:
    return timeline.plan(
        its_visit,
        rules=rules,
        reach=reachable() if reach is None else reach,
        quiet=quiet or quiet_hours(),
        rows=list(rows),
        rules_changed_at=rules_changed_at,
    )


def told(planned: Iterable[Planned], place: str = "Caracas") -> list[str]:
    """``24h whatsapp 2026-09-16T10:00``; of a skipped row ``24h whatsapp booked_late``."""
    return [
        f"{row.rule} {row.channel or '-'} "
        + (row.reason or f"{row.scheduled_for.astimezone(ZONES[place]):%Y-%m-%dT%H:%M}")
        for row in planned
    ]


def rows_of(
    planned: Sequence[Planned], rules: Sequence[Rule], *, sequence: int = 0, **fields: Any
) -> list[Row]:
    """What stands in the table once a plan has been written."""
    by_key = {rule.key: rule for rule in rules}
    rows = [
        Row(
            rule=row.rule,
            type=by_key[row.rule].type,
            offset_minutes=by_key[row.rule].offset_minutes,
            offset_unit=by_key[row.rule].offset_unit,
            channel=row.channel,
            sequence=sequence,
            status=row.status,
            reason=row.reason,
            scheduled_for=row.scheduled_for,
            was_called=False,
        )
        for row in planned
    ]
    return [replace(row, **fields) for row in rows]


def minutes(count: int) -> timedelta:
    return timedelta(minutes=count)
