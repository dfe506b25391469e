"""300 open rooms on one web process: connections, memory, how soon the news is there, and the end.

python -m bench.rooms [--rooms N] [--news N]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Sequence

import aiohttp
import psutil

from bench import stage  # first: it gives Django its database

# isort: split
from appointments.models import Doctor
from bench import figures
from bench.stage import query
from reminders.room.stream import CHANNEL, LISTENER, PACE
from tests.factories import make_doctor
from tests.room import make_desk, session_of

SERVER = "bench room server"
MOST_CONNECTIONS = 3
MOST_MILLISECONDS = 1_000
MOST_SECONDS_TO_STOP = 5


class Room:
    """One open stream, and when it last heard of a change."""

    def __init__(self) -> None:
        self.at = 0.0
        self._changed = asyncio.Event()

    async def listen(self, session: aiohttp.ClientSession) -> None:
        async with session.get(f"http://{stage.HOST}:{stage.WEB_PORT}/sala/eventos/") as answer:
            answer.raise_for_status()
            async for line in answer.content:
                if line.startswith(b"event: changed"):
                    self.at = time.perf_counter()
                    self._changed.set()

    def forget(self) -> None:
        self._changed.clear()

    async def hear(self) -> None:
        await asyncio.wait_for(self._changed.wait(), 60)
        self.forget()


def main() -> int:
    """Open the rooms and measure; 1 when a promise is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rooms", type=int, default=300)
    parser.add_argument("--news", type=int, default=30, help="how many changes are told, one after the other")
    options = parser.parse_args()
    print(figures.heading("bench.rooms", packages=("uvicorn",)), flush=True)
    doctor = make_doctor()
    cookie = session_of(make_desk(doctor))
    command = [
        *("-m", "uvicorn", "amedi.asgi:application", "--port", str(stage.WEB_PORT)),
        *("--timeout-graceful-shutdown", "2", "--no-access-log"),
    ]
    with stage.program("uvicorn", command, PGAPPNAME=SERVER) as server:
        return asyncio.run(_measure(server.pid, server.wait, cookie, doctor, options.rooms, options.news))


async def _measure(
    pid: int, wait: Callable[[], int], cookie: str, doctor: Doctor, count: int, news: int
) -> int:
    verdict = figures.Verdict()
    process = psutil.Process(pid)
    rooms = [Room() for _ in range(count)]
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookies={"sessionid": cookie},
        timeout=aiohttp.ClientTimeout(total=None),
    ) as session:
        await _until_it_serves(session)
        before = process.memory_info().rss / 2**20
        streams = [asyncio.create_task(room.listen(session)) for room in rooms]
        began = time.perf_counter()
        await asyncio.gather(*(room.hear() for room in rooms))
        opened = time.perf_counter() - began
        # What rings while they open is told a pace later.
        await asyncio.sleep(2 * PACE)
        connections = await asyncio.to_thread(_connections)
        delays = await _tell(rooms, doctor, news)
        after = process.memory_info().rss / 2**20
        began = time.perf_counter()
        process.terminate()
        await asyncio.to_thread(wait)
        stopped = time.perf_counter() - began
        await asyncio.gather(*streams, return_exceptions=True)
    p50, p99 = (figures.percentile(delays, part) for part in (0.5, 0.99))
    head = ("rooms", "all open s", "connections", "MB before", "MB with them", "p50 ms", "p99 ms", "stop s")
    row = (
        count, f"{opened:.1f}", connections, f"{before:.0f}", f"{after:.0f}", f"{p50:.0f}", f"{p99:.0f}",
        f"{stopped:.1f}",
    )  # fmt: skip
    print(figures.table(head, [row]))
    verdict.ask(connections <= MOST_CONNECTIONS, f"{connections} connections of Postgres for {count} rooms")
    verdict.ask(p99 <= MOST_MILLISECONDS, f"a NOTIFY is in 99 % of the rooms after {p99:.0f} ms")
    verdict.ask(stopped <= MOST_SECONDS_TO_STOP, f"told to stop, it ended after {stopped:.1f} s")
    return verdict.exit_code


async def _until_it_serves(session: aiohttp.ClientSession) -> None:
    for _ in range(600):
        try:
            async with session.get(f"http://{stage.HOST}:{stage.WEB_PORT}/sala/espera/"):
                return
        except aiohttp.ClientConnectionError:
            await asyncio.sleep(0.1)
    raise SystemExit(f"the server does not start; see {stage.log_of('uvicorn')}")


async def _tell(rooms: Sequence[Room], doctor: Doctor, news: int) -> list[float]:
    """Milliseconds from NOTIFY to each room, for changes that are told in peace."""
    delays: list[float] = []
    for room in rooms:
        room.forget()
    for _ in range(news):
        await asyncio.sleep(1.2 * PACE)
        told = time.perf_counter()
        await asyncio.to_thread(query, "SELECT pg_notify(%s, %s)", CHANNEL, str(doctor.pk))
        await asyncio.gather(*(room.hear() for room in rooms))
        delays += [(room.at - told) * 1000 for room in rooms]
    return delays


def _connections() -> int:
    """How many the server holds, with the one that listens."""
    [(count,)] = query(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name IN (%s, %s)", LISTENER, SERVER
    )
    return int(count)


if __name__ == "__main__":
    sys.exit(main())
