"""Keeps what would have been sent, as Django's mail outbox does: for tests and trials."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from reminders.channels.base import Channel, Message, Receipt

outbox: list[Message] = []


class LocmemChannel(Channel):
    """A channel that takes everything and sends nothing."""

    async def send(self, message: Message, payload: dict[str, Any]) -> Receipt:  # noqa: ARG002
        outbox.append(message)
        return Receipt(message_id=f"locmem.{uuid4()}")
