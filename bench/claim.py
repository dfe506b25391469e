"""What a claim costs, beside how many rows that are not due.

python -m bench.claim [--quick]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.stage import query  # first: it gives Django its database

# isort: split
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from appointments import clock
from bench import figures, fill
from bench.provider import provider
from reminders.line import Line
from reminders.models import ReminderDelivery

SIZES = (1_000, 100_000, 1_000_000)
QUICK_SIZES = (1_000, 20_000)
DUE = 1_000
PLACES = 100
ROUNDS = 5
LARGE = 10_000
"""Below it to read the whole table is no worse than to use an index."""
NOISE = 1.5
"""How much longer the median of the largest table may be than that of the smallest."""
DELIVERIES = "reminders_reminderdelivery"
DUE_INDEX = "delivery_due"


def main() -> int:
    """Measure each size under true and false statistics; 1 when a promise is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small tables; promises nothing about time")
    options = parser.parse_args()
    print(figures.heading("bench.claim"), flush=True)
    verdict = figures.Verdict()
    rows: list[tuple[object, ...]] = []
    medians: dict[str, list[float]] = {}
    for size in QUICK_SIZES if options.quick else SIZES:
        for told in _fill_and_lie(size):
            times = _claims()
            plan = _plan()
            medians.setdefault(told, []).append(statistics.median(times))
            p50, p99 = statistics.median(times), figures.percentile(times, 0.99)
            rows.append((f"{size:,}", told, f"{p50:.1f}", f"{p99:.1f}", ", ".join(sorted(plan))))
            if size >= LARGE:
                is_so = DUE_INDEX in plan and "Seq Scan" not in plan
                verdict.ask(is_so, f"beside {size:,} rows, statistics {told}: by the partial index")
    print(figures.table(("not due", "statistics", "claim of 100: p50 ms", "p99 ms", "reads"), rows))
    if not options.quick:
        for told, values in medians.items():
            ratio = max(values) / min(values)
            verdict.ask(ratio <= NOISE, f"statistics {told}: slowest to fastest size {ratio:.2f}")
    return verdict.exit_code


def _fill_and_lie(size: int) -> Iterator[str]:
    """A table with so many rows that are not due; yields once for each thing that its statistics say."""
    fill.empty()
    fill.set_rules()
    query(f"ALTER TABLE {DELIVERIES} SET (autovacuum_enabled = false)")
    with provider():
        due = fill.model_visit(ahead=timedelta(days=4))
        ReminderDelivery.objects.filter(appointment=due).exclude(offset_minutes=-1_440).delete()
        fill.copy_visit(due, DUE, shift=timedelta(0))
        _let_all_be_due()
        query("VACUUM ANALYZE")
        visit = fill.model_visit(ahead=timedelta(days=3, minutes=-1))
        fill.copy_visit(visit, size // len(fill.THREE_RULES), shift=timedelta(0))
    query("CHECKPOINT")
    yield "when all was due"
    query("ANALYZE")
    yield "true"
    ReminderDelivery.objects.due(clock.now()).update(next_attempt_at=clock.now() + timedelta(days=7))
    query("ANALYZE")
    _let_all_be_due()
    yield "when none was due"


def _let_all_be_due() -> None:
    """The rows of the visits with one row only, as before anybody claimed them."""
    moment = datetime.now(UTC) - timedelta(minutes=1)
    query(
        f"""UPDATE {DELIVERIES} d SET status = 'pending', lease_until = NULL, next_attempt_at = %s
            WHERE offset_minutes = -1440 AND NOT EXISTS (
                SELECT FROM {DELIVERIES} other
                WHERE other.appointment_id = d.appointment_id AND other.offset_minutes <> -1440)""",
        moment,
    )
    query(f"VACUUM {DELIVERIES}")


def _claims() -> list[float]:
    """Milliseconds of each claim: reading who is next, taking them, and the commit."""
    times = []
    for _ in range(ROUNDS):
        _let_all_be_due()
        for _ in range(DUE // PLACES):
            begin = time.perf_counter()
            claimed = Line(ReminderDelivery.objects.all()).claim(PLACES, now=clock.now())
            times.append((time.perf_counter() - begin) * 1000)
            if len(claimed) != PLACES:
                raise SystemExit(f"{len(claimed)} rows were claimed instead of {PLACES}")
    return times


def _plan() -> set[str]:
    """By what the statements of a claim read the deliveries: names of indexes, or of another way."""
    _let_all_be_due()
    with CaptureQueriesContext(connection) as asked:
        Line(ReminderDelivery.objects.all()).claim(PLACES, now=clock.now())
    _let_all_be_due()
    ways: set[str] = set()
    with transaction.atomic():
        for sql in [statement["sql"] for statement in asked.captured_queries]:
            if sql.startswith("SET LOCAL"):
                query(sql)
            elif DELIVERIES in sql:
                [(plan,)] = query("EXPLAIN (FORMAT JSON) " + sql.replace("%", "%%"))
                ways |= set(_ways(json.loads(plan) if isinstance(plan, str) else plan))
    return ways


def _ways(nodes: Sequence[dict[str, Any]]) -> Iterator[str]:
    for node in nodes:
        node = node.get("Plan", node)
        below = node.get("Plans", [])
        if node.get("Relation Name") == DELIVERIES and "Scan" in node["Node Type"]:
            if "Index Name" in node:
                yield node["Index Name"]
            elif "Bitmap" not in node["Node Type"]:
                yield node["Node Type"]
        elif "Bitmap Index" in node["Node Type"]:
            yield node["Index Name"]
        yield from _ways(below)


if __name__ == "__main__":
    sys.exit(main())
