"""Settings of the mail that cannot work are found at start, each with a hint."""

from __future__ import annotations

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured

from amedi import environment

RIGHT = {
    "REMINDER_CHANNELS": ["email"],
    "POSTMARK_SERVER_TOKEN": "token",
    "POSTMARK_WEBHOOK_SECRET": "user:password",
    "DEFAULT_FROM_EMAIL": "Citas <citas@example.org>",
    "CLIENT_URL": "https://citas.example.org",
}


def found() -> set[str]:
    problems = [problem for problem in run_checks() if problem.id in MAIL_CHECKS]
    assert all(problem.hint for problem in problems)
    return {problem.id for problem in problems}


MAIL_CHECKS = {f"reminders.{name}" for name in ("E021", "E022", "E023", "E024", "E025", "W021")}


@pytest.fixture(autouse=True)
def right(settings):
    for name, value in RIGHT.items():
        setattr(settings, name, value)
    assert found() == set()


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("POSTMARK_SERVER_TOKEN", "", "E021"),
        ("POSTMARK_SERVER_TOKEN", "two words", "E023"),
        ("POSTMARK_WEBHOOK_SECRET", "", "E025"),
        ("POSTMARK_WEBHOOK_SECRET", "no colon", "E024"),
        ("DEFAULT_FROM_EMAIL", "citas@localhost", "E022"),
        ("DEFAULT_FROM_EMAIL", "Citas", "E022"),
        ("DEFAULT_FROM_EMAIL", "Citas <citas@@example.org>", "E022"),
        ("CLIENT_URL", "http://citas.example.org", "W021"),
    ],
)
def test_a_setting_that_cannot_work_is_told_with_a_hint(settings, name, value, problem):
    setattr(settings, name, value)
    assert found() == {f"reminders.{problem}"}


def test_a_secret_is_not_repeated(settings):
    settings.POSTMARK_SERVER_TOKEN, settings.POSTMARK_WEBHOOK_SECRET = "to ken", "se cret"
    said = "".join(problem.msg + problem.hint for problem in run_checks() if problem.hint)
    assert "to ken" not in said
    assert "se cret" not in said


def test_where_email_is_off_nothing_of_it_is_needed(settings):
    settings.REMINDER_CHANNELS = ["whatsapp"]
    settings.POSTMARK_SERVER_TOKEN = settings.POSTMARK_WEBHOOK_SECRET = ""
    settings.DEFAULT_FROM_EMAIL = "citas@localhost"
    assert found() == set()


def test_an_ordinary_mail_server_is_a_way_out_too(settings):
    settings.POSTMARK_SERVER_TOKEN = settings.POSTMARK_WEBHOOK_SECRET = ""
    settings.HAS_MAIL_SERVER = True
    assert found() == set()


def test_a_stand_in_on_this_machine_needs_no_address_of_anybody(settings):
    settings.DEFAULT_FROM_EMAIL = "citas@localhost"
    settings.POSTMARK_API_URL = settings.CLIENT_URL = "http://127.0.0.1:8025"
    assert found() == set()


@pytest.mark.parametrize(
    ("value", "host", "port", "secure"),
    [
        ("smtp://mail.example.org", "mail.example.org", 25, None),
        ("smtp+tls://user:p%40ss@mail.example.org", "mail.example.org", 587, "EMAIL_USE_TLS"),
        ("smtp+ssl://user:pass@mail.example.org:2465", "mail.example.org", 2465, "EMAIL_USE_SSL"),
    ],
)
def test_a_mail_server_is_one_address(monkeypatch, value, host, port, secure):
    monkeypatch.setenv("EMAIL_URL", value)
    server = environment.mail_server("EMAIL_URL")
    assert (server["EMAIL_HOST"], server["EMAIL_PORT"]) == (host, port)
    assert {name for name in ("EMAIL_USE_TLS", "EMAIL_USE_SSL") if server.get(name)} == ({secure} - {None})
    assert server["EMAIL_HOST_PASSWORD"] in (None, "p@ss", "pass")


@pytest.mark.parametrize(
    "value",
    ["mail.example.org", "http://mail.example.org", "smtps://u:secret@h", "smtp://u:secret@h:x", "smtp://"],
)
def test_a_wrong_address_of_a_mail_server_is_one_clear_sentence(monkeypatch, value):
    monkeypatch.setenv("EMAIL_URL", value)
    with pytest.raises(ImproperlyConfigured, match="EMAIL_URL must look like smtp") as caught:
        environment.mail_server("EMAIL_URL")
    assert "secret" not in str(caught.value)


def test_no_address_is_no_mail_server(monkeypatch):
    monkeypatch.delenv("EMAIL_URL", raising=False)
    assert environment.mail_server("EMAIL_URL") == {}
