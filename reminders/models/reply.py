from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from appointments.models import Appointment
from reminders.models.outgoing import OutgoingMessage, QueueQuerySet


class ReplyQuerySet(QueueQuerySet["Reply"]):
    doctor_path = "appointment__doctor"


class Reply(OutgoingMessage):
    """What we say outside the timeline: the answer to a tap.

    Only its kind is kept; the words are made when it is sent, from the visit as
    it is then.
    """

    kind = "r"

    class Says(models.TextChoices):
        CONFIRMED = "confirmed", _("Quedó confirmada")
        ALREADY_CONFIRMED = "already_confirmed", _("Ya estaba confirmada")
        MOVED = "moved", _("La cita cambió; ofrece confirmar la nueva hora")
        CANCELLED = "cancelled", _("La cita está cancelada")
        OVER = "over", _("La cita ya pasó")
        CALL_US = "call_us", _("Para eso, llame al consultorio")
        ANNOUNCE = "announce", _("Que se anuncie en recepción")
        NOT_YOURS = "not_yours", _("La cita ya no es suya")

    appointment = models.ForeignKey(
        Appointment, models.PROTECT, related_name="replies", verbose_name=_("cita")
    )
    says = models.CharField(_("qué dice"), max_length=20, choices=Says.choices)
    cause = models.CharField(
        _("en respuesta a"), max_length=200, help_text=_("El mensaje del paciente, por su identificador.")
    )

    objects = ReplyQuerySet.as_manager()

    class Meta:
        verbose_name = _("respuesta")
        verbose_name_plural = _("respuestas")
        ordering = ["-scheduled_for"]
        constraints = [
            # A message that comes twice is answered once.
            models.UniqueConstraint(fields=["cause"], name="reply_once_per_cause"),
        ]
        indexes = [
            # For claim(), tidy() and the wait for a receipt; answered rows are not in it.
            models.Index(
                fields=["next_attempt_at"],
                name="reply_open",
                condition=Q(status__in=["pending", "sending", "unknown"]),
            ),
        ]
