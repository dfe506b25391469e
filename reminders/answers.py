"""What we say to a patient who has just tapped."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django.utils.translation import gettext as _

from appointments.models import Appointment
from reminders import wording
from reminders.models import Reply

Says = Reply.Says


def text(says: str, appointment: Appointment, *, now: datetime) -> str:
    """The answer in full sentences, naming patient, doctor, day and hour as they are at ``now``."""
    facts = {
        "name": appointment.patient.full_name,
        "doctor": str(appointment.doctor),
        "when": wording.when(appointment.starts_at, appointment.office.zone, now),
        "place": appointment.office.name,
        "call": _how_to_call(appointment),
    }
    return wording.tidy(_SENTENCES[Says(says)]() % facts)


def _how_to_call(appointment: Appointment) -> str:
    phone = appointment.office.phone
    return _("llame al consultorio al %s") % phone if phone else _("llame al consultorio")


_SENTENCES: dict[str, Callable[[], str]] = {
    Says.CONFIRMED: lambda: _(
        "¡Listo! La cita de %(name)s con %(doctor)s quedó confirmada: %(when)s, en %(place)s. ✅"
    ),
    Says.ALREADY_CONFIRMED: lambda: _(
        "La cita de %(name)s con %(doctor)s ya estaba confirmada: %(when)s, en %(place)s. ¡Gracias!"
    ),
    Says.MOVED: lambda: _(
        "La cita de %(name)s con %(doctor)s cambió: ahora es %(when)s, en %(place)s. ¿Confirma esa hora?"
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
