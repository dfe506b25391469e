"""What planning would do, without doing it: what would go out, and what would not and why.

The planner's own reading and its own computing; nothing is written and nothing
is locked.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from appointments.models import Appointment
from reminders import marks
from reminders.models import Mark, ReminderDelivery
from reminders.planner import BATCH, Desk, Plan
from reminders.timeline import Reason

logger = logging.getLogger(__name__)
Status = ReminderDelivery.Status
SHOWN = 20
"""How many rows are told one by one; of all of them only the number is told."""


@dataclass(frozen=True, kw_only=True)
class Going:
    """A pending reminder, as it would be after planning."""

    at: datetime
    visit: UUID
    reminder_type: str
    channel: str
    zone: ZoneInfo
    """Of the place of care."""


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What would go out if all that is marked were planned now, and why the rest would not."""

    visits: int
    waiting: int
    """Visits among them that wait to be planned."""
    going: Counter[tuple[str, str]]
    """Type and channel → pending rows."""
    withheld: Counter[tuple[str, str, str]]
    """Type, channel and reason → rows that could still help, and do not go."""
    first: tuple[Going, ...]
    unplannable: int
    """Visits of which nothing can be said; the log names them."""


def of_all(*, now: datetime) -> Outlook:
    """What planning all that is marked would make of every visit that can still change. Writes nothing."""
    waiting = marks.waiting(now=now)
    visits = {*marks.covered(Mark(subject=Mark.Subject.EVERYTHING), now=now), *waiting}
    going: list[Going] = []
    withheld: Counter[tuple[str, str, str]] = Counter()
    unplannable = 0
    for desk in desks(visits):
        for visit in desk.appointments:
            outcome = outcome_of(desk, visit, waiting.get(visit.pk, []))
            if outcome is None:
                unplannable += 1
                continue
            going += outcome.going(now)
            withheld.update(outcome.withheld(now))
    return Outlook(
        visits=len(visits),
        waiting=len(waiting),
        going=Counter((each.reminder_type, each.channel) for each in going),
        withheld=withheld,
        first=tuple(sorted(going, key=lambda each: (each.at, each.visit, each.channel))[:SHOWN]),
        unplannable=unplannable,
    )


@dataclass(frozen=True, kw_only=True)
class _State:
    """What is asked of a row, before and after."""

    sequence: int
    reminder_type: str
    channel: str
    status: str
    reason: str
    scheduled_for: datetime
    next_attempt_at: datetime
    useful_until: datetime

    def is_pending(self) -> bool:
        return self.status == Status.PENDING


_ASKED = [asked.name for asked in fields(_State)]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What planning would make of one visit's rows."""

    visit: Appointment
    zone: ZoneInfo
    rows: Sequence[ReminderDelivery]
    before: Mapping[UUID, _State]
    after: Mapping[UUID, _State]

    @property
    def was_pending(self) -> set[UUID]:
        return {pk for pk, state in self.before.items() if state.is_pending()}

    @property
    def is_pending(self) -> set[UUID]:
        return {pk for pk, state in self.after.items() if state.is_pending()}

    def is_unmoved(self, pk: UUID) -> bool:
        """Whether the row was pending, and is so still for the same moment."""
        before, after = self.before[pk], self.after[pk]
        is_open = before.is_pending() and after.is_pending()
        return is_open and before.scheduled_for == after.scheduled_for

    def going(self, now: datetime) -> list[Going]:
        return [
            Going(
                at=state.next_attempt_at,
                visit=self.visit.pk,
                reminder_type=state.reminder_type,
                channel=state.channel,
                zone=self.zone,
            )
            for state in self.after.values()
            if state.is_pending() and state.useful_until > now
        ]

    def withheld(self, now: datetime) -> Iterator[tuple[str, str, str]]:
        for state in self.after.values():
            if state.is_pending() and state.useful_until <= now:
                yield state.reminder_type, state.channel, Reason.TOO_LATE
            elif state.reason and state.sequence == self.visit.sequence and state.useful_until > now:
                yield state.reminder_type, state.channel, state.reason


def desks(visits: Collection[UUID]) -> Iterator[Desk]:
    """The visits a batch at a time, as the planner would read them."""
    ids = sorted(visits)
    for start in range(0, len(ids), BATCH):
        yield Desk.look(ids[start : start + BATCH])


def outcome_of(desk: Desk, visit: Appointment, its_marks: Sequence[Mark]) -> Outcome | None:
    """What planning a visit for these marks would make of it; None where it cannot be planned."""
    try:
        zone = visit.office.zone
        plan = desk.plan(visit, its_marks) if its_marks else None
    except Exception as error:  # one visit's fault must not hide its neighbours
        logger.error("preview appointment=%s failed kind=%s", visit.pk, type(error).__name__, exc_info=error)
        return None
    rows = desk.rows.get(visit.pk, [])
    before = {row.pk: _State(**{name: getattr(row, name) for name in _ASKED}) for row in rows}
    after = _after(before, plan) if plan else before
    return Outcome(visit=visit, zone=zone, rows=rows, before=before, after=after)


def _after(before: Mapping[UUID, _State], plan: Plan) -> dict[UUID, _State]:
    after = dict(before)
    for values in [*plan.cancelled, *plan.adjusted]:
        pk: Any = values["pk"]
        after[pk] = replace(after[pk], **_asked_of(values))
    for values in plan.created:
        pk = values["pk"]
        after[pk] = _State(**_asked_of(values))
    return after


def _asked_of(values: Mapping[str, object]) -> dict[str, Any]:
    return {name: values[name] for name in _ASKED if name in values}
