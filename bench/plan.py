"""How fast the planner makes the reminders of a large import.

python -m bench.plan [--quick]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from bench.stage import query  # first: it gives Django its database

# isort: split
import psutil
from django.db import connection

from appointments import clock
from bench import figures, fill
from bench.measure import cpu_seconds, postgres_pid
from reminders import planner

VISITS = 100_000
QUICK_VISITS = 2_000
FOUR_RULES = fill.THREE_RULES | {-10_080: "days"}


class Counter:
    """Counts statements, as a wrapper around their execution."""

    def __init__(self) -> None:
        self.statements = 0

    def __call__(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        self.statements += 1
        return execute(sql, params, many, context)


def main() -> int:
    """Plan all visits, and print the table; 1 when one is left out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_VISITS} visits instead of {VISITS}")
    visits = QUICK_VISITS if parser.parse_args().quick else VISITS
    print(figures.heading("bench.plan"), flush=True)
    _fill(visits)

    counter, memory = Counter(), _memory()
    client, postgres, begin = time.process_time(), cpu_seconds(postgres_pid()), time.time()
    with connection.execute_wrapper(counter):
        planned = planner.plan_marked(now=clock.now())
    seconds = time.time() - begin
    client, postgres = time.process_time() - client, cpu_seconds(postgres_pid()) - postgres

    [(rows, marks)] = query(
        "SELECT (SELECT count(*) FROM reminders_reminderdelivery WHERE status = 'pending'),"
        " (SELECT count(*) FROM reminders_mark)"
    )
    line = (
        planned, rows, f"{planned / seconds:.0f}", f"{counter.statements / planned * 1000:.0f}",
        f"{client / planned * 1000:.2f}", f"{postgres / planned * 1000:.2f}", f"{_memory() - memory:.0f}",
    )  # fmt: skip
    print(figures.table(HEAD, [line]))
    verdict = figures.Verdict()
    verdict.ask(
        planned == visits and not marks, f"{planned} of {visits} visits are planned; {marks} marks left"
    )
    verdict.ask(rows == visits * len(FOUR_RULES), f"{rows} rows wait for their moment")
    return verdict.exit_code


HEAD = (
    "visits", "rows", "visits/s", "queries per 1000", "client CPU s/1000", "Postgres CPU s/1000", "MB grown",
)  # fmt: skip


def _fill(visits: int) -> None:
    fill.empty()
    fill.set_rules(FOUR_RULES)
    fill.copy_visit(fill.imported_visit(ahead=timedelta(days=30)), visits, shift=timedelta(0))
    fill.mark_all()
    fill.settle_down()


def _memory() -> float:
    """MB that this process holds."""
    return float(psutil.Process().memory_info().rss / 2**20)


if __name__ == "__main__":
    sys.exit(main())
