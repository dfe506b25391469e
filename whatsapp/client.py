"""Meta's Cloud API: one call, one answer, no retry.

What a call says is made in ``messages``, what the answer means is read in
``answers``; only ``Client._call`` knows the HTTP library.
"""

from __future__ import annotations

import json
import os
import re
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
import urllib3
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from whatsapp import answers, messages
from whatsapp.answers import (
    Accepted,
    Answer,
    AnswerLost,
    ClientError,
    CreatedTemplate,
    GraphError,
    ListedTemplate,
    NotReached,
)

__all__ = [
    "Accepted",
    "AnswerLost",
    "Client",
    "ClientError",
    "CreatedTemplate",
    "GraphError",
    "ListedTemplate",
    "NotReached",
]

LARGEST_ANSWER = 4 * 1024 * 1024
MOST_PAGES = 100
TEMPLATE_FIELDS = (
    "id,name,language,status,category,previous_category,correct_category,components,"
    "parameter_format,quality_score,rejected_reason,message_send_ttl_seconds"
)


class _Secret(str):
    """Text that does not show itself to whoever prints the variables of a frame."""

    def __repr__(self) -> str:
        return "'…'"


@dataclass(frozen=True, kw_only=True)
class Client:
    """One business number at Meta. Safe to share between threads."""

    url: str
    """The API's address with its version."""
    phone_number_id: str
    business_account_id: str
    authorization: str = field(repr=False)
    connect_timeout: float
    """Seconds."""
    read_timeout: float
    """Seconds, for each wait and for the whole answer."""

    @classmethod
    def from_settings(cls) -> Client:
        """The number of the settings WHATSAPP_*. Raises ImproperlyConfigured without a usable token."""
        token = _Secret(settings.WHATSAPP_ACCESS_TOKEN)
        # Anything else would be refused by the HTTP library, which then repeats it in its message.
        if not re.fullmatch(r"[\x21-\x7e]+", token):
            raise ImproperlyConfigured("WHATSAPP_ACCESS_TOKEN must be one word of plain characters.")
        return cls(
            url=f"{settings.WHATSAPP_API_URL}/{settings.WHATSAPP_API_VERSION}",
            phone_number_id=settings.WHATSAPP_PHONE_NUMBER_ID,
            business_account_id=settings.WHATSAPP_BUSINESS_ACCOUNT_ID,
            authorization=_Secret(f"Bearer {token}"),
            connect_timeout=settings.WHATSAPP_CONNECT_TIMEOUT_SECONDS,
            read_timeout=settings.WHATSAPP_READ_TIMEOUT_SECONDS,
        )

    def send(self, body: messages.Body) -> Accepted:
        """Send a body made in ``messages``. Raises GraphError, NotReached or AnswerLost."""
        answer = self._call("POST", f"{self.phone_number_id}/messages", body=body)
        address: str = body.get("to") or body["recipient"]
        return answers.read_accepted(answer, to_venezuela=address.startswith(("+58", "VE.")))

    def list_templates(self) -> Iterator[ListedTemplate]:
        """Every template of the business account, page after page.

        Raises GraphError, NotReached or AnswerLost.
        """
        after = ""
        for _page in range(MOST_PAGES):
            query = {"fields": TEMPLATE_FIELDS, "limit": "100", **({"after": after} if after else {})}
            page = answers.read_page(self._call("GET", self._templates_path, query=query))
            yield from page.templates
            if not page.after or page.after == after:
                return
            after = page.after

    def create_template(self, body: Mapping[str, Any]) -> CreatedTemplate:
        """Submit a template for review. Raises GraphError, NotReached or AnswerLost."""
        return answers.read_created(self._call("POST", self._templates_path, body=body))

    @property
    def _templates_path(self) -> str:
        return f"{self.business_account_id}/message_templates"

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Answer:
        """One HTTP exchange. Raises NotReached or AnswerLost."""
        try:
            with _connections.session.request(
                method,
                f"{self.url}/{path}",
                params=query,
                data=None if body is None else json.dumps(body).encode(),
                headers={"Authorization": self.authorization, "Content-Type": "application/json"},
                timeout=(self.connect_timeout, self.read_timeout),
                allow_redirects=False,
                stream=True,
            ) as response:
                content = _read(response, self.read_timeout)
                headers = {name.lower(): value for name, value in response.headers.items()}
                return Answer(status=response.status_code, body=content, headers=headers)
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            failure = _failure(error)
        # Raised out here, so that it does not carry the library's frames, with the token in them.
        raise failure


class _Session(requests.Session):
    def get_redirect_target(self, resp: requests.Response) -> None:
        """None: a redirect is an answer like any other, and its body is read within bounds."""


class _Connections(threading.local):
    """Each thread's own, for a Session is not made for several."""

    def __init__(self) -> None:
        self.session = _Session()
        # No .netrc, which would replace the token, and no proxy, which would see it.
        self.session.trust_env = False
        self.session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))

    def renew(self) -> None:
        """In a forked worker, which must not write into its parent's connections."""
        self.session = _Connections().session


_connections = _Connections()
os.register_at_fork(after_in_child=_connections.renew)


def _read(response: requests.Response, seconds: float) -> bytes:
    """The body, within bounds of size and time. Raises AnswerLost beyond them."""
    end = time.monotonic() + seconds
    content = bytearray()
    # By what has arrived: to wait for a full buffer would let a slow body outlast its time.
    while chunk := response.raw.read1(64 * 1024, decode_content=True):
        content += chunk
        if len(content) > LARGEST_ANSWER or time.monotonic() > end:
            raise AnswerLost(f"http={response.status_code} too long")
    return bytes(content)


def _failure(error: Exception) -> ClientError:
    """Whether anything can have been written: only what is certain is NotReached."""
    kind = type(error).__name__
    for cause in _causes(error):
        if isinstance(
            cause,
            requests.ConnectTimeout
            | urllib3.exceptions.ConnectTimeoutError
            | urllib3.exceptions.NewConnectionError
            | ssl.SSLCertVerificationError,
        ):
            return NotReached(kind)
    return AnswerLost(kind)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it wraps: by cause, argument or urllib3's ``reason``.

    Not by context: the caller may be busy with another error of this kind.
    """
    pending: list[object] = [error]
    seen: set[int] = set()
    while pending:
        item = pending.pop()
        if isinstance(item, BaseException) and id(item) not in seen:
            seen.add(id(item))
            yield item
            pending += [item.__cause__, getattr(item, "reason", None), *item.args]
