"""A visit that repeats, into the visits of the coming months."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from dateutil import rrule  # type: ignore[import-untyped]
from django.utils.translation import gettext as _

from appointments.agenda_cells import BadCell
from appointments.agenda_lines import BadLine, CalledOff, Line, NotVisit, Remark
from appointments.agenda_wall import Wall, titled, when

AHEAD = timedelta(days=180)
"""How far a series is taken in: beyond the longest reminder, and near enough that a plan still holds."""
BEHIND = timedelta(days=1)
REMEMBERED = timedelta(days=90)
"""For how long a visit of the series may have been put off here without counting as dropped there."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """A recurring event (RRULE, RDATE, EXDATE; RFC 5545, 3.8.5)."""

    line: Line
    """The first visit. Its external_id is the series'."""
    summary: str
    starts: Wall
    rules: tuple[str, ...]
    added: tuple[Wall, ...]
    dropped: frozenset[date]
    replaced: frozenset[date]
    """Days whose visit stands in the file as an event of its own."""

    def visits(self, *, now: datetime) -> Iterator[Line | CalledOff | Remark | NotVisit | BadLine]:
        """The visits from yesterday to AHEAD, and what of the series is no longer meant.

        A series says all of itself: a coming visit of it that it no longer holds is called off.
        """
        begin, end = (self._on_its_clock(moment) for moment in (now - BEHIND, now + AHEAD))
        try:
            occurrences, following = self._occurrences(begin - REMEMBERED, end)
        except (BadCell, ValueError, OverflowError) as problem:
            yield self._bad(problem)
            return
        days: set[date] = set()
        for wall in occurrences:
            is_new = wall.date() not in days
            days.add(wall.date())
            if wall >= begin and wall.date() not in self.dropped | self.replaced:
                yield self._visit(wall) if is_new else self._second(wall)
        if self.line.external_id:
            yield self._rest(days, until=now + AHEAD)
        is_over = all(day < begin.date() for day in days - self.dropped)
        yield from self._outlook(is_over, following, end)

    def _rest(self, days: set[date], *, until: datetime) -> CalledOff:
        standing = (days | {self.starts.date}) - self.dropped | self.replaced
        return CalledOff(
            number=self.line.number,
            title=self.line.title,
            doctor=self.line.doctor,
            external_id=self.line.external_id,
            changed_at=self.line.changed_at,
            takes_series=True,
            until=until,
            keeps=frozenset(map(self._identifier, standing)),
        )

    def _occurrences(self, begin: datetime, end: datetime) -> tuple[list[datetime], datetime | None]:
        """Those from begin to end, and the next one. Raises BadCell, ValueError and OverflowError."""
        every = rrule.rruleset()
        first = self.starts.naive
        every.rdate(first)
        for rule in self.rules:
            every.rrule(_parsed(self._until_on_its_clock(rule), first))
        for wall in self.added:
            # A day alone means the hour of the others.
            every.rdate(datetime.combine(wall.date, wall.time or first.time()))
        found: list[datetime] = []
        for wall in every:
            if wall > end:
                return found, wall
            if wall >= begin:
                found.append(wall)
        return found, None

    def _visit(self, wall: datetime) -> Line:
        starts = replace(self.starts, date=wall.date(), time=wall.time())
        day, start, zone = when(starts)
        return replace(
            self.line,
            date=day,
            start=start,
            zone=zone,
            title=titled(self.summary, starts),
            external_id=self._identifier(wall.date()),
        )

    def _identifier(self, day: date) -> str:
        return occurrence(self.line.external_id, day, first=self.starts.date)

    def _outlook(
        self, is_over: bool, following: datetime | None, end: datetime
    ) -> Iterator[Remark | NotVisit]:
        if following:
            text = _("La serie sigue después del %s: importe la agenda de nuevo antes de ese día.")
            yield Remark(number=self.line.number, title=self.line.title, text=text % f"{end:%d/%m/%Y}")
        elif is_over:
            reason = _("es una serie que ya terminó.")
            yield NotVisit(number=self.line.number, title=self.line.title, reason=reason)

    def _second(self, wall: datetime) -> BadLine:
        problem = _("La serie tiene dos citas el %s: en la agenda, cree la segunda como un evento aparte.")
        return self._bad(BadCell(problem % f"{wall:%d/%m/%Y}"))

    def _bad(self, problem: Exception) -> BadLine:
        sentence = (
            str(problem)
            if isinstance(problem, BadCell)
            else _("No se entiende cómo se repite: en la agenda, cree las citas una por una.")
        )
        return BadLine(number=self.line.number, title=self.line.title, reason=sentence)

    def _on_its_clock(self, moment: datetime) -> datetime:
        return moment.astimezone(self.starts.zone or UTC).replace(tzinfo=None)

    def _until_on_its_clock(self, rule: str) -> str:
        """UNTIL is told in UTC where the series has a zone; a day alone includes it."""

        def converted(found: re.Match[str]) -> str:
            until = datetime.strptime(found[1] + (found[2] or "T235959"), "%Y%m%dT%H%M%S")  # noqa: DTZ007
            if found[3]:
                until = self._on_its_clock(until.replace(tzinfo=UTC))
            return f"UNTIL={until:%Y%m%dT%H%M%S}"

        return re.sub(r"UNTIL=(\d{8})(T\d{6})?(Z?)", converted, rule.upper().strip(" ;"))


def occurrence(identifier: str, day: date, *, first: date | None) -> str:
    """What tells one visit of a series from the others: its day.

    Not its hour, so that a series moved from ten to eleven moves its visits. The
    first keeps the bare identifier, which it had before the event was repeated.
    """
    return identifier if day == first or not identifier else f"{identifier}/{day:%Y%m%d}"


def _parsed(rule: str, first: datetime) -> rrule.rrule:
    if not re.search(r"FREQ=(DAILY|WEEKLY|MONTHLY|YEARLY)\b", rule) or re.search(
        r"BY(HOUR|MINUTE|SECOND)=\d+,", rule
    ):
        raise BadCell(_("Se repite varias veces al día: en la agenda, cree las citas una por una."))
    if re.search(r"INTERVAL=0*(;|$)|FREQ=DAILY.*BYSETPOS|BYSETPOS.*FREQ=DAILY", rule):
        # The library would search without end.
        raise ValueError(rule)
    return rrule.rrulestr(rule, dtstart=first)
