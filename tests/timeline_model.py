"""What may be sent when, worked out anew: shares no code with the engine.

Small on purpose, and in its own words: it says of one message whether it may
leave at an instant, and of one visit what it must have led to. Instants are UTC.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
HALF_AN_HOUR = timedelta(minutes=30)
PAUSE = timedelta(minutes=3)
BEFORE = "cita_proxima"
AFTER = "seguimiento"
BOOKED, CHANGED, CALLED_OFF = "reserva", "cambio", "cancelacion"
OPEN = ("scheduled", "confirmed")
BEDTIME, WAKING = time(21), time(7)
SILENT = "in_app"
PURPOSE = {
    "booked_late", "covered_by_notice", "superseded", "opted_out", "no_consent", "do_not_send",
    "undone", "told_directly", "paused", "moved", "visit_cancelled", "visit_closed", "channel_replaced",
    "rule_disabled", "rule_deleted", "rule_replaced",
}  # fmt: skip
"""Reasons for which nobody need call the patient."""


def instant(day: date, clock: time, zone: ZoneInfo) -> datetime:
    """The instant of a local time: the first of two, and one that the clocks skip moves on (P3)."""
    return datetime.combine(day, clock, zone).astimezone(UTC)


@dataclass(frozen=True)
class When:
    """A moment that a rule has named at some time: hours are elapsed, days are of the calendar (P2)."""

    minutes: int
    unit: str

    def of(self, anchor: datetime, zone: ZoneInfo) -> datetime:
        if self.unit != "days":
            return anchor + timedelta(minutes=self.minutes)
        local = anchor.astimezone(zone)
        return instant(local.date() + timedelta(days=self.minutes // 1440), local.time(), zone)


@dataclass
class Person:
    """A patient: where they live, how they can be reached, and what they do not want."""

    zone: ZoneInfo | None
    addresses: dict[str, str] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    """Addresses from which came STOP."""
    refused: set[tuple[str, str]] = field(default_factory=set)
    """Channel and type, as switched off by the patient."""

    def wants(self, channel: str, kind: str) -> bool:
        return self.addresses.get(channel) not in self.stopped and (channel, kind) not in self.refused

    def ways(self, kind: str) -> set[str]:
        return {
            channel for channel, address in self.addresses.items() if address and self.wants(channel, kind)
        }


@dataclass(eq=False)
class Visit:
    """An appointment, with all that was ever true of it."""

    person: Person
    zone: ZoneInfo
    starts_at: datetime
    booked_at: datetime
    status: str = "scheduled"
    version: int = 0
    changed_at: datetime | None = None
    """Since when it is as it now is: booked, moved, called off or brought back."""
    completed_at: datetime | None = None
    was: list[tuple[datetime, datetime | None]] = field(default_factory=list)
    """From when on it was at which time; None while it was called off."""

    def __post_init__(self) -> None:
        self.was.append((self.booked_at, self.starts_at))

    @property
    def expected_at(self) -> set[datetime]:
        """When the patient may expect it: also where nobody has told of a move yet."""
        return {starts_at for _since, starts_at in self.was if starts_at}

    def was_like_this(self, moment: datetime) -> bool:
        """Whether what it is now it was then already, whatever was done and undone since."""
        then = [starts_at for since, starts_at in self.was if since <= moment]
        return bool(then) and then[-1] == self.was[-1][1]

    def move(self, starts_at: datetime, now: datetime) -> None:
        if starts_at != self.starts_at:
            self.starts_at, self.status, self.changed_at = starts_at, "scheduled", now
            self.version += 1
            self.was.append((now, starts_at))

    def cancel(self, now: datetime) -> None:
        self.status, self.changed_at = "cancelled", now
        self.was.append((now, None))

    def reinstate(self, now: datetime) -> None:
        self.status, self.changed_at = "scheduled", now
        self.version += 1
        self.was.append((now, self.starts_at))


@dataclass(eq=False)
class Message:
    """Something that a provider was asked to carry."""

    at: datetime
    visit: Visit
    version: int
    kind: str
    when: When
    channel: str
    address: str
    is_taken: bool
    waits_for_reading: bool
    """Whether its rule tries the next channel where it stays unread."""
    ever: tuple[When, ...] = ()
    """The moments that its rule has had: what was promised by one of them may stay (P12)."""
    mates: tuple[Visit, ...] = ()
    """The other visits that the same mail tells of."""
    heard: set[str] = field(default_factory=set)
    """What receipts have said of it."""

    @property
    def moment(self) -> tuple[int, int, str, When]:
        return id(self.visit), self.version, self.kind, self.when

    @property
    def settles_it(self) -> bool:
        """Whether no other channel is to say the same."""
        return "read" in self.heard or ("delivered" in self.heard and not self.waits_for_reading)


def is_night(moment: datetime, person: Person, place: ZoneInfo) -> bool:
    """Whether it is from nine in the evening to seven in the morning where the patient is (P4)."""
    clock = moment.astimezone(person.zone or place).time()
    return clock >= BEDTIME or clock < WAKING


def promise(when: When, visit: Visit, anchor: datetime, *, lead: timedelta | None) -> datetime:
    """The moment, or where the night moves it: to its end, or before it where that is too late (P5)."""
    moment = when.of(anchor, visit.zone)
    zone = visit.person.zone or visit.zone
    if not is_night(moment, visit.person, visit.zone):
        return moment
    local = moment.astimezone(zone)
    morning = instant(local.date() + timedelta(days=local.time() >= BEDTIME), WAKING, zone)
    if lead is None or visit.starts_at - morning >= lead:
        return morning
    evening = instant(local.date() - timedelta(days=local.time() < WAKING), BEDTIME, zone)
    return evening - timedelta(minutes=15)


def objections(message: Message, before: list[Message]) -> Iterator[str]:
    """Why a message may not leave at its instant, after those that left before."""
    visit, now = message.visit, message.at
    person = visit.person
    if not person.wants(message.channel, message.kind):
        yield "the patient wants no such message there"
    if message.address != person.addresses.get(message.channel):
        yield "it goes to an address that is not the patient's"
    if message.version != visit.version:
        yield "it is about a version that is no more"
    is_fresh = message.kind == BOOKED and now < (visit.changed_at or visit.booked_at) + HALF_AN_HOUR
    if message.channel != SILENT and is_night(now, person, visit.zone) and not is_fresh:
        yield "it comes at night"
    yield from _objections_of_kind(message)
    same = [other for other in before if other.moment == message.moment and other.is_taken]
    if any(other.channel == message.channel for other in same):
        yield "the same step was taken before"
    if len(same) > 1:
        yield "two channels carried it before"
    if any(other.settles_it for other in same):
        yield "it had arrived on another channel"
    if message.kind == BEFORE and any(_is_nearer(other, message) for other in before):
        yield "one nearer the visit, or another in the same minute, went before it"


def _is_nearer(other: Message, message: Message) -> bool:
    visit = message.visit
    return (
        other.is_taken
        and other.visit is visit
        and (other.version, other.kind, other.channel) == (message.version, message.kind, message.channel)
        and (
            other.at == message.at
            or other.when.of(visit.starts_at, visit.zone) > message.when.of(visit.starts_at, visit.zone)
        )
    )


def _due_with(message: Message, mate: Visit) -> datetime:
    """When the mail was due for another visit of the day that it tells of."""
    days = {one.starts_at.astimezone(one.zone).date() for one in (message.visit, mate)}
    if mate.person is not message.visit.person or len(days) > 1:
        return message.at + MINUTE
    return promise(message.when, mate, mate.starts_at, lead=HALF_AN_HOUR)


def _objections_of_kind(message: Message) -> Iterator[str]:
    visit, now = message.visit, message.at
    if message.kind == BEFORE:
        if visit.status not in OPEN:
            yield f"the visit is {visit.status}"
        moments = {message.when, *message.ever}
        due = min(promise(when, visit, visit.starts_at, lead=HALF_AN_HOUR) for when in moments)
        # What was meant to come that late may.
        if visit.starts_at - now < (HALF_AN_HOUR if visit.starts_at - due > HALF_AN_HOUR else MINUTE):
            yield "it comes too late to help"
        if now < min([due, *(_due_with(message, mate) for mate in message.mates)]):
            yield "it comes before its moment"
        if all(when.of(visit.starts_at, visit.zone) <= visit.booked_at + HALF_AN_HOUR for when in moments):
            yield "its moment had passed when the visit was booked"
    elif message.kind == AFTER:
        if visit.status != "completed" or visit.completed_at is None:
            yield f"the visit is {visit.status}"
        elif not timedelta(0) <= now - message.when.of(visit.completed_at, visit.zone) < timedelta(hours=72):
            yield "it is not the time for it"
    elif message.kind == CALLED_OFF:
        if visit.status != "cancelled":
            yield "nothing was called off"
    elif visit.status not in OPEN:
        yield f"the visit is {visit.status}"
    expected = max(visit.expected_at) if message.kind == CALLED_OFF else visit.starts_at
    if message.kind in (BOOKED, CHANGED, CALLED_OFF) and now >= expected:
        yield "the visit's time has passed"
    # So near the visit there is no time for a pause.
    can_wait = visit.was[-1][0] + PAUSE < expected
    if message.kind in (CHANGED, CALLED_OFF) and can_wait and not visit.was_like_this(now - PAUSE):
        yield "the pause for an undo is not over"
