"""A dispatcher killed with -9 again and again: nobody is written to twice, nobody is forgotten.

python -m bench.crash [--quick] [--seed N]
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bench import stage  # first: it gives Django its database

# isort: split
from django.db import connection

from appointments import clock
from bench import figures, fill
from bench.meta_posts import post, status
from bench.provider import ask, provider
from bench.stage import query
from reminders.call_list import unreached
from reminders.models import Notification, ReminderDelivery
from whatsapp import inbox

DUE, KILLS = 5_000, 10
QUICK_DUE, QUICK_KILLS = 600, 2
LATENCIES = (0.0, 0.1)
DAY_BEFORE = -1_440
ARRIVED = ["sent", "delivered", "read"]
SETTINGS = {
    # As short as the checks allow, so that a run takes minutes and not an hour.
    "REMINDER_LEASE_SECONDS": "36",
    # Longer than a dead worker holds a webhook post: a receipt may stand in it.
    "REMINDER_UNKNOWN_WAIT_SECONDS": str(inbox.LEASE.seconds + 30),
}
DEAF_TO_EACH = 50
"""The provider hangs up on so many: of these nobody ever hears again."""
PATIENCE = 420.0
"""Seconds after the last kill in which everything must have found its end."""
RECEIPTS_A_POST = 100


def main() -> int:
    """Both latencies; prints the counts, and 1 when one of them is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_DUE} due and {QUICK_KILLS} kills")
    parser.add_argument(
        "--seed", type=int, default=random.randrange(10_000), help="of the moments of the kills"
    )
    options = parser.parse_args()
    due, kills = (QUICK_DUE, QUICK_KILLS) if options.quick else (DUE, KILLS)
    print(figures.heading("bench.crash", packages=("pyreqwest",)) + f"seed {options.seed}", flush=True)
    verdict = figures.Verdict()
    chance = random.Random(options.seed)
    for latency in LATENCIES:
        print(f"\n{due} due, latency {latency * 1000:.0f} ms")
        _fill(due)
        begin = time.monotonic()
        with provider(latency, deaf_to_each=DEAF_TO_EACH), _receipts_come_back():
            killed = _kill_and_restart(kills, due, chance)
            print(f"      {killed} workers killed; {ask('total')} calls had arrived by then", flush=True)
            open_rows = _work_to_the_end()
            end = _End.read(ask("counts")["counts"])
        print(f"      {time.monotonic() - begin:.0f} s from the first worker to the end")
        verdict.ask(killed == kills, f"{killed} of {kills} workers were at work when they were killed")
        verdict.ask(not open_rows, f"{open_rows} rows, marks and posts are open")
        end.judge(verdict, due)
    return verdict.exit_code


def _fill(due: int) -> None:
    fill.empty()
    fill.set_rules(channels=("whatsapp", "in_app"))
    with provider():
        visit = fill.model_visit(ahead=timedelta(days=3, minutes=-1))
    fill.copy_visit(visit, due, shift=timedelta(days=-2))
    fill.give_inboxes()
    fill.fall_due(datetime.now(UTC), offset_minutes=DAY_BEFORE)
    fill.settle_down()


def _kill_and_restart(kills: int, due: int, chance: random.Random) -> int:
    """Workers, one after the other, each killed after some calls and amid others; how many were."""
    killed = 0
    for _ in range(kills):
        until = ask("total") + chance.randrange(1, due // kills // 2)
        with _worker() as worker:
            while ask("total") < until and _are_any_due():
                _must_live(worker)
                time.sleep(0.002)
            time.sleep(chance.random() / 20)
            worker.send_signal(signal.SIGKILL)
            killed += worker.wait() == -signal.SIGKILL and _are_any_due()
    return killed


@contextmanager
def _worker() -> Iterator[stage.Program]:
    arguments = ["manage.py", "dispatch_reminders", "--loop"]
    with stage.program("worker", arguments, **SETTINGS) as worker:
        yield worker


def _must_live(worker: stage.Program) -> None:
    if worker.poll() is not None:
        raise SystemExit(f"the worker ended by itself:\n{stage.log_of('worker').read_text()[-2_000:]}")


def _are_any_due() -> bool:
    return ReminderDelivery.objects.due(clock.now()).exists()


def _work_to_the_end() -> int:
    """Let one worker work until nothing is open; how much was when the patience was over."""
    ends = time.monotonic() + PATIENCE
    with _worker() as worker:
        while (still_open := _count_open()) and time.monotonic() < ends:
            _must_live(worker)
            time.sleep(0.5)
    return still_open


def _count_open() -> int:
    [(count,)] = query(
        """SELECT (SELECT count(*) FROM reminders_reminderdelivery
                   WHERE status IN ('sending', 'unknown') OR (status = 'pending' AND offset_minutes = %s))
                + (SELECT count(*) FROM reminders_mark)
                + (SELECT count(*) FROM whatsapp_webhookpost WHERE processed_at IS NULL)""",
        DAY_BEFORE,
    )
    return int(count)


@contextmanager
def _receipts_come_back() -> Iterator[None]:
    """While the block lasts: the provider tells of all that it took, as Meta does, a moment later."""
    over = threading.Event()

    def tell() -> None:
        told = 0
        while not over.wait(0.3):
            news = ask(f"accepted/{told}")[:RECEIPTS_A_POST]
            told += len(news)
            if news:
                receipts = [
                    status("sent", message_id=wamid, reference=reference, number=phone.lstrip("+"))
                    for wamid, reference, phone in news
                ]
                inbox.store(post(receipts).encode())
        connection.close()

    thread = threading.Thread(target=tell)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@dataclass(frozen=True, kw_only=True)
class _End:
    """How it ended, by the id of each delivery that was due."""

    counts: Mapping[str, int]
    """Delivery → how often the provider counted it."""
    by_whatsapp: Mapping[str, tuple[str, str]]
    """Delivery → its state and reason."""
    in_inboxes: Mapping[str, str]
    """Delivery → the state of the one that came in its place."""
    to_be_called: frozenset[str]

    @classmethod
    def read(cls, counts: Mapping[str, int]) -> _End:
        rows = ReminderDelivery.objects.filter(offset_minutes=DAY_BEFORE)
        return cls(
            counts={reference.removeprefix("d:"): count for reference, count in counts.items()},
            by_whatsapp={
                str(pk): (state, reason)
                for pk, state, reason in rows.filter(channel="whatsapp").values_list("pk", "status", "reason")
            },
            in_inboxes={
                str(fallen): state
                for fallen, state in rows.filter(channel="in_app").values_list("fallback_of", "status")
            },
            to_be_called=frozenset(
                str(row.fallback_of_id or row.pk)
                for row in unreached(clock.now()).filter(offset_minutes=DAY_BEFORE)
            ),
        )

    def judge(self, verdict: figures.Verdict, due: int) -> None:
        """Print the counts, and hold them against what was promised."""
        states = Counter(f"{state} {reason}".strip() for state, reason in self.by_whatsapp.values())
        print("      over WhatsApp: " + ", ".join(f"{n} {state}" for state, n in states.most_common()))
        print(f"      to be called: {len(self.to_be_called)}")
        twice = sum(count > 1 for count in self.counts.values())
        verdict.ask(len(self.by_whatsapp) == due, f"{len(self.by_whatsapp)} deliveries of {due} are there")
        verdict.ask(not twice, f"{twice} deliveries were counted twice by the provider")
        taken = self.by_whatsapp.keys() & self.counts.keys()
        unsettled = sum(self.by_whatsapp[pk][0] not in ARRIVED for pk in taken)
        verdict.ask(not unsettled, f"{unsettled} of {len(taken)} that the provider took are not told as sent")
        left = self.by_whatsapp.keys() - self.counts.keys()
        ended = {pk for pk in left if self.by_whatsapp[pk][0] == "failed" and self.by_whatsapp[pk][1]}
        verdict.ask(ended == left, f"{len(ended)} of {len(left)} that it did not take ended with a reason")
        reached = {pk for pk in left if self.in_inboxes.get(pk) in ARRIVED}
        cared_for = reached ^ (left & self.to_be_called)
        verdict.ask(
            cared_for == left,
            f"{len(cared_for)} of {len(left)} are in an inbox ({len(reached)}) or on the call list",
        )
        doubles = len(self.in_inboxes.keys() & taken)
        verdict.ask(not doubles, f"{doubles} that the provider took came into an inbox too")
        arrived = sum(state in ARRIVED for state in self.in_inboxes.values())
        written = Notification.objects.count()
        verdict.ask(written == arrived, f"{written} entries stand in inboxes, of {arrived} deliveries")


if __name__ == "__main__":
    sys.exit(main())
