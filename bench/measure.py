"""What a run costs: CPU time and memory of processes, seen from outside."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

import psutil

from bench.stage import SERVER

SAMPLES_A_SECOND = 5


def cpu_seconds(pid: int) -> float:
    """CPU time of a process with all that it started, living or gone."""
    total = 0.0
    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return total
    for process in family:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        # A child that has ended is counted by its parent.
        total += times.user + times.system + times.children_user + times.children_system
    return total


def postgres_pid() -> int:
    """The process from which all processes of our Postgres come."""
    [file] = SERVER.home.glob("run/data*/postmaster.pid")
    return int(file.read_text().split()[0])


@dataclass
class Usage:
    """What a process used from ``__enter__`` to ``__exit__``. Use as a context."""

    pid: int
    client_cpu: float = 0.0
    postgres_cpu: float = 0.0
    memory: list[float] = field(default_factory=list)
    """MB that the process and its children hold, from the begin to the end."""

    def __enter__(self) -> Usage:
        self._over = threading.Event()
        self._began = (cpu_seconds(self.pid), cpu_seconds(postgres_pid()))
        self._watch = threading.Thread(target=self._sample)
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watch.join()
        self.postgres_cpu = cpu_seconds(postgres_pid()) - self._began[1]

    def _sample(self) -> None:
        while True:
            # A process that ends by itself is seen for the last time shortly before.
            if cpu := cpu_seconds(self.pid):
                self.client_cpu = cpu - self._began[0]
                self.memory.append(_memory(self.pid))
            if self._over.is_set():
                return
            time.sleep(1 / SAMPLES_A_SECOND)

    @property
    def growth(self) -> float:
        """By what part the memory rose, from a fifth of the way to the end."""
        seen = [value for value in self.memory if value]
        early = seen[len(seen) // 5]
        return max(seen[len(seen) // 5 :]) / early - 1


def _memory(pid: int) -> float:
    total = 0
    try:
        for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
            total += process.memory_info().rss
    except psutil.NoSuchProcess:
        return 0.0
    return total / 2**20
