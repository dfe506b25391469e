"""Secrets and addresses with which nobody should go into production."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004
from django.http.request import validate_host

from amedi import local_postgres

LEAST_SECRET, LEAST_LETTERS = 32, 8
"""Characters, and different ones among them: 128 bits of hexadecimal digits, or more of others."""
FROM_AN_EXAMPLE = ("only-for-development", "django-insecure", "changeme", "change-me", "secret")
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@register
def secret_key_is_secret(**_: Any) -> list[CheckMessage]:
    """Elsewhere than on a developer's machine nobody can guess what signs sessions and buttons."""
    # The demonstration names the embedded server to its programs by its address.
    is_ours = settings.IS_LOCAL or _database_host() == str(local_postgres.SERVER.socket_folder)
    if is_ours or not _is_weak(settings.SECRET_KEY):
        return []
    return [
        Error(
            "SECRET_KEY is short, repeats itself or comes from an example: whoever guesses it can forge "
            "sessions and patients' taps.",
            hint='Make one: python -c "import secrets; print(secrets.token_urlsafe(50))"',
            id="amedi.E001",
        )
    ]


@register
def metrics_token_is_secret(**_: Any) -> list[CheckMessage]:
    """A token that opens the metrics to the network is none that can be guessed."""
    if not settings.METRICS_TOKEN or not _is_weak(settings.METRICS_TOKEN):
        return []
    return [
        Error(
            "METRICS_TOKEN is short, repeats itself or comes from an example: it can be guessed.",
            hint='Make one: python -c "import secrets; print(secrets.token_urlsafe(32))"; or leave it empty,'
            " and /readyz and /metrics answer only on this machine.",
            id="amedi.E002",
        )
    ]


@register
def is_dressed_for_production(**_: Any) -> list[CheckMessage]:
    """With a database on another machine this is no developer's any more."""
    if not _database_is_remote():
        return []
    if settings.DEBUG:
        return [
            Warning(
                "DEBUG is on: every error page shows settings and patients' data.",
                hint="Take DEBUG out of the environment, or set it to false.",
                id="amedi.W001",
            )
        ]
    problems: list[CheckMessage] = []
    if "*" in settings.ALLOWED_HOSTS:
        problems.append(
            Warning(
                "ALLOWED_HOSTS is *: links in answers can be made to point at a stranger's site.",
                hint="Name the hosts under which this site is served.",
                id="amedi.W002",
            )
        )
    for code, name in (("amedi.W003", "SITE_URL"), ("amedi.W004", "CLIENT_URL")):
        parts = urlsplit(getattr(settings, name))
        if parts.hostname in LOOPBACK:
            problem = f"{name} is {parts.geturl()}: that leads to whoever's own machine opens the link."
        elif parts.scheme != "https":
            problem = f"{name} is {parts.geturl()}, without https: what patients and staff send can be read."
        else:
            continue
        hint = "Set it to the public address, such as https://citas.example.org."
        problems.append(Warning(problem, hint=hint, id=code))
    return problems


@register
def pages_are_served_where_links_lead(**_: Any) -> list[CheckMessage]:
    """Django refuses a request for a host that it does not know: a link to it shows an error page."""
    problems: list[CheckMessage] = []
    for code, name in (("amedi.W005", "SITE_URL"), ("amedi.W006", "CLIENT_URL")):
        parts = urlsplit(getattr(settings, name))
        host = parts.hostname or ""
        if not validate_host(f"[{host}]" if ":" in host else host, settings.ALLOWED_HOSTS):
            problem = (
                f"{name} is {parts.geturl()}, a host that ALLOWED_HOSTS does not name: its links are refused."
            )
            hint = "Add the host to ALLOWED_HOSTS, or correct the address."
            problems.append(Warning(problem, hint=hint, id=code))
    return problems


def _is_weak(secret: str) -> bool:
    return (
        len(secret) < LEAST_SECRET
        or len(set(secret)) < LEAST_LETTERS
        or secret.lower().startswith(FROM_AN_EXAMPLE)
    )


def _database_is_remote() -> bool:
    host = _database_host()
    # A folder holds the socket of a server on this machine.
    return not host.startswith("/") and host not in LOOPBACK


def _database_host() -> str:
    database = settings.DATABASES["default"]
    return database.get("OPTIONS", {}).get("host") or database.get("HOST") or "localhost"
