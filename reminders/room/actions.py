"""What one tap on a card does: a verb of booking, and the sentence about what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from appointments import booking, local_time
from appointments.booking import Actor
from appointments.models import Appointment

Status = Appointment.Status


@dataclass(frozen=True, kw_only=True)
class Action:
    """A button."""

    name: str
    """Stands in the address."""
    label: str | Promise
    verb: Callable[..., bool]
    result: str
    """The status that the verb leaves behind."""


CONFIRMED = Action(
    name="confirmo",
    label=gettext_lazy("Confirmó por teléfono"),
    verb=booking.confirm,
    result=Status.CONFIRMED,
)
ARRIVED = Action(name="llego", label=gettext_lazy("Llegó"), verb=booking.check_in, result=Status.CHECKED_IN)
IN = Action(
    name="paso", label=gettext_lazy("Pasó a consulta"), verb=booking.start, result=Status.IN_CONSULTATION
)
DONE = Action(name="atendida", label=gettext_lazy("Atendida"), verb=booking.complete, result=Status.COMPLETED)
NO_SHOW = Action(
    name="no-asistio", label=gettext_lazy("No asistió"), verb=booking.mark_no_show, result=Status.NO_SHOW
)
ACTIONS = {action.name: action for action in (CONFIRMED, ARRIVED, IN, DONE, NO_SHOW)}

OFFERED: dict[str, tuple[Action, ...]] = {
    Status.SCHEDULED: (ARRIVED, CONFIRMED, IN, NO_SHOW),
    Status.CONFIRMED: (ARRIVED, IN, NO_SHOW),
    Status.CHECKED_IN: (IN, DONE, NO_SHOW),
    Status.IN_CONSULTATION: (DONE,),
    Status.COMPLETED: (NO_SHOW,),
    Status.NO_SHOW: (DONE,),
    Status.CANCELLED: (),
}
"""By status, the next step first. What stands here the verb allows."""

IF_MISTAKEN: dict[str, str | Promise] = {
    Status.CONFIRMED: gettext_lazy("¿Se equivocó? Si no viene, anote «No asistió» a su hora."),
    Status.CHECKED_IN: gettext_lazy(
        "¿Se equivocó? Una llegada no se deshace: si no está, anote «No asistió»; "
        "cuando llegue, corríjalo con «Atendida»."
    ),
    Status.IN_CONSULTATION: gettext_lazy(
        "¿Se equivocó? De aquí solo se sale con «Atendida»; después se puede corregir a «No asistió»."
    ),
    Status.COMPLETED: gettext_lazy("¿Se equivocó? Se corrige a «No asistió»."),
    Status.NO_SHOW: gettext_lazy("¿Vino después de todo? Se corrige a «Atendida»."),
    Status.CANCELLED: gettext_lazy("Para reponerla, use «Reponer» en la agenda."),
}
"""By status, what can honestly be done about a tap on the wrong card."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a tap did, in a sentence without names."""

    sentence: str
    is_refused: bool = False


def take(action: Action, visit: Appointment, *, actor: Actor) -> Outcome:
    """Call the verb. Safe to repeat; what no longer applies is told with the present state."""
    hour = local_time.as_told(visit.start_time)
    try:
        is_changed = action.verb(visit, actor=actor)
    except booking.SlotTaken:
        words = _("No se cambió: a las %(hour)s el médico ya tiene otra cita. Muévala en la agenda.")
        return Outcome(sentence=words % {"hour": hour}, is_refused=True)
    facts = {"hour": hour, "status": visit.get_status_display()}
    if is_changed:
        return Outcome(sentence=_("La cita de las %(hour)s quedó en «%(status)s».") % facts)
    if visit.status == action.result:
        return Outcome(sentence=_("La cita de las %(hour)s ya estaba en «%(status)s».") % facts)
    words = _("No se cambió: la cita de las %(hour)s ahora está en «%(status)s», y eso ya no procede.")
    return Outcome(sentence=words % facts, is_refused=True)
