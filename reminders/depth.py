"""How much stands in the queues: for the metrics, and bounded, whatever the tables hold."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import connection

from reminders import call_list
from reminders.models import Mark
from whatsapp.models import WebhookPost

MOST = 100_000
"""Further nobody counts: what is deeper is shown as this deep."""

# Each state is a walk along the partial index that the engine uses for it, up to
# MOST; the order is what keeps a planner with old statistics on that index.
_STATES = {
    "due": "status = 'pending' AND next_attempt_at <= %(now)s ORDER BY next_attempt_at",
    "next_hour": (
        "status = 'pending' AND next_attempt_at > %(now)s"
        " AND next_attempt_at <= %(now)s + interval '1 hour' ORDER BY next_attempt_at"
    ),
    "sending": "status = 'sending' ORDER BY lease_until",
    "unknown": "status = 'unknown' ORDER BY next_attempt_at",
}
_QUEUES = ("reminders_reminderdelivery", "reminders_reply")
_PARTS = " UNION ALL ".join(
    f"(SELECT channel, '{state}' AS state, count(*) AS rows"  # noqa: S608
    f" FROM (SELECT channel FROM {queue} WHERE {condition} LIMIT {MOST}) AS walked GROUP BY channel)"
    for queue in _QUEUES
    for state, condition in _STATES.items()
)
_DEPTH = f"SELECT channel, state, sum(rows)::bigint FROM ({_PARTS}) AS counted GROUP BY 1, 2"  # noqa: S608


def by_channel_and_state(now: datetime) -> dict[tuple[str, str], int]:
    """Messages that are due, fall due within the hour, are being sent, or are without an answer.

    Every channel that is switched on is there, also with nothing.
    """
    depth = {(channel, state): 0 for channel in settings.REMINDER_CHANNELS for state in _STATES}
    with connection.cursor() as cursor:
        cursor.execute(_DEPTH, {"now": now})
        return depth | {(channel, state): rows for channel, state, rows in cursor.fetchall()}


def planned() -> int | None:
    """About how many reminders wait for their time; None where Postgres has no statistics yet.

    From the size that VACUUM and ANALYZE noted of the partial index on pending
    rows: millions of them cost nothing.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples::bigint FROM pg_class WHERE oid = to_regclass('delivery_due')")
        row = cursor.fetchone()
    return None if row is None or row[0] < 0 else int(row[0])


def marks_waiting() -> int:
    """Changes that the planner has not worked on."""
    return Mark.objects.order_by()[:MOST].count()


def posts_waiting() -> int:
    """Webhook posts that were not worked off."""
    return WebhookPost.objects.unprocessed().order_by()[:MOST].count()


def to_call(now: datetime) -> int:
    """Reminders that reached nobody, for which the consulting room has to call."""
    return call_list.unreached(now).count()
