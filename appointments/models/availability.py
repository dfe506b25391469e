"""When a doctor sees patients."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from appointments.access import ScopedQuerySet
from appointments.models.people import Doctor, Office


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
