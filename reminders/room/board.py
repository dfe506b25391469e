"""Today's visits as the cards of the room: values only, ready to be shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import phonenumbers
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from appointments import local_time
from appointments.access import AnyUser
from appointments.models import Appointment, AppointmentHistory, Doctor
from reminders import call_list
from reminders.models import ReminderDelivery
from reminders.room import last_reminder, turns
from reminders.room.actions import CONFIRMED, IF_MISTAKEN, OFFERED, Action
from reminders.room.last_reminder import LastReminder, hour

Status = Appointment.Status
Source = AppointmentHistory.Source
Steps = Mapping[tuple[UUID, str], AppointmentHistory]

EXPECTED = (Status.SCHEDULED, Status.CONFIRMED)
CLOSED = (Status.COMPLETED, Status.NO_SHOW, Status.CANCELLED)
SECTIONS: tuple[tuple[str, str | Promise, str | Promise, tuple[str, ...]], ...] = (
    # name, title, what stands there when it is empty, statuses
    ("por-llegar", gettext_lazy("Por llegar"), gettext_lazy("Nadie más por llegar hoy."), EXPECTED),
    (
        "en-sala",
        gettext_lazy("En sala de espera"),
        gettext_lazy("Nadie espera en este momento."),
        (Status.CHECKED_IN,),
    ),
    (
        "en-consulta",
        gettext_lazy("En consulta"),
        gettext_lazy("Nadie está en consulta."),
        (Status.IN_CONSULTATION,),
    ),
    (
        "cerradas",
        gettext_lazy("Cerradas"),
        gettext_lazy("Todavía ninguna."),
        CLOSED,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Card:
    """One visit as the desk sees it."""

    id: UUID
    status: str
    hour: str
    starts_at: datetime
    patient: str
    turn: int | None
    """Since the patient has arrived."""
    doctor: str
    """Empty where all cards are of one doctor; in the same way the place."""
    place: str
    state: str
    """Where the visit stands, with its hour."""
    late: str
    """How long the patient has been expected in vain; empty when not."""
    reminder: LastReminder | None
    """None where a reminder does not matter any more."""
    must_be_called: bool
    """No message reached the patient, who has not answered either."""
    phone: str
    """E.164, only where the patient must be called; empty when there is none."""
    phone_as_told: str
    next: Action | None
    """What comes next by the order of things; None for a closed visit."""
    others: tuple[Action, ...]
    """What else may be noted; of a closed visit, corrections."""
    if_mistaken: str | Promise


@dataclass(frozen=True, kw_only=True)
class Section:
    """The cards of one stage of the day."""

    name: str
    title: str | Promise
    if_empty: str | Promise
    cards: tuple[Card, ...]

    @property
    def to_call(self) -> int:
        """How many patients should be called."""
        return sum(card.must_be_called for card in self.cards)


@dataclass(frozen=True, kw_only=True)
class Board:
    """The day, from those who will come to those who have left."""

    sections: tuple[Section, ...]

    @property
    def is_empty(self) -> bool:
        return not any(section.cards for section in self.sections)


def read(user: AnyUser, *, doctor: Doctor | None, now: datetime) -> Board:
    """The board of all doctors whom the user may see, or of one of them."""
    visits = today(user, doctor=doctor, now=now)
    dealer = _Dealer(user, visits, now)
    cards = [dealer.card(visit) for visit in visits]
    return Board(
        sections=tuple(
            Section(
                name=name,
                title=title,
                if_empty=if_empty,
                cards=tuple(card for card in cards if card.status in statuses),
            )
            for name, title, if_empty, statuses in SECTIONS
        )
    )


def today(user: AnyUser, *, doctor: Doctor | None, now: datetime) -> list[Appointment]:
    """The visits of the local day that it now is at their office, in the order of the day."""
    near = (now - turns.LONGEST_DAY, now + turns.LONGEST_DAY)
    visits = (
        Appointment.objects.for_user(user)
        .filter(starts_at__range=near, **({"doctor": doctor} if doctor else {}))
        .select_related("patient", "doctor", "office")
        .order_by("starts_at", "pk")
    )
    return [visit for visit in visits if visit.date == now.astimezone(visit.office.zone).date()]


class _Dealer:
    """Reads what else the cards of these visits show, once for all of them."""

    def __init__(self, user: AnyUser, visits: Sequence[Appointment], now: datetime) -> None:
        self._now = now
        self._turns = turns.of_today(user, now=now) if visits else {}
        self._reminders = _reminders(user, visits)
        self._steps = _steps(user, visits)
        self._to_call = _to_call(user, visits, now)
        self._is_of_several_doctors = len({visit.doctor_id for visit in visits}) > 1
        self._is_at_several_places = len({visit.office_id for visit in visits}) > 1

    def card(self, visit: Appointment) -> Card:
        zone, now = visit.office.zone, self._now
        is_expected = visit.status in EXPECTED
        must_be_called = visit.pk in self._to_call
        phone = visit.patient.phone if must_be_called else ""
        offered, is_closed = OFFERED[visit.status], visit.status in CLOSED
        return Card(
            id=visit.pk,
            status=visit.status,
            hour=local_time.as_told(visit.start_time),
            starts_at=visit.starts_at,
            patient=visit.patient.full_name,
            turn=self._turns.get(visit.pk),
            doctor=str(visit.doctor) if self._is_of_several_doctors else "",
            place=self._place(visit),
            state=_state(visit, self._steps, zone, now),
            late=_late(visit, now) if is_expected else "",
            reminder=(
                last_reminder.tell(self._reminders[visit.pk], zone=zone, now=now) if is_expected else None
            ),
            must_be_called=must_be_called,
            phone=phone,
            phone_as_told=as_dialled(phone),
            next=None if is_closed else offered[0],
            # Beside the number to call stands the button for what the call brings.
            others=tuple(
                action for action in offered[not is_closed :] if not (must_be_called and action is CONFIRMED)
            ),
            if_mistaken=IF_MISTAKEN.get(visit.status, ""),
        )

    def _place(self, visit: Appointment) -> str:
        if visit.modality == Appointment.Modality.VIRTUAL:
            return _("Videollamada")
        return visit.office.name if self._is_at_several_places else ""


def _reminders(user: AnyUser, visits: Iterable[Appointment]) -> Mapping[UUID, list[ReminderDelivery]]:
    """The reminders before each visit, as it stands now."""
    expected = {visit.pk: visit for visit in visits if visit.status in EXPECTED}
    rows = ReminderDelivery.objects.for_user(user).filter(appointment__in=expected, offset_minutes__lt=0)
    found = defaultdict(list)
    for row in rows:
        if row.sequence == expected[row.appointment_id].sequence:
            found[row.appointment_id].append(row)
    return found


def _steps(user: AnyUser, visits: Iterable[Appointment]) -> Steps:
    """How each visit last came into each status, for those that are told with their hour."""
    told = {visit.pk for visit in visits if visit.status in (Status.CONFIRMED, Status.IN_CONSULTATION)}
    history = AppointmentHistory.objects.for_user(user).filter(
        appointment__in=told, to_status__in=[Status.CONFIRMED, Status.IN_CONSULTATION]
    )
    return {(step.appointment_id, step.to_status): step for step in history.order_by("at", "id")}


def _to_call(user: AnyUser, visits: Iterable[Appointment], now: datetime) -> set[UUID]:
    """The visits whose patient no reminder has reached, and who has not answered either."""
    unanswered = [visit.pk for visit in visits if visit.status == Status.SCHEDULED]
    rows = call_list.unreached(now).for_user(user).filter(appointment__in=unanswered)
    return set(rows.values_list("appointment_id", flat=True))


def _state(visit: Appointment, steps: Steps, zone: ZoneInfo, now: datetime) -> str:
    def told(moment: datetime | None) -> str:
        return hour(moment, zone=zone, now=now)

    step = steps.get((visit.pk, visit.status))
    if visit.status == Status.CONFIRMED:
        by: dict[str, Any] = {
            Source.WHATSAPP: _("Confirmó por WhatsApp, %s"),
            Source.EMAIL: _("Confirmó por correo, %s"),
        }
        words = by.get(step.source if step else "", _("Confirmada, %s"))
        return str(words % told(visit.confirmed_at))
    if visit.status == Status.CHECKED_IN and visit.checked_in_at:
        waited = _lasting(now - visit.checked_in_at)
        facts = {"hour": told(visit.checked_in_at), "waited": waited}
        return _("Llegó %(hour)s, espera %(waited)s") % facts if waited else _("Llegó %(hour)s") % facts
    if visit.status == Status.IN_CONSULTATION and step:
        return _("En consulta desde %s") % told(step.at)
    if visit.status == Status.COMPLETED:
        return _("Atendida, %s") % told(visit.completed_at)
    if visit.status == Status.CANCELLED:
        return _("Cancelada, %s") % told(visit.cancelled_at)
    if visit.status == Status.SCHEDULED:
        return _("Sin confirmar")
    return visit.get_status_display()


def _late(visit: Appointment, now: datetime) -> str:
    lasting = _lasting(now - visit.starts_at)
    return _("%s de retraso") % lasting if lasting else ""


def _lasting(span: timedelta) -> str:
    """``1 h 20 min``; nothing for less than a minute."""
    minutes = int(span.total_seconds() // 60)
    if minutes < 1:
        return ""
    hours, rest = divmod(minutes, 60)
    if not hours:
        return _("%d min") % rest
    return _("%(hours)d h %(minutes)d min") % {"hours": hours, "minutes": rest}


def as_dialled(phone: str) -> str:
    """An E.164 number as people here read it: 0412-5550001."""
    if not phone:
        return ""
    number = phonenumbers.parse(phone)
    is_here = number.country_code == 58
    form = (
        phonenumbers.PhoneNumberFormat.NATIONAL if is_here else phonenumbers.PhoneNumberFormat.INTERNATIONAL
    )
    return phonenumbers.format_number(number, form)
