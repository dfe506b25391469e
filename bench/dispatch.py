"""How fast one dispatcher sends what is due, beside two other ways to do it.

python -m bench.dispatch [--quick]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bench import stage  # first: it gives Django its database

# isort: split
from bench import figures, fill
from bench.measure import Usage
from bench.provider import ask, provider
from bench.stage import query

IN_FLIGHT = 100
DUE = 20_000
GOALS = {0.0: 1_000, 0.1: 800}
"""Latency of the provider in seconds → jobs a second that are promised."""
WARM_UP = 4.0
"""Seconds that a process has to start before the moment comes."""
TASK_WORKERS = 32
CLUSTER_WARM_UP = 25.0
MEMORY_MAY_GROW = 0.1


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one contender did."""

    sent: int
    seconds: float
    delays: list[float]
    """Seconds from due to sent, each."""
    usage: Usage
    most_in_air: int

    @property
    def rate(self) -> float:
        return self.sent / self.seconds


def fill_due(count: int, *, warm_up: float = WARM_UP) -> float:
    """So many visits, each with a reminder sent, one due at the moment returned, and one ahead."""
    fill.empty()
    fill.set_rules()
    with provider():
        visit = fill.model_visit(ahead=timedelta(days=3, minutes=-1))
    fill.copy_visit(visit, count, shift=timedelta(days=-2))
    moment = time.time() + warm_up + count / 5_000
    fill.fall_due(datetime.fromtimestamp(moment, UTC), offset_minutes=-1_440)
    fill.settle_down()
    return moment


def fill_origin(count: int, due: int) -> float:
    """So many open visits, of which some are 24 hours ahead of the moment returned."""
    moment = time.time() + WARM_UP
    query("DROP TABLE IF EXISTS bench_origin")
    query(
        """CREATE TABLE bench_origin AS
           SELECT n AS id, '+58412' || lpad(n::text, 7, '0') AS phone, 'scheduled' AS status,
                  to_timestamp(%s) + CASE WHEN n <= %s THEN interval '24 hours' ELSE interval '7 days' END
                      AS scheduled_at,
                  false AS reminder_24h_sent, false AS reminder_2h_sent
           FROM generate_series(1, %s) n""",
        moment,
        due,
        count,
    )
    query("ALTER TABLE bench_origin ADD PRIMARY KEY (id)")
    fill.settle_down()
    return moment


def ours(count: int, latency: float) -> Run:
    """The product's dispatcher."""
    moment = fill_due(count)
    return _race("ours", ["-m", "bench.worker", str(moment)], moment, latency, delays=_delays_of_deliveries)


def origin(count: int, latency: float, *, due: int) -> Run:
    """The loop of the first document."""
    moment = fill_origin(count, due)
    arguments = ["-m", "bench.origin_loop", str(moment)]
    return _race("origin", arguments, moment, latency, delays=lambda said: json.loads(said.split(" ", 1)[1]))


def django_q2(count: int, latency: float) -> Run:
    """A task for each delivery."""
    moment = fill_due(count, warm_up=CLUSTER_WARM_UP)
    settings = {"DJANGO_SETTINGS_MODULE": "bench.task_settings", "BENCH_WORKERS": str(TASK_WORKERS)}
    arguments = ["-m", "bench.task_queue", str(moment)]
    return _race("django-q2", arguments, moment, latency, delays=_delays_of_deliveries, **settings)


def _race(
    name: str,
    arguments: list[str],
    moment: float,
    latency: float,
    *,
    delays: Callable[[str], list[float]],
    **environment: str,
) -> Run:
    with provider(latency), stage.program(name, arguments, **environment) as process:
        assert process.stdout
        if time.time() > moment - 1:
            raise SystemExit("the tables took too long to fill; this machine is too busy to measure anything")
        time.sleep(moment - time.time())
        with Usage(process.pid) as usage:
            said = process.stdout.readline().decode()
        told = ask("counts")
    if not said:
        raise SystemExit(f"{name} ended by itself:\n{stage.log_of(name).read_text()[-2000:]}")
    counts = told["counts"]
    each = delays(said)
    if set(counts.values()) != {1} or len(counts) != len(each):
        raise SystemExit(f"{name}: {len(each)} are marked as sent, the provider has {sum(counts.values())}")
    return Run(sent=len(each), seconds=max(each), delays=each, usage=usage, most_in_air=told["most_in_air"])


def _delays_of_deliveries(_: str) -> list[float]:
    rows = query(
        "SELECT extract(epoch FROM sent_at - scheduled_for)::float FROM reminders_reminderdelivery"
        " WHERE offset_minutes = -1440 AND status = 'sent'"
    )
    return [delay for (delay,) in rows]


def main() -> int:
    """Run all contenders at both latencies and print the table; 1 when a promise is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the jobs; promises nothing")
    parser.add_argument("--only", choices=["ours", "origin", "django-q2"], help="one contender alone")
    options = parser.parse_args()
    count = DUE // 20 if options.quick else DUE
    print(figures.heading("bench.dispatch", packages=("pyreqwest", "django-q2")), flush=True)
    verdict = figures.Verdict()
    rows = []
    for latency, goal in GOALS.items():
        # One request after the other takes its time: the rate does not depend on how many.
        few = min(count, 200) if latency else count
        contenders: dict[str, Callable[[], Run]] = {
            "ours": lambda: ours(count, latency),  # noqa: B023
            "origin": lambda: origin(count, latency, due=few),  # noqa: B023
            "django-q2": lambda: django_q2(count, latency),  # noqa: B023
        }
        for name, contend in contenders.items():
            if options.only in (None, name):
                run = contend()
                rows.append(_line(name, latency, run))
                print(
                    f"{name}, {latency * 1000:.0f} ms: {run.rate:.0f} a second", file=sys.stderr, flush=True
                )
                if name == "ours" and not options.quick:
                    _judge(verdict, run, latency, goal)
    print(figures.table(HEAD, rows))
    return verdict.exit_code


HEAD = (
    "", "latency ms", "jobs", "jobs/s", "client CPU s/1000", "Postgres CPU s/1000", "due to sent p50 s",
    "p99 s", "MB begin", "middle", "most", "in flight",
)  # fmt: skip


def _line(name: str, latency: float, run: Run) -> tuple[object, ...]:
    memory = run.usage.memory
    return (
        name, f"{latency * 1000:.0f}", run.sent, f"{run.rate:.0f}",
        f"{run.usage.client_cpu / run.sent * 1000:.2f}", f"{run.usage.postgres_cpu / run.sent * 1000:.2f}",
        f"{figures.percentile(run.delays, 0.5):.1f}", f"{figures.percentile(run.delays, 0.99):.1f}",
        f"{memory[0]:.0f}", f"{memory[len(memory) // 2]:.0f}", f"{max(memory):.0f}", run.most_in_air or "-",
    )  # fmt: skip


def _judge(verdict: figures.Verdict, run: Run, latency: float, goal: int) -> None:
    at = f"at {latency * 1000:.0f} ms"
    verdict.ask(run.rate >= goal, f"{run.rate:.0f} jobs a second {at}; promised are {goal}")
    verdict.ask(run.most_in_air <= IN_FLIGHT, f"{run.most_in_air} calls in flight {at}, at most {IN_FLIGHT}")
    verdict.ask(run.usage.growth <= MEMORY_MAY_GROW, f"memory grew by {run.usage.growth:.1%} {at}")


if __name__ == "__main__":
    sys.exit(main())
