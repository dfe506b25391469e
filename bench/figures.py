"""Figures as people read them: where they were taken, in a table, and whether they will do."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

from bench.stage import query


def heading(name: str, *, packages: Iterable[str] = ()) -> str:
    """Which measurement, when, on which machine, with which versions."""
    [(postgres,)] = query("SHOW server_version")
    [(fsync,)] = query("SHOW fsync")
    [(commit,)] = query("SHOW synchronous_commit")
    versions = [f"Python {platform.python_version()}"]
    versions += [f"{package} {version(package)}" for package in ("django", "psycopg", *packages)]
    return (
        f"{name}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC\n"
        f"{_processor()}, {os.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB, "
        f"{platform.system()} {platform.release()}, load at the start {os.getloadavg()[0]:.1f}\n"
        f"{', '.join(versions)}, PostgreSQL {postgres} (fsync {fsync}, synchronous_commit {commit})\n"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns under each other: the first to the left, the others to the right."""
    lines = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def percentile(values: Sequence[float], part: float) -> float:
    """The value that ``part`` (0 to 1) of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


class Verdict:
    """Collects what was asked and what came of it."""

    def __init__(self) -> None:
        self._misses = 0

    def ask(self, is_so: bool, sentence: str) -> None:
        """Print a line about one promise."""
        self._misses += not is_so
        print(f"{'ok  ' if is_so else 'MISS'}  {sentence}")

    @property
    def exit_code(self) -> int:
        return 1 if self._misses else 0


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
