"""Email: through Postmark where there is an account, else through Django's ordinary backend."""

from __future__ import annotations

import logging
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection

from reminders import letter, smtp
from reminders.channels.base import BlockingChannel, Message, Receipt
from reminders.postmark.client import Client, metadata_of
from reminders.retired import DeadAddress, retire_email

logger = logging.getLogger(__name__)


class EmailChannel(BlockingChannel):
    """Mails in the words of the rule. Only Postmark tells what became of them."""

    shows_pages = True

    def __init__(self) -> None:
        self.per_second = settings.EMAIL_MAX_PER_SECOND
        self.can_look_up = bool(settings.POSTMARK_SERVER_TOKEN)
        # Without the secret the door is shut through which they come.
        self.gives_receipts = bool(settings.POSTMARK_SERVER_TOKEN and settings.POSTMARK_WEBHOOK_SECRET)
        self._postmark = Client() if settings.POSTMARK_SERVER_TOKEN else None

    def payload(self, message: Message) -> dict[str, Any]:
        """The mail and, beside it, what its receipts will bring back."""
        mail = letter.write(message)
        if self._postmark:
            return mail | {
                "metadata": metadata_of(message.reference, *(one.reference for one in message.also))
            }
        mail["headers"]["Message-ID"] = smtp.message_id(message.reference, sender=mail["from"])
        return mail

    def call(self, message: Message, payload: dict[str, Any]) -> Receipt:  # noqa: ARG002
        try:
            return Receipt(message_id=self._send(payload))
        except DeadAddress as dead:
            _retire(payload["to"], dead)
            raise

    async def look_up(self, reference: str) -> Receipt | None:
        if self._postmark is None:
            return None
        message_id = await self._postmark.look_up(reference)
        return Receipt(message_id=message_id) if message_id else None

    async def close(self) -> None:
        if self._postmark:
            self._postmark.close()

    def _send(self, payload: dict[str, Any]) -> str:
        mail = letter.mail_of(payload)
        if self._postmark:
            return self._postmark.send(mail, metadata=payload["metadata"])
        smtp.send(mail)
        return str(payload["headers"]["Message-ID"])


def _retire(address: str, dead: DeadAddress) -> None:
    try:
        retire_email(address, why=dead.why)
    except DatabaseError as error:  # the refusal counts all the same, and the next one retires it
        logger.exception("retiring an address failed kind=%s", type(error).__name__)
    finally:
        # This thread is the call's own, and nobody else would close what it opened.
        connection.close()
