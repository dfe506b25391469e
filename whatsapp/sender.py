"""Messages to Meta: one call, one answer, no retry; many at once on one event loop.

What a call says is made in ``messages``, what the answer means is read in
``answers``. Why reqwest here: docs/decisions/0016-the-sending-client.md.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import orjson
from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import BodyDecodeError, BuilderError, DetailedPyreqwestError, PyreqwestError
from pyreqwest.request import StreamRequest
from requests.utils import DEFAULT_CA_BUNDLE_PATH

from whatsapp import answers, messages
from whatsapp.account import LARGEST_ANSWER, Account
from whatsapp.answers import Accepted, Answer, AnswerLost, ClientError, NotReached

IDLE = timedelta(seconds=4)
"""How long a connection waits for its next message: less than the 5 seconds of the least
patient servers, for a message on a connection that was just closed is a lost answer."""
NO_CONNECTION = "client error (Connect)"
"""What hyper says of a connection that never came to be, in words that its other errors do not have."""


class Sender:
    """Sends the messages of one account. Made, used and closed on one event loop.

    It sends as many at once as it is asked to; whoever asks sets the limit.
    """

    def __init__(self, account: Account) -> None:
        self._url = f"{account.url}/{account.phone_number_id}/messages"
        self._client = _client_for(account)

    async def send(self, body: messages.Body) -> Accepted:
        """Send a body made in ``messages``. Raises GraphError, NotReached or AnswerLost."""
        answer = await self._post(orjson.dumps(body))
        address: str = body.get("to") or body["recipient"]
        return answers.read_accepted(answer, to_venezuela=address.startswith(("+58", "VE.")))

    async def close(self) -> None:
        """Let go of all connections. No call follows."""
        await self._client.close()

    async def _post(self, data: bytes) -> Answer:
        """One HTTP exchange. Raises NotReached or AnswerLost."""
        failure: ClientError
        try:
            # reqwest repeats only what it had not begun to write.
            return await _exchange(self._client.post(self._url).body_bytes(data).build_streamed())
        except (BuilderError, ValueError) as error:
            failure = NotReached(type(error).__name__)
        except PyreqwestError as error:
            failure = (NotReached if _is_unreached(error) else AnswerLost)(type(error).__name__)
        # Raised out here, so that it does not carry the library's frames, with the token in them.
        raise failure


async def _exchange(request: StreamRequest) -> Answer:
    async with request as response:
        body = bytes(await response.body_reader.read(LARGEST_ANSWER + 1) or b"")
        if len(body) > LARGEST_ANSWER:
            raise BodyDecodeError("too large", {"causes": None})
        return Answer(status=response.status, body=body, headers=dict(response.headers))


def _is_unreached(error: PyreqwestError) -> bool:
    """Whether the connection never came to be.

    By the cause: a connection that closes under a message has the same class of error.
    """
    causes = (error.details or {}).get("causes") if isinstance(error, DetailedPyreqwestError) else None
    return any(cause["message"] == NO_CONNECTION for cause in causes or ())


def _client_for(account: Account) -> Client:
    headers = {
        "Authorization": str(account.authorization),
        "Content-Type": "application/json",
        # Not packed: to unpack 300 bytes costs more than to carry them.
        "Accept-Encoding": "identity",
    }
    # The roots that ``requests`` trusts in ``client``: a slim machine has none of its own.
    roots = Path(DEFAULT_CA_BUNDLE_PATH).read_bytes()
    return (
        ClientBuilder()
        .default_headers(headers)
        .add_root_certificate_pem(roots)
        .connect_timeout(timedelta(seconds=account.connect_timeout))
        # The bound on everything, so that no trickle of bytes can outlast it.
        .timeout(timedelta(seconds=account.connect_timeout + account.read_timeout))
        .pool_idle_timeout(IDLE)
        # How a connection ends is about one message alone.
        .http1_only()
        .follow_redirects(False)
        # No proxy of the machine's, which would see the token.
        .no_proxy()
        .build()
    )
