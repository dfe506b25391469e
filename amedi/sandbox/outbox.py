"""Posts webhooks to the clinic from a thread of its own, again and again until each is taken."""

from __future__ import annotations

import enum
import heapq
import itertools
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import requests

from amedi.sandbox.json_shapes import JsonObject

TIMEOUT_SECONDS = (5, 10)


class WebhookOptions(Protocol):
    """What the options of every stand-in say about webhooks."""

    @property
    def callback_url(self) -> str:
        """Where webhooks go; "" sends none."""

    @property
    def repeat_webhooks(self) -> int:
        """How many more times each webhook comes."""


Options = TypeVar("Options", bound=WebhookOptions)


class Verdict(enum.Enum):
    """What the clinic's answer to a webhook means."""

    TAKEN = "taken"
    AGAIN = "again"
    NEVER = "never"
    """The provider takes the answer for a refusal, and drops the webhook."""


@dataclass(kw_only=True)
class Webhook:
    """One body on its way; the same bytes each time that it is tried."""

    build: Callable[[], JsonObject]
    """Called once, when it is first due: what the body tells happens then."""
    answered: threading.Event = field(default_factory=threading.Event)
    """Set by the first 200."""
    trace_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    """The same each time too."""
    body: bytes = b""
    copies: int = 1
    failures: int = 0


class Outbox(ABC, Generic[Options]):
    """The webhooks that wait, ordered by the moment when each is due."""

    def __init__(self, options: Callable[[], Options]) -> None:
        self._options = options
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, Webhook]] = []
        self._numbers = itertools.count()
        self._unfinished = 0
        self._dropped = 0
        self._stopping = False
        self._thread: threading.Thread | None = None

    # --- What differs between providers ---------------------------------------

    @abstractmethod
    def as_bytes(self, body: JsonObject) -> bytes:
        """The body as the provider writes it."""

    @abstractmethod
    def post(self, session: requests.Session, options: Options, webhook: Webhook) -> Verdict:
        """Post it once."""

    @abstractmethod
    def gap(self, options: Options, webhook: Webhook) -> float | None:
        """Seconds until the next try of a webhook that has just failed; None ends it."""

    # --------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to post."""
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="sandbox-webhooks", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the post that is being made, if any; what still waits is for the next start."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread:
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
        """Wait until every webhook was answered 200.

        False when the time ran out before, or one was dropped since the last flush.
        """
        with self._changed:
            is_done = self._changed.wait_for(lambda: self._unfinished == 0, timeout)
            dropped, self._dropped = self._dropped, 0
            return is_done and not dropped

    def _push(self, webhook: Webhook, after_seconds: float) -> None:
        heapq.heappush(self._waiting, (time.monotonic() + after_seconds, next(self._numbers), webhook))
        self._changed.notify_all()

    def _finish(self, *, dropped: int = 0) -> None:
        with self._changed:
            self._unfinished -= 1
            self._dropped += dropped
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
            webhook.body = self.as_bytes(webhook.build())
            webhook.copies += options.repeat_webhooks
        if not options.callback_url:
            self._finish()
            return
        verdict = self.post(session, options, webhook)
        if verdict is not Verdict.TAKEN:
            self._fail(options, webhook, verdict)
            return
        webhook.answered.set()
        webhook.copies -= 1
        if not webhook.copies:
            self._finish()
            return
        with self._changed:
            self._push(webhook, 0)

    def _fail(self, options: Options, webhook: Webhook, verdict: Verdict) -> None:
        webhook.failures += 1
        gap = None if verdict is Verdict.NEVER else self.gap(options, webhook)
        if gap is None:
            self._finish(dropped=1)
            return
        with self._changed:
            self._push(webhook, gap)
