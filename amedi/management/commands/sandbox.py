"""Serve the stand-ins for Meta's Graph API and for Postmark until told to stop."""

import json
import signal
import threading
from argparse import ArgumentParser
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from amedi.sandbox import Sandbox, SandboxOptions
from amedi.sandbox.graph_errors import GraphError
from amedi.sandbox.postmark import Postmark, PostmarkOptions

REQUIRED = (
    "WHATSAPP_ACCESS_TOKEN",
    "WHATSAPP_APP_SECRETS",
    "WHATSAPP_PHONE_NUMBER_ID",
    "WHATSAPP_BUSINESS_ACCOUNT_ID",
)


class Command(BaseCommand):
    """Listens at two ports; the web server needs WHATSAPP_API_URL and POSTMARK_API_URL to point there."""

    help = "Serves stand-ins for WhatsApp and Postmark, with the patients' phones and inboxes as web pages."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Where to listen, where to call back, and which templates are approved."""
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8001, help="Of the stand-in for WhatsApp.")
        parser.add_argument("--mail-port", type=int, default=8002, help="Of the stand-in for Postmark.")
        parser.add_argument("--callback", default=f"{settings.SITE_URL}/webhooks/whatsapp/")
        parser.add_argument("--mail-callback", default=f"{settings.SITE_URL}/webhooks/postmark/tracking/")
        parser.add_argument("--templates", type=Path, default=settings.WHATSAPP_TEMPLATES_DIR)
        parser.add_argument(
            "--receipt-delay", type=float, default=1.0, help="Seconds before each receipt, also of a mail."
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Serve until SIGINT or SIGTERM."""
        phones, inboxes = phones_of(options), inboxes_of(options)
        with ExitStack() as running:
            start(running, phones)
            if inboxes:
                start(running, inboxes)
            told_to_stop = threading.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: told_to_stop.set())
            self._say(f"Sandbox listens at {phones.url}; webhooks go to {options['callback']}")
            if inboxes:
                self._say(f"Mail sandbox listens at {inboxes.url}; webhooks go to {options['mail_callback']}")
            else:
                self._say("There is no mail sandbox: POSTMARK_SERVER_TOKEN is not set.")
            told_to_stop.wait()

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def start(running: ExitStack, stand_in: Sandbox | Postmark) -> None:
    """Have it listen until ``running`` ends. Raises CommandError where its port is taken."""
    try:
        running.enter_context(stand_in)
    except OSError as error:
        raise CommandError(
            f"The sandbox cannot listen at port {stand_in.options.port}: {error.strerror}."
        ) from None


def phones_of(options: dict[str, Any]) -> Sandbox:
    """The stand-in for Meta. Raises CommandError for a setting or a template that is missing or wrong."""
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
    return sandbox


def inboxes_of(options: dict[str, Any]) -> Postmark | None:
    """The stand-in for Postmark; None without an account there, as for the product itself.

    Raises CommandError where the account is set and its webhooks' secret is not, or is none.
    """
    if not settings.POSTMARK_SERVER_TOKEN:
        return None
    if ":" not in settings.POSTMARK_WEBHOOK_SECRET:
        raise CommandError("POSTMARK_WEBHOOK_SECRET is not user:password. Webhooks are not taken without it.")
    return Postmark(
        PostmarkOptions(
            host=options["host"],
            port=options["mail_port"],
            callback_url=options["mail_callback"],
            server_token=settings.POSTMARK_SERVER_TOKEN,
            webhook_secret=settings.POSTMARK_WEBHOOK_SECRET,
            event_delay_seconds=options["receipt_delay"],
        )
    )


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
