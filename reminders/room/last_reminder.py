"""Of the reminders of one visit the one that counts for the desk, in plain words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from appointments import local_time
from reminders.models import ReminderDelivery
from reminders.models.labels import ChannelName
from reminders.timeline import Reason

Status = ReminderDelivery.Status
WAITING = (Status.PENDING, Status.SENDING)


class Tone(StrEnum):
    """How a state is to be taken."""

    GOOD = "good"
    QUIET = "quiet"
    BAD = "bad"


@dataclass(frozen=True, kw_only=True)
class LastReminder:
    """What the card says of the reminder."""

    words: str
    tone: Tone


def tell(rows: Iterable[ReminderDelivery], *, zone: ZoneInfo, now: datetime) -> LastReminder:
    """The state of the last reminder before the visit, hours as in the zone.

    ``rows`` are those of the visit's present version. What was last sent counts;
    where nothing was, what will be sent next; else why nothing is.
    """
    rows = list(rows)
    waiting = [row for row in rows if row.status in WAITING and not row.called_at]
    if called := [row for row in rows if row.called_at]:
        last = max(called, key=lambda row: (row.called_at, row.created_at))
        instead = next((row for row in waiting if row.fallback_of_id == last.pk), None)
        return _of_instead(instead) if instead else _of_called(last, zone, now)
    if waiting:
        return _of_waiting(min(waiting, key=lambda row: row.next_attempt_at), zone, now)
    reasons = [row for row in rows if row.reason]
    if not reasons:
        return LastReminder(words=_("Sin recordatorio"), tone=Tone.QUIET)
    return _of_unsent(max(reasons, key=lambda row: (row.scheduled_for, row.created_at)))


def _of_called(row: ReminderDelivery, zone: ZoneInfo, now: datetime) -> LastReminder:
    if row.status == Status.FAILED:
        return LastReminder(words=_why_failed(row.reason), tone=Tone.BAD)
    if row.status in WAITING:
        again = hour(row.next_attempt_at, zone=zone, now=now)
        return LastReminder(words=_("El proveedor no lo tomó; se reintenta: %s") % again, tone=Tone.QUIET)
    if row.status == Status.READ:
        at = hour(row.read_at, zone=zone, now=now)
        return LastReminder(words=_("Leído %s") % at + _way(row), tone=Tone.GOOD)
    if row.status == Status.DELIVERED:
        at = hour(row.delivered_at, zone=zone, now=now)
        return LastReminder(words=_("Entregado %s") % at + (_way(row) or _(", sin leer")), tone=Tone.GOOD)
    if row.given_up_at:
        return LastReminder(words=_("Enviado, pero no le llegó a tiempo"), tone=Tone.BAD)
    if row.status == Status.SENT:
        at = hour(row.sent_at, zone=zone, now=now)
        words = _("Enviado %s") % at + (_way(row) or _(", sin entregar todavía"))
        return LastReminder(words=words, tone=Tone.QUIET)
    if row.status == Status.UNKNOWN:
        return LastReminder(words=_("Enviado; el proveedor no ha contestado"), tone=Tone.QUIET)
    return _of_unsent(row)


def _way(row: ReminderDelivery) -> str:
    """Over which channel, where it is not the usual one, which tells of arriving and reading."""
    ways = {
        ChannelName.EMAIL: _(", por correo"),
        ChannelName.PUSH: _(", por notificación en el teléfono"),
        ChannelName.IN_APP: _(", en la aplicación"),
    }
    return ways.get(ChannelName(row.channel), "") if row.channel else ""


def _of_instead(row: ReminderDelivery) -> LastReminder:
    words = _("No le llegó; ahora sale por otro canal: %s") % row.get_channel_display()
    return LastReminder(words=words, tone=Tone.QUIET)


def _why_failed(reason: str) -> str:
    if reason == Reason.NO_ANSWER:
        return _("No se sabe si le llegó: el proveedor no contestó")
    if reason == Reason.ATTEMPTS_EXHAUSTED:
        return _("No le llegó: se agotaron los intentos")
    return _("No le llegó: el proveedor lo rechazó")


def _of_waiting(row: ReminderDelivery, zone: ZoneInfo, now: datetime) -> LastReminder:
    if row.status == Status.SENDING or row.next_attempt_at <= now:
        return LastReminder(words=_("Recordatorio por salir"), tone=Tone.QUIET)
    at = hour(row.next_attempt_at, zone=zone, now=now)
    return LastReminder(words=_("Recordatorio previsto: %s") % at, tone=Tone.QUIET)


def _of_unsent(row: ReminderDelivery) -> LastReminder:
    why = row.get_reason_display()
    return LastReminder(
        words=_("Sin recordatorio: %s") % (why[:1].lower() + why[1:]),
        tone=Tone.BAD if row.status in (Status.FAILED, Status.EXPIRED) else Tone.QUIET,
    )


def hour(moment: datetime | None, *, zone: ZoneInfo, now: datetime) -> str:
    """``9:12 a. m.`` for today in the zone; with its day for another; nothing for none."""
    if moment is None:
        return ""
    local, today = moment.astimezone(zone), now.astimezone(zone).date()
    told = local_time.as_told(local.time())
    days = (local.date() - today).days
    if days == 0:
        return told
    if days == -1:
        return _("ayer, %s") % told
    return f"{local:%d/%m}, {told}"
