"""A visit as an entry in the patient's calendar (iCalendar, RFC 5545 and 5546)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from email.utils import parseaddr
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils.translation import gettext as _
from icalendar import Calendar, Event, Timezone, vCalAddress
from icalendar.enums import STATUS

from reminders import links, wording

if TYPE_CHECKING:
    from appointments.models import Appointment


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What a calendar shows of one version of a visit."""

    uid: str
    """The same for every version: a newer one takes the older one's place."""
    sequence: int
    """Higher for whatever is newer: a moved visit, its cancellation, its return."""
    starts_at: datetime
    ends_at: datetime
    zone: str
    """Of the place of care."""
    summary: str
    location: str
    url: str
    """The patient's page of the visit."""
    is_cancelled: bool
    video_url: str = ""
    """Where the patient enters, of a video call."""
    remarks: tuple[str, ...] = ()
    """What the patient has to know besides."""
    doctor: str = ""
    """Stands as the one who organises it."""


def entry_of(appointment: Appointment) -> Entry:
    """The visit as it is now, without a word about its reason."""
    doctor = wording.clean(str(appointment.doctor)) or wording.VARIABLES["doctor"].if_empty
    is_cancelled = appointment.status == appointment.Status.CANCELLED
    is_virtual = appointment.modality == appointment.Modality.VIRTUAL
    video_url = wording.web(appointment.video_url) if is_virtual and not is_cancelled else ""
    return Entry(
        uid=f"{appointment.pk}@{urlsplit(settings.CLIENT_URL).hostname}",
        # A cancellation must be above what it cancels (RFC 5546, 3.2.5), and a
        # reinstated visit, which is the next version, above its cancellation.
        sequence=2 * appointment.sequence + is_cancelled,
        starts_at=appointment.starts_at,
        ends_at=appointment.ends_at,
        zone=appointment.office.time_zone,
        summary=_("Cita con %(doctor)s") % {"doctor": doctor},
        location=video_url or _location(appointment),
        url=links.visit_url(appointment),
        is_cancelled=is_cancelled,
        video_url=video_url,
        remarks=tuple(_remarks(appointment, video_url)),
        doctor=doctor,
    )


def render(entry: Entry, *, now: datetime) -> str:
    """The entry as text/calendar, in lines that end with CRLF.

    METHOD is PUBLISH, or CANCEL for a cancelled visit: a calendar that has the
    entry brings it up to date, or takes it out. ``now`` is when this was written.
    """
    calendar = Calendar()
    calendar.add("PRODID", "-//Amedi//Recordatorios//ES")
    calendar.add("VERSION", "2.0")
    calendar.add("METHOD", "CANCEL" if entry.is_cancelled else "PUBLISH")
    calendar.add_component(_rules_of(entry.zone, entry.starts_at.year))
    calendar.add_component(_event(entry, now))
    text: str = calendar.to_ical().decode()
    return text


def _event(entry: Entry, now: datetime) -> Event:
    zone = ZoneInfo(entry.zone)
    event = Event()
    event.add("UID", entry.uid)
    event.add("SEQUENCE", entry.sequence)
    event.add("DTSTAMP", now.astimezone(UTC).replace(microsecond=0))
    event.add("DTSTART", entry.starts_at.astimezone(zone))
    event.add("DTEND", entry.ends_at.astimezone(zone))
    event.add("SUMMARY", entry.summary)
    event.add("LOCATION", entry.location)
    event.add("URL", entry.video_url or entry.url)
    event.add("STATUS", STATUS.CANCELLED if entry.is_cancelled else STATUS.CONFIRMED)
    event.add("ORGANIZER", _organizer(entry))
    if not entry.is_cancelled:
        event.add("DESCRIPTION", _description(entry))
    return event


def _description(entry: Entry) -> str:
    # Several calendars do not show the URL.
    page = _("Ver, confirmar o cancelar la cita: %(url)s") % {"url": entry.url}
    return "\n".join([*entry.remarks, page])


def _organizer(entry: Entry) -> vCalAddress:
    """Who publishes the entry, which RFC 5546 (3.2.1) asks for."""
    organizer = vCalAddress(f"mailto:{parseaddr(settings.DEFAULT_FROM_EMAIL)[1]}")
    if entry.doctor:
        organizer.params["CN"] = entry.doctor
    return organizer


def _remarks(appointment: Appointment, video_url: str) -> Iterator[str]:
    if video_url:
        yield _("Entrar a la videollamada: %(url)s") % {"url": video_url}
    elif appointment.modality == appointment.Modality.VIRTUAL:
        yield _("El consultorio le enviará el enlace de la videollamada.")
    starts_at, zone = appointment.starts_at, appointment.office.zone
    # A calendar turns the hour into that of its own clock; the messages name the place's.
    whose = wording.other_clock(starts_at, zone, wording.zone_named(appointment.patient.time_zone))
    if whose:
        yield _("La cita es %(at)s.") % {"at": wording.at(starts_at, zone, whose=whose)}


def _location(appointment: Appointment) -> str:
    if appointment.modality == appointment.Modality.VIRTUAL:
        return _("Por videollamada")
    office = appointment.office
    return ", ".join(filter(None, (wording.clean(office.name), wording.clean(office.address))))


# Found by walking through the years in small steps: 3 ms, and the same for every visit there.
@lru_cache(maxsize=64)
def _rules_of(zone: str, year: int) -> Timezone:
    """The clock changes of a zone around a year, as VTIMEZONE."""
    rules = Timezone.from_tzid(zone, first_date=date(year - 1, 1, 1), last_date=date(year + 2, 1, 1))
    rules.pop("COMMENT", None)
    return rules
