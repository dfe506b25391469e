"""The templates of the account at Meta: one call, one answer, no retry.

What the answer means is read in ``answers``; only ``Client._call`` knows the
HTTP library. Messages go out by ``sender``, where many are under way at once.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import requests
import urllib3

from whatsapp import answers
from whatsapp.account import LARGEST_ANSWER, Account
from whatsapp.answers import (
    Answer,
    AnswerLost,
    ClientError,
    CreatedTemplate,
    GraphError,
    ListedTemplate,
    NotReached,
)

__all__ = [
    "AnswerLost",
    "Client",
    "ClientError",
    "CreatedTemplate",
    "GraphError",
    "ListedTemplate",
    "NotReached",
]

MOST_PAGES = 100
TEMPLATE_FIELDS = (
    "id,name,language,status,category,previous_category,correct_category,components,"
    "parameter_format,quality_score,rejected_reason,message_send_ttl_seconds"
)


@dataclass(frozen=True, kw_only=True)
class Client(Account):
    """An account whose templates can be listed and created. Safe to share between threads."""

    def list_templates(self) -> Iterator[ListedTemplate]:
        """Every template of the business account, page after page.

        Raises GraphError, NotReached or AnswerLost.
        """
        after = ""
        for _page in range(MOST_PAGES):
            query = {"fields": TEMPLATE_FIELDS, "limit": "100", **({"after": after} if after else {})}
            page = answers.read_page(self._call("GET", query=query))
            yield from page.templates
            if not page.after or page.after == after:
                return
            after = page.after

    def create_template(self, body: Mapping[str, Any]) -> CreatedTemplate:
        """Submit a template for review. Raises GraphError, NotReached or AnswerLost."""
        return answers.read_created(self._call("POST", body=body))

    def _call(
        self,
        method: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Answer:
        """One HTTP exchange on a connection of its own. Raises NotReached or AnswerLost."""
        try:
            with (
                _Session() as session,
                session.request(
                    method,
                    f"{self.url}/{self.business_account_id}/message_templates",
                    params=query,
                    data=None if body is None else json.dumps(body).encode(),
                    headers={"Authorization": self.authorization, "Content-Type": "application/json"},
                    timeout=(self.connect_timeout, self.read_timeout),
                    allow_redirects=False,
                    stream=True,
                ) as response,
            ):
                content = _read(response, self.read_timeout)
                headers = {name.lower(): value for name, value in response.headers.items()}
                return Answer(status=response.status_code, body=content, headers=headers)
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            failure = _failure(error)
        # Raised out here, so that it does not carry the library's frames, with the token in them.
        raise failure


class _Session(requests.Session):
    def __init__(self) -> None:
        super().__init__()
        # No .netrc, which would replace the token, and no proxy, which would see it.
        self.trust_env = False

    def get_redirect_target(self, resp: requests.Response) -> None:
        """None: a redirect is an answer like any other, and its body is read within bounds."""


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
