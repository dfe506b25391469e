"""What we say to a patient who has just tapped, from the visit as it is when we say it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django.utils.translation import gettext as _

from appointments.models import Appointment
from reminders import wording
from reminders.models import Reply
from reminders.visits import other_clock, words_of

Says = Reply.Says
Status = Appointment.Status


def forced(visit: Appointment, *, patient_id: int, now: datetime) -> Says | None:
    """What must be said whatever was asked: the visit is another's, called off or over. Else None."""
    if visit.patient_id != patient_id:
        return Says.NOT_YOURS
    if visit.status == Status.CANCELLED:
        return Says.CANCELLED
    if visit.status in (Status.COMPLETED, Status.NO_SHOW) or visit.ends_at <= now:
        return Says.OVER
    return None


def still_true(reply: Reply, visit: Appointment, *, now: datetime) -> Says:
    """What an answer that waited has to say: the visit may have changed since the tap."""
    if new := forced(visit, patient_id=reply.patient_id, now=now):
        return new
    stands = visit.status != Status.SCHEDULED
    match Says(reply.says):
        case Says.CONFIRMED | Says.ALREADY_CONFIRMED if not stands:
            return Says.MOVED
        case Says.MOVED | Says.CANCELLED | Says.OVER:
            return Says.ALREADY_CONFIRMED if stands else Says.MOVED
        case says:
            return says


def text(says: str, visit: Appointment, *, now: datetime) -> str:
    """The answer in full sentences, naming patient, doctor, day and hour as they are at ``now``."""
    words = words_of(visit, now=now)
    facts = {
        "name": words["nombre"],
        "doctor": words["doctor"],
        "when": wording.when(visit.starts_at, visit.office.zone, now, whose=other_clock(visit)),
        "place": words["consultorio"],
        "call": _how_to_call(visit),
    }
    return wording.tidy(_SENTENCES[Says(says)]() % facts)


def _how_to_call(visit: Appointment) -> str:
    phone = wording.clean(visit.office.phone)
    return _("llame al consultorio al %s") % phone if phone else _("llame al consultorio")


_SENTENCES: dict[str, Callable[[], str]] = {
    Says.CONFIRMED: lambda: _(
        "¡Listo! La cita de %(name)s con %(doctor)s quedó confirmada: %(when)s, en %(place)s. ✅"
    ),
    Says.ALREADY_CONFIRMED: lambda: _(
        "La cita de %(name)s con %(doctor)s ya estaba confirmada: %(when)s, en %(place)s. ¡Gracias!"
    ),
    Says.MOVED: lambda: _(
        "La cita de %(name)s con %(doctor)s ahora es %(when)s, en %(place)s. ¿La confirma?"
    ),
    Says.CANCELLED: lambda: _("La cita de %(name)s con %(doctor)s está cancelada. Si desea otra, %(call)s."),
    Says.OVER: lambda: _("La cita de %(name)s con %(doctor)s ya pasó. Si desea otra, %(call)s."),
    Says.CALL_US: lambda: _(
        "La cita de %(name)s con %(doctor)s sigue en pie: %(when)s. Para cambiarla o cancelarla, %(call)s."
    ),
    Says.ANNOUNCE: lambda: _("¡Gracias por avisar! Por favor, anúnciese en la recepción de %(place)s."),
    # Names nobody: the visit is somebody else's now.
    Says.NOT_YOURS: lambda: _("Esa cita ya no está a su nombre. Si tiene dudas, %(call)s."),
}
