"""The HTTP under Postmark's API, and what its failures mean."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
import urllib3
from django.conf import settings

LARGEST_ANSWER = 1024 * 1024

_NOTHING_WRITTEN = (
    requests.ConnectTimeout,
    requests.exceptions.InvalidHeader,
    requests.exceptions.InvalidSchema,
    requests.exceptions.InvalidURL,
    urllib3.exceptions.ConnectTimeoutError,
    urllib3.exceptions.NewConnectionError,
    ssl.SSLCertVerificationError,
)


class Session(requests.Session):
    """Keeps a connection. Each thread needs its own."""

    def __init__(self) -> None:
        super().__init__()
        # No .netrc and no proxy, which would see the token.
        self.trust_env = False
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))

    def get_redirect_target(self, resp: requests.Response) -> None:
        """None: a redirect is an answer like any other."""

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """The answer with its whole body, within bounds of size and time."""
        response = super().send(request, **{**options, "stream": True})
        try:
            # Where requests itself keeps a body that it has read.
            response._content = _read(response)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise requests.ConnectionError(error) from error
        finally:
            response.close()
        return response


def timeout() -> tuple[float, float]:
    """Seconds to connect, and for each wait for an answer."""
    return settings.EMAIL_CONNECT_TIMEOUT_SECONDS, settings.EMAIL_READ_TIMEOUT_SECONDS


def wrote_nothing(error: BaseException) -> bool:
    """Whether it is certain that the failed request never left; else its answer is lost."""
    return any(isinstance(cause, _NOTHING_WRITTEN) for cause in _causes(error))


def _read(response: requests.Response) -> bytes:
    end = time.monotonic() + settings.EMAIL_READ_TIMEOUT_SECONDS
    content = bytearray()
    # By what has arrived: to wait for a full buffer would let a slow body outlast its time.
    while chunk := response.raw.read1(64 * 1024, decode_content=True):
        content += chunk
        if len(content) > LARGEST_ANSWER or time.monotonic() > end:
            raise requests.ConnectionError("the answer is too long")
    return bytes(content)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it wraps: by cause, argument or urllib3's ``reason``."""
    pending: list[object] = [error]
    seen: set[int] = set()
    while pending:
        item = pending.pop()
        if isinstance(item, BaseException) and id(item) not in seen:
            seen.add(id(item))
            yield item
            pending += [item.__cause__, getattr(item, "reason", None), *item.args]
