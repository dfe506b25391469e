"""What becomes of a mail at each recipient's side, as the options say, and the webhooks that tell it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from amedi.sandbox.postmark import event_bodies
from amedi.sandbox.postmark.bounces import BOUNCES
from amedi.sandbox.postmark.mails import AcceptedMail
from amedi.sandbox.postmark.options import PostmarkOptions

Clock = Callable[[], datetime]


@dataclass(frozen=True, kw_only=True)
class Event:
    """One webhook that is to come."""

    record_type: str
    build: Callable[[], dict[str, object]]
    """Gives its body; called when it happens."""


def is_end(options: PostmarkOptions, address: str) -> bool:
    """Whether Postmark sends nothing more to the address, once a mail has gone there."""
    kind = options.bounce_for.get(address.lower())
    return BOUNCES[kind].is_final if kind else address.lower() in options.complaint_for


def fate(options: PostmarkOptions, accepted: AcceptedMail, recipient: str, clock: Clock) -> list[Event]:
    """The events of one mail for one recipient, in the order in which they happen."""
    kind = options.bounce_for.get(recipient.lower())
    if kind:
        events = [
            Event(
                record_type="Bounce",
                build=lambda: event_bodies.bounce_body(accepted, recipient, clock(), kind=kind),
            )
        ]
    else:
        events = [
            Event(
                record_type="Delivery",
                build=lambda: event_bodies.delivery_body(accepted, recipient, clock()),
            )
        ]
    if not kind and recipient.lower() in options.complaint_for:
        events.append(
            Event(
                record_type="SpamComplaint",
                build=lambda: event_bodies.complaint_body(accepted, recipient, clock()),
            )
        )
    if is_end(options, recipient):
        events.append(
            suppression(
                recipient,
                clock,
                stream=accepted.mail.stream,
                reason="HardBounce" if kind else "SpamComplaint",
                cause=accepted,
            )
        )
    return events


def suppression(
    recipient: str,
    clock: Clock,
    *,
    stream: str,
    reason: str,
    origin: str = "Recipient",
    cause: AcceptedMail | None = None,
) -> Event:
    """That nothing more is sent to the recipient."""
    return Event(
        record_type="SubscriptionChange",
        build=lambda: event_bodies.suppression_body(
            recipient, clock(), stream=stream, reason=reason, origin=origin, cause=cause
        ),
    )


def reactivation(recipient: str, clock: Clock, *, stream: str) -> Event:
    """That mails are sent to the recipient again."""
    return Event(
        record_type="SubscriptionChange",
        build=lambda: event_bodies.reactivation_body(recipient, clock(), stream=stream),
    )


def opening(
    accepted: AcceptedMail, recipient: str, clock: Clock, *, is_first: bool, user_agent: str
) -> Event:
    """That the recipient looked at the mail."""
    return Event(
        record_type="Open",
        build=lambda: event_bodies.open_body(
            accepted, recipient, clock(), is_first=is_first, user_agent=user_agent
        ),
    )
