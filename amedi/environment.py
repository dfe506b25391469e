"""Reads the environment once, and answers a wrong value with one clear sentence.

Every variable is in ``.env.example``. A ``.env`` beside ``manage.py`` is read
too; what the process already has in its environment wins over it.
"""

import os
import re
from datetime import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()
# Tests set AMEDI_ENV_FILE to nothing, so that nobody's credentials reach them.
if env_file := os.environ.get("AMEDI_ENV_FILE", str(BASE_DIR / ".env")):
    try:
        environ.Env.read_env(env_file)
    except UnicodeDecodeError:
        raise ImproperlyConfigured(f"{env_file} is not UTF-8 text; save it as that.") from None


def text(name: str, default: str | None = None) -> str:
    """The variable as it stands; without a default it must be there.

    Raises ImproperlyConfigured when it is missing.
    """
    value = str(env.str(name, default="")).strip()
    if value:
        return value
    if default is None:
        raise ImproperlyConfigured(
            f"{name} is not set. Put it into the environment or into .env; see .env.example."
        )
    return default


def listed(name: str, default: str = "") -> list[str]:
    """A comma-separated variable as a list without blanks."""
    return [item.strip() for item in text(name, default).split(",") if item.strip()]


def switch(name: str, *, default: bool) -> bool:
    """True or false. Raises ImproperlyConfigured for anything else."""
    value = text(name, str(default)).lower()
    if value in ("1", "true", "yes", "on"):
        return True
    if value in ("0", "false", "no", "off"):
        return False
    raise ImproperlyConfigured(f"{name} must be true or false, and is {value!r}.")


def number(name: str, default: int, *, least: int = 1, most: int = 1_000_000) -> int:
    """A whole number within bounds. Raises ImproperlyConfigured for anything else."""
    value = text(name, str(default))
    if not re.fullmatch(r"[0-9]{1,9}", value) or not least <= int(value) <= most:
        raise ImproperlyConfigured(f"{name} must be a whole number from {least} to {most}, and is {value!r}.")
    return int(value)


def address(name: str, default: str) -> str:
    """An http(s) address without the slash at its end.

    Raises ImproperlyConfigured for anything else.
    """
    value = text(name, default).rstrip("/")
    try:
        parts = urlsplit(value)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False  # brackets or a port that are none
    if not is_address or re.search(r"\s", value):
        raise ImproperlyConfigured(
            f"{name} must be a web address such as https://example.org, and is {value!r}."
        )
    return value


def matching(name: str, pattern: str, *, example: str, default: str = "") -> str:
    """A variable of a known form, or its default. Raises ImproperlyConfigured for anything else."""
    value = text(name, default)
    if value != default and not re.fullmatch(pattern, value):
        raise ImproperlyConfigured(f"{name} must look like {example}, and is {value!r}.")
    return value


def database(name: str, default: str | None = None) -> dict[str, Any]:
    """A Postgres address as Django's DATABASES wants it. Its password is never repeated.

    Raises ImproperlyConfigured for anything else.
    """
    value = text(name, default)
    try:
        if value.startswith(("postgres://", "postgresql://")):
            return dict(env.db_url_config(value))
    except ValueError:
        pass  # a port that is no number
    raise ImproperlyConfigured(f"{name} must look like postgresql://user:password@host:5432/name.")


MAIL_SCHEMES = {"smtp": 25, "smtp+tls": 587, "smtp+ssl": 465, "consolemail": None}
"""How a mail server is spoken to, and its usual port."""


def mail_server(name: str) -> dict[str, Any]:
    """Django's EMAIL_… settings out of one address; empty when there is none. Its password is never repeated.

    Raises ImproperlyConfigured for anything else.
    """
    value = text(name, "")
    if not value:
        return {}
    try:
        parts = urlsplit(value)
        if parts.scheme in MAIL_SCHEMES and (parts.hostname or not parts.scheme.startswith("smtp")):
            server: dict[str, Any] = env.email_url_config(value)
            return server | {"EMAIL_PORT": server["EMAIL_PORT"] or MAIL_SCHEMES[parts.scheme]}
    except ValueError:
        pass  # a port that is no number
    raise ImproperlyConfigured(f"{name} must look like smtp+tls://user:password@host:587.")


def clock_range(name: str, default: str) -> tuple[time, time]:
    """Two local clock times ``HH:MM-HH:MM``; both the same means none.

    Raises ImproperlyConfigured for anything else.
    """
    value = text(name, default)
    clock = r"((?:[01][0-9]|2[0-3]):[0-5][0-9])"
    found = re.fullmatch(rf"{clock}\s*-\s*{clock}", value)
    if not found:
        raise ImproperlyConfigured(f"{name} must look like 21:00-07:00, and is {value!r}.")
    return time.fromisoformat(found[1]), time.fromisoformat(found[2])
