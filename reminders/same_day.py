"""Which rows go in one mail: those of one patient's visits on one day, for the same step.

Every row keeps its own attempt, state and receipts; only the mail is one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection

from appointments.models import Appointment
from reminders.models import ReminderDelivery
from reminders.models.labels import ChannelName
from reminders.timeline import NOTICES, ReminderType

TYPES = NOTICES | {ReminderType.CITA_PROXIMA}
"""What is told of several visits at once. Instructions and the way in belong to one visit's moment."""
MOST = 5
"""Visits in one mail: Postmark's metadata have ten keys, and each row takes two."""


def claim_companions(claimed: Sequence[ReminderDelivery], *, now: datetime) -> list[ReminderDelivery]:
    """Claim what can go along with claimed mails; nothing is asked where there is none among them.

    A reminder that was not tried yet may be claimed before its moment; one that
    does not go along after all returns to it. These come on top of the places
    that were asked for: they take no call of their own.
    """
    mails = [row.pk for row in claimed if row.channel == ChannelName.EMAIL]
    if not mails:
        return []
    with connection.cursor() as cursor:
        # By the index of a patient's visits, and that of a visit's rows.
        cursor.execute(
            """
            WITH mate AS MATERIALIZED (
                SELECT q.id
                FROM reminders_reminderdelivery c
                JOIN appointments_appointment cv ON cv.id = c.appointment_id
                JOIN appointments_office co ON co.id = cv.office_id
                JOIN appointments_appointment v ON v.patient_id = c.patient_id AND v.id <> cv.id
                    AND v.starts_at > cv.starts_at - interval '2 days'
                    AND v.starts_at < cv.starts_at + interval '2 days'
                JOIN appointments_office o ON o.id = v.office_id
                JOIN reminders_reminderdelivery q ON q.appointment_id = v.id AND q.patient_id = c.patient_id
                    AND q.channel = c.channel AND q.reminder_type = c.reminder_type
                    AND q.offset_minutes = c.offset_minutes AND q.offset_unit = c.offset_unit
                WHERE c.id = ANY(%(mails)s) AND c.reminder_type = ANY(%(types)s) AND q.status = 'pending'
                  AND (q.next_attempt_at <= %(now)s
                       OR (q.reminder_type = 'cita_proxima' AND q.retry_count = 0))
                  AND (v.starts_at AT TIME ZONE o.time_zone)::date
                      = (cv.starts_at AT TIME ZONE co.time_zone)::date
                FOR UPDATE OF q SKIP LOCKED
            )
            UPDATE reminders_reminderdelivery t
            SET status = 'sending', attempt = t.attempt + 1, lease_until = %(lease)s
            FROM mate WHERE t.id = mate.id
            RETURNING t.id, t.channel, t.patient_id, t.attempt, t.appointment_id""",
            {
                "mails": mails,
                "types": list(TYPES),
                "now": now,
                "lease": now + timedelta(seconds=settings.REMINDER_LEASE_SECONDS),
            },
        )
        known = ["id", "channel", "patient_id", "attempt", "appointment_id"]
        return [ReminderDelivery.from_db(connection.alias, known, row) for row in cursor.fetchall()]


def is_early(row: ReminderDelivery, now: datetime) -> bool:
    """Whether a row was claimed before its moment, to go along with another."""
    return row.next_attempt_at > now


class Groups:
    """Who goes together, among the rows of a batch that turned out sendable."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._rows: dict[tuple[Any, ...], list[tuple[datetime, UUID]]] = defaultdict(list)

    def lead_of(self, row: ReminderDelivery, visit: Appointment) -> UUID | None:
        """The row with which this one can go; None where it would go alone or the mail is full."""
        if not self._rows:
            return None  # no mail among them, as nearly always
        group = self._rows.get(_key(row, visit), [])
        return group[0][1] if 0 < len(group) < MOST else None

    def add(self, row: ReminderDelivery, visit: Appointment) -> None:
        """Note that a row goes now. What does not fit into a mail begins the next."""
        if row.channel == ChannelName.EMAIL and row.reminder_type in TYPES:
            key = _key(row, visit)
            if len(self._rows[key]) == MOST:
                self._rows[*key, self._rows[key][0][1]] = self._rows.pop(key)
            self._rows[key].append((visit.starts_at, row.pk))

    def of(self, going: Sequence[UUID]) -> list[list[UUID]]:
        """The groups of two and more among rows that go, in each the nearest visit's first."""
        goes = set(going)
        groups = [[pk for _, pk in sorted(group) if pk in goes] for group in self._rows.values()]
        return [group for group in groups if len(group) > 1]


def _key(row: ReminderDelivery, visit: Appointment) -> tuple[Any, ...]:
    # Of one that is off: the day on which its patient expects it.
    starts_at = row.useful_until if row.reminder_type == ReminderType.CANCELACION else visit.starts_at
    day: date = starts_at.astimezone(visit.office.zone).date()
    return row.patient_id, row.channel, row.reminder_type, row.offset_minutes, row.offset_unit, day
