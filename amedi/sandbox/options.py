"""How one sandbox behaves: its credentials, and the faults that it makes on purpose."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from amedi.sandbox.changing import ChangingOptions
from amedi.sandbox.templates import Template, template_from_json

RECEIPTS = ("sent", "delivered", "read")
LOST_ANSWERS = ("before_status_line", "in_status_line", "in_body")


def _templates(value: Any) -> tuple[Template, ...]:
    return tuple(template_from_json(body) for body in value)


@dataclass(frozen=True, kw_only=True)
class SandboxOptions(ChangingOptions):
    """All of it can be changed while the sandbox runs, except host and port.

    Numbers are E.164 with their plus sign. Raises ValueError for values that mean nothing.
    """

    more_readers = {"tuple[Template, ...]": _templates}

    callback_url: str = ""
    """Where webhooks go; "" sends none."""
    access_token: str = field(default="test-access-token-not-real", repr=False)
    app_secret: str = field(default="test-app-secret-not-real", repr=False)
    verify_token: str = field(default="", repr=False)
    """With one, the callback must pass Meta's handshake before it gets its first webhook."""
    phone_number_id: str = "200000000000002"
    business_account_id: str = "100000000000001"
    display_phone_number: str = "582120000000"
    known_templates: tuple[Template, ...] = field(default=(), repr=False)
    """Grows by what is created over HTTP."""

    receipts: tuple[str, ...] = ("sent", "delivered")
    """The statuses that come by themselves, in their order."""
    receipt_delay_seconds: float = 0.0
    """Before each of them."""
    read_when_opened: bool = True
    """Looking at the phone's page sends "read"."""

    delay_seconds: float = 0.0
    """From accepting (or refusing) a message to the answer."""
    lose_answer_for: Collection[str] = frozenset()
    """Messages to these are accepted, and the connection is cut instead of an answer."""
    lose_answer: str = "before_status_line"
    """Where it is cut; one of LOST_ANSWERS."""
    error_for: Mapping[str, int] = field(default_factory=dict)
    """Number → Meta's error code in the answer."""
    status_error_for: Mapping[str, int] = field(default_factory=dict)
    """Number → code in a ``failed`` status, after an answer of 200."""
    repeat_webhooks: int = 0
    """How many more times each webhook comes."""
    reorder_webhooks: bool = False
    """The last receipt comes first."""
    webhooks_before_answer: bool = False
    """The answer waits until its receipts were taken (for ten seconds at most)."""
    retry_gap_seconds: float = 1.0
    """After the first refusal of a webhook; each further gap is twice as long, up to a minute."""

    def __post_init__(self) -> None:
        if set(self.receipts) - set(RECEIPTS):
            raise ValueError(f"receipts are {', '.join(RECEIPTS)}.")
        if self.lose_answer not in LOST_ANSWERS:
            raise ValueError(f"lose_answer is one of {', '.join(LOST_ANSWERS)}.")
        least = min(
            self.delay_seconds, self.receipt_delay_seconds, self.retry_gap_seconds, self.repeat_webhooks
        )
        if least < 0:
            raise ValueError("Delays and repetitions are never negative.")
