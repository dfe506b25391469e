"""What Postmark posts about a mail afterwards, turned into receipts.

Postmark posts until it hears 200, late, twice and in any order. What names no
mail of ours changes nothing.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from anymail.exceptions import AnymailConfigurationError, AnymailWebhookValidationFailure
from anymail.signals import AnymailTrackingEvent, EventType, tracking
from anymail.webhooks.postmark import PostmarkTrackingWebhookView
from django.conf import settings
from django.db import DataError, IntegrityError
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive
from django.utils.translation import gettext as _

from appointments import clock
from reminders import preferences
from reminders.channels.base import id_at
from reminders.models import DeliveryAttempt
from reminders.models.labels import ChannelName
from reminders.postmark.client import is_message_id, references_of
from reminders.postmark.errors import Fate, fate
from reminders.receipts import Receipt, advance_all
from reminders.retired import Why, retire_email

logger = logging.getLogger(__name__)
_TIMES = ("DeliveredAt", "BouncedAt", "ReceivedAt", "ChangedAt")
# Outside it is no time of a mail, and Postgres knows years that Python does not.
_EARLIEST, _LATEST = datetime(2001, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


class TrackingView(PostmarkTrackingWebhookView):  # type: ignore[misc]
    """Anymail's, shut where no secret is set, and patient with bodies that it cannot read."""

    warn_if_no_basic_auth = False

    def __init__(self, **options: Any) -> None:
        super().__init__(webhook_secret=settings.POSTMARK_WEBHOOK_SECRET, **options)

    def validate_request(self, request: HttpRequest) -> None:  # noqa: ARG002
        """Beside anymail's look at the secret. Raises AnymailWebhookValidationFailure where none is set."""
        if not settings.POSTMARK_WEBHOOK_SECRET:
            raise AnymailWebhookValidationFailure("POSTMARK_WEBHOOK_SECRET is not set")

    def parse_events(self, request: HttpRequest) -> list[AnymailTrackingEvent]:
        """The news of a post; none where it cannot be read, or Postmark would repeat it for hours."""
        try:
            return list(super().parse_events(request))
        except (ValueError, TypeError, AttributeError, RecursionError, AnymailConfigurationError) as error:
            logger.warning("postmark post outcome=unreadable kind=%s", type(error).__name__)
            return []

    def esp_to_anymail_event(self, esp_event: dict[str, Any]) -> AnymailTrackingEvent:
        metadata = esp_event.get("Metadata")
        unreadable = {field for field in _TIMES if field in esp_event and not _is_time(esp_event[field])}
        # Without its time it is news all the same: that of its arrival counts.
        kept = {field: value for field, value in esp_event.items() if field not in unreadable}
        return super().esp_to_anymail_event(
            {**kept, "Metadata": metadata if isinstance(metadata, dict) else {}}
        )


@receiver(tracking)
def take_in(event: AnymailTrackingEvent, **_more: Any) -> None:
    """Move the delivery, and draw the conclusions for its address."""
    its_fate = _fate_of(event)
    status = _status_of(event, its_fate)
    message_id = event.message_id
    # Of an address that somebody suppressed by hand at Postmark there is no mail.
    if not status or not is_message_id(message_id):
        logger.info("postmark post event=%s outcome=ignored", event.event_type)
        return
    receipt = Receipt(
        reference="",
        message_id=message_id,
        status=status,
        at=_moment_of(event),
        error_code=_bounce_type(event) if status == "failed" else "",
        error_message=str(event.description or "") if status == "failed" else "",
    )
    try:
        is_ours = any(advance_all(_for_each_row(receipt, references_of(event.metadata))))
    except (DataError, IntegrityError) as error:
        # It would be the same each time that Postmark posts it again.
        logger.error("postmark post event=%s outcome=%s", event.event_type, type(error).__name__)
        return
    attempt = DeliveryAttempt.objects.filter(message_id=message_id).first() if is_ours else None
    if attempt is None:
        return
    if its_fate == Fate.DEAD:
        retire_email(attempt.address, why=Why.BOUNCED)
    elif its_fate == Fate.UNWANTED:
        preferences.opt_out(
            address=attempt.address,
            channel=ChannelName.EMAIL,
            patient=attempt.row.patient,
            evidence=_("Marcó un correo nuestro como no deseado."),
        )


def _for_each_row(receipt: Receipt, references: list[str]) -> list[Receipt]:
    """The same news for every row of the mail; by the mail's id where the post names none."""
    return [
        replace(receipt, reference=reference, message_id=id_at(receipt.message_id, place))
        for place, reference in enumerate(references, start=1)
    ] or [receipt]


def _status_of(event: AnymailTrackingEvent, its_fate: Fate) -> str:
    """The step of a receipt; "" where the news is none."""
    if its_fate in (Fate.DEAD, Fate.FAILED):
        return "failed"
    if its_fate == Fate.UNWANTED or event.event_type == EventType.DELIVERED:
        # Who complains about a mail has got it.
        return "delivered"
    return "read" if event.event_type == EventType.OPENED else ""


def _fate_of(event: AnymailTrackingEvent) -> Fate:
    """What befell mail and address; NOTHING where the news is good, or of something else."""
    told = event.esp_event
    match told.get("RecordType"):
        case "Bounce":
            return fate(_bounce_type(event), is_inactive=told.get("Inactive") is True)
        case "SpamComplaint":
            return Fate.UNWANTED
        case "SubscriptionChange" if told.get("SuppressSending") and told.get("Origin") == "Recipient":
            return fate(str(told.get("SuppressionReason", "")))
    return Fate.NOTHING


def _bounce_type(event: AnymailTrackingEvent) -> str:
    told = event.esp_event
    return str(told.get("Type") or told.get("SuppressionReason") or "")


def _moment_of(event: AnymailTrackingEvent) -> datetime:
    at: datetime | None = event.timestamp
    return _aware(at) if at else clock.now()


def _is_time(told: object) -> bool:
    """Whether this can be when something befell a mail."""
    try:
        at = parse_datetime(told) if isinstance(told, str) else None
    except ValueError:
        return False
    return at is not None and _EARLIEST <= _aware(at) <= _LATEST


def _aware(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if is_naive(at) else at
