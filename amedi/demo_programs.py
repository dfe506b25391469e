"""The programs of the demonstration, and the environment that they share."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import requests
from django.conf import settings

from amedi import local_postgres
from amedi.supervisor import Program

OURS = (
    "WHATSAPP_", "POSTMARK_", "EMAIL_", "DEFAULT_FROM_", "REMINDER_", "ROOM_", "METRICS_", "CLIENT_URL",
    "SECRET_KEY", "CSRF_TRUSTED_ORIGINS",
)  # fmt: skip
"""What a developer's own environment or .env must not bring along: a demonstration reaches no provider."""
HOST = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class Programs:
    """What runs, for one start of the demonstration. All servers listen on this machine only."""

    web_port: int
    sandbox_port: int
    mail_port: int
    stream_port: int
    _secrets: Mapping[str, str] = field(
        default_factory=lambda: (
            {
                name: secrets.token_hex(16)
                for name in (
                    "WHATSAPP_ACCESS_TOKEN",
                    "WHATSAPP_APP_SECRET",
                    "WHATSAPP_VERIFY_TOKEN",
                    "POSTMARK_SERVER_TOKEN",
                )
            }
            | {"POSTMARK_WEBHOOK_SECRET": f"postmark:{secrets.token_hex(16)}"}
        ),
        repr=False,
    )

    @property
    def web_url(self) -> str:
        return f"http://{HOST}:{self.web_port}"

    @property
    def sandbox_url(self) -> str:
        return f"http://{HOST}:{self.sandbox_port}"

    @property
    def mail_url(self) -> str:
        return f"http://{HOST}:{self.mail_port}"

    @property
    def stream_url(self) -> str:
        return f"http://{HOST}:{self.stream_port}"

    @property
    def environment(self) -> dict[str, str]:
        """All that the children know: nothing of it is read from a .env."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        return {
            **kept,
            **self._secrets,
            "AMEDI_ENV_FILE": "",
            "DATABASE_URL": os.environ.get("DATABASE_URL") or local_postgres.SERVER.url,
            "DEBUG": "false",
            # Whoever starts the demonstration puts tasks into the cluster's queue, signed with it.
            "SECRET_KEY": settings.SECRET_KEY,
            "ALLOWED_HOSTS": f"{HOST},localhost",
            "SITE_URL": self.web_url,
            "ROOM_STREAM_URL": self.stream_url,
            "POSTMARK_API_URL": self.mail_url,
            "DEFAULT_FROM_EMAIL": "Consultorio de demostración <citas@amedi.example>",
            "WHATSAPP_API_URL": self.sandbox_url,
            "WHATSAPP_PHONE_NUMBER_ID": "200000000000002",
            "WHATSAPP_BUSINESS_ACCOUNT_ID": "100000000000001",
            "REMINDER_CHANNELS": "whatsapp,email,in_app",
            "REMINDER_QUIET_HOURS": "00:00-00:00",
            "PYTHONUNBUFFERED": "1",
        }

    @property
    def sandbox(self) -> Program:
        return self._manage(
            "sandbox", "sandbox", "--port", str(self.sandbox_port), "--mail-port", str(self.mail_port)
        )

    @property
    def web(self) -> Program:
        return self._python(
            "web", "-m", "gunicorn", "amedi.wsgi", "--bind", f"{HOST}:{self.web_port}",
            "--worker-class", "gthread", "--threads", "8", "--graceful-timeout", "3",
        )  # fmt: skip

    @property
    def stream(self) -> Program:
        # The limit is for other requests that hang; rooms are closed at once.
        return self._python(
            "stream", "-m", "uvicorn", "amedi.asgi:application", "--host", HOST,
            "--port", str(self.stream_port), "--timeout-graceful-shutdown", "2", "--log-level", "warning",
        )  # fmt: skip

    @property
    def cluster(self) -> Program:
        return self._manage("cluster", "qcluster")

    def import_agenda(self, file: Path) -> Program:
        return self._manage("import", "import_agenda", str(file), "--consent", "demo")

    def _manage(self, name: str, *arguments: str) -> Program:
        return self._python(name, str(settings.BASE_DIR / "manage.py"), *arguments)

    def _python(self, name: str, *arguments: str) -> Program:
        return Program(name=name, command=[sys.executable, *arguments], environment=self.environment)


def free_port(preferred: int) -> int:
    """The port itself, or another one where a stranger listens there."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            # Connections of a server that has just ended do not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no free port")


def answers(url: str) -> bool:
    """Whether a server answers there, whatever it says."""
    try:
        requests.get(url, timeout=5, allow_redirects=False)
    except requests.RequestException:
        return False
    return True
