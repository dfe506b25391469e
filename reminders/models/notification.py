"""The inbox of the application, and the addresses that lead nowhere."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.conf import settings
from django.db import models, transaction
from django.db.models import Q
from django.db.models.functions import Lower, Now
from django.utils.translation import gettext_lazy as _

from appointments.access import AnyUser, ScopedQuerySet
from appointments.models import Patient
from reminders.models.delivery import ReminderDelivery
from reminders.models.labels import ChannelName
from reminders.models.outgoing import ADDRESS_LENGTH


class NotificationQuerySet(ScopedQuerySet["Notification"]):
    doctor_path = "user__doctor"

    def for_user(self, user: AnyUser) -> Self:
        """What stands in the user's own inbox; every inbox for ops."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        return self if getattr(user, "is_superuser", False) else self.filter(user=user.pk)

    def mark_read(self, *, now: datetime) -> int:
        """Put ``now`` on those that were not read yet, and on their reminders; returns how many that were."""
        unread = self.filter(read_at=None)
        status = ReminderDelivery.Status
        with transaction.atomic():
            ReminderDelivery.objects.filter(
                notification__in=unread, status__in=[status.SENT, status.DELIVERED]
            ).update(status=status.READ, read_at=now)
            return unread.update(read_at=now)


class Notification(models.Model):
    """A message in somebody's inbox here: a reminder to a patient, or news for those at the desk."""

    SUBJECT_LENGTH = 300

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="notifications", verbose_name=_("para")
    )
    # One to one: however often a reminder is handed over, it stands in the inbox once.
    delivery = models.OneToOneField(
        ReminderDelivery, models.CASCADE, null=True, blank=True, editable=False, verbose_name=_("envío")
    )
    about = models.ForeignKey(
        Patient, models.CASCADE, null=True, blank=True, editable=False, verbose_name=_("paciente")
    )
    subject = models.CharField(_("asunto"), max_length=SUBJECT_LENGTH)
    body = models.TextField(_("mensaje"))
    created_at = models.DateTimeField(_("recibido"), db_default=Now(), editable=False)
    read_at = models.DateTimeField(_("leído"), null=True, blank=True)

    objects = NotificationQuerySet.as_manager()

    class Meta:
        verbose_name = _("aviso")
        verbose_name_plural = _("avisos")
        ordering = ["-created_at", "-id"]
        indexes = [
            # For the inbox: the latest of one user.
            models.Index(fields=["user", "-created_at"], name="notification_latest"),
        ]

    def __str__(self) -> str:
        return self.subject


class RetiredContactQuerySet(ScopedQuerySet["RetiredContact"]):
    doctor_path = "doctor"

    def for_user(self, user: AnyUser) -> Self:
        """The addresses in the files of the user's patients; all of them for ops."""
        if getattr(user, "is_superuser", False) and user.is_active:
            return self
        emails = Patient.objects.for_user(user).exclude(email="").values(lowered=Lower("email"))
        return self.filter(channel=ChannelName.EMAIL, address__in=emails)


class RetiredContact(models.Model):
    """An address at which nobody is reached: unused until it is corrected, or somebody deletes this."""

    class Why(models.TextChoices):
        BOUNCED = "bounced", _("Rebotó: no existe o ya no recibe mensajes")
        # Postmark keeps a list of those who bounced or complained before.
        INACTIVE = "inactive", _("El proveedor de correo ya no le escribe, porque rebotó o se quejó antes")
        INVALID = "invalid", _("No está bien escrita")

    address = models.CharField(_("dirección"), max_length=ADDRESS_LENGTH)
    channel = models.CharField(_("canal"), max_length=10, choices=ChannelName.choices)
    why = models.CharField(_("motivo"), max_length=10, choices=Why.choices)
    at = models.DateTimeField(_("desde"), db_default=Now(), editable=False)

    objects = RetiredContactQuerySet.as_manager()

    class Meta:
        verbose_name = _("dirección que no sirve")
        verbose_name_plural = _("direcciones que no sirven")
        ordering = ["-at"]
        constraints = [
            # Serves reach too: which of these addresses are retired.
            models.UniqueConstraint(fields=["address", "channel"], name="retired_once_per_address"),
            # Who writes an address in capitals means the same mailbox.
            models.CheckConstraint(condition=Q(address=Lower("address")), name="retired_in_lower_case"),
        ]

    def __str__(self) -> str:
        return f"{self.get_channel_display()} {self.pk}"
