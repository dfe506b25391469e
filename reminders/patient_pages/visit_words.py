"""What the page of a visit says and offers, from the visit as it is now."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.urls import reverse
from django.utils.translation import gettext as _

from appointments import names, phones
from appointments.models import Appointment
from reminders import links, wording

Status = Appointment.Status


def is_over(visit: Appointment, *, now: datetime) -> bool:
    """Whether its links tell nothing any more."""
    return visit.status in (Status.COMPLETED, Status.NO_SHOW) or visit.ends_at <= now


def can_confirm(visit: Appointment) -> bool:
    """Whether there is anything to confirm."""
    return visit.status == Status.SCHEDULED


def can_cancel(visit: Appointment, *, now: datetime) -> bool:
    """Whether the patient may call it off alone: not once they are there or expected this minute."""
    return visit.status in (Status.SCHEDULED, Status.CONFIRMED) and now < visit.starts_at


def of(visit: Appointment, *, is_stale: bool, now: datetime) -> dict[str, object]:
    """What the templates fill in. ``is_stale``: the link was made for an earlier version."""
    office = visit.office
    is_virtual = visit.modality == Appointment.Modality.VIRTUAL
    token = links.visit_token(visit)
    return {
        "name": _first_name(visit),
        "doctor": wording.clean(str(visit.doctor)) or wording.VARIABLES["doctor"].if_empty,
        "day": wording.day(visit.starts_at, office.zone, now),
        "at": wording.at(visit.starts_at, office.zone),
        "zone": _zone_to_name(visit),
        "office": wording.clean(office.name),
        "address": "" if is_virtual else wording.clean(office.address),
        "map_url": "" if is_virtual else _web(office.map_url),
        "is_virtual": is_virtual,
        "video_url": _web(visit.video_url) if is_virtual else "",
        "phone": wording.clean(office.phone),
        "dial": _dial(office.phone),
        "status": visit.status,
        "has_begun": visit.starts_at <= now,
        "is_stale": is_stale,
        "can_confirm": can_confirm(visit),
        "can_cancel": can_cancel(visit, now=now),
        "page": reverse("patient:visit", args=[token]),
        "cancel_page": reverse("patient:cancel", args=[token]),
        "calendar": reverse("patient:calendar", args=[token]),
    }


def _first_name(visit: Appointment) -> str:
    """The rest of the name is nobody's business who looks over a shoulder."""
    words = names.tidy(wording.clean(visit.patient.full_name)).split()
    return words[0] if words else ""


def _zone_to_name(visit: Appointment) -> str:
    """The place whose clocks are meant, where the patient's own show another time; else empty."""
    zone = visit.patient.time_zone
    try:
        own = ZoneInfo(zone) if zone else visit.office.zone
    except (ZoneInfoNotFoundError, ValueError):
        return ""
    there = visit.office.zone
    if visit.starts_at.astimezone(own).utcoffset() == visit.starts_at.astimezone(there).utcoffset():
        return ""
    city = there.key.rpartition("/")[2].replace("_", " ")
    return _("hora de %(city)s") % {"city": city}


def _dial(phone: str) -> str:
    """The number for a tap; empty for what nobody could dial."""
    try:
        return phones.normalise(phone).e164
    except phones.NotAPhone:
        return ""


def _web(address: str) -> str:
    """An address on the web, and nothing that a browser would carry out."""
    return address if address.startswith(("https://", "http://")) else ""
