"""The same in a terminal: what is the matter, what it means, what to do next."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.db import connection

from appointments import clock
from reminders.models import Heartbeat, Mark
from tests.factories import MARK, PHONE_MARK, make_delivery
from whatsapp.models import WebhookPost


def status(*arguments: str) -> tuple[int, str]:
    """Exit code and output."""
    output = io.StringIO()
    try:
        call_command("reminders_status", *arguments, stdout=output, no_color=True)
    except SystemExit as end:
        return int(end.code or 0), output.getvalue()
    return 0, output.getvalue()


@pytest.fixture
def ticking(db: None) -> None:
    Mark.objects.all().delete()
    Heartbeat.beat("tick", clock.now() - timedelta(seconds=20))


def test_all_well_is_one_line_a_measure_and_a_zero(ticking):
    code, told = status()
    assert code == 0
    assert "MAL" not in told
    assert "bien  Última señal de vida del cluster     20 segundos" in told
    assert "hasta 3 minutos" in told
    assert told.rstrip().endswith("Todo está bien.")


def test_a_dead_cluster_is_told_with_what_to_do_next(db):
    Heartbeat.beat("tick", clock.now() - timedelta(hours=3))
    make_delivery(next_attempt_at=clock.now() - timedelta(hours=2))
    code, told = status()
    assert code == 1
    assert "MAL   Última señal de vida del cluster     3 horas" in told
    # On one line, to be copied.
    assert "python manage.py dispatch_reminders --loop: envía" in told
    words = " ".join(told.split())
    assert "Ningún proceso trabaja desde hace 3 horas: no sale ningún recordatorio." in words
    assert "Qué hacer: Reinicie el cluster entero" in words
    assert "python manage.py dispatch_reminders --loop: envía sin el cluster." in words
    assert "Hay mensajes que ya debieron salir; el más atrasado, hace 2 horas." in words
    assert told.rstrip().endswith("Los recordatorios no están saliendo como deben.")


def test_what_only_asks_for_a_person_is_told_as_that(ticking):
    WebhookPost.objects.create(body=b"{}", sha256="a" * 64, claims=WebhookPost.MOST_CLAIMS)
    code, told = status()
    assert code == 1
    assert "Hay avisos de WhatsApp que ningún proceso logró terminar (1)." in " ".join(told.split())
    assert told.rstrip().endswith("Los recordatorios salen, pero algo pide que alguien lo mire.")


def test_no_line_is_wider_than_a_terminal(db, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    Heartbeat.beat("tick", clock.now() - timedelta(hours=3))
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE whatsapp_quarantineditem RENAME TO elsewhere")
    _, told = status()
    assert "No se pudo medir (ProgrammingError)." in told
    assert max(len(line) for line in told.splitlines()) <= 80


def test_programs_read_the_same_as_json(db):
    Heartbeat.beat("tick", clock.now() - timedelta(hours=3))
    code, told = status("--json")
    found = json.loads(told)
    assert (code, found["ready"]) == (1, False)
    assert found["measures"]["tick_age_seconds"]["ok"] is False
    assert found["measures"]["webhook_lag_seconds"]["ok"] is True


def test_a_watchdog_asks_for_one_measure_alone(ticking):
    WebhookPost.objects.create(body=b"{}", sha256="a" * 64, claims=WebhookPost.MOST_CLAIMS)
    code, told = status("--only", "tick_age_seconds")
    assert (code, "abandonados" in told) == (0, False)
    Heartbeat.beat("tick", clock.now() - timedelta(minutes=5))
    assert status("--only", "tick_age_seconds")[0] == 1


def test_nobody_is_named(db):
    make_delivery(next_attempt_at=clock.now() - timedelta(hours=2))
    told = status()[1] + status("--json")[1]
    assert not [mark for mark in (MARK, PHONE_MARK) if mark in told]


def run_without_a_database(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "reminders_status", *arguments],
        cwd=django_settings.BASE_DIR,
        env=os.environ | {"DATABASE_URL": "postgresql://postgres@127.0.0.1:1/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_a_database_it_says_so_and_ends_with_two():
    run = run_without_a_database("--only", "tick_age_seconds")
    assert run.returncode == 2
    assert "La base de datos no contesta" in run.stdout
    assert "DATABASE_URL" in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


def test_programs_hear_of_a_missing_database_too():
    run = run_without_a_database("--json")
    assert run.returncode == 2
    assert json.loads(run.stdout)["ready"] is False


def test_a_wrong_setting_does_not_stop_who_looks_for_the_fault(ticking, settings):
    settings.REMINDER_LEASE_SECONDS = 5
    assert status()[0] == 0
