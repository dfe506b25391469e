"""What patients want to get, and the evidence that they agreed to it."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower, Now
from django.utils.translation import gettext_lazy as _

from appointments.access import ScopedQuerySet
from appointments.models import Patient
from reminders.models.labels import TYPE_CHOICES, ChannelName
from reminders.models.outgoing import ADDRESS_LENGTH


class NotificationPreferenceQuerySet(ScopedQuerySet["NotificationPreference"]):
    doctor_path = "patient__doctors"
    is_shared = True


class NotificationPreference(models.Model):
    """One patient's choice for one kind of reminder on one channel."""

    patient = models.ForeignKey(Patient, models.CASCADE, verbose_name=_("paciente"))
    reminder_type = models.CharField(_("tipo"), max_length=20, choices=TYPE_CHOICES)
    channel = models.CharField(_("canal"), max_length=10, choices=ChannelName.choices)
    is_enabled = models.BooleanField(_("lo recibe"), default=True)

    objects = NotificationPreferenceQuerySet.as_manager()

    class Meta:
        verbose_name = _("preferencia")
        verbose_name_plural = _("preferencias")
        constraints = [
            models.UniqueConstraint(
                fields=["patient", "reminder_type", "channel"], name="preference_once_per_kind_and_channel"
            )
        ]

    def __str__(self) -> str:
        return f"{self.get_reminder_type_display()} · {self.get_channel_display()}"


class ContactOptOut(models.Model):
    """A number or address that wants nothing more on a channel, whoever uses it."""

    address = models.CharField(_("número o dirección"), max_length=ADDRESS_LENGTH)
    channel = models.CharField(_("canal"), max_length=10, choices=ChannelName.choices)
    at = models.DateTimeField(_("desde"), db_default=Now(), editable=False)

    class Meta:
        verbose_name = _("baja de un contacto")
        verbose_name_plural = _("bajas de contactos")
        constraints = [
            models.UniqueConstraint(fields=["address", "channel"], name="opt_out_once_per_address")
        ]
        indexes = [
            # For reach: who wants nothing more, however the address was written.
            models.Index(Lower("address"), name="opt_out_in_lower_case"),
        ]

    def __str__(self) -> str:
        return f"{self.get_channel_display()} {self.pk}"


class ConsentEventQuerySet(ScopedQuerySet["ConsentEvent"]):
    doctor_path = "patient__doctors"
    is_shared = True

    def last_words(self, channel: str) -> ConsentEventQuerySet:
        """The last word of each patient on a channel."""
        return self.filter(channel=channel).order_by("patient_id", "-id").distinct("patient_id")


class ConsentEvent(models.Model):
    """That somebody agreed to a channel or refused it. Only ever added to.

    WhatsApp requires an opt-in before the first message (WhatsApp Business
    Messaging Policy); this is the evidence of it.
    """

    class How(models.TextChoices):
        IMPORT = "import", _("Agenda importada")
        DESK = "desk", _("En el consultorio")
        PATIENT = "patient", _("El paciente mismo")

    patient = models.ForeignKey(Patient, models.PROTECT, verbose_name=_("paciente"))
    channel = models.CharField(_("canal"), max_length=10, choices=ChannelName.choices)
    agrees = models.BooleanField(_("acepta"))
    how = models.CharField(_("por dónde"), max_length=10, choices=How.choices)
    evidence = models.CharField(
        _("constancia"),
        max_length=300,
        help_text=_("El formulario, la frase o el toque con que lo dijo."),
    )
    recorded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.DO_NOTHING,
        null=True,
        blank=True,
        db_constraint=False,
        verbose_name=_("anotado por"),
    )
    at = models.DateTimeField(_("cuándo"), db_default=Now(), editable=False)

    objects = ConsentEventQuerySet.as_manager()

    class Meta:
        verbose_name = _("consentimiento")
        verbose_name_plural = _("consentimientos")
        ordering = ["-id"]
        indexes = [
            # For last_words(): the last word of a patient on a channel.
            models.Index(fields=["channel", "patient", "-id"], name="consent_latest"),
        ]

    def __str__(self) -> str:
        return f"{self.get_channel_display()} {self.pk}"
