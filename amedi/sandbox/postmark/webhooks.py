"""Postmark's way to post a webhook: basic authentication, and a schedule of retries that ends.

Source: "Retries and failure handling" in Postmark's own github.com/ActiveCampaign/postmark-skills.
An older page of theirs repeats every answer but 200 and 403; here the stricter rule holds.
"""

from __future__ import annotations

import base64
import logging

import requests

from amedi.sandbox.json_shapes import JsonObject
from amedi.sandbox.outbox import TIMEOUT_SECONDS, Outbox, Verdict, Webhook
from amedi.sandbox.postmark.event_bodies import as_bytes
from amedi.sandbox.postmark.options import PostmarkOptions

logger = logging.getLogger(__name__)
RETRY_MINUTES = (1, 5, 10, 10, 10, 15)
_PASSING = frozenset({408, 429})


class PostmarkOutbox(Outbox[PostmarkOptions]):
    """Only 200 takes a webhook; of the other answers 5xx, 408 and 429 bring it again."""

    def as_bytes(self, body: JsonObject) -> bytes:
        return as_bytes(body)

    def gap(self, options: PostmarkOptions, webhook: Webhook) -> float | None:
        if webhook.failures > len(RETRY_MINUTES):
            return None
        return RETRY_MINUTES[webhook.failures - 1] * options.retry_minute_seconds

    def post(self, session: requests.Session, options: PostmarkOptions, webhook: Webhook) -> Verdict:
        try:
            answer = session.post(
                options.callback_url,
                data=webhook.body,
                headers=_headers(options, webhook),
                timeout=TIMEOUT_SECONDS,
                allow_redirects=False,
            )
        except requests.RequestException as error:
            logger.info("postmark webhook outcome=%s", type(error).__name__)
            return Verdict.AGAIN
        status = answer.status_code
        if status == 200:
            return Verdict.TAKEN
        logger.info("postmark webhook outcome=%d", status)
        return Verdict.AGAIN if status >= 500 or status in _PASSING else Verdict.NEVER


def _headers(options: PostmarkOptions, webhook: Webhook) -> dict[str, str]:
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Postmark",
        "X-PM-Webhook-Trace-Id": webhook.trace_id,
    }
    if webhook.failures:
        headers["X-PM-Retries-Remaining"] = str(len(RETRY_MINUTES) - webhook.failures)
    if options.webhook_secret:
        secret = base64.b64encode(options.webhook_secret.encode()).decode()
        headers["Authorization"] = f"Basic {secret}"
    return headers
