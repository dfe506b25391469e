"""How one sandbox behaves: its credentials, and the faults that it makes on purpose."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from amedi.sandbox.json_shapes import JsonObject
from amedi.sandbox.templates import Template, template_from_json

RECEIPTS = ("sent", "delivered", "read")
LOST_ANSWERS = ("before_status_line", "in_status_line", "in_body")


@dataclass(frozen=True, kw_only=True)
class SandboxOptions:
    """All of it can be changed while the sandbox runs, except host and port.

    Numbers are E.164 with their plus sign. Raises ValueError for values that mean nothing.
    """

    host: str = "127.0.0.1"
    port: int = 0
    """0 takes a free one."""
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

    def changed(self, **changes: Any) -> SandboxOptions:
        """A copy with other values. Raises ValueError for unknown names, host and port."""
        for name in changes:
            if name not in _READERS:
                raise ValueError(f"There is no option {name!r} that can change.")
        return replace(self, **changes)

    def changed_by_json(self, changes: JsonObject) -> SandboxOptions:
        """The same from JSON: lists of numbers, objects of number → code, creation bodies.

        Raises ValueError in one sentence.
        """
        read: dict[str, Any] = {}
        for name, value in changes.items():
            if name not in _READERS:
                raise ValueError(f"There is no option {name!r} that can change.")
            try:
                read[name] = _READERS[name](value)
            except (TypeError, ValueError, AttributeError):
                raise ValueError(f"The value of {name} is of the wrong kind.") from None
        return self.changed(**read)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError
    return tuple(_text(item) for item in value)


def _codes(value: Any) -> dict[str, int]:
    return {number: _count(code) for number, code in value.items()}


def _templates(value: Any) -> tuple[Template, ...]:
    return tuple(template_from_json(body) for body in value)


_READ_BY_TYPE: dict[str, Callable[[Any], Any]] = {
    "str": _text,
    "bool": _switch,
    "float": _number,
    "int": _count,
    "tuple[str, ...]": _texts,
    "Collection[str]": _texts,
    "Mapping[str, int]": _codes,
    "tuple[Template, ...]": _templates,
}
_READERS = {
    option.name: _READ_BY_TYPE[str(option.type)]
    for option in fields(SandboxOptions)
    if option.name not in ("host", "port")
}
