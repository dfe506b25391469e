"""The demonstration ends what it started, and what an earlier one left that was killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from amedi.environment import BASE_DIR

PATIENCE = 90
"""Seconds for a start on a busy machine."""


@pytest.fixture
def project() -> Iterator[Path]:
    """A copy of the project, with a database and a demonstration of its own."""
    # Under /tmp, which the database's own user can enter when root runs the tests.
    parent = Path(tempfile.mkdtemp(prefix="amedi-test-"))
    parent.chmod(0o711)
    project = parent / "a copy with spaces"
    shutil.copytree(BASE_DIR, project, ignore=shutil.ignore_patterns(".*", "tests", "__pycache__"))
    yield project
    for process in processes_of(project):
        process.kill()
    shutil.rmtree(parent, ignore_errors=True)


def test_a_start_after_kill_9_ends_what_was_left_and_ctrl_c_leaves_nothing(project):
    first = start(project)
    left = processes_of(project)
    first.kill()
    first.wait()
    assert len([process for process in left if process.is_running()]) > 5

    second = start(project)
    assert "Otra demostración estaba en marcha" in output(project)
    servers = [process for process in left if process.pid != first.pid and is_alive(process)]
    assert {process.name() for process in servers} <= {"postgres"}

    second.send_signal(signal.SIGINT)
    assert second.wait(timeout=PATIENCE) == 0
    assert processes_of(project) == []


def start(project: Path) -> subprocess.Popen[bytes]:
    """A demonstration, once all of it runs."""
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "SECRET_KEY")}
    with open(project / "output", "w") as file:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "demo"],
            cwd=project,
            env={**kept, "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=file,
            stderr=file,
        )
    ends = time.monotonic() + PATIENCE
    while "Todo está en marcha" not in output(project):
        assert process.poll() is None and time.monotonic() < ends, output(project)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.1)
    return process


def output(project: Path) -> str:
    return (project / "output").read_text()


def processes_of(project: Path) -> list[psutil.Process]:
    """Whatever runs in the copy's folder or with a file of it."""
    found = []
    for process in psutil.process_iter():
        try:
            where = [process.cwd(), *process.cmdline(), *process.environ().values()]
        except psutil.Error:
            continue
        if process.pid != os.getpid() and any(str(project) in each for each in where) and is_alive(process):
            found.append(process)
    return found


def is_alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
