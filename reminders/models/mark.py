from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import models
from django.db.models import Q

from appointments.models import Appointment
from reminders.models.outgoing import ADDRESS_LENGTH


class MarkQuerySet(models.QuerySet["Mark"]):
    def ready(self, now: datetime) -> MarkQuerySet:
        """Marks to be worked on by now."""
        return self.filter(Q(not_before__isnull=True) | Q(not_before__lte=now))

    def besides(self, taken: Sequence[Mark]) -> MarkQuerySet:
        """What else marks the visits of these marks: one planning serves them all."""
        visits = {mark.subject_id for mark in taken}
        others = self.filter(subject=Mark.Subject.APPOINTMENT, subject_id__in=visits)
        return others.exclude(pk__in=[mark.pk for mark in taken])

    def of(self, visit: UUID | None) -> MarkQuerySet:
        """The marks of one visit; all marks for None."""
        if visit is None:
            return self
        return self.filter(subject=Mark.Subject.APPOINTMENT, subject_id=str(visit))


class Mark(models.Model):
    """That something a timeline depends on has changed. Append-only; triggers write it.

    The planner takes marks, deletes exactly those, and only then reads: what
    changes while it works leaves a mark of its own.
    """

    class Subject(models.TextChoices):
        APPOINTMENT = "appointment"
        # Contacts, zone, preferences, consent, care: all visits of a patient.
        PATIENT = "patient"
        # An opt-out: all visits of whoever uses the number or address.
        ADDRESS = "address"
        # The rules of a doctor.
        DOCTOR = "doctor"
        # The default rules, or a setting: every visit.
        EVERYTHING = "everything"

    subject = models.CharField(max_length=12, choices=Subject.choices)
    subject_id = models.CharField(max_length=ADDRESS_LENGTH, blank=True)
    changes_rules = models.BooleanField(default=False)
    """Rules act on moments that are ahead; other facts also bring back what is overdue."""
    at = models.DateTimeField()
    """When the change became true."""
    tries = models.PositiveSmallIntegerField(default=0)
    not_before = models.DateTimeField(null=True)
    """After a fault in planning: when to look again."""

    objects = MarkQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        indexes = [
            # For planning right after a booking: the marks of one visit.
            models.Index(fields=["subject_id"], name="mark_of_visit"),
            # For health: the visits whose planning fails.
            models.Index(fields=["tries"], name="mark_postponed", condition=Q(not_before__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.subject} {self.pk}"


class RulesChange(models.Model):
    """When the rules that hold for a visit last changed.

    A rule that comes to hold after its moment sends nothing, then and whenever
    the visit is planned again.
    """

    appointment = models.OneToOneField(Appointment, models.CASCADE, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.pk)


class PlanBasis(models.Model):
    """The settings with which the present plan was made: one row."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    fingerprint = models.CharField(max_length=64)

    def __str__(self) -> str:
        return self.fingerprint
