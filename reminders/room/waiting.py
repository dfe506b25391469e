"""The room as strangers in the waiting room may see it: initials or turns, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from appointments import local_time
from appointments.access import AnyUser
from appointments.models import Appointment, Doctor
from appointments.names import PARTICLES
from reminders.room import board, turns

MOST_INITIALS = 4
MOST_WAITING = 5
"""A screen on a wall is not scrolled: of those who wait it names so many, and counts the others."""
Status = Appointment.Status


@dataclass(frozen=True, kw_only=True)
class Called:
    """One patient, by a name that only the patient knows as theirs."""

    key: str
    """The same patient in the next reading, for the page."""
    name: str
    hour: str
    """Of the visit; empty where turns are shown."""


@dataclass(frozen=True, kw_only=True)
class Queue:
    """Of one doctor: who is in, and who waits, the next one first."""

    key: int
    doctor: str
    inside: tuple[Called, ...]
    waiting: tuple[Called, ...]
    more: int
    """How many others wait."""


def read(user: AnyUser, *, doctor: Doctor | None, by_turn: bool, now: datetime) -> list[Queue]:
    """A queue for each doctor with somebody in the room now, by the doctor's name.

    Those who wait stand in the order of their visits; with turns, in that of their arrival.
    """
    here = [visit for visit in board.today(user, doctor=doctor, now=now) if visit.status in turns.ARRIVED]
    numbers = turns.of_today(user, now=now) if here else {}

    def called(visits: Iterable[Appointment]) -> tuple[Called, ...]:
        return tuple(
            Called(
                key=f"turno-{visit.pk}",
                name=str(numbers.get(visit.pk, "–")) if by_turn else initials(visit.patient.full_name),
                hour="" if by_turn else local_time.as_told(visit.start_time),
            )
            for visit in visits
        )

    def queue(doctor: Doctor, visits: Sequence[Appointment]) -> Queue:
        waiting = [visit for visit in visits if visit.status == Status.CHECKED_IN]
        return Queue(
            key=doctor.pk,
            doctor=str(doctor),
            inside=called(visit for visit in visits if visit.status == Status.IN_CONSULTATION),
            waiting=called(waiting[:MOST_WAITING]),
            more=max(0, len(waiting) - MOST_WAITING),
        )

    def place(visit: Appointment) -> tuple[str, int, int, datetime]:
        turn = numbers.get(visit.pk, 0) if by_turn else 0
        return visit.doctor.name, visit.doctor_id, turn, visit.starts_at

    here.sort(key=place)
    return [queue(whose, list(visits)) for whose, visits in groupby(here, key=lambda visit: visit.doctor)]


def initials(name: str) -> str:
    """``A. C. P.`` of «Ana de la Cruz Pérez»."""
    words = [word for word in name.split() if word.casefold() not in PARTICLES and word[0].isalpha()]
    return " ".join(f"{word[0].upper()}." for word in words[:MOST_INITIALS]) or "–"
