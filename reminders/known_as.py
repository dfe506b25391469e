"""What WhatsApp calls a patient; the number that we dial stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db import connection
from django.db.models import CharField

from appointments.models import Patient
from reminders.foreign_words import is_storable


@dataclass(frozen=True, kw_only=True)
class KnownAs:
    """What an answer or a receipt told of the patient to whom we wrote."""

    patient_id: int
    address: str
    """The number that we wrote to."""
    wa_id: str
    bsuid: str


def remember(told: Sequence[KnownAs]) -> None:
    """Keep it for patients who still have the number that we wrote to.

    A patient whom somebody else holds is left: the next receipt tells it again.
    """
    news = {known.patient_id: known for known in map(_kept, told) if known.wa_id or known.bsuid}
    if not news:
        return
    rows = list(news.values())
    with connection.cursor() as cursor:
        # Not waited for: receipts hold rows by now, which a last look wants behind its patients.
        cursor.execute(
            """
            WITH told AS (
                SELECT * FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[])
                    AS t (id, address, wa_id, bsuid)
            ), changed AS (
                SELECT p.id FROM appointments_patient p JOIN told t USING (id)
                WHERE p.phone = t.address
                  AND ((t.wa_id <> '' AND t.wa_id <> p.wa_id) OR (t.bsuid <> '' AND t.bsuid <> p.bsuid))
                ORDER BY p.id FOR NO KEY UPDATE OF p SKIP LOCKED
            )
            UPDATE appointments_patient p
            SET wa_id = coalesce(nullif(t.wa_id, ''), p.wa_id), bsuid = coalesce(nullif(t.bsuid, ''), p.bsuid)
            FROM told t JOIN changed USING (id) WHERE p.id = t.id
            """,
            [
                [known.patient_id for known in rows],
                [known.address for known in rows],
                [known.wa_id for known in rows],
                [known.bsuid for known in rows],
            ],
        )


def _kept(known: KnownAs) -> KnownAs:
    """Without the names that the patient's row cannot hold."""
    return replace(known, wa_id=_fitting("wa_id", known.wa_id), bsuid=_fitting("bsuid", known.bsuid))


def _fitting(column: str, name: str) -> str:
    field = Patient._meta.get_field(column)
    assert isinstance(field, CharField) and field.max_length  # noqa: S101
    return name if is_storable(name, field.max_length) else ""
