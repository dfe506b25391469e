from __future__ import annotations

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Mod, Now
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from appointments.access import AnyUser, ScopedQuerySet
from appointments.models import Doctor, Specialty
from reminders import timeline, wording
from reminders.models.labels import TYPE_CHOICES, UNIT_CHOICES, ChannelName
from reminders.timeline import OffsetUnit, ReminderType

MINUTES_IN = {OffsetUnit.MINUTES: 1, OffsetUnit.HOURS: 60, OffsetUnit.DAYS: 1_440, OffsetUnit.MONTHS: 43_200}
TWO_YEARS = 2 * 365 * 1_440
"""In minutes."""
BEFORE_TYPES = [kind.value for kind in timeline.MINIMUM_LEAD]
AFTER_TYPES = [kind.value for kind in timeline.USEFUL_AFTER]
NOTICE_TYPES = sorted(kind.value for kind in timeline.NOTICES)


class ReminderRuleQuerySet(ScopedQuerySet["ReminderRule"]):
    def for_user(self, user: AnyUser) -> Self:
        """The rules of the doctors for whom the user acts, and the defaults for all."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        return super().for_user(user) | self.filter(doctor__isnull=True)


class ReminderRule(models.Model):
    """Which reminder, when, over which channels and with which words.

    Without a doctor it is a default for all; without a specialty it holds for
    all of them. Per type the most specific level with an active rule wins whole.
    """

    doctor = models.ForeignKey(
        Doctor,
        models.CASCADE,
        null=True,
        blank=True,
        verbose_name=_("médico"),
        help_text=_("Vacío: para todos los médicos que no tengan reglas propias de este tipo."),
    )
    specialty = models.ForeignKey(
        Specialty,
        models.CASCADE,
        null=True,
        blank=True,
        verbose_name=_("especialidad"),
        help_text=_("Vacía: para todas las especialidades que no tengan reglas propias de este tipo."),
    )
    reminder_type = models.CharField(_("tipo"), max_length=20, choices=TYPE_CHOICES)
    is_enabled = models.BooleanField(_("activa"), default=True)
    offset_minutes = models.IntegerField(
        _("cuándo, en minutos"),
        help_text=_("Negativo: antes de la cita. 24 horas antes es -1440; 2 horas antes, -120. Avisos: 0."),
    )
    offset_unit = models.CharField(
        _("unidad"),
        max_length=10,
        choices=UNIT_CHOICES,
        help_text=_("Horas: tiempo transcurrido. Días y meses: la misma hora del reloj, otro día."),
    )
    channels = ArrayField(
        models.CharField(max_length=10, choices=ChannelName.choices),
        blank=True,
        default=list,
        verbose_name=_("canales, en orden"),
        help_text=_("Si el primero no puede, va el siguiente. Ninguno: no enviar."),
    )
    fallback_after_minutes = models.PositiveIntegerField(
        _("si no lo lee, otro canal a los (minutos)"), null=True, blank=True
    )
    subject_template = models.CharField(_("asunto"), max_length=200, blank=True)
    body_template = models.TextField(
        _("texto"),
        blank=True,
        help_text=_(
            "Puede usar {nombre}, {doctor}, {titulo}, {especialidad}, {fecha}, {hora}, {consultorio}, "
            "{direccion}, {indicaciones}, {enlace} y {enlace_video}. Vacío: las palabras de siempre, que son "
            "otras si la cita es por videollamada. WhatsApp no usa este texto, sino el de su plantilla "
            "aprobada por Meta."
        ),
    )
    in_force_since = models.DateTimeField(
        _("vale desde"),
        editable=False,
        db_default=Now(),
        help_text=_("Desde cuándo vale como está; lo pone la base de datos."),
    )

    objects = ReminderRuleQuerySet.as_manager()

    class Meta:
        verbose_name = _("regla")
        verbose_name_plural = _("reglas")
        ordering = ["doctor", "specialty", "reminder_type", "offset_minutes"]
        constraints = [
            models.UniqueConstraint(
                fields=["doctor", "specialty", "reminder_type", "offset_minutes", "offset_unit"],
                name="rule_once_per_level_and_moment",
                condition=Q(is_enabled=True),
                nulls_distinct=False,
                violation_error_message=_("Ya hay una regla activa de este tipo para ese mismo momento."),
            ),
            # What the timeline cannot read would stop the planning of every visit that it governs.
            models.CheckConstraint(
                name="rule_in_words_that_are_known",
                condition=Q(
                    reminder_type__in=[name for name, _label in TYPE_CHOICES],
                    offset_unit__in=[name for name, _label in UNIT_CHOICES],
                    channels__contained_by=ChannelName.values,
                ),
            ),
            models.CheckConstraint(
                name="rule_within_two_years",
                condition=Q(offset_minutes__range=(-TWO_YEARS, TWO_YEARS)),
                violation_error_message=_("El momento debe caer a menos de dos años de la cita."),
            ),
            models.CheckConstraint(
                name="rule_before_or_after_as_its_type",
                condition=Q(reminder_type__in=BEFORE_TYPES, offset_minutes__lt=0)
                | Q(reminder_type__in=AFTER_TYPES, offset_minutes__gt=0)
                | Q(reminder_type__in=NOTICE_TYPES, offset_minutes=0, offset_unit=OffsetUnit.MINUTES.value),
                violation_error_message=_(
                    "Los recordatorios previos van antes de la cita (minutos negativos); "
                    "seguimiento y control, después (positivos); los avisos salen al ocurrir "
                    "lo que avisan (0 minutos)."
                ),
            ),
            models.CheckConstraint(
                name="rule_offset_is_whole_in_its_unit",
                condition=Q(offset_unit=OffsetUnit.MINUTES.value)
                | Q(
                    offset_unit=OffsetUnit.HOURS.value,
                    offset_minutes=F("offset_minutes") - Mod("offset_minutes", 60),
                )
                | Q(
                    offset_unit=OffsetUnit.DAYS.value,
                    offset_minutes=F("offset_minutes") - Mod("offset_minutes", 1_440),
                )
                | Q(
                    offset_unit=OffsetUnit.MONTHS.value,
                    offset_minutes=F("offset_minutes") - Mod("offset_minutes", 43_200),
                ),
                violation_error_message=_(
                    "El momento debe ser un número entero de su unidad: horas de 60 minutos, "
                    "días de 1440, meses de 43200."
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_reminder_type_display()}, {self.moment_in_words()}"

    def moment_in_words(self) -> str:
        """``24 horas antes``."""
        if not self.offset_minutes:
            return _now("al ocurrir")
        count = abs(self.offset_minutes) // MINUTES_IN[OffsetUnit(self.offset_unit)]
        words = {
            OffsetUnit.MINUTES: ngettext("%d minuto", "%d minutos", count),
            OffsetUnit.HOURS: ngettext("%d hora", "%d horas", count),
            OffsetUnit.DAYS: ngettext("%d día", "%d días", count),
            OffsetUnit.MONTHS: ngettext("%d mes", "%d meses", count),
        }[OffsetUnit(self.offset_unit)]
        return f"{words % count} {_now('antes') if self.offset_minutes < 0 else _now('después')}"

    def clean(self) -> None:
        """Refuse words with an unknown variable, and a channel named twice."""
        errors: dict[str, str] = {}
        for field in ("subject_template", "body_template"):
            template = getattr(self, field)
            try:
                if template:
                    wording.check(template, is_seen_by_others=field == "subject_template")
            except wording.BadTemplate as error:
                errors[field] = str(error)
        if len(set(self.channels)) < len(self.channels):
            errors["channels"] = _now("Un canal está dos veces; déjelo una sola.")
        if errors:
            raise ValidationError(errors)

    def as_planned(self) -> timeline.Rule:
        """The rule as the timeline reads it."""
        return timeline.Rule(
            key=self.pk,
            type=ReminderType(self.reminder_type),
            offset_minutes=self.offset_minutes,
            offset_unit=OffsetUnit(self.offset_unit),
            channels=tuple(self.channels),
            since=self.in_force_since,
            doctor=self.doctor_id,
            specialty=self.specialty_id,
            is_enabled=self.is_enabled,
        )
