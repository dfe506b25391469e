"""The Spanish of the words that rows carry. The words themselves are the timeline's."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from reminders.timeline import OffsetUnit, Reason, ReminderType


class ChannelName(models.TextChoices):
    WHATSAPP = "whatsapp", _("WhatsApp")
    EMAIL = "email", _("Correo")
    PUSH = "push", _("Notificación en el teléfono")
    IN_APP = "in_app", _("Bandeja de la aplicación")


TYPE_CHOICES = [
    (ReminderType.PREPARACION.value, _("Preparación")),
    (ReminderType.CITA_PROXIMA.value, _("Cita próxima")),
    (ReminderType.LLEGADA.value, _("Llegada")),
    (ReminderType.SEGUIMIENTO.value, _("Seguimiento")),
    (ReminderType.CONTROL.value, _("Control")),
    (ReminderType.RESERVA.value, _("Aviso de reserva")),
    (ReminderType.CAMBIO.value, _("Aviso de cambio")),
    (ReminderType.CANCELACION.value, _("Aviso de cancelación")),
]

UNIT_CHOICES = [
    (OffsetUnit.MINUTES.value, _("minutos")),
    (OffsetUnit.HOURS.value, _("horas")),
    (OffsetUnit.DAYS.value, _("días")),
    (OffsetUnit.MONTHS.value, _("meses")),
]

REASON_CHOICES = [
    # skipped: on purpose
    (Reason.OPTED_OUT.value, _("El paciente pidió no recibirlo")),
    (Reason.NO_CONSENT.value, _("El paciente no ha aceptado WhatsApp")),
    (Reason.NO_CONTACT.value, _("Falta el contacto para este canal")),
    (Reason.NO_CHANNEL.value, _("Ningún canal llega al paciente")),
    (Reason.DO_NOT_SEND.value, _("La regla dice no enviar")),
    (Reason.BOOKED_LATE.value, _("La cita se reservó muy cerca de este recordatorio")),
    (Reason.COVERED_BY_NOTICE.value, _("La cita cambió muy cerca de este recordatorio")),
    (Reason.SUPERSEDED.value, _("Otro recordatorio más cercano a la cita ocupó su lugar")),
    (Reason.QUIET_HOURS.value, _("No cabía fuera de las horas de silencio")),
    (Reason.CHANNEL_OFF.value, _("El canal está apagado")),
    (Reason.TEMPLATE_UNAVAILABLE.value, _("La plantilla de WhatsApp no se puede usar")),
    (Reason.HAS_LATER_VISIT.value, _("El paciente ya tiene una cita posterior")),
    (Reason.UNDONE.value, _("El cambio se deshizo")),
    (Reason.TOLD_DIRECTLY.value, _("El paciente ya lo sabe")),
    (Reason.PAUSED.value, _("Los envíos están en pausa")),
    # cancelled: the visit or the rule went
    (Reason.MOVED.value, _("La cita se movió")),
    (Reason.VISIT_CANCELLED.value, _("La cita se canceló")),
    (Reason.VISIT_CLOSED.value, _("La cita ya se cerró")),
    (Reason.RULE_DISABLED.value, _("La regla se apagó")),
    (Reason.RULE_DELETED.value, _("La regla se borró")),
    (Reason.RULE_REPLACED.value, _("Otra regla la reemplaza")),
    (Reason.CHANNEL_REPLACED.value, _("Ahora va por otro canal")),
    # expired
    (Reason.TOO_LATE.value, _("Ya no era útil")),
    # failed
    (Reason.REFUSED.value, _("El proveedor lo rechazó")),
    (Reason.ATTEMPTS_EXHAUSTED.value, _("Se agotaron los intentos")),
    (Reason.NO_ANSWER.value, _("El proveedor no contestó")),
]
