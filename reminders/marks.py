"""The marks that a change leaves for the planner, and what each of them covers.

The triggers of migration 0002 write nearly all of them. A broad mark (a
patient, a doctor's rules, everything) is widened here into one per visit, by
the planner and never by the save that caused it.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from reminders.models import Mark, PlanBasis

# What a visit must be for its timeline to be able to change: ahead, still with
# something pending, or over so recently that a check-up may be due after it.
_MAY_CHANGE = """(
    a.starts_at > %(now)s
    OR EXISTS (SELECT FROM reminders_reminderdelivery d
               WHERE d.appointment_id = a.id AND d.status = 'pending')
    OR (a.status = 'completed' AND a.starts_at > %(now)s - interval '1 minute' * (
            SELECT coalesce(max(offset_minutes), 0) + 60 * 24 * 31 FROM reminders_reminderrule))
)"""

_COVERS = {
    Mark.Subject.PATIENT: "a.patient_id = %(subject_id)s::bigint",
    Mark.Subject.ADDRESS: (
        "a.patient_id IN (SELECT id FROM appointments_patient"
        " WHERE phone = %(subject_id)s OR lower(email) = lower(%(subject_id)s))"
    ),
    Mark.Subject.DOCTOR: "a.doctor_id = %(subject_id)s::bigint",
    Mark.Subject.EVERYTHING: "true",
}


def widen(broad: Sequence[Mark], *, now: datetime) -> None:
    """Put one mark for each visit in the place of broad ones that say the same."""
    for mark in _summed_up(broad):
        with connection.cursor() as cursor:
            cursor.execute(
                f"""INSERT INTO reminders_mark (subject, subject_id, changes_rules, at, tries)
                    SELECT 'appointment', a.id::text, %(changes_rules)s, %(at)s, 0
                    {_covered_by(mark)}""",
                {
                    "now": now,
                    "subject_id": mark.subject_id,
                    "changes_rules": mark.changes_rules,
                    "at": mark.at,
                },
            )
    Mark.objects.filter(pk__in=[mark.pk for mark in broad]).delete()


def covered(mark: Mark, *, now: datetime) -> list[UUID]:
    """The visits that a broad mark covers, whose timeline can still change."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT a.id {_covered_by(mark)} ORDER BY a.id", {"now": now, "subject_id": mark.subject_id}
        )
        return [visit for (visit,) in cursor.fetchall()]


def waiting(*, now: datetime) -> dict[UUID, list[Mark]]:
    """The marks for which each visit waits to be planned; the broad ones too. All stay as they are."""
    by_visit: dict[UUID, list[Mark]] = defaultdict(list)
    ready = list(Mark.objects.ready(now))
    broad = [mark for mark in ready if mark.subject != Mark.Subject.APPOINTMENT]
    for mark in ready:
        if mark.subject == Mark.Subject.APPOINTMENT:
            by_visit[UUID(mark.subject_id)].append(mark)
    for mark in _summed_up([*broad, *_of_settings(now)]):
        for visit in covered(mark, now=now):
            by_visit[visit].append(mark)
    return by_visit


def _summed_up(broad: Sequence[Mark]) -> list[Mark]:
    """One mark in the place of several that say the same."""
    groups: dict[tuple[str, str, bool], list[datetime]] = defaultdict(list)
    for mark in broad:
        groups[mark.subject, mark.subject_id, mark.changes_rules].append(mark.at)
    return [
        # Of rules the last change counts, of other facts how long they have waited.
        Mark(
            subject=subject,
            subject_id=subject_id,
            changes_rules=changes_rules,
            at=max(moments) if changes_rules else min(moments),
        )
        for (subject, subject_id, changes_rules), moments in groups.items()
    ]


def _covered_by(mark: Mark) -> str:
    return f"FROM appointments_appointment a WHERE {_COVERS[Mark.Subject(mark.subject)]} AND {_MAY_CHANGE}"


def _of_settings(now: datetime) -> list[Mark]:
    """The mark that ``note_settings`` would leave."""
    noted = PlanBasis.objects.filter(id=1).first()
    if noted is None or noted.fingerprint == _fingerprint():
        return []
    return [Mark(subject=Mark.Subject.EVERYTHING, changes_rules=True, at=now)]


def note_settings(now: datetime) -> bool:
    """Mark everything when quiet hours, channels or zone data are not those of the last plan."""
    fingerprint = _fingerprint()
    if PlanBasis.objects.filter(fingerprint=fingerprint).exists():
        return False
    with transaction.atomic():
        basis, is_first = PlanBasis.objects.select_for_update().get_or_create(
            defaults={"fingerprint": fingerprint}, id=1
        )
        # The first plan ever has none before it that it could differ from.
        if is_first or basis.fingerprint == fingerprint:
            return False
        PlanBasis.objects.filter(id=1).update(fingerprint=fingerprint)
        Mark.objects.create(subject=Mark.Subject.EVERYTHING, changes_rules=True, at=now)
    return True


def _fingerprint() -> str:
    basis = (
        [f"{clock:%H:%M}" for clock in settings.REMINDER_QUIET_HOURS],
        sorted(settings.REMINDER_CHANNELS),
        version("tzdata"),
    )
    return hashlib.sha256(repr(basis).encode()).hexdigest()
