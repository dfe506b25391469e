"""Which reminder of a visit goes when, over which channel, and why not.

Pure: values in, values out, no clock and no table. What is planned late counts
from when its cause became true, so the same rows come out whenever it runs.
Instants are aware and mean UTC; local dates and times are those of the place.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from appointments.local_time import instant


class ReminderType(StrEnum):
    PREPARACION = "preparacion"
    CITA_PROXIMA = "cita_proxima"
    LLEGADA = "llegada"
    SEGUIMIENTO = "seguimiento"
    CONTROL = "control"
    # Notices: of an event, at no moment of their own.
    RESERVA = "reserva"
    CAMBIO = "cambio"
    CANCELACION = "cancelacion"


class OffsetUnit(StrEnum):
    # Elapsed time.
    MINUTES = "minutes"
    HOURS = "hours"
    # Calendar time: the same clock on another day.
    DAYS = "days"
    MONTHS = "months"


class Reason(StrEnum):
    """Why a row ended without being sent."""

    # skipped: on purpose
    OPTED_OUT = "opted_out"
    NO_CONSENT = "no_consent"
    NO_CONTACT = "no_contact"
    NO_CHANNEL = "no_channel"
    DO_NOT_SEND = "do_not_send"
    BOOKED_LATE = "booked_late"
    COVERED_BY_NOTICE = "covered_by_notice"
    SUPERSEDED = "superseded"
    QUIET_HOURS = "quiet_hours"
    CHANNEL_OFF = "channel_off"
    TEMPLATE_UNAVAILABLE = "template_unavailable"
    HAS_LATER_VISIT = "has_later_visit"
    UNDONE = "undone"
    TOLD_DIRECTLY = "told_directly"
    PAUSED = "paused"
    # cancelled: the visit or the rule went
    MOVED = "moved"
    VISIT_CANCELLED = "visit_cancelled"
    VISIT_CLOSED = "visit_closed"
    RULE_DISABLED = "rule_disabled"
    RULE_DELETED = "rule_deleted"
    RULE_REPLACED = "rule_replaced"
    CHANNEL_REPLACED = "channel_replaced"
    # expired
    TOO_LATE = "too_late"
    # failed
    REFUSED = "refused"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    NO_ANSWER = "no_answer"


MINIMUM_LEAD = {
    ReminderType.CITA_PROXIMA: timedelta(minutes=30),
    ReminderType.PREPARACION: timedelta(hours=12),
    ReminderType.LLEGADA: timedelta(0),
}
"""What a reminder before the visit must leave to be of use. The keys are those types."""
USEFUL_AFTER = {ReminderType.SEGUIMIENTO: timedelta(hours=72), ReminderType.CONTROL: timedelta(days=30)}
"""How long after its moment a reminder after the visit is of use."""
NOTICES = {ReminderType.RESERVA, ReminderType.CAMBIO, ReminderType.CANCELACION}
NOTICE_LEAD = timedelta(minutes=30)
"""What a notice must leave before the visit when it waits for the end of quiet hours."""
GRACE = timedelta(minutes=30)
"""The patient has just booked, or heard of a change: no reminder within this time."""
AHEAD_OF_QUIET_HOURS = timedelta(minutes=15)
MINUTES_IN_A_DAY = 1_440
MINUTES_IN_A_MONTH = 43_200
"""How a rule stores a month; it is read as a calendar month."""
SILENT_CHANNEL = "in_app"
"""The inbox wakes nobody: quiet hours do not bind it."""

SETTLED = {Reason.SUPERSEDED, Reason.QUIET_HOURS}
"""What the last look before the call may decide of a promise, for good."""
FELL = ("failed", "skipped", "cancelled")
"""How a step that was called ends without success: the rule's next channel takes over."""

Reach = Mapping[ReminderType, Mapping[str, Reason | None]]
"""Type → channel → None where it can be used, else why it cannot. One that is missing is off."""


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One version of an appointment, as far as its timeline depends on it."""

    date: date
    start_time: time
    zone: ZoneInfo
    """Of the place of care; ``date`` and ``start_time`` are local to it."""
    starts_at: datetime
    status: str
    sequence: int
    booked_at: datetime | None
    """None when unknown: booked elsewhere, earlier, and imported."""
    created_at: datetime
    """When we learnt of the visit."""
    completed_at: datetime | None = None
    same_as: frozenset[int] = frozenset()
    """Earlier versions that the patient cannot tell from this one: a change that was undone."""
    changed_at: datetime | None = None
    """When the patient is told of a change; None while they know the visit as it was booked."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """When a reminder goes, and over which channels."""

    key: int | str
    type: ReminderType
    offset_minutes: int
    """Negative before the visit, positive after it, 0 for a notice."""
    offset_unit: OffsetUnit
    channels: tuple[str, ...]
    """In order of preference; none means "do not send"."""
    since: datetime
    """When the rule, as it now stands, came into force."""
    doctor: int | None = None
    specialty: int | None = None
    is_enabled: bool = True


@dataclass(frozen=True, kw_only=True)
class QuietHours:
    """Local times [start, end) in which nobody is disturbed; both the same means none."""

    start: time
    end: time
    zone: ZoneInfo


@dataclass(frozen=True, kw_only=True)
class Row:
    """A delivery that exists already."""

    rule: int | str | None
    type: ReminderType
    offset_minutes: int
    offset_unit: OffsetUnit
    channel: str
    sequence: int
    status: str
    reason: str
    scheduled_for: datetime
    was_called: bool
    is_fallback: bool = False
    """Whether it goes in place of a step that ended without success."""
    is_given_up: bool = False
    """Whether it was sent, and nobody waits any more for the news that it arrived or was read."""


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A delivery as it ought to be."""

    rule: int | str
    channel: str
    """Empty on the closing row of a rule that has no step to run."""
    status: str
    """``pending`` or ``skipped``."""
    reason: str
    """Empty while pending, else a Reason."""
    scheduled_for: datetime
    """The promise; of a skipped row, the moment that it would have had."""
    useful_until: datetime
    in_place_of: str = ""
    """The channel of the step that was called without success, where this is the next one."""


Timing = tuple[datetime, Reason | None]
"""A promise, and why it is not kept; None where it is."""


def effective(rules: Iterable[Rule], *, doctor: int | None, specialty: int | None) -> list[Rule]:
    """The rules that hold for a visit: per type, all of the most specific active level."""
    applicable = _applicable(rules, doctor=doctor, specialty=specialty)
    best: dict[ReminderType, tuple[bool, bool]] = {}
    for rule in applicable:
        best[rule.type] = max(_level(rule), best.get(rule.type, (False, False)))
    return [rule for rule in applicable if _level(rule) == best[rule.type]]


def held_over(
    rules: Iterable[Rule],
    *,
    doctor: int | None,
    specialty: int | None,
    rows: Collection[Row],
    planned: Collection[Planned],
) -> list[Rule]:
    """The rules that were replaced, and still have to keep what they promised.

    New rules act on moments ahead only (P12). Where all of a type are past, what
    the rules before them had promised is not lost: it goes on, channel by
    channel. ``rows`` are those of the visit's version, ``planned`` what the
    effective rules say of it. A rule without channels is a word too: do not send.
    """
    applicable = _applicable(rules, doctor=doctor, specialty=specialty)
    in_force = effective(applicable, doctor=doctor, specialty=specialty)
    named = {wish.rule for wish in planned}
    spoken_for = {
        rule.type
        for rule in in_force
        if not rule.channels
        or rule.key in named
        or any(row.was_called and _speaks_for(row, rule) for row in rows)
    }
    open_ends = {
        row.rule
        for row in rows
        if row.is_given_up or row.status in ("pending", "sending", "unknown", "failed")
    }
    return [
        rule
        for rule in applicable
        if rule not in in_force and rule.type not in spoken_for | NOTICES and rule.key in open_ends
    ]


def notices_since(
    rules: Iterable[Rule], *, doctor: int | None, specialty: int | None
) -> dict[ReminderType, datetime]:
    """From when on each kind of notice is given of a visit; without those that are not given.

    A rule that takes another's place takes on what the other has not said yet.
    """
    applicable = _applicable(rules, doctor=doctor, specialty=specialty)
    in_force = effective(applicable, doctor=doctor, specialty=specialty)
    given = {rule.type for rule in in_force if rule.type in NOTICES and rule.channels}
    return {kind: min(rule.since for rule in applicable if rule.type is kind) for kind in given}


def _applicable(rules: Iterable[Rule], *, doctor: int | None, specialty: int | None) -> list[Rule]:
    return [
        rule
        for rule in rules
        if rule.is_enabled and rule.doctor in (doctor, None) and rule.specialty in (specialty, None)
    ]


def _level(rule: Rule) -> tuple[bool, bool]:
    return rule.doctor is not None, rule.specialty is not None


def moment(rule: Rule, visit: Visit) -> datetime | None:
    """The instant that a rule names, before quiet hours; None while its anchor is missing.

    A follow-up counts from the mark that the visit is over, the others from its start.
    """
    if rule.type is ReminderType.SEGUIMIENTO:
        if visit.completed_at is None:
            return None
        anchor = visit.completed_at
        local = anchor.astimezone(visit.zone)
        day, clock = local.date(), local.time()
    else:
        anchor, day, clock = visit.starts_at, visit.date, visit.start_time
    if rule.offset_unit is OffsetUnit.DAYS:
        return instant(day + timedelta(days=rule.offset_minutes // MINUTES_IN_A_DAY), clock, visit.zone)
    if rule.offset_unit is OffsetUnit.MONTHS:
        return instant(_months_later(day, rule.offset_minutes // MINUTES_IN_A_MONTH), clock, visit.zone)
    # Arithmetic in a zone of its own would be that of the clock on the wall.
    return anchor.astimezone(UTC) + timedelta(minutes=rule.offset_minutes)


def _months_later(day: date, months: int) -> date:
    """The same day of a later month, or its last one where it has no such day."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def out_of_quiet_hours(
    moment: datetime,
    *,
    type: ReminderType,  # noqa: A002
    starts_at: datetime,
    quiet: QuietHours,
) -> datetime | None:
    """A moment, moved to the end of the quiet hours that it falls into.

    Where that leaves less than the minimum lead before the visit, it is 15
    minutes before the quiet hours begin: earlier than the moment, so the caller
    asks whether it is past. None when the quiet hours leave no room there either.
    """
    night = _night(moment, quiet)
    if night is None:
        return moment
    begins, ends = night
    lead = NOTICE_LEAD if type in NOTICES else MINIMUM_LEAD.get(type)
    # A message that is due at the very start would leave after it.
    if lead is None or (ends < starts_at and starts_at - ends >= lead):
        return ends
    ahead = begins - AHEAD_OF_QUIET_HOURS
    return None if _night(ahead, quiet) else ahead


def _night(moment: datetime, quiet: QuietHours) -> tuple[datetime, datetime] | None:
    """The instants between which the quiet hours around a moment lie; None outside of them."""
    if quiet.start == quiet.end:
        return None
    length = timedelta(days=1 if quiet.start > quiet.end else 0)
    local = moment.astimezone(quiet.zone)
    for day in (local.date() - timedelta(days=1), local.date()):
        begins = instant(day, quiet.start, quiet.zone)
        ends = instant(day + length, quiet.end, quiet.zone)
        if begins <= moment < ends:
            return begins, ends
        # Where the clocks go back over the end, they show a quiet time once more.
        again = datetime.combine(day + length, quiet.end, quiet.zone).replace(fold=1).astimezone(UTC)
        if ends <= moment < again and local.fold and local.time() < quiet.end:
            return begins, again
    return None


def next_chance(
    now: datetime,
    *,
    type: ReminderType,  # noqa: A002
    starts_at: datetime,
    quiet: QuietHours,
    channel: str = "",
) -> datetime | None:
    """When a row that is due may go: ``now``, or the end of the quiet hours.

    None when that would come too late for the visit: the row ends with ``quiet_hours``.
    """
    chance = for_channel(now, channel, kind=type, starts_at=starts_at, quiet=quiet)
    return chance if chance is not None and chance >= now else None


def for_channel(
    moment: datetime, channel: str, *, kind: ReminderType, starts_at: datetime, quiet: QuietHours
) -> datetime | None:
    """A moment out of the quiet hours, where the channel is bound by them; None where there is no room."""
    if channel == SILENT_CHANNEL:
        return moment
    return out_of_quiet_hours(moment, type=kind, starts_at=starts_at, quiet=quiet)


def useful_until(kind: ReminderType, moment: datetime, starts_at: datetime) -> datetime:
    """Until when a row that is overdue may still go out.

    A moment within the minimum lead was chosen so by its rule: it may go until
    the visit starts.
    """
    if kind in NOTICES:
        return starts_at
    if kind in USEFUL_AFTER:
        return moment + USEFUL_AFTER[kind]
    latest = starts_at - MINIMUM_LEAD[kind]
    return latest if moment < latest else starts_at


def superseded_by(row: Row, siblings: Iterable[Row]) -> bool:
    """Whether one of the visit's rows whose moment has come goes in this one's place.

    Of one version, type and channel only the row nearest the visit goes. A next
    channel gives way to a nearer one on whatever channel: it would say the same
    once more, and later.
    """
    return any(
        _distance(other) < _distance(row)
        and (other.sequence, other.type) == (row.sequence, row.type)
        and (other.channel == row.channel or (row.is_fallback and not _fell(other)))
        for other in siblings
    )


def _fell(row: Row) -> bool:
    """Whether a row that was called ended without success, as far as the next channel is concerned."""
    return row.is_given_up or (row.status in FELL and row.reason not in SETTLED)


def _distance(row: Row) -> tuple[int, str, str]:
    # Unit and rule only break ties, so that exactly one row goes.
    return abs(row.offset_minutes), row.offset_unit, str(row.rule)


def is_wanted(kind: ReminderType, status: str) -> bool:
    """Whether a visit in this status still calls for a message of this type."""
    if kind is ReminderType.CANCELACION:
        return status == "cancelled"
    is_after = kind in USEFUL_AFTER
    return status in (("completed",) if is_after else ("scheduled", "confirmed"))


def plan(
    visit: Visit,
    *,
    rules: Sequence[Rule],
    reach: Reach,
    quiet: QuietHours,
    rows: Collection[Row],
    rules_changed_at: datetime | None = None,
    unplanned_since: datetime | None = None,
) -> list[Planned]:
    """The rows that a visit ought to have, beside those that were called.

    ``rules`` are the effective ones, ``rows`` all that exist. What was called
    stays as it is and is not repeated here, nor is what came to its end by
    itself; a pending or closing row that is not in the answer has lost its cause.
    Where all that was called ended without success, the next channel follows.
    ``rules_changed_at`` says that this planning is due to a change of rules at
    that instant: it acts on moments that are ahead only. ``unplanned_since`` is
    when something else became true that was never planned since; what was due
    by it before the rules changed is not lost to them.
    """
    rows = [
        row
        for row in rows
        if row.sequence == visit.sequence or (row.sequence in visit.same_as and row.was_called)
    ]
    return [
        planned
        for rule in rules
        if rule.type not in NOTICES
        and is_wanted(rule.type, visit.status)
        # A visit that was over when we learnt of it has nothing before it.
        and (rule.type not in MINIMUM_LEAD or visit.starts_at > visit.created_at)
        for planned in _plan_rule(
            rule,
            visit,
            reach.get(rule.type, {}),
            quiet,
            rows,
            rules_changed_at=rules_changed_at,
            unplanned_since=unplanned_since,
        )
    ]


def _plan_rule(
    rule: Rule,
    visit: Visit,
    obstacles: Mapping[str, Reason | None],
    quiet: QuietHours,
    rows: Collection[Row],
    *,
    rules_changed_at: datetime | None,
    unplanned_since: datetime | None,
) -> list[Planned]:
    nominal = moment(rule, visit)
    if nominal is None:
        return []
    in_force = max(rule.since, rules_changed_at or rule.since)
    # What became true before the rules changed, and was never planned, comes first (P17).
    rules_are_news = _latest_fact(visit).at < in_force and not (
        unplanned_since and unplanned_since < in_force
    )

    def timing(channel: str, waiting: Sequence[Row]) -> Timing | None:
        final = for_channel(nominal, channel, kind=rule.type, starts_at=visit.starts_at, quiet=quiet)
        if rules_are_news and (final or nominal) <= in_force:
            # The rule's new moment is past: what was promised before is not lost.
            return (waiting[0].scheduled_for, None) if waiting else None
        return final or nominal, _untimely(visit, nominal=nominal, final=final)

    return say(rule, starts_at=visit.starts_at, obstacles=obstacles, rows=rows, timing=timing)


def say(
    rule: Rule,
    *,
    starts_at: datetime,
    obstacles: Mapping[str, Reason | None],
    rows: Iterable[Row],
    timing: Callable[[str, Sequence[Row]], Timing | None],
) -> list[Planned]:
    """The rows by which a rule speaks once about one version of a visit.

    ``rows`` are those of the version, ``starts_at`` ends the use of what is
    said. ``timing`` is asked for the channel, with the rule's rows that wait; it
    answers None where the rule has nothing new to say.
    """
    rows = list(rows)
    own = [row for row in rows if row.rule == rule.key and not row.was_called]
    called = [row for row in rows if row.was_called and _speaks_for(row, rule)]
    if called:
        return _go_on(rule, starts_at, obstacles, own, called)
    steps = _Steps.of(rule, starts_at, _with_templates(obstacles, own))
    when = timing(steps.channel, [row for row in own if row.status in ("pending", "sending")])
    if when is None:
        return _as_they_are(own, steps)
    promise, reason = when
    if (reason is Reason.QUIET_HOURS or _kept_quiet(steps.channel, own, promise)) and (
        inbox := steps.silently(obstacles)
    ):
        own = [row for row in own if row.channel == SILENT_CHANNEL]
        steps, (promise, reason) = inbox, (reason and timing(SILENT_CHANNEL, own)) or (promise, None)
    failed = [row for row in own if row.status == "failed" and row.scheduled_for == promise]
    if failed:
        # It could not even be composed, or killed whoever tried.
        return _go_on(rule, starts_at, obstacles, own, failed)
    if reason is None and any(_is_settled(row, promise) for row in own):
        return _as_they_are(own, steps)
    return steps.rows(promise, reason)


def _go_on(
    rule: Rule,
    starts_at: datetime,
    obstacles: Mapping[str, Reason | None],
    own: Collection[Row],
    tried: Collection[Row],
) -> list[Planned]:
    """The next step of a rule whose steps so far ended without success; nothing while one may succeed.

    It keeps their promise: what was due then is due at once.
    """
    last = max(tried, key=lambda row: _place(row.channel, rule))
    promise = last.scheduled_for
    tried = [*tried, *(row for row in own if row.status == "failed" and row.scheduled_for == promise)]
    if not all(_fell(row) for row in tried):
        return []
    # Silence costs one message more at most: what went in its place is not followed for being silent too.
    if sum(row.is_given_up for row in tried) > 1:
        return []
    own = [row for row in own if row not in tried]
    left = tuple(channel for channel in rule.channels if channel not in {row.channel for row in tried})
    steps = _Steps.of(
        replace(rule, channels=left), starts_at, _with_templates(obstacles, own), in_place_of=last.channel
    )
    if any(_is_settled(row, promise) for row in own):
        return _as_they_are(own, steps)
    # A failure is an end that is seen, and so is silence; what ended before it needs a row that says so.
    is_seen = any(row.status == "failed" or row.is_given_up for row in tried)
    return [row for row in steps.rows(promise, None) if row.channel or not is_seen]


def _place(channel: str, rule: Rule) -> int:
    return rule.channels.index(channel) if channel in rule.channels else -1


def _with_templates(
    obstacles: Mapping[str, Reason | None], own: Iterable[Row]
) -> Mapping[str, Reason | None]:
    """The obstacles, with what the last look found of a channel's template."""
    found = {row.channel for row in own if row.reason == Reason.TEMPLATE_UNAVAILABLE}
    return {**obstacles, **dict.fromkeys(found, Reason.TEMPLATE_UNAVAILABLE)} if found else obstacles


def _speaks_for(row: Row, rule: Rule) -> bool:
    """Whether a call of this row was the rule's one word, be it under another rule's name."""
    its_moment = (rule.type, rule.offset_minutes, rule.offset_unit)
    return row.rule == rule.key or (row.type, row.offset_minutes, row.offset_unit) == its_moment


def _kept_quiet(channel: str, own: Iterable[Row], promise: datetime) -> bool:
    """Whether the last look found that the channel cannot keep the promise outside of quiet hours."""
    return any(
        row.channel == channel and row.reason == Reason.QUIET_HOURS and row.scheduled_for == promise
        for row in own
    )


def _is_settled(row: Row, promise: datetime) -> bool:
    """Whether this promise has come to its end already, so that planning must not revive it."""
    return row.scheduled_for == promise and (row.status == "expired" or row.reason in SETTLED)


def _as_they_are(rows: Iterable[Row], steps: _Steps) -> list[Planned]:
    return [
        steps.row(row.channel, row.scheduled_for, Reason(row.reason))
        for row in rows
        if row.status == "skipped"
    ]


@dataclass(frozen=True, kw_only=True)
class _Steps:
    """The way through the channels of a rule: those that cannot run, and the first that can."""

    rule: Rule
    starts_at: datetime
    unusable: Mapping[str, Reason]
    channel: str
    """Empty when no step is left."""
    in_place_of: str

    @classmethod
    def of(
        cls,
        rule: Rule,
        starts_at: datetime,
        obstacles: Mapping[str, Reason | None],
        *,
        in_place_of: str = "",
    ) -> _Steps:
        unusable: dict[str, Reason] = {}
        usable = ""
        for channel in rule.channels:
            obstacle = obstacles.get(channel, Reason.CHANNEL_OFF)
            if obstacle is None:
                usable = channel
                break
            unusable[channel] = obstacle
        return cls(rule=rule, starts_at=starts_at, unusable=unusable, channel=usable, in_place_of=in_place_of)

    def silently(self, obstacles: Mapping[str, Reason | None]) -> _Steps | None:
        """The way to the inbox, which wakes nobody; None where it cannot be taken."""
        if self.channel == SILENT_CHANNEL or SILENT_CHANNEL not in self.rule.channels:
            return None
        noisy = {
            channel: obstacles.get(channel, Reason.CHANNEL_OFF) or Reason.QUIET_HOURS
            for channel in self.rule.channels
            if channel != SILENT_CHANNEL
        }
        way = _Steps.of(self.rule, self.starts_at, {**obstacles, **noisy}, in_place_of=self.in_place_of)
        return way if way.channel else None

    def rows(self, promise: datetime, reason: Reason | None) -> list[Planned]:
        """A row for each unusable step, and one for the first usable or the end."""
        skipped = [self.row(channel, promise, obstacle) for channel, obstacle in self.unusable.items()]
        return [*skipped, self.row(self.channel, promise, reason if self.channel else self._closing_reason())]

    def row(self, channel: str, promise: datetime, reason: Reason | None) -> Planned:
        return Planned(
            rule=self.rule.key,
            channel=channel,
            status="skipped" if reason else "pending",
            reason=reason or "",
            scheduled_for=promise,
            useful_until=useful_until(self.rule.type, promise, self.starts_at),
            in_place_of=self.in_place_of if channel else "",
        )

    def _closing_reason(self) -> Reason:
        if not self.unusable:
            # With nothing behind it, the rule names no channel at all.
            return Reason.NO_CHANNEL if self.in_place_of else Reason.DO_NOT_SEND
        reachable = set(self.unusable.values()) - {Reason.NO_CONTACT, Reason.CHANNEL_OFF}
        return Reason.OPTED_OUT if reachable == {Reason.OPTED_OUT} else Reason.NO_CHANNEL


@dataclass(frozen=True, kw_only=True)
class _Fact:
    """What the patient learnt last about this version, and until when that is enough."""

    at: datetime
    grace: timedelta
    reason: Reason

    def covers(self, moment: datetime) -> bool:
        """Whether a reminder of this moment would come too soon after it.

        "Not later than" half an hour after a booking (P6), "less than" after a notice (P11).
        """
        ends = self.at + self.grace
        return moment < ends or (moment == ends and self.reason is Reason.BOOKED_LATE)


def _latest_fact(visit: Visit) -> _Fact:
    if visit.changed_at is not None:
        return _Fact(at=visit.changed_at, grace=GRACE, reason=Reason.COVERED_BY_NOTICE)
    if visit.booked_at is not None:
        return _Fact(at=visit.booked_at, grace=GRACE, reason=Reason.BOOKED_LATE)
    # An import tells the patient nothing, so it holds nothing back that is ahead.
    return _Fact(at=visit.created_at, grace=timedelta(0), reason=Reason.BOOKED_LATE)


def _untimely(visit: Visit, *, nominal: datetime, final: datetime | None) -> Reason | None:
    """Why a moment comes too soon after what the patient has just learnt; None when it does not."""
    fact = _latest_fact(visit)
    if fact.grace and fact.covers(nominal):
        return fact.reason
    if final is None or final <= fact.at < nominal:
        return Reason.QUIET_HOURS
    return fact.reason if fact.covers(final) else None
