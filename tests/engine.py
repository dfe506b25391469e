"""Turns of the engine, for tests that play the part of the cluster."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.db import connection, transaction

from amedi.sandbox import Sandbox
from appointments import clock
from appointments.models import Appointment
from reminders.tick import tick
from tests.factories import agree, make_appointment, only_rules, soon
from whatsapp import inbox


def turn(sandbox: Sandbox) -> int:
    """Let the provider's webhooks arrive, work them off, and send what is due."""
    assert sandbox.flush()
    inbox.work_off(now=clock.now())
    return tick()


def settle(sandbox: Sandbox) -> None:
    """Turn until nothing is left to send and every receipt is worked off."""
    while turn(sandbox):
        pass


def due_visit(**fields: object) -> Appointment:
    """A visit whose reminder of two hours before has just fallen due; the patient has agreed."""
    with transaction.atomic(), connection.cursor() as cursor:
        # A rule acts on moments after it was made: this one stands since long ago.
        cursor.execute("SELECT set_config('amedi.now', '2026-01-01T00:00Z', true)")
        only_rules(-120)
    visit = make_appointment(at=soon(2) - timedelta(minutes=1), **fields)
    agree(visit.patient)
    return visit


def database_url() -> str:
    """The test's own database, for a process of its own."""
    name = connection.settings_dict["NAME"]
    return urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}"))


def wait_for(condition: Callable[[], bool]) -> None:
    """Look until it holds; fail after twenty seconds."""
    pause = threading.Event()
    for _ in range(400):
        if condition():
            return
        pause.wait(0.05)
    pytest.fail("it never came true")
