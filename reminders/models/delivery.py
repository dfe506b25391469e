from __future__ import annotations

from django.db import models
from django.db.models import F, OuterRef, Q, Subquery
from django.utils.translation import gettext_lazy as _

from appointments.models import Appointment
from reminders import timeline
from reminders.models.labels import TYPE_CHOICES, UNIT_CHOICES
from reminders.models.outgoing import OutgoingMessage, QueueQuerySet
from reminders.models.rule import ReminderRule
from reminders.timeline import OffsetUnit, Reason, ReminderType

# A row in one of these has no reason; in any other it must have one.
UNDER_WAY = ["pending", "sending", "unknown", "sent", "delivered", "read"]
CALLS_FOR_A_PERSON = [
    reason.value
    for reason in (
        Reason.REFUSED,
        Reason.ATTEMPTS_EXHAUSTED,
        Reason.NO_ANSWER,
        Reason.NO_CHANNEL,
        Reason.QUIET_HOURS,
        Reason.TOO_LATE,
    )
]
"""Why a rule may have reached nobody; not among them what the patient, or the doctor, wanted so."""


class ReminderDeliveryQuerySet(QueueQuerySet["ReminderDelivery"]):
    doctor_path = "appointment__doctor"
    # After an outage the visit that is nearest has the least time left.
    # By subquery: whatever the statistics say, it is one look by key for each due
    # row, and never a join that reads all visits.
    nearest_first = (
        Subquery(Appointment.objects.filter(pk=OuterRef("appointment")).values("starts_at")),
        "next_attempt_at",
        "pk",
    )
    lock_too = "JOIN appointments_appointment a ON a.id = q.appointment_id"


class ReminderDelivery(OutgoingMessage):
    """One reminder of one visit over one channel: the queue, and what became of it."""

    kind = "d"

    appointment = models.ForeignKey(
        Appointment, models.PROTECT, db_index=False, related_name="deliveries", verbose_name=_("cita")
    )
    rule = models.ForeignKey(ReminderRule, models.SET_NULL, null=True, verbose_name=_("regla"))
    rule_name = models.CharField(_("regla, como se llamaba"), max_length=120)
    sequence = models.PositiveIntegerField(_("versión de la cita"))
    reminder_type = models.CharField(_("tipo"), max_length=20, choices=TYPE_CHOICES)
    offset_minutes = models.IntegerField(_("cuándo, en minutos"))
    offset_unit = models.CharField(_("unidad"), max_length=10, choices=UNIT_CHOICES)
    fallback_of = models.ForeignKey(
        "self", models.PROTECT, db_index=False, null=True, blank=True, verbose_name=_("en lugar de")
    )

    objects = ReminderDeliveryQuerySet.as_manager()

    class Meta:
        verbose_name = _("envío")
        verbose_name_plural = _("envíos")
        ordering = ["-scheduled_for"]
        constraints = [
            # Planning is safe to repeat: a rule speaks once per version and channel.
            # Serves the rows of a visit too.
            models.UniqueConstraint(
                fields=["appointment", "sequence", "rule", "channel"], name="delivery_once_per_rule"
            ),
            # The last wall against a second message, also when a rule was copied.
            models.UniqueConstraint(
                fields=[
                    "appointment", "sequence", "reminder_type", "offset_minutes", "offset_unit", "channel",
                ],
                name="delivery_called_once_per_moment",
                condition=Q(called_at__isnull=False),
            ),
            models.CheckConstraint(
                condition=Q(reason="", status__in=UNDER_WAY) | (~Q(reason="") & ~Q(status__in=UNDER_WAY)),
                name="delivery_ends_with_a_reason",
            ),
        ]  # fmt: skip
        indexes = [
            # For claim(): what is due.
            models.Index(fields=["next_attempt_at"], name="delivery_due", condition=Q(status="pending")),
            # For tidy(): what outlived its use.
            models.Index(fields=["useful_until"], name="delivery_useless", condition=Q(status="pending")),
            # For tidy(): what a worker left behind, and what waits for a receipt.
            models.Index(fields=["lease_until"], name="delivery_held", condition=Q(status="sending")),
            models.Index(
                fields=["next_attempt_at"], name="delivery_unsettled", condition=Q(status="unknown")
            ),
            # For the admin's list.
            models.Index(F("scheduled_for").desc(), name="delivery_latest"),
            # For unreached(): the few rows for which somebody has to be called.
            models.Index(
                fields=["appointment"], name="delivery_unreached", condition=Q(reason__in=CALLS_FOR_A_PERSON)
            ),
        ]

    def as_planned(self) -> timeline.Row:
        """The row as the timeline reads it."""
        return timeline.Row(
            rule=self.rule_id,
            type=ReminderType(self.reminder_type),
            offset_minutes=self.offset_minutes,
            offset_unit=OffsetUnit(self.offset_unit),
            channel=self.channel,
            sequence=self.sequence,
            status=self.status,
            reason=self.reason,
            scheduled_for=self.scheduled_for,
            was_called=self.called_at is not None,
            is_fallback=self.fallback_of_id is not None,
        )


class Unreached(ReminderDelivery):
    """A reminder that reached nobody, as the call list shows it."""

    class Meta:
        proxy = True
        verbose_name = _("paciente por llamar")
        verbose_name_plural = _("pacientes por llamar")
