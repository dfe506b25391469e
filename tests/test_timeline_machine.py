"""Anything may happen to visits, in any order, and what leaves is right: the engine against a model.

Hypothesis books, moves, calls off, brings back, completes and corrects, edits
rules, refuses and changes contacts, plays receipts and outages, and turns the
clock. ``timeline_model`` says of each message whether it may leave, and of each
visit what it must have led to. Longer: ``MACHINE_EXAMPLES=500 pytest …``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from appointments import booking
from appointments.models import Appointment, Patient
from reminders import call_list, dispatch, planner, preferences, receipts
from reminders.channels import base
from reminders.channels.locmem import LocmemChannel
from reminders.flight import Flight
from reminders.models import Mark, NotificationPreference, ReminderDelivery, ReminderRule
from tests.factories import (
    MARK,
    agree,
    make_appointment,
    make_office,
    make_patient,
    make_phone,
    make_rule,
    only_rules,
)
from tests.timeline_model import (
    AFTER,
    BEFORE,
    BOOKED,
    CALLED_OFF,
    CHANGED,
    MINUTE,
    OPEN,
    PURPOSE,
    Message,
    Person,
    Visit,
    When,
    instant,
    objections,
    promise,
)  # fmt: skip

EXAMPLES = int(os.environ.get("MACHINE_EXAMPLES", "10"))
STEPS = int(os.environ.get("MACHINE_STEPS", "40"))
CARACAS, NEW_YORK, MADRID = (
    ZoneInfo(name) for name in ("America/Caracas", "America/New_York", "Europe/Madrid")
)
BEGIN = datetime(2026, 10, 30, 13, tzinfo=UTC)
"""A Friday; in the night of the Sunday New York's clocks go back."""
CHANNELS = ["whatsapp", "email"]
OFFSETS = [
    When(-1440, "hours"),
    When(-120, "hours"),
    When(-1440, "days"),
    When(-2880, "days"),
    When(-45, "minutes"),
]
ANSWERS: dict[str, Callable[[], Exception | None]] = {
    "takes": lambda: None,
    "refuses": lambda: base.Undeliverable("131026"),
    "is busy": lambda: base.Throttled("130429"),
    "fails": lambda: base.ChannelError("131000"),
    "is silent": lambda: base.AnswerLost("answer_lost"),
}
FOLLOW_UP = (AFTER, When(1440, "hours"))
MOST_VISITS = 8
WHO, WHICH = st.integers(0, 1), st.integers(0, 9)
CHANGES_OF_A_PERSON = st.sampled_from(
    ["stop", "choose", "stop", "choose", "new number", "no mail", "new mail"]
)
OFTEN_WHATSAPP = [*CHANNELS, "whatsapp"]
KINDS = [BEFORE, BEFORE, BEFORE, AFTER, CHANGED]
CLOCKS = st.sampled_from([time(0, 30), time(1, 30), time(7), time(9), time(13, 45), time(20)])


class Provider(LocmemChannel):
    """Answers as the machine says, and tells it what it was asked to carry."""

    gives_receipts = True
    answers: dict[str, str] = {}
    calls: list[tuple[str, base.Message, bool]] = []

    def __init__(self, name: str) -> None:
        self.name = name

    async def send(self, message: base.Message, payload: dict[str, Any]) -> base.Receipt:
        error = ANSWERS[Provider.answers.get(self.name, "takes")]()
        # A lost answer may be that to a message which was taken.
        Provider.calls.append((self.name, message, error is None or isinstance(error, base.AnswerLost)))
        if error:
            raise error
        return await super().send(message, payload)


class Timeline(RuleBasedStateMachine):
    """The engine and the model side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.stack.enter_context(transaction.atomic())
        Provider.answers, Provider.calls = {}, []
        self.now = BEGIN
        self.sent: list[Message] = []
        self.known: dict[str, Message] = {}
        self.visits: dict[Any, tuple[Appointment, Visit]] = {}
        self.people: list[tuple[Patient, Person]] = []
        self.rules: dict[int, list[When]] = {}

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.stack.close()

    # --- Where it begins ---------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        self._set_clock(datetime(2026, 1, 1, tzinfo=UTC))
        only_rules()
        for kind, when in [(BEFORE, OFFSETS[0]), (BEFORE, OFFSETS[1]), (BEFORE, OFFSETS[3]), FOLLOW_UP]:
            self._keep(make_rule(when.minutes, offset_unit=when.unit, reminder_type=kind, channels=CHANNELS))
        for kind in (BOOKED, CHANGED, CALLED_OFF):
            self._keep(make_rule(0, offset_unit="minutes", reminder_type=kind, channels=CHANNELS))
        self.offices = {zone: make_office(time_zone=zone.key) for zone in (CARACAS, NEW_YORK)}
        for number, zone in enumerate((None, MADRID)):
            address = f"p{number}.{MARK}@example.com"
            patient = make_patient(email=address, time_zone=zone.key if zone else "")
            agree(patient)
            self.people.append((patient, Person(zone, {"whatsapp": patient.phone, "email": address})))
        self._set_clock(BEGIN)
        self.book(0, CARACAS, 2, time(9))
        self.book(1, NEW_YORK, 3, time(7))
        self._tick()

    def _keep(self, made: ReminderRule) -> None:
        self.rules.setdefault(made.pk, []).append(When(made.offset_minutes, made.offset_unit))

    # --- What happens to visits ----------------------------------------------------------

    @rule(who=WHO, place=st.sampled_from([CARACAS, NEW_YORK]), days=st.integers(0, 4), clock=CLOCKS)
    def book(self, who: int, place: ZoneInfo, days: int, clock: time) -> None:
        starts_at = instant((self.now + timedelta(days=days)).astimezone(place).date(), clock, place)
        if starts_at <= self.now or len(self.visits) == MOST_VISITS:
            return
        patient, person = self.people[who]
        made = make_appointment(at=starts_at, patient=patient, office=self.offices[place], booked_at=self.now)
        self.visits[made.pk] = (made, Visit(person, place, starts_at, booked_at=self.now))

    @rule(who=WHO, clock=CLOCKS)
    def book_for_tomorrow(self, who: int, clock: time) -> None:
        """Too late for some reminders, in time for others."""
        self.book(who, CARACAS, 1, clock)

    def _pick(self, which: int, *statuses: str) -> tuple[Appointment, Visit] | None:
        fit = [pair for pair in self.visits.values() if pair[1].status in statuses]
        return fit[which % len(fit)] if fit else None

    @rule(
        which=WHICH,
        minutes=st.sampled_from([-1440, -120, 15, 180, 1440, 2880]),
        and_back=st.booleans(),
    )
    def move(self, which: int, minutes: int, and_back: bool) -> None:
        if pair := self._pick(which, *OPEN):
            made, visit = pair
            before, target = visit.starts_at, visit.starts_at + timedelta(minutes=minutes)
            if target <= self.now or before <= self.now:
                return
            moments = self._waiting_for(made)
            self._move_to(made, visit, target)
            if and_back:
                self._move_to(made, visit, before)
                planner.plan_marked(now=self.now)
                if not any(one.visit is visit and one.kind in (BEFORE, CHANGED) for one in self.sent):
                    assert self._waiting_for(made) == moments, "there and back is not as if nothing had been"

    def _waiting_for(self, made: Appointment) -> list[Any]:
        planner.plan_marked(now=self.now)
        made.refresh_from_db()
        rows = made.deliveries.filter(status="pending", sequence=made.sequence, reminder_type=BEFORE)
        return sorted(rows.values_list("rule", "channel", "scheduled_for"), key=str)

    def _move_to(self, made: Appointment, visit: Visit, target: datetime) -> None:
        local = target.astimezone(visit.zone)
        booking.reschedule(made, date=local.date(), start_time=local.time(), actor=booking.SYSTEM)
        visit.move(instant(local.date(), local.time(), visit.zone), self.now)

    @rule(which=WHICH, what=st.sampled_from(["cancel", "cancel", "reinstate", "reinstate", "confirm"]))
    def decide(self, which: int, what: str) -> None:
        pair = self._pick(
            which, *{"cancel": OPEN, "reinstate": ("cancelled",), "confirm": ("scheduled",)}[what]
        )
        if pair is None or not getattr(booking, what)(pair[0], actor=booking.SYSTEM):
            return
        if what == "confirm":
            pair[1].status = "confirmed"
        else:
            getattr(pair[1], what)(self.now)

    @rule(which=WHICH, came=st.booleans())
    def close(self, which: int, came: bool) -> None:
        """Completed, or did not come; said once more it is a correction."""
        pair = self._pick(which, *OPEN, "completed", "no_show")
        if pair is None or pair[1].starts_at > self.now:
            return
        verb = booking.complete if came else booking.mark_no_show
        if verb(pair[0], actor=booking.SYSTEM):
            pair[1].status = "completed" if came else "no_show"
            pair[1].completed_at = self.now if came else None

    # --- What is set, wanted and known -----------------------------------------------------

    @rule(which=WHICH, what=st.sampled_from(["switch", "turn", "unread", "delete", "new", "edit", "edit"]))
    def change_rules(self, which: int, what: str) -> None:
        before = ReminderRule.objects.filter(reminder_type=BEFORE).order_by("pk")
        all_of_them = ReminderRule.objects.order_by("pk")
        if what in ("switch", "turn", "unread"):
            one = all_of_them[which % len(all_of_them)]
            one.is_enabled = one.is_enabled != (what == "switch")
            one.channels = one.channels[:: -1 if what == "turn" else 1]
            if what == "unread":
                one.fallback_after_minutes = None if one.fallback_after_minutes else 60
            one.save()
            return
        taken = {When(one.offset_minutes, one.offset_unit) for one in before}
        free = [when for when in OFFSETS if when not in taken]
        one = before[which % len(before)] if before else None
        if what == "new" and free:
            when = free[which % len(free)]
            self._keep(make_rule(when.minutes, offset_unit=when.unit, channels=CHANNELS))
        elif one and what == "delete" and len(before) > 1:
            one.delete()
        elif one and what == "edit" and free:
            one.offset_minutes, one.offset_unit = free[0].minutes, free[0].unit
            one.save()
            self._keep(one)

    @rule(
        who=WHO,
        what=CHANGES_OF_A_PERSON,
        channel=st.sampled_from(OFTEN_WHATSAPP),
        kind=st.sampled_from(KINDS),
    )
    def change_a_person(self, who: int, what: str, channel: str, kind: str) -> None:
        patient, person = self.people[who]
        if what == "stop":
            self._stop(patient, person, channel)
        elif what == "choose":
            wanted = (channel, kind) in person.refused
            NotificationPreference.objects.update_or_create(
                patient=patient, channel=channel, reminder_type=kind, defaults={"is_enabled": wanted}
            )
            (person.refused.discard if wanted else person.refused.add)((channel, kind))
        else:
            if what == "new number":
                patient.phone = make_phone()
            else:
                patient.email = f"p{patient.phone[-4:]}.{MARK}@example.com" if what == "new mail" else ""
            patient.save()
            person.addresses = {"whatsapp": patient.phone, "email": patient.email}

    def _stop(self, patient: Patient, person: Person, channel: str) -> None:
        address = person.addresses.get(channel, "")
        told: dict[str, Any] = {
            "address": address,
            "channel": channel,
            "patient": patient,
            "evidence": "BAJA",
        }
        if address in person.stopped:
            preferences.opt_in(**told)
            person.stopped.discard(address)
        elif address:
            preferences.opt_out(**told)
            person.stopped.add(address)

    @rule(channel=st.sampled_from(CHANNELS), how=st.sampled_from(sorted(ANSWERS)))
    def provider(self, channel: str, how: str) -> None:
        Provider.answers[channel] = how

    @rule(
        which=WHICH,
        status=st.sampled_from(["sent", "delivered", "read", "failed"]),
        twice=st.booleans(),
    )
    def receipt(self, which: int, status: str, twice: bool) -> None:
        """News of a message that a provider has, whether or not its answer reached us."""
        if not self.known:
            return
        reference = list(self.known)[which % len(self.known)]
        message = self.known[reference]
        if "failed" in message.heard and status != "failed":
            return
        news = receipts.Receipt(reference=reference, message_id=f"m.{reference}", status=status, at=self.now)
        assert receipts.advance_all([news] * (2 if twice else 1)) == [True] * (2 if twice else 1)
        message.heard.add(status)
        if status == "failed" and not message.heard & {"delivered", "read"}:
            message.is_taken = False

    # --- Time ----------------------------------------------------------------------------

    @rule()
    def wait_for_the_next(self) -> None:
        """Until the next row is due."""
        self._set_clock(self._next_due(self.now + MINUTE))
        self._tick()

    @rule(minutes=st.sampled_from([4, 20, 90, 600, 1440]))
    def pass_time(self, minutes: int) -> None:
        """With a tick in each minute in which something may be due."""
        end = self.now + minutes * MINUTE
        while self.now < end:
            self._tick()
            self._set_clock(min(max(self._next_due(end), self.now + MINUTE), end))
        self._tick()

    @rule(minutes=st.sampled_from([10, 360, 2880]))
    def outage(self, minutes: int) -> None:
        self._set_clock(self.now + minutes * MINUTE)
        self._tick()

    @rule(minutes=st.sampled_from([1, 10]))
    def clock_steps_back(self, minutes: int) -> None:
        """Nothing that left leaves again for it."""
        last = max([pair[1].changed_at or pair[1].booked_at for pair in self.visits.values()], default=BEGIN)
        if self.now - minutes * MINUTE > last:
            self._set_clock(self.now - minutes * MINUTE)
            self._turn()
            self._set_clock(self.now + minutes * MINUTE)

    def _set_clock(self, moment: datetime) -> None:
        self.now = moment
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('amedi.now', %s, true)", [moment.isoformat()])

    def _next_due(self, otherwise: datetime) -> datetime:
        waiting = ReminderDelivery.objects.filter(
            status__in=["pending", "unknown"], next_attempt_at__gt=self.now
        )
        first = waiting.order_by("next_attempt_at").values_list("next_attempt_at", flat=True).first()
        return first or otherwise

    def _tick(self) -> None:
        while self._turn() or Mark.objects.ready(self.now).exists():
            pass
        assert self._turn() == 0, "a second run at the same instant sent something"
        self._check_that_planning_changes_nothing()
        self._check_that_nobody_is_forgotten()

    def _turn(self) -> int:
        dispatch.tidy(now=self.now)
        planner.plan_marked(now=self.now)
        with Flight(4) as flight:
            dispatch.run(clock=lambda: self.now, flight=flight)
        calls, Provider.calls = Provider.calls, []
        for channel, message, is_taken in calls:
            for one in (message, *message.also):
                mates = [self._row_of(other) for other in (message, *message.also) if other is not one]
                self._judge(channel, one, is_taken, [self.visits[row.appointment_id][1] for row in mates])
        return len(calls)

    def _row_of(self, message: base.Message) -> ReminderDelivery:
        return ReminderDelivery.objects.select_related("rule").get(pk=message.reference.split(":")[1])

    # --- What must hold ------------------------------------------------------------------

    def _judge(self, channel: str, message: base.Message, is_taken: bool, mates: list[Visit]) -> None:
        row = self._row_of(message)
        assert row.rule
        told = Message(
            at=self.now,
            visit=self.visits[row.appointment_id][1],
            version=row.sequence,
            kind=row.reminder_type,
            when=When(row.offset_minutes, row.offset_unit),
            channel=channel,
            address=message.to,
            is_taken=is_taken,
            waits_for_reading=bool(row.rule.fallback_after_minutes),
            ever=tuple(self.rules[row.rule.pk]),
            mates=tuple(mates),
        )
        wrong = list(objections(told, self.sent))
        its = {name: str(getattr(row, name)) for name in ("scheduled_for", "useful_until", "fallback_of_id")}
        assert not wrong, f"{told.kind} {told.when} over {channel} at {self.now}: {wrong}; {its} {told.visit}"
        assert told.when in self.rules[row.rule.pk], "no rule ever named this moment"
        self.sent.append(told)
        if is_taken:
            self.known[message.reference] = told

    def _check_that_planning_changes_nothing(self) -> None:
        before = self._rows()
        Mark.objects.bulk_create(
            Mark(subject="appointment", subject_id=str(pk), at=self.now)
            for pk, (_made, visit) in self.visits.items()
            if visit.starts_at > self.now
        )
        planner.plan_marked(now=self.now)
        assert self._rows() == before, "to plan again changed something"

    def _rows(self) -> list[Any]:
        fields = ("pk", "status", "reason", "scheduled_for", "next_attempt_at", "useful_until", "channel")
        return sorted(ReminderDelivery.objects.values_list(*fields), key=str)

    def _check_that_nobody_is_forgotten(self) -> None:
        to_call = {row.appointment_id for row in call_list.unreached(self.now)}
        for made, visit in self.visits.values():
            if visit.status != "scheduled" or visit.starts_at <= self.now:
                continue
            for one in ReminderRule.objects.filter(reminder_type=BEFORE, is_enabled=True):
                self._check_that_it_led_to_something(one, made, visit, is_called=made.pk in to_call)

    def _check_that_it_led_to_something(
        self, one: ReminderRule, made: Appointment, visit: Visit, *, is_called: bool
    ) -> None:
        """A moment that a rule names ahead waits at that very moment; one that has come left a trace."""
        when = When(one.offset_minutes, one.offset_unit)
        due = promise(when, visit, visit.starts_at, lead=timedelta(minutes=30))
        rows = [
            row
            for row in made.deliveries.filter(reminder_type=BEFORE, sequence=visit.version)
            if row.rule_id == one.pk or When(row.offset_minutes, row.offset_unit) == when
        ]
        if due <= max(visit.changed_at or visit.booked_at, one.in_force_since) + timedelta(minutes=40):
            return
        assert rows, f"{when} of a visit at {visit.starts_at} led to nothing"
        if any(row.called_at and When(row.offset_minutes, row.offset_unit) != when for row in rows):
            return  # the rule has spoken of this version, at the moment that it had before
        if due > self.now:
            waiting = {row.scheduled_for for row in rows if row.status == "pending"}
            reasons = {row.reason for row in rows if row.reason}
            assert waiting == {due} or (not waiting and reasons), f"{when}: {due} is awaited at {waiting}"
            assert waiting or not visit.person.ways(BEFORE) or reasons & (PURPOSE | {"quiet_hours"})
        elif not any(
            row.status in ("pending", "sending", "unknown", "sent", "delivered", "read") for row in rows
        ):
            reasons = {row.reason for row in rows}
            assert is_called or reasons & PURPOSE or self._was_reached(visit), f"silence: {when}, {reasons}"

    def _was_reached(self, visit: Visit) -> bool:
        return any(
            message.is_taken and message.visit is visit and message.version == visit.version
            for message in self.sent
        )


@pytest.mark.django_db
def test_whatever_happens_nothing_wrong_leaves_and_nobody_is_forgotten(settings_of_the_machine: None) -> None:
    run_state_machine_as_test(
        Timeline,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize="MACHINE_EXAMPLES" not in os.environ,
            database=None,
            suppress_health_check=list(HealthCheck),
            # What fails prints its steps; to make them fewer would take many minutes.
            phases=[Phase.generate],
        ),
    )


@pytest.fixture
def settings_of_the_machine(settings: Any) -> Iterator[None]:
    settings.CHANNEL_BACKENDS = {
        name: {"BACKEND": "tests.test_timeline_machine.Provider", "OPTIONS": {"name": name}}
        for name in CHANNELS
    }
    settings.REMINDER_CHANNELS = CHANNELS
    settings.REMINDER_QUIET_HOURS = (time(21), time(7))
    yield
