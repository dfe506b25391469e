from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from appointments.access import AnyUser, ScopedQuerySet, doctors_of
from reminders.models.delivery import ReminderDelivery
from reminders.models.outgoing import ADDRESS_LENGTH, OutgoingMessage
from reminders.models.reply import Reply


class DeliveryAttemptQuerySet(ScopedQuerySet["DeliveryAttempt"]):
    doctor_path = "delivery__appointment__doctor"

    def for_user(self, user: AnyUser) -> Self:
        """The attempts of reminders and of answers to the patients of the user's doctors."""
        answers = self.filter(reply__appointment__doctor__in=doctors_of(user))
        return super().for_user(user) | answers

    def of(self, row: OutgoingMessage) -> DeliveryAttemptQuerySet:
        """The attempts of one row of either queue."""
        return self.filter(delivery=row) if isinstance(row, ReminderDelivery) else self.filter(reply=row.pk)


class DeliveryAttempt(models.Model):
    """One call to a provider. Written before the call, so that a crash cannot hide it."""

    class Outcome(models.TextChoices):
        # The call was written down; the worker has not said how it ended.
        OPEN = "", _("Sin resultado")
        ACCEPTED = "accepted", _("Aceptado")
        REFUSED = "refused", _("Rechazado")
        # Timeout, cut connection, an answer that tells nothing, or a dead worker.
        LOST = "lost", _("Respuesta perdida")

    delivery = models.ForeignKey(
        ReminderDelivery,
        models.PROTECT,
        db_index=False,
        null=True,
        related_name="attempts",
        verbose_name=_("envío"),
    )
    reply = models.ForeignKey(
        Reply, models.PROTECT, db_index=False, null=True, related_name="attempts", verbose_name=_("respuesta")
    )
    number = models.PositiveIntegerField(_("número"))
    claimed_at = models.DateTimeField(_("tomado"))
    called_at = models.DateTimeField(_("llamado"))
    address = models.CharField(_("escrito a"), max_length=ADDRESS_LENGTH)
    payload = models.JSONField(_("enviado"), default=dict)
    message_id = models.CharField(_("identificador del proveedor"), max_length=255, blank=True)
    outcome = models.CharField(_("resultado"), max_length=10, choices=Outcome.choices, blank=True)
    error_code = models.CharField(_("código de error"), max_length=40, blank=True)
    error_message = models.CharField(_("error"), max_length=500, blank=True)

    objects = DeliveryAttemptQuerySet.as_manager()

    class Meta:
        verbose_name = _("intento")
        verbose_name_plural = _("intentos")
        ordering = ["-called_at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(delivery__isnull=False, reply__isnull=True)
                | Q(delivery__isnull=True, reply__isnull=False),
                name="attempt_of_one_thing",
            ),
            # These two serve the attempts of a row too.
            models.UniqueConstraint(fields=["delivery", "number"], name="attempt_once_per_delivery"),
            models.UniqueConstraint(fields=["reply", "number"], name="attempt_once_per_reply"),
            # Serves receipts too: the attempt of a provider's id.
            models.UniqueConstraint(
                fields=["message_id"], name="attempt_message_id", condition=~Q(message_id="")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.delivery_id or self.reply_id} · {self.number}"

    @property
    def row(self) -> OutgoingMessage:
        """The delivery or the reply that was sent."""
        row = self.delivery or self.reply
        assert row  # noqa: S101
        return row
