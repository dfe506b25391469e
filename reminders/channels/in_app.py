"""The inbox of the application: no provider, a row of ours."""

from __future__ import annotations

import threading
from typing import Any

from django.contrib.auth import get_user_model
from django.db import DatabaseError, IntegrityError, connection

from reminders.channels.base import BlockingChannel, ChannelError, Message, Receipt, Undeliverable
from reminders.models import Notification, ReminderDelivery

_doors = threading.BoundedSemaphore(4)
"""How many connections to the database the calls take at once, however many they are."""


class InAppChannel(BlockingChannel):
    """A message is delivered when it stands in the inbox of a user who can open it."""

    gives_receipts = True

    def payload(self, message: Message) -> dict[str, Any]:
        """The row to be. Raises ValueError for what is no reminder."""
        kind, delivery, _attempt = message.reference.split(":")
        if kind != ReminderDelivery.kind:
            raise ValueError("the inbox takes reminders")
        return {
            "user": int(message.to),
            "delivery": delivery,
            "subject": message.subject[: Notification.SUBJECT_LENGTH],
            "body": message.text,
        }

    def call(self, message: Message, payload: dict[str, Any]) -> Receipt:  # noqa: ARG002
        """Write the row, once however often it is called."""
        row = {"user_id": payload["user"], "subject": payload["subject"], "body": payload["body"]}
        users = get_user_model()._default_manager.filter(pk=payload["user"], is_active=True)
        with _doors:
            try:
                if not users.exists():
                    raise Undeliverable("no_inbox")  # closed since the last look, or gone
                written, _ = Notification.objects.get_or_create(delivery_id=payload["delivery"], defaults=row)
            except IntegrityError as error:
                raise Undeliverable("no_inbox") from error  # the user went this very moment
            except DatabaseError as error:
                raise ChannelError("database") from error  # to write it again is safe
            finally:
                # This thread is the call's own, and nobody else would close what it opened.
                connection.close()
        return Receipt(message_id=f"in_app.{written.pk}", is_delivered=True)
