"""Signed posts against the real server, while the dispatcher is busy.

python -m bench.webhook [--quick] [--server NAME]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import requests

from bench import stage  # first: it gives Django its database

# isort: split
from bench import figures, fill
from bench.measure import cpu_seconds, postgres_pid
from bench.meta_posts import post, status
from bench.provider import provider
from bench.stage import query
from whatsapp.signature import sign

SECONDS = 30
QUICK_SECONDS = 5
P99_MS = 200
WORKED_OFF_SECONDS = 10
DUE_A_SECOND = 800
"""How many reminders are due for each second of a phase."""
URL = f"http://{stage.HOST}:{stage.WEB_PORT}/webhooks/whatsapp/"

BIND = f"{stage.HOST}:{stage.WEB_PORT}"
GUNICORN = ["-m", "gunicorn", "amedi.wsgi", "--bind", BIND, "--workers"]
SERVERS = {
    "gthread-1x8": [*GUNICORN, "1", "--worker-class", "gthread", "--threads", "8"],
    "gthread-2x4": [*GUNICORN, "2", "--worker-class", "gthread", "--threads", "4"],
    "gthread-3x2": [*GUNICORN, "3", "--worker-class", "gthread", "--threads", "2"],
    "gthread-4x1": [*GUNICORN, "4", "--worker-class", "gthread", "--threads", "1"],
    "sync-3": [*GUNICORN, "3"],
    "sync-4": [*GUNICORN, "4"],
}


@dataclass(frozen=True, kw_only=True)
class Phase:
    """How statuses come: so many posts a second, with so many in each."""

    name: str
    posts_a_second: int
    statuses_a_post: int
    steps: Sequence[str]
    """What each delivery is told, one after the other."""


PHASES = (
    Phase(name="single", posts_a_second=200, statuses_a_post=1, steps=("delivered",)),
    Phase(name="batches", posts_a_second=20, statuses_a_post=50, steps=("sent", "delivered", "read")),
)
DUE_OF_PHASE = {"single": -1_440, "batches": -120}
"""Which rule's reminders are sent meanwhile."""


def main() -> int:
    """Run both phases and print the table; 1 when a promise is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_SECONDS} seconds each; promises nothing"
    )
    parser.add_argument("--server", choices=SERVERS, default="gthread-2x4")
    options = parser.parse_args()
    seconds = QUICK_SECONDS if options.quick else SECONDS
    print(figures.heading("bench.webhook", packages=("gunicorn", "django-q2", "pyreqwest")), flush=True)
    verdict = figures.Verdict()
    _fill(seconds)
    rows = []
    with provider(0.1), _product(options.server) as programs:
        told = 0
        for phase in PHASES:
            count = phase.posts_a_second * phase.statuses_a_post * seconds
            deliveries = _sent(count // len(phase.steps), skip=told)
            told += len(deliveries)
            rows.append(_run(phase, deliveries, programs, verdict, is_quick=options.quick))
    print(f"server: {options.server}; {seconds} s each; 100 ms latency of the provider")
    print(figures.table(HEAD, rows))
    return verdict.exit_code


HEAD = (
    "", "posts/s", "statuses/s", "p50 ms", "p99 ms", "most ms", "refused", "worked off after s",
    "reminders/s", "CPU: web", "cluster", "dispatcher", "Postgres",
)  # fmt: skip


def _fill(seconds: int) -> None:
    """Visits with one reminder that was sent and of which nothing was heard, and two ahead."""
    fill.empty()
    fill.set_rules()
    told = max(phase.posts_a_second * phase.statuses_a_post // len(phase.steps) for phase in PHASES)
    count = seconds * max(DUE_A_SECOND, told + PHASES[0].posts_a_second)
    with provider():
        visit = fill.model_visit(ahead=timedelta(days=3, minutes=-1), receipts_of_it=())
    fill.copy_visit(visit, count, shift=timedelta(0))
    fill.settle_down()


@contextmanager
def _product(server: str) -> Iterator[dict[str, int]]:
    """Web server, cluster and dispatcher; the id of each process."""
    commands = {
        "web": SERVERS[server],
        "cluster": ["manage.py", "qcluster"],
        "dispatcher": ["manage.py", "dispatch_reminders", "--loop"],
    }
    with ExitStack() as stack:
        programs = {
            name: stack.enter_context(stage.program(name, command)).pid for name, command in commands.items()
        }
        for _ in range(300):
            try:
                if requests.post(URL, data=b"{}", timeout=5).status_code == 403:
                    break
            except requests.RequestException:
                time.sleep(0.2)
        time.sleep(10)  # the cluster has no sign of its own that it is ready
        yield programs


def _sent(count: int, *, skip: int) -> list[tuple[str, str, str]]:
    """Reference, id at the provider, and number of deliveries that were sent."""
    return query(
        """SELECT 'd:' || d.id || ':' || d.attempt, d.message_id, ltrim(d.address, '+')
           FROM reminders_reminderdelivery d WHERE offset_minutes = -4320 ORDER BY id LIMIT %s OFFSET %s""",
        count,
        skip,
    )


def _run(
    phase: Phase,
    deliveries: Sequence[tuple[str, str, str]],
    programs: dict[str, int],
    verdict: figures.Verdict,
    *,
    is_quick: bool,
) -> tuple[object, ...]:
    posts = list(_posts(phase, deliveries))
    file = stage.HOME / "posts.jsonl"
    file.write_text("\n".join(json.dumps(post) for post in posts))
    begin = time.time() + 3
    fill.fall_due(datetime.now(UTC), offset_minutes=DUE_OF_PHASE[phase.name])
    before = {name: cpu_seconds(pid) for name, pid in (programs | {"postgres": postgres_pid()}).items()}
    sent_before = _sent_so_far()
    arguments = ["-m", "bench.load", str(file), URL, str(begin)]
    with stage.program("load", arguments) as load:
        assert load.stdout
        answers: list[float | None] = json.loads(load.stdout.readline())
    ended = time.time()
    sent = _sent_so_far() - sent_before
    worked_off = _wait_until_worked_off(ended)
    used = {
        name: cpu_seconds(pid) - before[name]
        for name, pid in (programs | {"postgres": postgres_pid()}).items()
    }
    times = [answer * 1000 for answer in answers if answer is not None]
    refused = len(answers) - len(times)
    seconds = len(posts) / phase.posts_a_second
    lost = _lost(phase, deliveries)
    p99 = figures.percentile(times, 0.99)
    verdict.ask(not refused, f"{phase.name}: {refused} posts of {len(posts)} were not answered with 200")
    verdict.ask(not lost, f"{phase.name}: {lost} of {len(deliveries) * len(phase.steps)} statuses were lost")
    if not is_quick:
        verdict.ask(p99 < P99_MS, f"{phase.name}: p99 {p99:.0f} ms; promised is under {P99_MS}")
        verdict.ask(
            worked_off <= WORKED_OFF_SECONDS,
            f"{phase.name}: worked off {worked_off:.1f} s after the end; promised are {WORKED_OFF_SECONDS}",
        )
    return (
        phase.name, phase.posts_a_second, phase.posts_a_second * phase.statuses_a_post,
        f"{figures.percentile(times, 0.5):.0f}", f"{p99:.0f}", f"{max(times):.0f}", refused,
        f"{worked_off:.1f}", f"{sent / seconds:.0f}",
        *(f"{used[name]:.1f}" for name in ("web", "cluster", "dispatcher", "postgres")),
    )  # fmt: skip


def _posts(phase: Phase, deliveries: Sequence[tuple[str, str, str]]) -> Iterator[dict[str, Any]]:
    """The phase's posts with their moments: each step of all deliveries, then the next."""
    statuses = [
        status(step, message_id=message_id, reference=reference, number=number)
        for step in phase.steps
        for reference, message_id, number in deliveries
    ]
    for number, first in enumerate(range(0, len(statuses), phase.statuses_a_post)):
        body = post(statuses[first : first + phase.statuses_a_post])
        yield {
            "at": number / phase.posts_a_second,
            "body": body,
            "signature": sign(body.encode(), stage.APP_SECRET),
        }


def _sent_so_far() -> int:
    [(count,)] = query("SELECT count(*) FROM reminders_deliveryattempt WHERE outcome = 'accepted'")
    return int(count)


def _wait_until_worked_off(ended: float) -> float:
    """Seconds until no post waits; gives up after two minutes."""
    while time.time() < ended + 120:
        [(waiting,)] = query("SELECT count(*) FROM whatsapp_webhookpost WHERE processed_at IS NULL")
        if not waiting:
            break
        time.sleep(0.1)
    return time.time() - ended


def _lost(phase: Phase, deliveries: Sequence[tuple[str, str, str]]) -> int:
    """How many statuses are not in their delivery's row."""
    ids = [reference.split(":")[1] for reference, _, _ in deliveries]
    stamps = " + ".join(f"count(*) FILTER (WHERE {step}_at IS NULL)" for step in phase.steps)
    [(lost,)] = query(
        f"SELECT {stamps} + count(*) FILTER (WHERE status <> %s)"
        " FROM reminders_reminderdelivery WHERE id = ANY(%s::uuid[])",
        phase.steps[-1],
        ids,
    )
    return int(lost)


if __name__ == "__main__":
    sys.exit(main())
