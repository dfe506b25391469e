from __future__ import annotations

from datetime import datetime

from django.conf import settings
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
NEVER_ARRIVED = Q(status="sent", given_up_at__isnull=False)
"""The provider took it, and in all the time that we waited nothing said that it came to the patient."""
REACHED_NOBODY = Q(reason__in=CALLS_FOR_A_PERSON) | NEVER_ARRIVED


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

    def undelivered(self, now: datetime) -> ReminderDeliveryQuerySet:
        """What was sent, and by its deadline is not known to have arrived."""
        sent = OutgoingMessage.Status.SENT
        return self.filter(status=sent, deliver_by__lte=now, given_up_at__isnull=True)

    def unread(self, now: datetime) -> ReminderDeliveryQuerySet:
        """What arrived, and by its deadline is not known to have been read."""
        delivered = OutgoingMessage.Status.DELIVERED
        return self.filter(status=delivered, read_by__lte=now, given_up_at__isnull=True)


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
    # Both are written before the call: whoever brings the news of it finds them there.
    deliver_by = models.DateTimeField(_("entregado a más tardar"), null=True, blank=True)
    read_by = models.DateTimeField(_("leído a más tardar"), null=True, blank=True)
    told_by_phone_at = models.DateTimeField(_("avisado por teléfono"), null=True, blank=True)
    told_by_phone_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, db_index=False, null=True, blank=True, related_name="+",
        verbose_name=_("avisado por"),
    )  # fmt: skip

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
            models.Index(fields=["appointment"], name="delivery_unreached", condition=REACHED_NOBODY),
            # For give_up(): what may still be told to have arrived, or to have been read.
            models.Index(
                fields=["deliver_by"],
                name="delivery_awaited",
                condition=Q(status="sent", deliver_by__isnull=False, given_up_at__isnull=True),
            ),
            models.Index(
                fields=["read_by"],
                name="delivery_unread",
                condition=Q(status="delivered", read_by__isnull=False, given_up_at__isnull=True),
            ),
        ]

    @property
    def is_given_up(self) -> bool:
        """Whether nobody waits for it any more, and no news has come since that would have been enough.

        What was waited for to be read is given up also when it was delivered.
        """
        if self.given_up_at is None:
            return False
        was_to_be_read = self.read_by is not None and self.read_by <= self.given_up_at
        return self.status == self.Status.SENT or (self.status == self.Status.DELIVERED and was_to_be_read)

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
            is_given_up=self.is_given_up,
        )


class Unreached(ReminderDelivery):
    """A reminder that reached nobody, as the call list shows it."""

    class Meta:
        proxy = True
        verbose_name = _("paciente por llamar")
        verbose_name_plural = _("pacientes por llamar")
