"""Who treats whom, and where."""

from __future__ import annotations

from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

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
