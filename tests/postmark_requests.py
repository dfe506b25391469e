"""Requests to Postmark's stand-in as a careful client would make them, for tests to spoil."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import requests

from amedi.sandbox.postmark import Postmark, PostmarkOptions
from tests.factories import MARK
from tests.webhook_receiver import Receiver

ADDRESS = f"{MARK.lower()}.ana@correo.example"
OTHER_ADDRESS = f"{MARK.lower()}.luis@correo.example"
DELIVERY = "d:11111111-1111-4111-8111-111111111111"
METADATA = {"delivery": DELIVERY, "attempt": "1"}
CALENDAR = b"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"


def mail(**changes: Any) -> dict[str, Any]:
    """A mail that Postmark takes; the changes replace its fields, None takes one away."""
    body = {
        "From": "Consultorio Ejemplo <citas@consultorio.example>",
        "To": f"Ana {MARK} <{ADDRESS}>",
        "Subject": f"Su cita, Ana {MARK}",
        "TextBody": "Le recordamos su cita.",
        "HtmlBody": "<p>Le recordamos su cita.</p>",
        "Metadata": METADATA,
        "TrackOpens": True,
        "TrackLinks": "None",
        "Attachments": [attachment()],
    } | changes
    return {name: value for name, value in body.items() if value is not None}


def attachment(**changes: str) -> dict[str, str]:
    content = {
        "Name": "cita.ics",
        "Content": base64.b64encode(CALENDAR).decode(),
        "ContentType": "text/calendar; method=PUBLISH",
    }
    return content | changes


def headers(**fields: str) -> list[dict[str, str]]:
    """As a mail's Headers have them; underscores stand for hyphens."""
    return [{"Name": name.replace("_", "-"), "Value": value} for name, value in fields.items()]


def one_click(address: str) -> list[dict[str, str]]:
    return headers(List_Unsubscribe=f"<{address}>", List_Unsubscribe_Post="List-Unsubscribe=One-Click")


def send(postmark: Postmark, body: Any = None, *, to: str = "/email", **changes: Any) -> requests.Response:
    """POST a mail; the keywords go to requests."""
    asked = {"json": mail() if body is None else body, "headers": authorized(postmark), "timeout": 30}
    return requests.post(f"{postmark.url}{to}", **asked | changes)


def search(postmark: Postmark, **query: Any) -> requests.Response:
    return requests.get(
        f"{postmark.url}/messages/outbound",
        params={"count": 50, "offset": 0} | query,
        headers=authorized(postmark),
        timeout=10,
    )


def authorized(postmark: Postmark, **changes: str) -> Mapping[str, str]:
    return {
        "Accept": "application/json",
        "X-Postmark-Server-Token": postmark.options.server_token,
    } | changes


def posting_to(receiver: Receiver, **changes: Any) -> Postmark:
    """A stand-in that posts to the receiver, and quickly again what was not taken."""
    return Postmark(PostmarkOptions(callback_url=receiver.url, retry_minute_seconds=0.001, **changes))
