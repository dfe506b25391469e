"""What every measurement stands on: a durable Postgres of its own, migrated, and Django upon it.

To import it starts the server, so it must come before anything that reads the
settings. The server and its data end with the process. Nobody's .env and
nobody's DATABASE_URL is read.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

os.environ["AMEDI_ENV_FILE"] = ""
for _name in [name for name in os.environ if name.startswith(("WHATSAPP_", "REMINDER_", "POSTMARK_"))]:
    del os.environ[_name]

import django  # noqa: E402

from amedi.local_postgres import DURABLE, Server  # noqa: E402

Program = subprocess.Popen[bytes]
HOST = "127.0.0.1"
PROJECT = Path(__file__).resolve().parent.parent


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


# Never under /tmp, which may be memory: there a commit would cost nothing.
HOME = Path(tempfile.mkdtemp(prefix="amedi-bench-", dir="/var/tmp"))
HOME.chmod(0o711)
SERVER = Server(HOME, options=DURABLE)


@atexit.register
def _end() -> None:
    SERVER.stop()
    shutil.rmtree(HOME, ignore_errors=True)


# A run that is told to end must reach atexit, or its server would outlive it.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

PROVIDER_PORT = _free_port()
WEB_PORT = _free_port()
APP_SECRET = "bench-app-secret-not-real"
PHONE_NUMBER_ID = "200000000000002"
BUSINESS_ACCOUNT_ID = "100000000000001"

os.environ.update(
    DJANGO_SETTINGS_MODULE="amedi.settings",
    DATABASE_URL=SERVER.start(),
    SECRET_KEY="a-key-for-the-bench-only-0123456789-abcdefghijklmnopqrstuvwxyz",
    SITE_URL=f"http://{HOST}:{WEB_PORT}",
    WHATSAPP_API_URL=f"http://{HOST}:{PROVIDER_PORT}",
    WHATSAPP_PHONE_NUMBER_ID=PHONE_NUMBER_ID,
    WHATSAPP_BUSINESS_ACCOUNT_ID=BUSINESS_ACCOUNT_ID,
    WHATSAPP_ACCESS_TOKEN="bench-access-token-not-real",
    WHATSAPP_APP_SECRET=APP_SECRET,
    WHATSAPP_VERIFY_TOKEN="bench-verify-token-not-real",
    REMINDER_CHANNELS="whatsapp,in_app",
    # A measurement is made at any hour of the day.
    REMINDER_QUIET_HOURS="00:00-00:00",
    REMINDER_BATCH_SIZE="100",
)
django.setup()
# A line for each row that is copied helps nobody.
logging.disable(logging.INFO)

from django.core.management import call_command  # noqa: E402

call_command("migrate", verbosity=0)


@contextmanager
def program(name: str, arguments: Sequence[str], **environment: str) -> Iterator[Program]:
    """A Python program of ours as a process of its own, which ends with the block.

    ``arguments`` begin with ``-m`` or a file. What it prints can be read from its
    stdout; what it logs goes into a file.
    """
    with log_of(name).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=PROJECT,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            # A group of its own: what it starts ends with it.
            start_new_session=True,
        )
    try:
        yield process
    finally:
        end(process)


def end(process: Program) -> None:
    """Ask a program to end, and see that it and all that it started are gone."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(15)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def log_of(name: str) -> Path:
    """The file that a program's log goes into."""
    return HOME / f"{name}.log"


def query(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """The rows that a statement brings; [] when it brings none."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(sql, parameters or None)
        return cursor.fetchall() if cursor.description else []
