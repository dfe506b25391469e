"""What must be true of the rows after a year, and of what the stand-ins counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from appointments.models import Appointment
from bench.stage import query
from reminders.postmark.client import references_of

if TYPE_CHECKING:
    from bench.year import Year

SAME_ROWS = {
    "two attempts of one delivery are open (I1)": """
        SELECT delivery_id FROM reminders_deliveryattempt WHERE outcome = ''
        GROUP BY delivery_id HAVING count(*) > 1""",
    "a delivery is neither over nor looked at again (I3)": """
        SELECT id FROM reminders_reminderdelivery WHERE status IN ('pending', 'sending', 'unknown')""",
    "a delivery was called, and its ledger has not as many attempts (I6)": """
        SELECT d.id FROM reminders_reminderdelivery d
        WHERE d.called_at IS NOT NULL AND NOT EXISTS (
            SELECT FROM reminders_deliveryattempt a WHERE a.delivery_id = d.id)""",
    "an attempt came after the use of its delivery (I5)": """
        SELECT d.id FROM reminders_deliveryattempt a JOIN reminders_reminderdelivery d ON d.id = a.delivery_id
        WHERE a.called_at >= d.useful_until""",
    "a webhook event is stored twice (I8)": """
        SELECT min(id::text) FROM whatsapp_statusevent GROUP BY wamid, status HAVING count(*) > 1""",
    "one step was called twice (I2)": """
        SELECT min(id::text) FROM reminders_reminderdelivery WHERE called_at IS NOT NULL
        GROUP BY appointment_id, sequence, reminder_type, offset_minutes, offset_unit, channel
        HAVING count(*) > 1""",
    "a row ended without a reason": """
        SELECT id FROM reminders_reminderdelivery
        WHERE status IN ('failed', 'skipped', 'cancelled', 'expired') AND reason = ''""",
}


def of(year: Year) -> Iterator[str]:
    """Each violated promise, with the ids of what violates it."""
    for promise, sql in SAME_ROWS.items():
        for (key,) in query(sql):
            yield f"{promise}: {key}"
    yield from _counted(year)
    yield from _as_the_model(year)
    yield from _silent(year)


def _counted(year: Year) -> Iterator[str]:
    """I2, on the other side: nothing was taken twice, and all that was taken stands in the ledger."""
    attempts = {
        f"d:{delivery}:{number}" for delivery, number in query(
            "SELECT delivery_id, number FROM reminders_deliveryattempt WHERE delivery_id IS NOT NULL")
    }  # fmt: skip
    by_meta = Counter(item.reference for item in year.meta.accepted if item.reference.startswith("d:"))
    by_postmark = Counter(
        reference for mail in year.postmark.accepted for reference in references_of(mail.mail.metadata)
    )
    for name, counted in (("Meta", by_meta), ("Postmark", by_postmark)):
        for reference, times in counted.items():
            if times > 1:
                yield f"{name} took {reference} {times} times"
            if reference not in attempts:
                yield f"{name} took {reference}, which no ledger row knows"
        per_delivery = Counter(reference.rpartition(":")[0] for reference in counted)
        for delivery, times in per_delivery.items():
            if times > 1:
                yield f"{name} took {delivery} in {times} attempts"


def _as_the_model(year: Year) -> Iterator[str]:
    """The visits are what the paths made of them."""
    for pk, status, starts_at, sequence in Appointment.objects.values_list(
        "pk", "status", "starts_at", "sequence"
    ):
        visit = year.visits[pk]
        if (status, starts_at, sequence) != (visit.status, visit.starts_at, visit.version):
            yield (
                f"visit {pk} is {status} at {starts_at} in version {sequence}, and not "
                f"{visit.status} at {visit.starts_at} in version {visit.version}"
            )


def _silent(year: Year) -> Iterator[str]:
    """Of each visit that was held, and each that was called off in time, something is on record."""
    spoken = dict(query("SELECT appointment_id, count(*) FROM reminders_reminderdelivery GROUP BY 1"))
    for pk in year.visits:
        if not spoken.get(pk):
            yield f"visit {pk} has no row at all"
