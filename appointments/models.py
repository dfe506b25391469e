"""People, places, appointments, and what happened to them.

``starts_at``, ``ends_at``, ``sequence``, the stamps of a status and the history
belong to database triggers (migration 0002), so that no way of writing escapes
them. Read them back after a write; never set them.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, ClassVar
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.contrib.postgres.constraints import ExclusionConstraint
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models, transaction
from django.db.models import Deferrable, F, Func, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from appointments import signals
from appointments.access import PublicQuerySet, ScopedQuerySet


def validate_time_zone(name: str) -> None:
    """Raise ValidationError unless the name is one of the zone database."""
    if name not in available_timezones():
        raise ValidationError(_("«%s» no es una zona horaria; por ejemplo, America/Caracas.") % name)


class SpecialtyQuerySet(PublicQuerySet["Specialty"]):
    pass


class Specialty(models.Model):
    """A branch of medicine. Public words: everybody sees them all."""

    name = models.CharField(_("nombre"), max_length=100, unique=True)

    objects = SpecialtyQuerySet.as_manager()

    class Meta:
        verbose_name = _("especialidad")
        verbose_name_plural = _("especialidades")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class OfficeQuerySet(ScopedQuerySet["Office"]):
    doctor_path = "doctors"
    is_shared = True


class Office(models.Model):
    """A place of care. Its zone is the one in which visits are kept and told."""

    name = models.CharField(_("nombre"), max_length=200)
    address = models.CharField(_("dirección"), max_length=300, blank=True)
    map_url = models.URLField(_("enlace al mapa"), blank=True)
    phone = models.CharField(
        _("teléfono"),
        max_length=40,
        blank=True,
        help_text=_("El que los pacientes marcan para mover o cancelar su cita."),
    )
    time_zone = models.CharField(
        _("zona horaria"), max_length=64, default="America/Caracas", validators=[validate_time_zone]
    )

    objects = OfficeQuerySet.as_manager()

    class Meta:
        verbose_name = _("consultorio")
        verbose_name_plural = _("consultorios")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)


class DoctorQuerySet(ScopedQuerySet["Doctor"]):
    doctor_path = "pk"


class Doctor(models.Model):
    """A doctor with the places where they see patients and those who act for them."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="doctor",
        verbose_name=_("usuario"),
    )
    title = models.CharField(_("título"), max_length=20, blank=True, help_text=_("Por ejemplo, Dra."))
    name = models.CharField(_("nombre"), max_length=200)
    specialties = models.ManyToManyField(Specialty, blank=True, verbose_name=_("especialidades"))
    offices = models.ManyToManyField(
        Office, blank=True, related_name="doctors", verbose_name=_("consultorios")
    )
    staff = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        blank=True,
        related_name="works_for",
        verbose_name=_("secretaría"),
        help_text=_("Quienes trabajan para este médico y ven a sus pacientes."),
    )

    objects = DoctorQuerySet.as_manager()

    class Meta:
        verbose_name = _("médico")
        verbose_name_plural = _("médicos")
        ordering = ["name"]

    def __str__(self) -> str:
        return f"{self.title} {self.name}".strip()


class PatientQuerySet(ScopedQuerySet["Patient"]):
    doctor_path = "doctors"
    is_shared = True


class Patient(models.Model):
    """Somebody who is treated. Only the doctors of the care links see them."""

    full_name = models.CharField(_("nombre y apellido"), max_length=200)
    phone = models.CharField(
        _("teléfono"),
        max_length=20,
        blank=True,
        help_text=_("Como lo marcamos: +58 y diez cifras."),
    )
    phone_as_typed = models.CharField(_("teléfono, como se escribió"), max_length=100, blank=True)
    wa_id = models.CharField(_("número en WhatsApp"), max_length=32, blank=True, editable=False)
    bsuid = models.CharField(_("usuario de WhatsApp"), max_length=160, blank=True, editable=False)
    email = models.EmailField(_("correo"), blank=True)
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="patient",
        verbose_name=_("usuario"),
    )
    time_zone = models.CharField(
        _("zona horaria"),
        max_length=64,
        blank=True,
        validators=[validate_time_zone],
        help_text=_("Vacía: la del consultorio."),
    )
    doctors = models.ManyToManyField(
        Doctor, through="Care", related_name="patients", verbose_name=_("médicos")
    )

    objects = PatientQuerySet.as_manager()

    class Meta:
        verbose_name = _("paciente")
        verbose_name_plural = _("pacientes")
        ordering = ["full_name"]
        indexes = [
            # For the import and the conversation: patients by number.
            models.Index(fields=["phone"], name="patient_phone", condition=~Q(phone="")),
        ]

    def __str__(self) -> str:
        return self.full_name

    def dial(self, phone: str, *, typed: str) -> None:
        """From now on ``phone`` (E.164, or nothing); to be saved by the caller.

        What WhatsApp told of the number before goes with it: it may be somebody else's.
        """
        if phone != self.phone:
            self.wa_id = self.bsuid = ""
        self.phone = phone
        self.phone_as_typed = typed[:100]


class CareQuerySet(ScopedQuerySet["Care"]):
    pass


class Care(models.Model):
    """That a doctor treats a patient: what lets the doctor and their staff see them."""

    doctor = models.ForeignKey(Doctor, models.CASCADE, verbose_name=_("médico"))
    patient = models.ForeignKey(Patient, models.CASCADE, verbose_name=_("paciente"))

    objects = CareQuerySet.as_manager()

    class Meta:
        verbose_name = _("relación de atención")
        verbose_name_plural = _("relaciones de atención")
        constraints = [
            models.UniqueConstraint(fields=["doctor", "patient"], name="care_once_per_doctor_and_patient")
        ]

    def __str__(self) -> str:
        return f"{self.doctor_id} → {self.patient_id}"


class AppointmentQuerySet(ScopedQuerySet["Appointment"]):
    def open(self) -> AppointmentQuerySet:
        """Visits that are still expected to happen."""
        return self.filter(status__in=Appointment.OPEN)

    def overlapping(self, doctor: Doctor, starts_at: datetime, ends_at: datetime) -> AppointmentQuerySet:
        """The doctor's visits that the constraint ``appointment_no_overlap`` holds against these instants."""
        return self.filter(
            doctor=doctor, starts_at__lt=ends_at, ends_at__gt=starts_at, is_overbooked=False
        ).exclude(status__in=Appointment.FREES_ITS_TIME)

    def delete(self) -> tuple[int, dict[str, int]]:
        """Cancel instead: the patient must hear of it, and the history stays."""
        with transaction.atomic():
            going = list(self.open().order_by().select_for_update(of=("self",)).values_list("pk", flat=True))
            Appointment._base_manager.filter(pk__in=going).update(status=Appointment.Status.CANCELLED)
            for pk in going:
                signals.changed.send(sender=Appointment, appointment_id=pk)
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
    """One transition of a visit. Written by a trigger only."""

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


class AvailabilityQuerySet(ScopedQuerySet["Availability"]):
    pass


class Availability(models.Model):
    """Hours in which a doctor sees patients at a place, week after week."""

    class Weekday(models.IntegerChoices):
        MONDAY = 0, _("lunes")
        TUESDAY = 1, _("martes")
        WEDNESDAY = 2, _("miércoles")
        THURSDAY = 3, _("jueves")
        FRIDAY = 4, _("viernes")
        SATURDAY = 5, _("sábado")
        SUNDAY = 6, _("domingo")

    doctor = models.ForeignKey(Doctor, models.CASCADE, verbose_name=_("médico"))
    office = models.ForeignKey(Office, models.CASCADE, verbose_name=_("consultorio"))
    weekday = models.PositiveSmallIntegerField(_("día"), choices=Weekday.choices)
    starts = models.TimeField(_("desde"))
    ends = models.TimeField(_("hasta"))
    slot_minutes = models.PositiveSmallIntegerField(_("minutos por cita"), default=30)
    valid_from = models.DateField(_("vale desde"), null=True, blank=True)
    valid_until = models.DateField(_("vale hasta"), null=True, blank=True)

    objects = AvailabilityQuerySet.as_manager()

    class Meta:
        verbose_name = _("horario")
        verbose_name_plural = _("horarios")
        ordering = ["weekday", "starts"]
        constraints = [
            models.CheckConstraint(
                condition=Q(ends__gt=F("starts")), name="availability_ends_after_it_starts"
            )
        ]

    def __str__(self) -> str:
        return f"{self.get_weekday_display()} {self.starts:%H:%M}–{self.ends:%H:%M}"


class AvailabilityExceptionQuerySet(ScopedQuerySet["AvailabilityException"]):
    pass


class AvailabilityException(models.Model):
    """A time in which a doctor is away, or sees patients besides the weekly hours."""

    class Kind(models.TextChoices):
        CLOSED = "closed", _("Cerrado")
        OPEN = "open", _("Apertura extra")

    doctor = models.ForeignKey(Doctor, models.CASCADE, verbose_name=_("médico"))
    office = models.ForeignKey(Office, models.CASCADE, null=True, blank=True, verbose_name=_("consultorio"))
    kind = models.CharField(_("qué"), max_length=10, choices=Kind.choices)
    starts_at = models.DateTimeField(_("desde"))
    ends_at = models.DateTimeField(_("hasta"))
    note = models.CharField(_("motivo"), max_length=200, blank=True)

    objects = AvailabilityExceptionQuerySet.as_manager()

    class Meta:
        verbose_name = _("excepción de horario")
        verbose_name_plural = _("excepciones de horario")
        ordering = ["starts_at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("starts_at")), name="exception_ends_after_it_starts"
            )
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.starts_at:%d/%m/%Y}"
