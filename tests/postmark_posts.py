"""Posts of Postmark, as its documentation shows them, about mails of ours."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from django.test import Client

from reminders.models import DeliveryAttempt

SECRET = "postmark:test-password-not-real"
URL = "/webhooks/postmark/tracking/"
BODIES = Path(__file__).parent / "payloads" / "postmark"
MAIL = "883953f4-6105-42a2-a16a-77a8eac79483"
"""Postmark's id of the mail that the posts are about, unless said otherwise."""


def body(name: str, attempt: DeliveryAttempt | None = None, **fields: Any) -> dict[str, Any]:
    """The post of tests/payloads/postmark/NAME.json about an attempt, with other fields where named."""
    told: dict[str, Any] = json.loads((BODIES / f"{name}.json").read_text(encoding="utf-8"))
    told["MessageID"] = MAIL
    if attempt:
        told["Metadata"] = {"delivery": str(attempt.delivery_id), "attempt": str(attempt.number)}
    return told | fields


def post(told: Any, *, secret: str = SECRET) -> int:
    """The HTTP status with which the post is answered."""
    content = told if isinstance(told, bytes) else json.dumps(told).encode()
    authorization = f"Basic {base64.b64encode(secret.encode()).decode()}"
    client = Client(raise_request_exception=False, headers={"authorization": authorization})
    return client.post(URL, content, content_type="application/json").status_code
