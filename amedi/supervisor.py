"""Child processes: started, watched, started again, and ended with all that they started.

What a child starts inherits the mark in its environment. By it everything is
found again: what a killed child left behind, and what a killed supervisor left
to the next one. Each child leads a session of its own, so that a Ctrl-C reaches
the supervisor alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import psutil

MARK = "AMEDI_SUPERVISED"
GRACE = 3.0
"""Seconds between TERM and KILL."""
GRACE_OF_A_SUPERVISOR = 20.0
"""The same for an earlier supervisor, which ends its own children first."""
LOOK = 0.05
"""Seconds between two looks at processes that are about to end."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """One program to run, with the whole of its environment."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Child:
    """A program that was started."""

    program: Program
    process: subprocess.Popen[bytes]
    started: float


class Supervisor:
    """The programs of one folder, which keeps their logs and the note of who supervises."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._children: dict[str, Child] = {}

    def take_over(self) -> int:
        """End what an earlier supervisor of this folder left running, itself included.

        Returns how many processes that were. From now on the folder is ours.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        with open(self._folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            earlier = self._earlier_supervisor()
            count = len([*earlier(), *self._family()])
            _end(earlier, grace=GRACE_OF_A_SUPERVISOR)
            _end(self._family)
            for log in self._folder.glob("*.log"):
                log.unlink()
            me = psutil.Process()
            self._state.write_text(json.dumps({"pid": me.pid, "started": me.create_time()}))
        return count

    def start(self, program: Program) -> None:
        """Start a program; what it prints goes to its log."""
        with open(self.log(program.name), "ab") as log:
            process = subprocess.Popen(
                program.command,
                env=self._marked(program),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._children[program.name] = Child(program=program, process=process, started=time.monotonic())

    def run(self, program: Program) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, and return what it printed; its errors go to its log."""
        with open(self.log(program.name), "ab") as log:
            return subprocess.run(
                program.command,
                env=self._marked(program),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                check=False,
            )

    @property
    def names(self) -> list[str]:
        """The programs, in the order in which they were first started."""
        return list(self._children)

    def ended(self) -> list[str]:
        """The names of the programs that ended by themselves."""
        return [name for name, child in self._children.items() if child.process.poll() is not None]

    def age(self, name: str) -> timedelta:
        """How long ago the program was last started."""
        return timedelta(seconds=time.monotonic() - self._children[name].started)

    def restart(self, name: str) -> None:
        """End the program with all that it started, and start it afresh."""
        child = self._children[name]
        _end(lambda: self._family(name))
        child.process.wait()
        self.start(child.program)

    def restart_if_silent(self, name: str, *, since: timedelta | None, limit: timedelta) -> bool:
        """Restart a program whose last sign of life is older than ``limit``; whether it was.

        ``since`` is the age of that sign, None when there never was one. A
        program that has just started is given the same time for its first one.
        """
        age = self.age(name)
        if min(age, age if since is None else since) <= limit:
            return False
        self.restart(name)
        return True

    def stop(self) -> None:
        """End every program with all that it started. Does nothing the second time."""
        _end(self._family)
        for child in self._children.values():
            child.process.wait()
        self._children.clear()
        self._state.unlink(missing_ok=True)

    def log(self, name: str) -> Path:
        """Where the program's output goes."""
        return self._folder / f"{name}.log"

    def last_lines(self, name: str, count: int = 12) -> list[str]:
        """The end of the program's log; empty when there is none."""
        try:
            return self.log(name).read_text(errors="replace").splitlines()[-count:]
        except FileNotFoundError:
            return []

    @property
    def _state(self) -> Path:
        return self._folder / "supervisor.json"

    def _marked(self, program: Program) -> dict[str, str]:
        return {**program.environment, MARK: f"{self._folder}:{program.name}"}

    def _family(self, name: str = "") -> list[psutil.Process]:
        """Whatever lives and carries our mark, or that of one program."""
        found = []
        for process in psutil.process_iter():
            # Another user's, one that ends at this moment, or a zombie: not to be read.
            with suppress(psutil.Error, OSError):
                mark = process.environ().get(MARK, "")
                if mark == f"{self._folder}:{name}" or (not name and mark.startswith(f"{self._folder}:")):
                    found.append(process)
        return found

    def _earlier_supervisor(self) -> Callable[[], list[psutil.Process]]:
        """Finds the process that wrote the note, as long as it lives and is not this one."""
        try:
            noted = json.loads(self._state.read_text())
            pid, started = int(noted["pid"]), float(noted["started"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return list

        def find() -> list[psutil.Process]:
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                # The pid may have been given to a stranger meanwhile.
                is_it = abs(process.create_time() - started) < 1 and process.status() != psutil.STATUS_ZOMBIE
                return [process] if is_it and pid != os.getpid() else []
            return []

        return find


def _end(find: Callable[[], list[psutil.Process]], *, grace: float = GRACE) -> None:
    """TERM, then KILL until none is left: what is found may start others while it ends."""
    for process in find():
        with suppress(psutil.Error):
            process.terminate()
    deadline = time.monotonic() + grace
    while left := find():
        if time.monotonic() > deadline:
            for process in left:
                with suppress(psutil.Error):
                    process.kill()
        time.sleep(LOOK)
