"""What a clinic's agenda holds, piece by piece, with nothing looked up yet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time
from zoneinfo import ZoneInfo


@dataclass(frozen=True, kw_only=True)
class Told:
    """What whoever imports knows besides the file."""

    doctor: str = ""
    """For what names no doctor."""
    office: str = ""
    """For what names no office."""
    titles_are_patients: bool = False
    """Whether the title of an event that says no more is its patient's name."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One visit as the file tells it."""

    number: int
    """Of a table's row, as a spreadsheet counts; of the line at which an event begins."""
    title: str = ""
    """By which a person finds an event in their calendar; a table's row has none."""
    patient: str
    doctor: str
    """Blank: one of ``hosts``."""
    date: date
    start: time
    zone: ZoneInfo | None = None
    """In which date and start are told; None: that of the office."""
    duration_minutes: int | None = None
    """None: the file does not say."""
    phone: str = ""
    """As typed."""
    email: str = ""
    specialty: str = ""
    office: str = ""
    location: str = ""
    """Free text. An office of the doctor's that it names goes before ``office``."""
    hosts: tuple[str, ...] = ()
    """Free texts, one of which may name the doctor."""
    external_id: str = ""
    booked_at: datetime | None = None
    """Naive: local to the office."""
    changed_at: datetime | None = None
    """When the visit was last changed in the clinic's own agenda; None: the file does not say."""
    accepts_whatsapp: bool | None = None
    """None: the file does not say."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CalledOff:
    """A visit, or a series of them, that the file says will not take place."""

    number: int
    title: str
    doctor: str
    """Blank: any of those whose visit has the identifier."""
    external_id: str
    changed_at: datetime | None
    takes_series: bool
    """Also the coming visits of the series of that identifier."""
    until: datetime | None = None
    """Only what starts before: so far a series says which of its visits stand. None: it was said outright."""
    keeps: frozenset[str] = frozenset()
    """Identifiers of those that stand."""


@dataclass(frozen=True, kw_only=True)
class BadLine:
    """A piece that cannot be taken in, and why, in one Spanish sentence."""

    number: int
    reason: str
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Remark:
    """What a person should know of a piece that was taken in, in one Spanish sentence."""

    number: int
    text: str
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class NotVisit:
    """An event that is no visit, such as lunch, and why we think so, in one Spanish sentence."""

    number: int
    reason: str
    title: str = ""
