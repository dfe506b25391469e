"""What happens in the demonstration, told from the rows as the product writes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import models
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from appointments import clock
from appointments.models import Appointment
from reminders.models import ReminderDelivery, Reply
from reminders.models.labels import ChannelName

SOON = timedelta(minutes=15)
"""Reminders that are due later are planned without a word."""
SILENT = [ReminderDelivery.Status.SKIPPED, ReminderDelivery.Status.CANCELLED]


class Step(models.TextChoices):
    """The stations of a walk, in their order."""

    PLANNED = "planned", gettext_lazy("planificado")
    SENT = "sent", gettext_lazy("enviado")
    DELIVERED = "delivered", gettext_lazy("entregado")
    READ = "read", gettext_lazy("leído")
    TAPPED = "tapped", gettext_lazy("tocado")
    CONFIRMED = "confirmed", gettext_lazy("confirmada")
    ANSWERED = "answered", gettext_lazy("respondido")
    # No station: the end of one that leads nowhere.
    FAILED = "failed", gettext_lazy("fallido")


ORDER = list(Step)
WALK = [step for step in Step if step != Step.FAILED]


@dataclass(frozen=True, kw_only=True)
class Happening:
    """One thing that happened to one visit."""

    step: Step
    at: datetime
    """Aware, UTC."""
    visit: Appointment
    due: datetime | None = None
    """When the reminder is to leave; None for all that is no reminder."""
    channel: str = ""
    """As people call it; empty for all that is no message."""

    @property
    def line(self) -> str:
        """For the screen of whoever runs the demonstration. Its patients are invented."""
        zone = self.visit.office.zone
        about = {
            "name": self.visit.patient.full_name.split()[0],
            "visit": f"{self.visit.starts_at.astimezone(zone):%d/%m %H:%M}",
            "due": f"{self.due.astimezone(zone):%H:%M:%S}" if self.due else "",
            "id": str(self.visit.pk)[:8],
            "channel": self.channel,
        }
        return f"{self.at.astimezone(zone):%H:%M:%S}  {_sentences()[self.step] % about}"


def _sentences() -> dict[Step, str]:
    return {
        Step.PLANNED: _(
            "recordatorio por %(channel)s planificado para las %(due)s · %(name)s, cita %(id)s del %(visit)s"
        ),
        Step.SENT: _("recordatorio enviado por %(channel)s · %(name)s, cita %(id)s"),
        Step.DELIVERED: _("recordatorio entregado por %(channel)s · %(name)s, cita %(id)s"),
        Step.READ: _("recordatorio leído en %(channel)s · %(name)s, cita %(id)s"),
        Step.TAPPED: _("el paciente tocó un botón · %(name)s, cita %(id)s"),
        Step.CONFIRMED: _("CITA CONFIRMADA · %(name)s, cita %(id)s del %(visit)s"),
        Step.ANSWERED: _("respuesta enviada · %(name)s, cita %(id)s"),
        Step.FAILED: _("el mensaje por %(channel)s no llegó · %(name)s, cita %(id)s"),
    }


class Story:
    """Everything about the visits booked since a moment, each thing told once."""

    def __init__(self, since: datetime) -> None:
        self._since = since
        self._told: set[tuple[UUID, Step]] = set()

    def news(self) -> list[Happening]:
        """What happened since this was last asked, in the order of a walk."""
        fresh = []
        for cause, happening in self._everything():
            if (cause, happening.step) not in self._told:
                self._told.add((cause, happening.step))
                fresh.append(happening)
        # Not by time alone: receipts come with whole seconds.
        return sorted(fresh, key=lambda happening: (ORDER.index(happening.step), happening.at))

    def _everything(self) -> Iterator[tuple[UUID, Happening]]:
        visits = Appointment.objects.filter(created_at__gte=self._since).select_related("office", "patient")
        by_id = {visit.pk: visit for visit in visits}
        soon = ReminderDelivery.objects.filter(scheduled_for__lt=clock.now() + SOON)
        told = soon.filter(appointment__in=by_id).exclude(status__in=SILENT)
        for delivery in told.exclude(channel=""):
            visit = by_id[delivery.appointment_id]
            for step, at in _stations(delivery):
                channel = str(ChannelName(delivery.channel).label)
                yield (
                    delivery.pk,
                    Happening(step=step, at=at, visit=visit, due=delivery.scheduled_for, channel=channel),
                )
        for reply in Reply.objects.filter(appointment__in=by_id):
            visit = by_id[reply.appointment_id]
            yield reply.pk, Happening(step=Step.TAPPED, at=reply.created_at, visit=visit)
            if reply.sent_at:
                yield reply.pk, Happening(step=Step.ANSWERED, at=reply.sent_at, visit=visit)
        for visit in by_id.values():
            if visit.confirmed_at:
                yield visit.pk, Happening(step=Step.CONFIRMED, at=visit.confirmed_at, visit=visit)


def _stations(delivery: ReminderDelivery) -> Iterator[tuple[Step, datetime]]:
    yield Step.PLANNED, delivery.created_at
    if delivery.status == ReminderDelivery.Status.FAILED:
        yield Step.FAILED, delivery.called_at or delivery.scheduled_for
    for step, at in (
        (Step.SENT, delivery.sent_at),
        (Step.DELIVERED, delivery.delivered_at),
        (Step.READ, delivery.read_at),
    ):
        if at:
            yield step, at
