"""Counts of what was sent, kept where every process can read them."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db import Error, connection

logger = logging.getLogger(__name__)
SENDS = "sends"
LATE = "late"
LATE_SUM = "late_sum"
BUCKETS = (1, 2, 5, 10, 30, 60, 120, 300, 900, 1800, 3600, 7200, 21600, 86400)
"""Upper bounds of lateness, in seconds; what is later stands in one more."""
BEYOND = "+Inf"
PARTS = 8

# The counts of the last instant may go with a power cut: a commit that waits for
# the disk would cost more than all the rest. In one order, or two workers could
# wait for each other.
_ADD = """
WITH at_once AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO reminders_meter (name, channel, label, part, value)
SELECT n.name, n.channel, n.label, pg_backend_pid() %% %s, n.value
FROM unnest(%s::text[], %s::text[], %s::text[], %s::float8[]) AS n(name, channel, label, value), at_once
ORDER BY 1, 2, 3
ON CONFLICT (name, channel, label, part) DO UPDATE SET value = reminders_meter.value + excluded.value
"""


@dataclass(frozen=True)
class Ended:
    """How one call to a provider ended. ``late_seconds``: since it was due, of what went out."""

    channel: str
    outcome: str
    late_seconds: float | None


@dataclass(frozen=True)
class Lateness:
    """How late the messages of one channel left."""

    counts: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """By the upper bound in seconds, as text; not cumulative."""
    total_seconds: float = 0.0


@dataclass(frozen=True)
class Counts:
    """All that was ever noted."""

    sends: dict[tuple[str, str], float]
    """By channel and outcome."""
    lateness: dict[str, Lateness]
    """By channel."""


def note(ended: Sequence[Ended]) -> None:
    """Add up a batch, in one statement that commits by itself: call it outside any transaction.

    Never raises: a count that is lost must not cost what was counted.
    """
    if not ended:
        return
    added = _added(ended)
    try:
        with connection.cursor() as cursor:
            names, channels, labels = zip(*added, strict=True)
            cursor.execute(_ADD, [PARTS, list(names), list(channels), list(labels), list(added.values())])
    except Error as error:
        logger.warning("meters calls=%d not counted kind=%s", len(ended), type(error).__name__)


def _added(ended: Sequence[Ended]) -> dict[tuple[str, str, str], float]:
    added: dict[tuple[str, str, str], float] = defaultdict(float)
    for end in ended:
        added[SENDS, end.channel, end.outcome] += 1
        if end.late_seconds is not None:
            # The clocks of two machines may differ by a little.
            late = max(end.late_seconds, 0.0)
            added[LATE, end.channel, _bucket(late)] += 1
            added[LATE_SUM, end.channel, ""] += late
    return added


def _bucket(late: float) -> str:
    place = bisect_left(BUCKETS, late)
    return str(BUCKETS[place]) if place < len(BUCKETS) else BEYOND


def read() -> Counts:
    """What was noted since the installation, by all processes."""
    sends: dict[tuple[str, str], float] = {}
    late: dict[str, dict[str, float]] = defaultdict(dict)
    sums: dict[str, float] = {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, channel, label, sum(value) FROM reminders_meter GROUP BY 1, 2, 3")
        for name, channel, label, value in cursor.fetchall():
            if name == SENDS:
                sends[channel, label] = value
            elif name == LATE:
                late[channel][label] = value
            elif name == LATE_SUM:
                sums[channel] = value
    return Counts(
        sends=sends,
        lateness={channel: Lateness(counts, sums.get(channel, 0.0)) for channel, counts in late.items()},
    )
