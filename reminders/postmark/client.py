"""Postmark's API: hand a mail over once, and ask about one whose answer was lost."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

import requests
from anymail.backends.postmark import EmailBackend, PostmarkPayload
from anymail.exceptions import AnymailError, AnymailRequestsAPIError
from anymail.message import AnymailMessage, AnymailRecipientStatus
from django.conf import settings

from reminders.channels.base import AnswerLost, ChannelError, Throttled, Undeliverable, id_at
from reminders.models import ReminderDelivery, Reply
from reminders.postmark import http
from reminders.postmark.errors import Next, after_code, after_status
from reminders.retired import DeadAddress, Why

LONGEST_WAIT = timedelta(hours=1)
"""A Retry-After beyond it is taken for a mistake and cut."""
MOST_FOUND = 100
"""Each attempt of a reminder is a mail of its own; there are fewer than this."""


_PLACES = ("", "2", "3", "4", "5")
_KEYS = {ReminderDelivery.kind: "delivery", Reply.kind: "reply"}


def metadata_of(*references: str) -> dict[str, str]:
    """What a mail carries of our references, and its receipts bring back; at most five.

    Ten keys are allowed, and each row takes two: the second's are ``delivery2`` and ``attempt2``.

    A value may have 80 characters, and one of them at a time can be searched for
    (Postmark's "Custom metadata FAQ").
    """
    metadata: dict[str, str] = {}
    for place, reference in zip(_PLACES, references, strict=False):
        kind, row, attempt = reference.split(":")
        metadata |= {f"{_KEYS[kind]}{place}": row, f"attempt{place}": attempt}
    return metadata


def references_of(metadata: object) -> list[str]:
    """Our references out of metadata that came back, in their places; none where they are not ours."""
    found: list[str] = []
    if isinstance(metadata, dict):
        for place in _PLACES:
            for kind, key in _KEYS.items():
                if {f"{key}{place}", f"attempt{place}"} <= metadata.keys():
                    found.append(f"{kind}:{metadata[f'{key}{place}']}:{metadata[f'attempt{place}']}")
    return found


def is_message_id(told: object) -> bool:
    """Whether this can be Postmark's id of a mail."""
    return isinstance(told, str) and re.fullmatch(r"[\w-]{1,100}", told) is not None


class Backend(EmailBackend):  # type: ignore[misc]
    """Anymail's, for the account of our settings and with a connection of ours."""

    def __init__(self, **options: Any) -> None:
        account = {
            "server_token": settings.POSTMARK_SERVER_TOKEN,
            "api_url": settings.POSTMARK_API_URL,
            "timeout": http.timeout(),
        }
        super().__init__(**options | account)

    def create_session(self) -> requests.Session:
        return http.Session()

    def parse_recipient_status(
        self, response: requests.Response, payload: PostmarkPayload, message: AnymailMessage
    ) -> dict[str, AnymailRecipientStatus]:
        """Taken by Postmark, which says so with an id; anything else raises AnymailRequestsAPIError."""
        message_id = _accepted(response)
        if not message_id:
            raise AnymailRequestsAPIError(
                email_message=message, payload=payload, response=response, backend=self
            )
        taken = AnymailRecipientStatus(message_id=message_id, status="sent")
        return {to.addr_spec: taken for to in payload.to_emails + payload.cc_and_bcc_emails}


class Client:
    """One account at Postmark. Safe to share between threads, each of which keeps its connection."""

    def __init__(self) -> None:
        self._own = threading.local()
        self._backends: list[Backend] = []

    def send(self, mail: AnymailMessage, *, metadata: Mapping[str, str]) -> str:
        """Hand a mail to one address over; returns Postmark's id of it. Raises a ChannelError."""
        mail.metadata = metadata
        # That it was opened is a receipt; where somebody went from there is not our business.
        mail.track_opens, mail.track_clicks = True, False
        try:
            self._backend().send_messages([mail])
        except AnymailError as error:
            failure = _failure(error)
        else:
            return str(mail.anymail_status.message_id)
        # Raised out here, so that it does not carry the library's frames, with the token in them.
        raise failure

    async def look_up(self, reference: str) -> str | None:
        """What find() finds. It takes no call's thread, and whoever stops waiting is free at once."""
        found: Future[str | None] = Future()

        def search() -> None:
            if not found.set_running_or_notify_cancel():
                return
            try:
                found.set_result(self.find(reference))
            except Exception as error:
                found.set_exception(error)

        threading.Thread(target=search, name="search", daemon=True).start()
        return await asyncio.wrap_future(found)

    def find(self, reference: str) -> str | None:
        """Postmark's id of the mail with our reference; None when it knows of none, or not yet.

        Raises ChannelError when it cannot tell now.
        """
        (key, row), _attempt = metadata_of(reference).items()
        # Which place it had in its mail nobody remembers, and one key at a time can be searched for.
        for place in _PLACES if key == "delivery" else _PLACES[:1]:
            if found := self._search(f"metadata_{key}{place}", row, reference):
                return found
        return None

    def _search(self, field: str, row: str, reference: str) -> str | None:
        searched: dict[str, str | int] = {"count": MOST_FOUND, "offset": 0, field: row}
        try:
            with http.Session() as session:
                response = session.get(
                    f"{settings.POSTMARK_API_URL}/messages/outbound",
                    params=searched,
                    headers={
                        "Accept": "application/json",
                        "X-Postmark-Server-Token": settings.POSTMARK_SERVER_TOKEN,
                    },
                    timeout=http.timeout(),
                )
        except requests.RequestException as error:
            failure = ChannelError(type(error).__name__)
        else:
            found = _content(response).get("Messages")
            if response.ok and isinstance(found, list):
                return _matching(found, reference)
            failure = ChannelError(f"http_{response.status_code}")
        raise failure

    def close(self) -> None:
        """Close the connections of all threads. No call follows."""
        for backend in self._backends:
            backend.close()

    def _backend(self) -> Backend:
        if not hasattr(self._own, "backend"):
            self._own.backend = Backend()
            self._own.backend.open()
            self._backends.append(self._own.backend)
        backend: Backend = self._own.backend
        return backend


def _accepted(response: requests.Response) -> str:
    """Postmark's id of the mail that it took; "" for an answer that names none."""
    content = _content(response)
    message_id = content.get("MessageID")
    return message_id if isinstance(message_id, str) and not content.get("ErrorCode") else ""


def _matching(found: list[Any], reference: str) -> str | None:
    for message in found:
        references = references_of(message.get("Metadata")) if isinstance(message, dict) else []
        if reference in references and is_message_id(message.get("MessageID")):
            return id_at(message["MessageID"], references.index(reference) + 1)
    return None


def _failure(error: AnymailError) -> ChannelError:
    """What a call that failed means for the mail: refused for now or for good, or perhaps on its way."""
    if error.response is not None:
        return _refusal(error.response)
    if not isinstance(error, AnymailRequestsAPIError):
        # It could not even be put into Postmark's words.
        return Undeliverable("bad_message")
    return ChannelError("not_reached") if http.wrote_nothing(error) else AnswerLost("answer_lost")


def _refusal(response: requests.Response) -> ChannelError:
    content = _content(response)
    code, message = content.get("ErrorCode"), str(content.get("Message", ""))
    if isinstance(code, int) and code:
        return _error(after_code(code, message), str(code), message, response)
    verdict = after_status(response.status_code)
    if verdict is None:
        return AnswerLost(f"http_{response.status_code}")
    return _error(verdict, f"http_{response.status_code}", "", response)


def _error(verdict: Next, code: str, message: str, response: requests.Response) -> ChannelError:
    wait = _retry_after(response)
    match verdict:
        case Next.PACE:
            return Throttled(code, message, retry_after=wait)
        case Next.INACTIVE:
            return DeadAddress(code, message, why=Why.INACTIVE)
        case Next.INVALID:
            return DeadAddress(code, message, why=Why.INVALID)
        case Next.NEVER:
            return Undeliverable(code, message)
        case Next.UNKNOWN:
            return ChannelError(code, message, retry_after=wait, tries=2)
        case _:
            # A broken account is retried: that bridges the minutes until somebody mends it.
            return ChannelError(code, message, retry_after=wait)


def _retry_after(response: requests.Response) -> timedelta | None:
    asked = response.headers.get("Retry-After", "").strip()
    if not re.fullmatch(r"[0-9]{1,9}", asked):
        return None
    return min(timedelta(seconds=int(asked)), LONGEST_WAIT)


def _content(response: requests.Response) -> dict[str, Any]:
    """The JSON object of an answer; empty where it is none."""
    try:
        content = json.loads(response.content)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
