"""Days of the engine on a clock that the test turns: what left, over which channel, and when.

Unless a test says otherwise: as in ``timeline_values``, with a patient who can
be reached by WhatsApp and by mail, and rules that stand since long ago.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any

from pytest_django.fixtures import Settings

from appointments import clock
from appointments.models import Appointment
from reminders import dispatch, planner
from reminders.channels.base import ChannelError, Message, Receipt
from reminders.channels.locmem import LocmemChannel, outbox
from reminders.flight import Flight
from reminders.models import ReminderDelivery, ReminderRule
from reminders.timeline import OffsetUnit, ReminderType
from tests.factories import (
    CARACAS,
    MARK,
    agree,
    make_appointment,
    make_office,
    make_patient,
    make_rule,
    only_rules,
)
from tests.timeline_values import WHATSAPP_AND_MAIL, ZONES, at, rule

MINUTE = timedelta(minutes=1)
_count = itertools.count(1)
_LETTERS = {
    OffsetUnit.MINUTES: ("min", 1),
    OffsetUnit.HOURS: ("h", 60),
    OffsetUnit.DAYS: ("d", 1_440),
    OffsetUnit.MONTHS: ("mo", 43_200),
}
_refusals: dict[str, ChannelError] = {}


class ChannelOfADay(LocmemChannel):
    """Takes everything, while the test says nothing else of it."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def send(self, message: Message, payload: dict[str, Any]) -> Receipt:
        if refusal := _refusals.get(self.name):
            raise refusal
        return await super().send(message, payload)


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A message that left."""

    at: datetime
    row: ReminderDelivery
    message: Message

    def told(self, place: str) -> str:
        """``24h whatsapp 2026-09-16T10:00``, by the clock of the place."""
        return f"{offset_of(self.row)} {self.row.channel} {self.at.astimezone(ZONES[place]):%Y-%m-%dT%H:%M}"


def offset_of(row: ReminderDelivery) -> str:
    """``24h``, ``1d`` or ``6mo``."""
    letter, minutes = _LETTERS[OffsetUnit(row.offset_unit)]
    return f"{abs(row.offset_minutes) // minutes}{letter}"


class Days:
    """The engine, with a turn in each minute in which something may be due."""

    def __init__(
        self, settings: Settings, set_clock: Callable[[str], datetime], place: str = "Caracas"
    ) -> None:
        self._set_clock = set_clock
        self.settings = settings
        self.place = place
        settings.CHANNEL_BACKENDS = {
            name: {"BACKEND": "tests.days.ChannelOfADay", "OPTIONS": {"name": name}}
            for name in ("whatsapp", "email", "in_app")
        }
        settings.REMINDER_CHANNELS = ["whatsapp", "email", "in_app"]
        self.quiet("21:00", "07:00")
        self.refuse({})
        self.sent: list[Sent] = []
        self.now_is("2026-01-01T00:00")
        only_rules()

    def quiet(self, start: str, end: str) -> None:
        """Let these be the quiet hours."""
        self.settings.REMINDER_QUIET_HOURS = (time.fromisoformat(start), time.fromisoformat(end))

    def refuse(self, refusals: Mapping[str, ChannelError]) -> None:
        """Let these channels answer with an error from now on, and the others take everything."""
        _refusals.clear()
        _refusals.update(refusals)

    def rules(
        self, *offsets: str, kind: ReminderType = ReminderType.CITA_PROXIMA, **fields: Any
    ) -> list[ReminderRule]:
        """Make rules, by the names that they have in ``timeline_values``."""
        fields.setdefault("channels", list(WHATSAPP_AND_MAIL))
        named = [rule(offset, kind) for offset in offsets]
        return [
            make_rule(one.offset_minutes, offset_unit=one.offset_unit, reminder_type=kind, **fields)
            for one in named
        ]

    def book(
        self, start: str = "2026-09-17T10:00", booked: str = "2026-09-10T09:00", **fields: Any
    ) -> Appointment:
        """Book a visit at a time of the place for a patient who agrees to WhatsApp."""
        self.now_is(booked)
        patient = fields.pop("patient", None) or make_patient(email=f"p{next(_count)}.{MARK}@example.com")
        agree(patient)
        if "doctor" not in fields:
            fields.setdefault("office", make_office(time_zone=ZONES[self.place].key))
        return make_appointment(at=start, booked_at=clock.now(), patient=patient, **fields)

    def now_is(self, text: str) -> None:
        """Set the clock to a time of the place, and let nothing happen."""
        self._put_clock_at(self._moment(text))

    def until(self, text: str) -> list[str]:
        """Let the engine work from the clock's time to this one; what left meanwhile."""
        end = self._moment(text)
        before = len(self.sent)
        now = clock.now()
        while True:
            self._turn(now)
            if now >= end:
                return [sent.told(self.place) for sent in self.sent[before:]]
            now = min(max(_next_due(default=end), now + MINUTE), end)

    def _turn(self, now: datetime) -> None:
        self._put_clock_at(now)
        outbox.clear()
        # Twice: what ended in the first may have made its next channel due.
        for _ in range(2):
            dispatch.tidy(now=now)
            planner.plan_marked(now=now)
            with Flight(4) as flight:
                dispatch.run(clock=clock.now, flight=flight)
        for message in outbox:
            row = ReminderDelivery.objects.get(pk=message.reference.split(":")[1])
            self.sent.append(Sent(at=now, row=row, message=message))

    def _moment(self, text: str) -> datetime:
        return at(text if " " in text else f"{text} {self.place}")

    def _put_clock_at(self, moment: datetime) -> None:
        self._set_clock(f"{moment.astimezone(CARACAS):%Y-%m-%dT%H:%M:%S}")


def _next_due(*, default: datetime) -> datetime:
    """The whole minute in which the next row falls due."""
    waiting = ReminderDelivery.objects.filter(status__in=["pending", "unknown"])
    due = waiting.order_by("next_attempt_at").values_list("next_attempt_at", flat=True).first()
    if due is None:
        return default
    return (
        due if due == due.replace(second=0, microsecond=0) else due.replace(second=0, microsecond=0) + MINUTE
    )


def ends(visit: Appointment) -> list[str]:
    """``24h whatsapp booked_late``: the rows of the visit's present version, with reason or state.

    The farthest rule first, and of a rule WhatsApp, mail, inbox and the row that closes it.
    """
    visit.refresh_from_db()
    channels = ["whatsapp", "email", "in_app", ""]
    rows = sorted(
        visit.deliveries.filter(sequence=visit.sequence),
        key=lambda row: (row.offset_minutes, channels.index(row.channel)),
    )
    return [f"{offset_of(row)} {row.channel or '-'} {row.reason or row.status}" for row in rows]
