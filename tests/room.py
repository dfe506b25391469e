"""The room in tests: a real stream server, rooms that listen to it, and a place where it is morning now."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from playwright.sync_api import Page

from amedi.demo_programs import HOST, answers, free_port
from appointments.models import Appointment, Doctor, Office
from reminders.room.stream import LISTENER
from tests.engine import database_url, wait_for
from tests.factories import make_appointment, make_doctor, make_office, make_user


class RoomServer:
    """uvicorn with the project, on the test's database."""

    def __init__(self, log: Path, *, site_url: str, port: int | None = None) -> None:
        self.port = port or free_port(0)
        # By the name that the live server of the tests has: a session is one host's.
        self.url = f"http://localhost:{self.port}"
        self.log = log
        self.name = f"room server {self.port}"
        environment = {
            **os.environ,
            "DATABASE_URL": database_url(),
            "SITE_URL": site_url or self.url,
            # How its connections are called, but for the one that listens.
            "PGAPPNAME": self.name,
        }
        command = [sys.executable, "-m", "uvicorn", "amedi.asgi:application", "--port", str(self.port)]
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                command, env=environment, cwd=settings.BASE_DIR, stdout=output, stderr=output
            )
        wait_for(lambda: answers(self.url))

    def stop(self) -> float:
        """Tell it to stop; after how many seconds it did."""
        told = time.monotonic()
        self.process.terminate()
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
        return time.monotonic() - told


@contextmanager
def serving(folder: Path, *, site_url: str = "", port: int | None = None) -> Iterator[RoomServer]:
    """A server for as long as the block; ``site_url`` is where the pages are, if not there."""
    server = RoomServer(folder / "uvicorn.log", site_url=site_url, port=port)
    try:
        yield server
    finally:
        server.stop()


class Listener(threading.Thread):
    """One open room: what it was told, and when."""

    def __init__(self, server: RoomServer, user: User) -> None:
        super().__init__(daemon=True)
        self.events: list[tuple[float, str]] = []
        self.is_over = False
        self._line = http.client.HTTPConnection(HOST, server.port, timeout=30)
        self._line.request("GET", "/sala/eventos/", headers={"Cookie": f"sessionid={session_of(user)}"})
        self._socket = self._line.sock
        self._answer = self._line.getresponse()
        assert self._answer.status == 200
        self.start()

    def run(self) -> None:
        with suppress(OSError, http.client.HTTPException):
            for line in self._answer:
                if line.startswith(b"event: "):
                    self.events.append((time.monotonic(), line.decode().removeprefix("event: ").strip()))
        self.is_over = True

    @property
    def words(self) -> list[str]:
        return [word for _at, word in self.events]

    def wait_for_more_than(self, count: int) -> None:
        wait_for(lambda: len(self.events) > count)

    def leave(self) -> None:
        # A reader that waits would hold the closing up: this wakes it.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self.join(20)
        self._answer.close()
        self._line.close()


@contextmanager
def listening(server: RoomServer, *users: User) -> Iterator[list[Listener]]:
    """Rooms of these users, each live."""
    rooms = [Listener(server, user) for user in users]
    try:
        for room in rooms:
            wait_for(lambda room=room: "changed" in room.words)
        yield rooms
    finally:
        for room in rooms:
            room.leave()


def session_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value


def log_in(page: Page, url: str, user: User) -> None:
    page.context.add_cookies([{"name": "sessionid", "value": session_of(user), "url": url}])


def make_desk(doctor: Doctor | None = None, **fields: object) -> User:
    """Somebody on the staff of a doctor."""
    user = make_user(**fields)
    (doctor or make_doctor()).staff.add(user)
    return user


def morning_office() -> Office:
    """A place where it is between 9 and 10 now: the whole day is at hand."""
    ahead = (9 - datetime.now(UTC).hour) % 24
    hours = ahead - 24 if ahead > 14 else ahead
    # The sign of these zones is the other way round.
    return make_office(time_zone=f"Etc/GMT{-hours:+d}" if hours else "Etc/GMT")


def today(minutes: float = 60, *, doctor: Doctor | None = None, **fields: Any) -> Appointment:
    """A visit of today at a place where it is morning, so many minutes from now."""
    at = (datetime.now(UTC) + timedelta(minutes=minutes)).replace(second=0, microsecond=0)
    return make_appointment(at=at, doctor=doctor or make_doctor(office=morning_office()), **fields)


def connections_named(name: str) -> list[int]:
    """The process ids of the database's connections of this name."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s",
            [name],
        )
        return [pid for [pid] in cursor.fetchall()]


def cut_the_listeners() -> None:
    """As a restart of the database does: their connections are gone."""
    for pid in connections_named(LISTENER):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
