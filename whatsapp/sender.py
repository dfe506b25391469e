"""Messages to Meta: one call, one answer, no retry; many at once on one event loop.

What a call says is made in ``messages``, what the answer means is read in
``answers``. Why aiohttp here: docs/decisions/0016-the-sending-client.md.
"""

from __future__ import annotations

import json
import ssl
from functools import cache

import aiohttp
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from yarl import URL

from whatsapp import answers, messages
from whatsapp.account import LARGEST_ANSWER, Account
from whatsapp.answers import Accepted, Answer, AnswerLost, ClientError, NotReached

IDLE_SECONDS = 4
"""How long a connection waits for its next message: less than the 5 seconds of the least
patient servers, for a message on a connection that was just closed is a lost answer."""

# Raised by aiohttp before the connection is handed to the request.
UNREACHED = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
)


class Sender:
    """Sends the messages of one account. Made, used and closed on one event loop.

    It sends as many at once as it is asked to; whoever asks sets the limit.
    """

    def __init__(self, account: Account) -> None:
        self._url = URL(f"{account.url}/{account.phone_number_id}/messages")
        self._session = aiohttp.ClientSession(
            connector=_Connector(ssl=_trust(), limit=0, keepalive_timeout=IDLE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Not packed: to unpack 300 bytes costs more than to carry them.
            headers={
                "Authorization": account.authorization,
                "Content-Type": "application/json",
                "Accept-Encoding": "identity",
            },
            timeout=aiohttp.ClientTimeout(
                connect=account.connect_timeout,
                # The bound on everything, so that no trickle of bytes can outlast it.
                total=account.connect_timeout + account.read_timeout,
            ),
            # No .netrc, which would replace the token, and no proxy, which would see it.
            trust_env=False,
        )

    async def send(self, body: messages.Body) -> Accepted:
        """Send a body made in ``messages``. Raises GraphError, NotReached or AnswerLost."""
        answer = await self._post(json.dumps(body).encode())
        address: str = body.get("to") or body["recipient"]
        return answers.read_accepted(answer, to_venezuela=address.startswith(("+58", "VE.")))

    async def close(self) -> None:
        """Let go of all connections. No call follows."""
        await self._session.close()

    async def _post(self, data: bytes) -> Answer:
        """One HTTP exchange. Raises NotReached or AnswerLost."""
        failure: ClientError
        try:
            # aiohttp repeats no POST: it may not be idempotent (RFC 9110, section 9.2.2).
            async with self._session.post(self._url, data=data, allow_redirects=False) as response:
                content = await _read(response)
                # These headers are found whatever the case of their names.
                return Answer(status=response.status, body=content, headers=response.headers)
        except UNREACHED as error:
            failure = NotReached(type(error).__name__)
        except (aiohttp.ClientError, OSError) as error:
            failure = AnswerLost(type(error).__name__)
        # Raised out here, so that it does not carry the library's frames, with the token in them.
        raise failure


class _Connector(aiohttp.TCPConnector):
    """Hands out no connection on which something came unasked: it would pass for the next answer."""

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        while True:
            connection = await super().connect(req, traces, timeout)
            if connection.protocol is not None and not connection.protocol.should_close:
                return connection
            connection.close()


@cache
def _trust() -> ssl.SSLContext:
    """The roots that ``requests`` trusts in ``client``: a slim machine has none of its own."""
    return ssl.create_default_context(cafile=DEFAULT_CA_BUNDLE_PATH)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """The body. Raises ClientPayloadError for one that is cut, odd or too large."""
    content = bytearray()
    async for part in response.content.iter_any():
        content += part
        if len(content) > LARGEST_ANSWER:
            raise aiohttp.ClientPayloadError("too large")
    return bytes(content)
