"""Child processes are started, watched, started again, and ended with all that they started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from amedi.supervisor import Program, Supervisor
from tests.engine import wait_for

PARENT = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {child!r}], start_new_session={apart})
print("started", flush=True)
time.sleep(600)
"""
SLEEPER = "import time; time.sleep(600)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); {SLEEPER}"


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    supervisor = Supervisor(tmp_path / "a folder with spaces")
    supervisor.take_over()
    yield supervisor
    supervisor.stop()


def program(code: str, name: str = "one") -> Program:
    return Program(name=name, command=[sys.executable, "-c", code], environment=os.environ)


def family(child: psutil.Process) -> list[psutil.Process]:
    return [child, *child.children(recursive=True)]


def is_gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def started(supervisor: Supervisor, code: str, *, size: int, name: str = "one") -> list[psutil.Process]:
    """The program's processes, once there are so many."""
    before = set(psutil.Process().children())
    supervisor.start(program(code, name))
    [child] = set(psutil.Process().children()) - before
    wait_for(lambda: len(family(child)) == size)
    return family(child)


def test_what_a_program_prints_goes_to_its_log(supervisor):
    supervisor.start(program("print('ready', flush=True); import time; time.sleep(600)"))
    wait_for(lambda: supervisor.last_lines("one") == ["ready"])


def test_a_program_that_ends_by_itself_is_named(supervisor):
    supervisor.start(program("pass", "short"))
    supervisor.start(program(SLEEPER, "long"))
    wait_for(lambda: supervisor.ended() == ["short"])


@pytest.mark.parametrize("apart", [False, True], ids=["its group", "a session of its own"])
def test_stopping_ends_a_child_with_all_that_it_started(supervisor, apart):
    processes = started(supervisor, PARENT.format(child=SLEEPER, apart=apart), size=2)
    supervisor.stop()
    assert all(is_gone(process) for process in processes)


def test_stopping_ends_the_orphans_of_a_killed_child(supervisor):
    child, orphan = started(supervisor, PARENT.format(child=SLEEPER, apart=False), size=2)
    child.kill()
    wait_for(lambda: supervisor.ended() == ["one"])
    assert not is_gone(orphan)
    supervisor.stop()
    assert is_gone(orphan)


def test_who_does_not_hear_term_is_killed(supervisor):
    [child] = started(supervisor, DEAF, size=1)
    wait_for(lambda: supervisor.last_lines("one") == ["deaf"])
    supervisor.stop()
    assert is_gone(child)


def test_a_restart_replaces_the_whole_family_of_one_program(supervisor):
    old = started(supervisor, PARENT.format(child=SLEEPER, apart=False), size=2)
    [other] = started(supervisor, SLEEPER, size=1, name="other")
    supervisor.restart("one")
    assert all(is_gone(process) for process in old)
    assert not is_gone(other)
    assert supervisor.ended() == []
    wait_for(lambda: supervisor.last_lines("one") == ["started", "started"])


@pytest.mark.parametrize(
    ("limit", "since", "restarted"),
    [
        (0, None, True),
        (0, 30, True),
        (60, 30, False),
        # Just started: the old sign of life says nothing about it.
        (60, 3600, False),
        (60, None, False),
    ],
)
def test_only_a_program_that_was_silent_for_too_long_is_restarted(supervisor, limit, since, restarted):
    supervisor.start(program(SLEEPER))
    assert (
        supervisor.restart_if_silent(
            "one",
            since=None if since is None else timedelta(seconds=since),
            limit=timedelta(seconds=limit),
        )
        is restarted
    )


def test_strangers_and_other_folders_are_left_alone(supervisor, tmp_path):
    stranger = subprocess.Popen([sys.executable, "-c", SLEEPER])
    other = Supervisor(tmp_path / "another folder")
    other.take_over()
    try:
        [theirs] = started(other, SLEEPER, size=1)
        supervisor.take_over()
        supervisor.stop()
        assert stranger.poll() is None
        assert not is_gone(theirs)
    finally:
        other.stop()
        stranger.kill()
        stranger.wait()


FIRST = f"""
import os, sys, time
from pathlib import Path
from amedi.supervisor import Program, Supervisor
supervisor = Supervisor(Path(sys.argv[1]))
supervisor.take_over()
code = {PARENT.format(child=SLEEPER, apart=False)!r}
supervisor.start(Program(name="one", command=[sys.executable, "-c", code], environment=os.environ))
time.sleep(600)
"""


@pytest.fixture
def first(tmp_path: Path) -> Iterator[psutil.Popen]:
    """A supervisor of ``tmp_path`` in a process of its own, with two processes."""
    process = psutil.Popen([sys.executable, "-c", FIRST, str(tmp_path)])
    wait_for(lambda: len(family(process)) == 3)
    yield process
    with suppress(psutil.NoSuchProcess):
        process.kill()
    process.wait()


@pytest.mark.parametrize("ended_by", [signal.SIGKILL, None], ids=["killed", "alive"])
def test_the_next_start_ends_what_an_earlier_one_left(first, tmp_path, ended_by):
    processes = family(first)
    if ended_by:
        first.send_signal(ended_by)
        first.wait()
    second = Supervisor(tmp_path)
    assert second.take_over() == (2 if ended_by else 3)
    assert all(is_gone(process) for process in processes)
    assert second.take_over() == 0


@pytest.mark.parametrize("note", ["", "{", "[]", '{"pid": 1}', '{"pid": 1, "started": 5.0}'])
def test_a_note_that_says_nothing_true_ends_nobody(supervisor, note):
    (supervisor.log("x").parent / "supervisor.json").write_text(note)
    assert supervisor.take_over() == 0
