"""Visits, and what happened to them."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.postgres.constraints import ExclusionConstraint
from django.core.validators import MinValueValidator
from django.db import models, transaction
from django.db.models import Deferrable, F, Func, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from appointments import signals
from appointments.access import ScopedQuerySet
from appointments.models.people import Doctor, Office, Patient, Specialty

UNCLOSED_AFTER = timedelta(days=1)
"""How long after its end a visit of which nobody said how it went is left to the day's work."""


class AppointmentQuerySet(ScopedQuerySet["Appointment"]):
    def open(self) -> AppointmentQuerySet:
        """Visits that are still expected to happen."""
        return self.filter(status__in=Appointment.OPEN)

    def unclosed(self, now: datetime) -> AppointmentQuerySet:
        """Visits that ended a day ago or longer, and of which nobody said whether they took place."""
        under_way = [*Appointment.OPEN, Appointment.Status.IN_CONSULTATION]
        return self.filter(status__in=under_way, ends_at__lte=now - UNCLOSED_AFTER)

    def overlapping(self, doctor: Doctor, starts_at: datetime, ends_at: datetime) -> AppointmentQuerySet:
        """The doctor's visits that the constraint ``appointment_no_overlap`` holds against these instants."""
        return self.filter(
            doctor=doctor, starts_at__lt=ends_at, ends_at__gt=starts_at, is_overbooked=False
        ).exclude(status__in=Appointment.FREES_ITS_TIME)

    def delete(self) -> tuple[int, dict[str, int]]:
        """Cancel instead: the patient must hear of it, and the history stays."""
        with transaction.atomic():
            going = list(
                self.open().order_by("pk").select_for_update(of=("self",)).values_list("pk", flat=True)
            )
            Appointment._base_manager.filter(pk__in=going).update(status=Appointment.Status.CANCELLED)
            for pk in going:
                signals.changed.send(
                    sender=Appointment, appointment_id=pk, source=AppointmentHistory.Source.SYSTEM
                )
        return len(going), {Appointment._meta.label: len(going)}

    # As on Django's own: ``objects.delete()`` would mean every visit there is.
    delete.queryset_only = True  # type: ignore[attr-defined]


class Appointment(models.Model):
    """One visit of one patient to one doctor.

    ``date`` and ``start_time`` are local to the office; ``starts_at`` and
    ``ends_at`` the instants they mean there. ``sequence`` names the version, as
    in RFC 5545: it rises when the local start, the place, the doctor or the
    patient changes, and when a cancelled visit is reinstated.
    """

    class Status(models.TextChoices):
        # Booked, or moved since it was confirmed. confirm() moves it on.
        SCHEDULED = "scheduled", _("Agendada")
        # The patient, or the desk for them, said that they will come.
        CONFIRMED = "confirmed", _("Confirmada")
        # The patient is in the waiting room.
        CHECKED_IN = "checked_in", _("En sala de espera")
        # The patient is with the doctor.
        IN_CONSULTATION = "in_consultation", _("En consulta")
        # Over. Only a correction to NO_SHOW follows.
        COMPLETED = "completed", _("Atendida")
        # Will not happen. reinstate() brings it back as a new version.
        CANCELLED = "cancelled", _("Cancelada")
        # The patient did not come. Only a correction follows.
        NO_SHOW = "no_show", _("No asistió")

    class Modality(models.TextChoices):
        IN_PERSON = "in_person", _("Presencial")
        VIRTUAL = "virtual", _("Virtual")

    OPEN: ClassVar[list[str]] = [Status.SCHEDULED, Status.CONFIRMED, Status.CHECKED_IN]
    FREES_ITS_TIME: ClassVar[list[str]] = [Status.CANCELLED, Status.NO_SHOW]

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    doctor = models.ForeignKey(Doctor, models.PROTECT, verbose_name=_("médico"))
    patient = models.ForeignKey(Patient, models.PROTECT, verbose_name=_("paciente"))
    specialty = models.ForeignKey(
        Specialty, models.PROTECT, null=True, blank=True, verbose_name=_("especialidad")
    )
    office = models.ForeignKey(Office, models.PROTECT, verbose_name=_("consultorio"))
    date = models.DateField(_("fecha"))
    start_time = models.TimeField(_("hora"))
    duration_minutes = models.PositiveSmallIntegerField(
        _("duración en minutos"), default=30, validators=[MinValueValidator(1)]
    )
    modality = models.CharField(
        _("modalidad"), max_length=10, choices=Modality.choices, default=Modality.IN_PERSON
    )
    video_url = models.URLField(_("enlace de la videollamada"), blank=True)
    instructions = models.TextField(
        _("indicaciones"),
        blank=True,
        db_default="",
        max_length=600,
        help_text=_(
            "Lo que el paciente debe saber antes de venir, por ejemplo: «en ayunas desde la medianoche». "
            "Sale donde el texto de una regla dice {indicaciones}."
        ),
    )
    status = models.CharField(_("estado"), max_length=20, choices=Status.choices, default=Status.SCHEDULED)
    is_overbooked = models.BooleanField(
        _("sobrecupo"), default=False, help_text=_("Puede coincidir con otra cita del mismo médico.")
    )
    external_id = models.CharField(
        _("identificador en la agenda del consultorio"), max_length=100, blank=True
    )
    booked_at = models.DateTimeField(
        _("reservada"),
        null=True,
        blank=True,
        help_text=_("Cuándo se reservó de verdad; vacía si se desconoce."),
    )

    announces_booking = models.BooleanField(
        _("avisar de la reserva"),
        default=True,
        db_default=True,
        editable=False,
        help_text=_("Si el paciente debe recibir un aviso de que la cita quedó reservada."),
    )

    # The triggers' columns.
    starts_at = models.DateTimeField(_("comienza"), editable=False, db_default=Now())
    ends_at = models.DateTimeField(_("termina"), editable=False, db_default=Now())
    sequence = models.PositiveIntegerField(_("versión"), editable=False, db_default=0)
    sequence_at = models.DateTimeField(_("versión desde"), editable=False, db_default=Now())
    created_at = models.DateTimeField(_("registrada"), editable=False, db_default=Now())
    confirmed_at = models.DateTimeField(_("confirmada"), null=True, editable=False)
    checked_in_at = models.DateTimeField(_("llegó"), null=True, editable=False)
    completed_at = models.DateTimeField(_("atendida"), null=True, editable=False)
    cancelled_at = models.DateTimeField(_("cancelada"), null=True, editable=False)

    objects = AppointmentQuerySet.as_manager()

    class Meta:
        verbose_name = _("cita")
        verbose_name_plural = _("citas")
        ordering = ["starts_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["doctor", "external_id"],
                name="appointment_external_id_once_per_doctor",
                condition=~Q(external_id=""),
            ),
            models.CheckConstraint(condition=Q(duration_minutes__gte=1), name="appointment_lasts_a_minute"),
            ExclusionConstraint(
                name="appointment_no_overlap",
                expressions=[
                    (F("doctor"), "="),
                    (Func(F("starts_at"), F("ends_at"), function="tstzrange"), "&&"),
                ],
                condition=~Q(status__in=["cancelled", "no_show"]) & Q(is_overbooked=False),
                # Checked when a statement ends: one that shifts a whole day
                # passes through overlaps on its way.
                deferrable=Deferrable.IMMEDIATE,
            ),
        ]
        indexes = [
            # For the admin's list and the room: a doctor's visits by time.
            models.Index(fields=["doctor", "starts_at"], name="appointment_doctor_start"),
            # For the planner: what is still to come, by start.
            models.Index(fields=["starts_at"], name="appointment_start"),
            # For the import: a patient's visits of one day.
            models.Index(fields=["patient", "date"], name="appointment_patient_date"),
        ]

    def __str__(self) -> str:
        # No name: this ends up in messages and page titles.
        return f"{self.date:%d/%m/%Y} {self.start_time:%H:%M}"

    def delete(self, *_args: Any, **_options: Any) -> tuple[int, dict[str, int]]:
        """Cancel instead: the patient must hear of it, and the history stays."""
        return Appointment.objects.filter(pk=self.pk).delete()


class AppointmentHistoryQuerySet(ScopedQuerySet["AppointmentHistory"]):
    doctor_path = "appointment__doctor"


class AppointmentHistory(models.Model):
    """One transition of a visit, and the visit as it was after it. Written by a trigger only."""

    class Source(models.TextChoices):
        ADMIN = "admin", _("Administración")
        API = "api", _("API")
        WHATSAPP = "whatsapp", _("WhatsApp")
        EMAIL = "email", _("Correo")
        IMPORT = "import", _("Importación")
        SYSTEM = "system", _("Sistema")

    appointment = models.ForeignKey(
        Appointment, models.CASCADE, related_name="history", verbose_name=_("cita")
    )
    from_status = models.CharField(_("de"), max_length=20, choices=Appointment.Status.choices, blank=True)
    to_status = models.CharField(_("a"), max_length=20, choices=Appointment.Status.choices)
    old_starts_at = models.DateTimeField(_("comenzaba"), null=True)
    new_starts_at = models.DateTimeField(_("comienza"))
    sequence = models.PositiveIntegerField(_("versión"))
    # What the patient has to know of the version. Empty where it was passed before this was kept.
    date = models.DateField(_("fecha"), null=True)
    start_time = models.TimeField(_("hora"), null=True)
    modality = models.CharField(
        _("modalidad"), max_length=10, choices=Appointment.Modality.choices, blank=True, db_default=""
    )
    office = models.ForeignKey(
        Office, models.PROTECT, null=True, db_index=False, related_name="+", verbose_name=_("consultorio")
    )
    doctor = models.ForeignKey(
        Doctor, models.PROTECT, null=True, db_index=False, related_name="+", verbose_name=_("médico")
    )
    patient = models.ForeignKey(
        Patient, models.PROTECT, null=True, db_index=False, related_name="+", verbose_name=_("paciente")
    )
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, db_constraint=False, verbose_name=_("quién")
    )
    source = models.CharField(_("por dónde"), max_length=10, choices=Source.choices)
    at = models.DateTimeField(_("cuándo"), db_default=Now())

    objects = AppointmentHistoryQuerySet.as_manager()

    class Meta:
        verbose_name = _("movimiento")
        verbose_name_plural = _("historia")
        ordering = ["at", "id"]

    def __str__(self) -> str:
        return f"{self.get_from_status_display()} → {self.get_to_status_display()}".strip()
