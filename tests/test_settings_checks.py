"""Secrets that can be guessed and settings that exclude each other are found at start, each with its cure."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import time

import pytest
from django.conf import settings as django_settings
from django.core.checks import ERROR, WARNING, run_checks
from pytest_django.fixtures import Settings


def found(code: str) -> list:
    return [problem for problem in run_checks() if problem.id == code]


@pytest.fixture
def remote(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A database on another machine, and everything else as it should be there."""
    monkeypatch.setitem(settings.DATABASES["default"], "OPTIONS", {"host": "db.example.org"})
    settings.DEBUG = False
    settings.ALLOWED_HOSTS = ["citas.example.org"]
    settings.SITE_URL = settings.CLIENT_URL = settings.ROOM_STREAM_URL = "https://citas.example.org"
    return settings


def test_a_careful_production_is_told_nothing(remote):
    remote.METRICS_TOKEN = "fP3kW9sQm2Lx8Zt5Vb7Nc4Rd6Hj1Gy0Ae"
    assert run_checks() == []


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("SECRET_KEY", "Xk3p9", "amedi.E001"),
        ("SECRET_KEY", "a" * 60, "amedi.E001"),
        ("SECRET_KEY", "django-insecure-0123456789-abcdefghijklmnopqrstuvwxyz", "amedi.E001"),
        ("SECRET_KEY", "only-for-development-secret-key-main-and-so-on", "amedi.E001"),
        ("METRICS_TOKEN", "Xk3p9", "amedi.E002"),
        ("METRICS_TOKEN", "abababababababababababababababababab", "amedi.E002"),
    ],
)
def test_a_secret_that_can_be_guessed_is_an_error(settings, name, value, code):
    assert not found(code)
    setattr(settings, name, value)
    [problem] = found(code)
    assert (problem.level, name in problem.msg) == (ERROR, True)
    assert "secrets.token_urlsafe" in problem.hint
    assert value not in problem.msg + problem.hint


def test_a_developers_machine_makes_its_own_key(settings):
    settings.SECRET_KEY = "only-for-development-secret-key-main"
    settings.IS_LOCAL = True
    assert not found("amedi.E001")


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("DEBUG", True, "amedi.W001"),
        ("ALLOWED_HOSTS", ["*"], "amedi.W002"),
        ("SITE_URL", "http://127.0.0.1:8000", "amedi.W003"),
        ("SITE_URL", "http://citas.example.org", "amedi.W003"),
        ("CLIENT_URL", "http://localhost:8000", "amedi.W004"),
        ("CLIENT_URL", "http://citas.example.org", "amedi.W004"),
    ],
)
def test_what_is_meant_for_a_desk_is_warned_of_beside_a_remote_database(remote, name, value, code):
    assert not found(code)
    setattr(remote, name, value)
    [problem] = found(code)
    assert (problem.level, name in problem.msg) == (WARNING, True)
    assert problem.hint


@pytest.mark.parametrize(("name", "code"), [("SITE_URL", "amedi.W005"), ("CLIENT_URL", "amedi.W006")])
def test_an_address_whose_requests_would_be_refused_is_warned_of(settings, name, code):
    settings.ALLOWED_HOSTS = ["citas.example.org", "[::1]"]
    for served in ("https://citas.example.org", "http://[::1]:8000"):
        setattr(settings, name, served)
        assert not found(code)
    setattr(settings, name, "https://otra.example.org")
    [problem] = found(code)
    assert (problem.level, "ALLOWED_HOSTS" in problem.hint) == (WARNING, True)


def test_beside_a_database_on_this_machine_nobody_is_warned(settings):
    settings.ALLOWED_HOSTS = ["*"]
    settings.SITE_URL = settings.CLIENT_URL = "http://127.0.0.1:8000"
    assert not [problem for problem in run_checks() if problem.id.startswith("amedi.W")]


@pytest.mark.parametrize(
    ("name", "value", "code", "level"),
    [
        ("REMINDER_LEASE_SECONDS", 35, "reminders.E003", ERROR),
        ("WHATSAPP_READ_TIMEOUT_SECONDS", 110, "reminders.E003", ERROR),
        ("REMINDER_TICK_SECONDS", 66, "reminders.E004", ERROR),
        ("Q_CLUSTER", {"timeout": 60, "retry": 180}, "reminders.E004", ERROR),
        ("Q_CLUSTER", {"timeout": 180, "retry": 180}, "reminders.E005", ERROR),
        ("REMINDER_UNKNOWN_WAIT_SECONDS", 119, "reminders.E006", ERROR),
        ("REMINDER_RETRY_WINDOW_SECONDS", 119, "reminders.W002", WARNING),
        ("REMINDER_QUIET_HOURS", (time(0), time(23, 59)), "reminders.E007", ERROR),
        ("REMINDER_QUIET_HOURS", (time(7, 30), time(7)), "reminders.E007", ERROR),
    ],
)
def test_settings_that_exclude_each_other_are_named_with_the_cure(settings, name, value, code, level):
    assert not found(code)
    setattr(settings, name, value)
    [problem] = found(code)
    assert problem.level == level
    assert problem.hint


def test_the_slowest_channel_that_is_on_is_what_a_lease_must_outlive(settings):
    settings.EMAIL_READ_TIMEOUT_SECONDS = 200
    assert not found("reminders.E003")
    settings.REMINDER_CHANNELS = ["whatsapp", "email"]
    assert found("reminders.E003")


@pytest.mark.parametrize(
    "hours", [(time(21), time(7)), (time(0), time(0)), (time(8), time(8)), (time(8), time(7))]
)
def test_quiet_hours_that_leave_an_hour_or_are_none_are_well(settings, hours):
    settings.REMINDER_QUIET_HOURS = hours
    assert not found("reminders.E007")


def test_every_command_stops_at_a_secret_that_can_be_guessed():
    run = subprocess.run(
        [sys.executable, "manage.py", "migrate", "--plan"],
        cwd=django_settings.BASE_DIR,
        env=os.environ | {"SECRET_KEY": "changeme"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert "amedi.E001" in run.stderr
    assert "Traceback" not in run.stderr
