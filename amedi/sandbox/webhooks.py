"""Meta's way to post a webhook: signed, after the handshake, and until it is answered 200."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable

import requests

from amedi.sandbox.json_shapes import JsonObject
from amedi.sandbox.options import SandboxOptions
from amedi.sandbox.outbox import TIMEOUT_SECONDS, Outbox, Verdict, Webhook
from amedi.sandbox.webhook_bodies import as_bytes, signature

logger = logging.getLogger(__name__)
LONGEST_GAP_SECONDS = 60.0


def gap_after(failures: int, first: float) -> float:
    """Seconds until the next try; ``failures`` counts from 1."""
    return min(first * 2.0 ** (failures - 1), LONGEST_GAP_SECONDS)


class MetaOutbox(Outbox[SandboxOptions]):
    """Meta repeats for days whatever is not answered 200; here without an end."""

    def __init__(self, options: Callable[[], SandboxOptions]) -> None:
        super().__init__(options)
        self._subscribed = ("", "")

    def as_bytes(self, body: JsonObject) -> bytes:
        return as_bytes(body)

    def gap(self, options: SandboxOptions, webhook: Webhook) -> float:
        return gap_after(webhook.failures, options.retry_gap_seconds)

    def post(self, session: requests.Session, options: SandboxOptions, webhook: Webhook) -> Verdict:
        try:
            if not self._subscribe(session, options):
                logger.warning("sandbox webhook outcome=handshake_refused")
                return Verdict.AGAIN
            answer = session.post(
                options.callback_url,
                data=webhook.body,
                headers={
                    "Content-Type": "application/json",
                    "User-Agent": "facebookexternalua",
                    "X-Hub-Signature-256": signature(webhook.body, options.app_secret),
                },
                timeout=TIMEOUT_SECONDS,
                allow_redirects=False,
            )
        except requests.RequestException as error:
            logger.info("sandbox webhook outcome=%s", type(error).__name__)
            return Verdict.AGAIN
        if answer.status_code != 200:
            logger.info("sandbox webhook outcome=%d", answer.status_code)
            return Verdict.AGAIN
        return Verdict.TAKEN

    def _subscribe(self, session: requests.Session, options: SandboxOptions) -> bool:
        """Meta's handshake, once per address and verify token."""
        subscription = (options.callback_url, options.verify_token)
        if not options.verify_token or self._subscribed == subscription:
            return True
        challenge = str(secrets.randbelow(10**10))
        answer = session.get(
            options.callback_url,
            params={
                "hub.mode": "subscribe",
                "hub.challenge": challenge,
                "hub.verify_token": options.verify_token,
            },
            timeout=TIMEOUT_SECONDS,
            allow_redirects=False,
        )
        # Meta compares the whole body: a quoted or wrapped challenge is a refusal.
        if answer.status_code != 200 or answer.text != challenge:
            return False
        self._subscribed = subscription
        return True
