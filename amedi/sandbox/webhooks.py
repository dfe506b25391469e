"""Posts webhooks to the callback from a thread of its own, again and again until each is taken."""

from __future__ import annotations

import heapq
import itertools
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import requests

from amedi.sandbox.json_shapes import JsonObject
from amedi.sandbox.options import SandboxOptions
from amedi.sandbox.webhook_bodies import as_bytes, signature

logger = logging.getLogger(__name__)
LONGEST_GAP_SECONDS = 60.0
TIMEOUT_SECONDS = (5, 10)


def gap_after(failures: int, first: float) -> float:
    """Seconds until the next try; ``failures`` counts from 1."""
    return min(first * 2.0 ** (failures - 1), LONGEST_GAP_SECONDS)


@dataclass(kw_only=True)
class Webhook:
    """One body on its way; the same bytes each time that it is tried."""

    build: Callable[[], JsonObject]
    """Called once, when it is first due: what the body tells happens then."""
    answered: threading.Event = field(default_factory=threading.Event)
    """Set by the first 200."""
    body: bytes = b""
    copies: int = 1
    failures: int = 0


class Outbox:
    """The webhooks that wait, ordered by the moment when each is due."""

    def __init__(self, options: Callable[[], SandboxOptions]) -> None:
        self._options = options
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, Webhook]] = []
        self._numbers = itertools.count()
        self._unfinished = 0
        self._stopping = False
        self._subscribed = ("", "")
        self._thread = threading.Thread(target=self._run, name="sandbox-webhooks", daemon=True)

    def start(self) -> None:
        """Begin to post."""
        self._thread.start()

    def stop(self) -> None:
        """End after the post that is being made, if any; what still waits is dropped."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()

    def put(self, build: Callable[[], JsonObject], *, after_seconds: float = 0.0) -> Webhook:
        """Post the body that ``build`` will give, as many times as the options say."""
        webhook = Webhook(build=build)
        with self._changed:
            self._unfinished += 1
            self._push(webhook, after_seconds)
        return webhook

    @contextmanager
    def busy(self) -> Iterator[None]:
        """While inside, ``flush`` waits: webhooks are about to be put."""
        with self._changed:
            self._unfinished += 1
        try:
            yield
        finally:
            self._finish()

    def flush(self, timeout: float) -> bool:
        """Wait until every webhook was answered 200; False when the time ran out before."""
        with self._changed:
            return self._changed.wait_for(lambda: self._unfinished == 0, timeout)

    def _push(self, webhook: Webhook, after_seconds: float) -> None:
        heapq.heappush(self._waiting, (time.monotonic() + after_seconds, next(self._numbers), webhook))
        self._changed.notify_all()

    def _finish(self) -> None:
        with self._changed:
            self._unfinished -= 1
            self._changed.notify_all()

    def _run(self) -> None:
        with requests.Session() as session:
            session.trust_env = False
            while webhook := self._next_due():
                self._work(session, webhook)

    def _next_due(self) -> Webhook | None:
        with self._changed:
            while not self._stopping:
                if not self._waiting:
                    self._changed.wait()
                elif (left := self._waiting[0][0] - time.monotonic()) > 0:
                    self._changed.wait(left)
                else:
                    return heapq.heappop(self._waiting)[2]
        return None

    def _work(self, session: requests.Session, webhook: Webhook) -> None:
        options = self._options()
        if not webhook.body:
            webhook.body = as_bytes(webhook.build())
            webhook.copies += options.repeat_webhooks
        if not options.callback_url:
            self._finish()
            return
        if not self._post(session, options, webhook.body):
            webhook.failures += 1
            with self._changed:
                self._push(webhook, gap_after(webhook.failures, options.retry_gap_seconds))
            return
        webhook.answered.set()
        webhook.copies -= 1
        if not webhook.copies:
            self._finish()
            return
        with self._changed:
            self._push(webhook, 0)

    def _post(self, session: requests.Session, options: SandboxOptions, body: bytes) -> bool:
        try:
            if not self._subscribe(session, options):
                logger.warning("sandbox webhook outcome=handshake_refused")
                return False
            answer = session.post(
                options.callback_url,
                data=body,
                headers={
                    "Content-Type": "application/json",
                    "User-Agent": "facebookexternalua",
                    "X-Hub-Signature-256": signature(body, options.app_secret),
                },
                timeout=TIMEOUT_SECONDS,
                allow_redirects=False,
            )
        except requests.RequestException as error:
            logger.info("sandbox webhook outcome=%s", type(error).__name__)
            return False
        if answer.status_code != 200:
            logger.info("sandbox webhook outcome=%d", answer.status_code)
        return answer.status_code == 200

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
