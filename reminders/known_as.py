"""What WhatsApp calls a patient; the number that we dial stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection


@dataclass(frozen=True, kw_only=True)
class KnownAs:
    """What an answer or a receipt told of the patient to whom we wrote."""

    patient_id: int
    address: str
    """The number that we wrote to."""
    wa_id: str
    bsuid: str


def remember(told: Sequence[KnownAs]) -> None:
    """Keep it for patients who still have the number that we wrote to."""
    news = {known.patient_id: known for known in told if known.wa_id or known.bsuid}
    if not news:
        return
    rows = list(news.values())
    with connection.cursor() as cursor:
        # Locked in one order, or two workers could wait for each other.
        cursor.execute(
            """
            WITH told AS (
                SELECT * FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[])
                    AS t (id, address, wa_id, bsuid)
            ), changed AS (
                SELECT p.id FROM appointments_patient p JOIN told t USING (id)
                WHERE p.phone = t.address
                  AND ((t.wa_id <> '' AND t.wa_id <> p.wa_id) OR (t.bsuid <> '' AND t.bsuid <> p.bsuid))
                ORDER BY p.id FOR NO KEY UPDATE OF p
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
