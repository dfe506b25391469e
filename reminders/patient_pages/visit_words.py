"""What the page of a visit says and offers, from the visit as it is now."""

from __future__ import annotations

from datetime import datetime

from django.urls import reverse

from appointments import names, phones
from appointments.models import Appointment
from reminders import links, visits, wording

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
    is_virtual = visits.is_virtual(visit)
    token = links.visit_token(visit)
    return {
        "name": _first_name(visit),
        "doctor": wording.clean(str(visit.doctor)) or wording.VARIABLES["doctor"].if_empty,
        "day": wording.day(visit.starts_at, office.zone, now),
        "at": wording.at(visit.starts_at, office.zone, whose=visits.other_clock(visit)),
        "office": wording.clean(office.name),
        "address": "" if is_virtual else wording.clean(office.address),
        "map_url": "" if is_virtual else wording.web(office.map_url),
        "is_virtual": is_virtual,
        "video_url": wording.web(visit.video_url) if is_virtual else "",
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


def _dial(phone: str) -> str:
    """The number for a tap; empty for what nobody could dial."""
    try:
        return phones.normalise(phone).e164
    except phones.NotAPhone:
        return ""
