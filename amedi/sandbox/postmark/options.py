"""How one stand-in for Postmark behaves: its credentials, and the faults that it makes on purpose."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from amedi.sandbox.changing import ChangingOptions
from amedi.sandbox.postmark.bounces import BOUNCES
from amedi.sandbox.postmark.errors import CODES

EVENTS = ("Delivery", "Bounce", "SpamComplaint", "Open", "SubscriptionChange")
LOST_ANSWERS = ("before_status_line", "in_status_line", "in_body", "server_error")


@dataclass(frozen=True, kw_only=True)
class PostmarkOptions(ChangingOptions):
    """All of it can be changed while the stand-in runs, except host and port.

    Addresses are bare and in lower case. Raises ValueError for values that mean nothing.
    """

    callback_url: str = ""
    """Where webhooks go; "" sends none."""
    server_token: str = field(default="test-server-token-not-real", repr=False)
    webhook_secret: str = field(default="", repr=False)
    """``user:password`` of the callback's basic authentication; "" for none."""
    message_streams: tuple[str, ...] = ("outbound",)
    """The first is meant where a mail names none."""
    delivery_key: str = "delivery"
    """The key in ``Metadata`` under which the clinic names what it sends."""

    events: tuple[str, ...] = EVENTS
    """The webhooks that are switched on."""
    event_delay_seconds: float = 0.0
    """Before each of them."""
    bounce_for: Mapping[str, str] = field(default_factory=dict)
    """Address → Postmark's type of the bounce (``HardBounce``, ``SoftBounce`` …), in place of a delivery."""
    complaint_for: Collection[str] = frozenset()
    """These mark each mail as spam after its delivery."""
    inactive: Collection[str] = frozenset()
    """Mails to these are refused, as are those to whoever bounced for good or complained here."""

    delay_seconds: float = 0.0
    """From accepting (or refusing) a mail to the answer."""
    indexing_delay_seconds: float = 0.0
    """So long after it was accepted the search does not find a mail."""
    error_for: Mapping[str, int] = field(default_factory=dict)
    """Address → Postmark's ErrorCode in the answer."""
    status_for: Mapping[str, int] = field(default_factory=dict)
    """Address → HTTP status of an answer without JSON, as a proxy gives it; nothing is accepted."""
    lose_answer_for: Collection[str] = frozenset()
    """Mails to these are accepted, and the connection is cut instead of an answer."""
    lose_answer: str = "before_status_line"
    """Where it is cut; one of LOST_ANSWERS. ``server_error`` answers 500 without JSON instead."""
    repeat_webhooks: int = 0
    """How many more times each webhook comes."""
    reorder_webhooks: bool = False
    """The last event of a mail comes first."""
    webhooks_before_answer: bool = False
    """The answer waits until its webhooks were taken (for ten seconds at most)."""
    retry_minute_seconds: float = 1.0
    """How long a minute of Postmark's schedule of retries lasts here."""

    def __post_init__(self) -> None:
        if set(self.events) - set(EVENTS):
            raise ValueError(f"events are {', '.join(EVENTS)}.")
        if self.lose_answer not in LOST_ANSWERS:
            raise ValueError(f"lose_answer is one of {', '.join(LOST_ANSWERS)}.")
        if set(self.bounce_for.values()) - set(BOUNCES):
            raise ValueError(f"Types of bounces are {', '.join(BOUNCES)}.")
        if set(self.error_for.values()) - CODES:
            raise ValueError(f"Codes of errors are {', '.join(map(str, sorted(CODES)))}.")
        if set(self.status_for.values()) - set(HTTPStatus):
            raise ValueError("status_for takes HTTP statuses.")
        if not self.message_streams:
            raise ValueError("There is at least one message stream.")
        if self.webhook_secret and ":" not in self.webhook_secret:
            raise ValueError("webhook_secret is user:password.")
        if any(address != address.lower() for address in self._addresses()):
            raise ValueError("Addresses in options are in lower case.")
        least = min(
            self.delay_seconds,
            self.event_delay_seconds,
            self.indexing_delay_seconds,
            self.retry_minute_seconds,
            self.repeat_webhooks,
        )
        if least < 0:
            raise ValueError("Delays and repetitions are never negative.")

    def _addresses(self) -> list[str]:
        return [
            *self.bounce_for,
            *self.complaint_for,
            *self.inactive,
            *self.error_for,
            *self.status_for,
            *self.lose_answer_for,
        ]
