"""Serve the stand-in for Meta's Graph API until it is told to stop."""

import json
import signal
import threading
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from amedi.sandbox import Sandbox, SandboxOptions
from amedi.sandbox.graph_errors import GraphError

REQUIRED = (
    "WHATSAPP_ACCESS_TOKEN",
    "WHATSAPP_APP_SECRETS",
    "WHATSAPP_PHONE_NUMBER_ID",
    "WHATSAPP_BUSINESS_ACCOUNT_ID",
)


class Command(BaseCommand):
    """Listens at ``--port``; the web server needs WHATSAPP_API_URL to point there."""

    help = "Serves a stand-in for WhatsApp, with the patients' phones as web pages."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Where to listen, where to call back, and which templates are approved."""
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8001)
        parser.add_argument("--callback", default=f"{settings.SITE_URL}/webhooks/whatsapp/")
        parser.add_argument("--templates", type=Path, default=settings.WHATSAPP_TEMPLATES_DIR)
        parser.add_argument("--receipt-delay", type=float, default=1.0, help="Seconds before each receipt.")

    def handle(self, *_: Any, **options: Any) -> None:
        """Serve until SIGINT or SIGTERM."""
        for name in REQUIRED:
            if not getattr(settings, name):
                raise CommandError(
                    f"{name.removesuffix('S')} is not set. The sandbox takes no message without it."
                )
        sandbox = Sandbox(
            SandboxOptions(
                host=options["host"],
                port=options["port"],
                callback_url=options["callback"],
                access_token=settings.WHATSAPP_ACCESS_TOKEN,
                app_secret=settings.WHATSAPP_APP_SECRETS[0],
                verify_token=settings.WHATSAPP_VERIFY_TOKEN,
                phone_number_id=settings.WHATSAPP_PHONE_NUMBER_ID,
                business_account_id=settings.WHATSAPP_BUSINESS_ACCOUNT_ID,
                receipt_delay_seconds=options["receipt_delay"],
            )
        )
        for path in sorted(options["templates"].glob("*.json")):
            approve(sandbox, path)
        try:
            with sandbox:
                told_to_stop = threading.Event()
                for number in (signal.SIGINT, signal.SIGTERM):
                    signal.signal(number, lambda *_: told_to_stop.set())
                self.stdout.write(f"Sandbox listens at {sandbox.url}; webhooks go to {options['callback']}")
                self.stdout.flush()
                told_to_stop.wait()
        except OSError as error:
            raise CommandError(
                f"The sandbox cannot listen at port {options['port']}: {error.strerror}."
            ) from None


def approve(sandbox: Sandbox, path: Path) -> None:
    """Have the template of a file created. Raises CommandError for what Meta would refuse."""
    try:
        sandbox.create_template(json.loads(path.read_text(encoding="utf-8")))
    except GraphError as error:
        reason = error.user_message or error.details
        raise CommandError(
            f"{path.name} would be refused ({error.subcode or error.code}): {reason}"
        ) from None
    except (ValueError, AttributeError):
        raise CommandError(f"{path.name} is not the JSON of a template.") from None
