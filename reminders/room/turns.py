"""Who came as which: 1, 2, 3 … in the order of arrival, for each doctor and day.

Read from the history of the visits, which is only ever added to: a number, once
told, stays that visit's for the day, whatever is booked, moved or cancelled after.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from appointments.access import AnyUser
from appointments.models import Appointment, AppointmentHistory

LONGEST_DAY = timedelta(hours=25)
"""One of the nights on which the clocks go back."""
ARRIVED = [Appointment.Status.CHECKED_IN, Appointment.Status.IN_CONSULTATION]


def of_today(user: AnyUser, *, now: datetime) -> dict[UUID, int]:
    """The number of each visit whose patient has arrived since midnight in its office's zone."""
    arrivals = (
        AppointmentHistory.objects.for_user(user)
        # The condition of the index `reminders_room_arrivals`.
        .filter(at__gte=now - LONGEST_DAY, to_status__in=ARRIVED)
        .order_by("at", "id")
        .values_list("at", "appointment_id", "appointment__doctor_id", "appointment__office__time_zone")
    )
    numbers: dict[UUID, int] = {}
    last: Counter[int] = Counter()
    for at, visit, doctor, zone_name in arrivals:
        zone = ZoneInfo(zone_name)
        # In the waiting room, and later with the doctor: that is one arrival.
        if visit in numbers or at.astimezone(zone).date() != now.astimezone(zone).date():
            continue
        last[doctor] += 1
        numbers[visit] = last[doctor]
    return numbers
