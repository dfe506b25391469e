"""What a patient has to be told of a visit at once: that it was booked, changed or called off.

Pure, like the timeline. It compares what the patient knows of a visit with what
it is now. So a change and its undo cancel out as long as nothing was said of
it, whatever path they took.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from reminders import timeline
from reminders.timeline import Planned, QuietHours, Reason, ReminderType, Row, Rule, Timing

PAUSE = timedelta(minutes=3)
"""A change, or a cancellation, and its undo within this time cancel out (P11)."""
JUST_NOW = timedelta(seconds=10)
BY_THE_PATIENT = {"whatsapp", "email"}
"""Sources of changes that the patient made by a tap: they have had the direct answer."""
BY_IMPORT = "import"
IS_OFF = "cancelled"


@dataclass(frozen=True)
class Version:
    """A visit as it was after one of its transitions."""

    sequence: int
    status: str
    patient: int | None
    starts_at: datetime
    date: date | None
    """None, like what follows, where it was not kept: long ago."""
    start_time: time | None
    modality: str
    office: int | None
    doctor: int | None
    source: str
    at: datetime

    def seen_by(self, patient: int) -> object | None:
        """What there is for a patient to know; None where they have no visit."""
        if self.status == IS_OFF or self.patient != patient:
            return None
        if self.date is None:
            return self.sequence
        return self.date, self.start_time, self.modality, self.office, self.doctor


@dataclass(frozen=True, kw_only=True)
class History:
    """All that happened to a visit, in order, and what was said of it."""

    versions: Sequence[Version]
    announces_booking: bool
    """False for an import: the patient was told of the booking elsewhere, earlier."""
    told: Collection[tuple[int, int, bool]]
    """Version, patient, and whether it was a cancellation, of each notice that may have arrived."""
    phoned: Collection[tuple[int, datetime]]
    """Patient and instant of each call in which somebody told them of the visit."""
    since: Mapping[ReminderType, datetime]
    """From when on each kind of notice is given. One that is missing is not given at all."""


@dataclass(frozen=True, kw_only=True)
class Notice:
    """Something that one patient has to be told."""

    type: ReminderType
    patient: int
    sequence: int
    """The version that it tells of; of a cancellation, the one that is off."""
    at: datetime
    """When it became true."""
    starts_at: datetime
    """The start that ends its use."""
    before: datetime
    """The start, old or new, before which it has to arrive."""
    waits: bool
    """Whether it keeps the pause, and out of quiet hours."""
    reason: Reason | None = None
    """Why it is not given."""


@dataclass(frozen=True, kw_only=True)
class _Change:
    """One change of what there is for a patient to know, with what they knew before it."""

    version: Version
    previous: Version | None
    """As it was before; None at the booking."""
    now: object | None
    known: _Change | None
    """The last change of which they have heard."""

    @property
    def type(self) -> ReminderType:
        if self.now is None:
            return ReminderType.CANCELACION
        had_one = self.known is not None and self.known.now is not None
        return ReminderType.CAMBIO if had_one else ReminderType.RESERVA

    @property
    def is_news(self) -> bool:
        return self.now != (self.known.now if self.known else None)

    @property
    def is_booking(self) -> bool:
        return self.previous is None

    @property
    def tells_of(self) -> int:
        """The version that its notice names; of a cancellation, the one that is off."""
        return self.previous.sequence if self.previous and self.now is None else self.version.sequence


def of(history: History) -> list[Notice]:
    """The notices that the last change of a visit calls for, one for each patient concerned."""
    patients = dict.fromkeys(version.patient for version in history.versions if version.patient is not None)
    changes = (_last_change(history, patient) for patient in patients)
    pairs = zip(patients, changes, strict=True)
    notices = (_notice(history, change, patient) for patient, change in pairs if change)
    return [notice for notice in notices if notice]


def what_is_known(history: History, patient: int) -> tuple[datetime | None, frozenset[int]]:
    """When the patient is told of the visit as it is now, and which earlier versions were the same to them.

    The instant is None while they know it as it was booked.
    """
    change = _last_change(history, patient)
    if change is None or change.now is None:
        return None, frozenset()
    same: frozenset[int] = frozenset()
    if not change.is_news and change.known:
        same = frozenset(
            version.sequence
            for version in history.versions
            if version.sequence >= change.known.version.sequence and version.seen_by(patient) == change.now
        ) - {change.version.sequence}
        change = change.known
    if change.is_booking:
        return None, same
    waits = change.type is not ReminderType.RESERVA and change.version.source not in BY_THE_PATIENT
    return change.version.at + (PAUSE if waits else timedelta(0)), same


def _last_change(history: History, patient: int) -> _Change | None:
    return next(reversed(list(_changes(history, patient))), None)


def _changes(history: History, patient: int) -> Iterator[_Change]:
    known: _Change | None = None
    previous: Version | None = None
    for version in history.versions:
        now = version.seen_by(patient)
        if now != (previous.seen_by(patient) if previous else None):
            change = _Change(version=version, previous=previous, now=now, known=known)
            yield change
            if _was_heard(history, change, patient):
                known = change
        previous = version


def _was_heard(history: History, change: _Change, patient: int) -> bool:
    """Whether the patient knows of a change: by our notice, by their own hand, or from elsewhere.

    Nobody has a visit booked without knowing of it.
    """
    since = history.since.get(change.type)
    return (
        change.is_booking
        or since is None
        or change.version.at <= since
        or change.version.source in BY_THE_PATIENT
        or (change.tells_of, patient, change.now is None) in history.told
    )


def _notice(history: History, change: _Change, patient: int) -> Notice | None:
    version, since = change.version, history.since.get(change.type)
    if since is None or version.at <= since or (change.is_booking and not history.announces_booking):
        return None
    if change.now is None and not (change.known and change.known.now):
        return None  # called off before they had heard of it
    starts = [version.starts_at] if change.now else []
    if change.known and change.known.now:
        starts.append(change.known.version.starts_at)
    ahead = [start for start in starts if start > version.at]
    if not ahead or starts[0] not in ahead:
        return None  # past: there is nothing left to say
    reason = None
    if not change.is_news:
        reason = Reason.UNDONE
    elif version.source in BY_THE_PATIENT or _was_on_the_phone(history, version, patient):
        reason = Reason.TOLD_DIRECTLY
    return Notice(
        type=change.type,
        patient=patient,
        sequence=change.tells_of,
        at=version.at,
        starts_at=starts[0],
        before=min(ahead),
        waits=change.type is not ReminderType.RESERVA or version.source == BY_IMPORT,
        reason=reason,
    )


def _was_on_the_phone(history: History, version: Version, patient: int) -> bool:
    """Whether the change was made while somebody had the patient on the phone."""
    return any(who == patient and abs(at - version.at) < JUST_NOW for who, at in history.phoned)


def plan(
    notice: Notice,
    rule: Rule,
    *,
    obstacles: Mapping[str, Reason | None],
    quiet: QuietHours,
    rows: Iterable[Row],
) -> list[Planned]:
    """The rows by which a rule gives a notice: its first usable channel, and why not those before it.

    ``rows`` are those of the notice's version.
    """

    def timing(channel: str, _waiting: Sequence[Row]) -> Timing:
        paused = notice.at + PAUSE
        # With no time left for the pause, the message is worth more.
        promise = paused if notice.waits and paused < notice.before else notice.at
        if notice.reason or not notice.waits:
            return promise, notice.reason
        final = timeline.for_channel(promise, channel, kind=notice.type, starts_at=notice.before, quiet=quiet)
        if final is None or final < promise:
            return promise, Reason.QUIET_HOURS
        return final, None

    if notice.reason:
        # Nobody is to be reached, so nothing stands in the way.
        obstacles = dict.fromkeys(rule.channels)
    return timeline.say(rule, starts_at=notice.starts_at, obstacles=obstacles, rows=rows, timing=timing)
