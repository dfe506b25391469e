"""A provider that takes everything: bare asyncio, in a process of its own.

    python -m bench.endpoint PORT [LATENCY_SECONDS [DEAF_TO_EACH]]

``POST /…/messages`` is answered as Meta does, after the latency. ``GET /counts``
tells how often each reference came (with the attempt cut off: one for each
message) and how many calls were in the air at most; ``GET /accepted/N`` what was
taken after the first N, in its order; ``GET /total`` how much that is. What has
arrived whole counts as taken, whether or not anybody is left to hear the answer.
With DEAF_TO_EACH N it hangs up on each Nth message, and has not taken it.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter

REFERENCE = re.compile(rb'"biz_opaque_callback_data":\s*"([^"]*)"')
TO = re.compile(rb'"to":\s*"([^"]*)"')
LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)


class Provider:
    """What all connections share."""

    def __init__(self, latency: float, deaf_to_each: int) -> None:
        self.latency = latency
        self._deaf_to_each = deaf_to_each
        self._came = 0
        self.accepted: list[tuple[str, str, str]] = []
        self.counts: Counter[str] = Counter()
        self.in_air = 0
        self.most_in_air = 0

    def hears(self) -> bool:
        """Whether the message that has just come is taken."""
        self._came += 1
        return not self._deaf_to_each or self._came % self._deaf_to_each != 0

    def take(self, body: bytes) -> bytes:
        """Count a message, and make the answer to it."""
        found, to = REFERENCE.search(body), TO.search(body)
        reference = found[1].decode() if found else ""
        phone = to[1].decode() if to else ""
        wamid = f"wamid.{len(self.accepted):08d}"
        self.accepted.append((wamid, reference, phone))
        # "d:<row>:<attempt>": a second attempt of a row is a second message.
        self.counts[reference.rpartition(":")[0] or reference] += 1
        return json.dumps(
            {
                "messaging_product": "whatsapp",
                "contacts": [{"input": phone, "wa_id": phone.lstrip("+")}],
                "messages": [{"id": wamid, "message_status": "accepted"}],
            }
        ).encode()


class Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive, one request after the other, as little of it as works."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, rest = self._received.partition(b"\r\n\r\n")
        if not separator:
            return
        length = LENGTH.search(head)
        size = int(length[1]) if length else 0
        if len(rest) < size:
            return
        self._received = rest[size:]
        self._handle(head, rest[:size])

    def _handle(self, head: bytes, body: bytes) -> None:
        provider = self._provider
        if head.startswith(b"POST"):
            if not provider.hears():
                if self._transport:
                    self._transport.abort()
                return
            answer = provider.take(body)
            if not provider.latency:
                self._answer(answer)
                return
            provider.in_air += 1
            provider.most_in_air = max(provider.most_in_air, provider.in_air)
            self._loop.call_later(provider.latency, self._land, answer)
            return
        question = head.split(b" ", 2)[1].decode()
        if question.startswith("/accepted/"):
            told: object = provider.accepted[int(question.rpartition("/")[2]) :]
        elif question == "/total":
            told = len(provider.accepted)
        else:
            told = {"counts": provider.counts, "most_in_air": provider.most_in_air}
        self._answer(json.dumps(told).encode())

    def _land(self, answer: bytes) -> None:
        self._provider.in_air -= 1
        self._answer(answer)

    def _answer(self, body: bytes) -> None:
        if self._transport:
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            self._transport.write(head % len(body) + body)


async def serve(port: int, latency: float = 0.0, deaf_to_each: int = 0) -> None:
    """Answer until the process is ended."""
    provider = Provider(latency, deaf_to_each)
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(provider), "127.0.0.1", port, backlog=512
    )
    await server.serve_forever()


if __name__ == "__main__":
    port, *rest = sys.argv[1:]
    asyncio.run(serve(int(port), *(float(value) for value in rest[:1]), *(int(value) for value in rest[1:2])))
