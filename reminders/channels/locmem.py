"""Keeps what would have been sent, as Django's mail outbox does: for tests and trials."""

from __future__ import annotations

import threading
from typing import Any
from uuid import uuid4

from reminders.channels.base import Channel, Message, Receipt

outbox: list[Message] = []
_lock = threading.Lock()


class LocmemChannel(Channel):
    """A channel that takes everything and sends nothing."""

    def send(self, message: Message, payload: dict[str, Any]) -> Receipt:  # noqa: ARG002
        with _lock:
            outbox.append(message)
        return Receipt(message_id=f"locmem.{uuid4()}")
