"""Webhook posts: stored first, worked off later, each item on its own.

Every step may be repeated: a worker may die at any line, and two may hold the
same post for a while. What must happen once is decided by unique keys.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from dataclasses import asdict
from datetime import datetime, timedelta

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F

from whatsapp import signals, webhook_body
from whatsapp.events import (
    AccountChanged,
    Event,
    Fault,
    MessageReceived,
    StatusReceived,
    TemplateChanged,
    Unreadable,
    Urgency,
)
from whatsapp.models import (
    ConversationWindow,
    InboundMessage,
    QuarantinedItem,
    StatusEvent,
    Template,
    WebhookPost,
)
from whatsapp.templates import apply_change

logger = logging.getLogger(__name__)

LEASE = timedelta(minutes=2)
"""A post of a thousand items takes some ten seconds; Meta puts no more into one."""
PARKED_FOR = timedelta(minutes=15)
FIRST_GAP = timedelta(seconds=5)

# A reaction, an edit and the like may not count as a message from the patient
# for Meta, and without a window a text is refused.
OPENS_NO_WINDOW = frozenset({"reaction", "edit", "revoke", "system"})


def store(raw: bytes) -> WebhookPost | None:
    """Keep a body; None when the same bytes are known already."""
    digest = hashlib.sha256(raw).hexdigest()
    post, created = WebhookPost.objects.defer("body").get_or_create(sha256=digest, defaults={"body": raw})
    return post if created else None


def work_off(
    *,
    now: datetime,
    post_id: int | None = None,
    limit: int = 100,
    older_than: timedelta | None = None,
) -> int:
    """Handle waiting posts, the oldest first, and say how many were.

    ``post_id`` means only this one, ``older_than`` only those that wait longer.
    Raises what the database raises when it is not to be reached: the post then
    stays, and is taken again when its lease is over.
    """
    done = 0
    while done < limit and (post := _claim(now, post_id, older_than)):
        _work_off(post, now)
        done += 1
    return done


def settle_parked(*, now: datetime, limit: int = 500) -> int:
    """Offer the receipts that nobody knew once more, and say how many were settled.

    The gaps between two offers double; after a quarter of an hour they end, and
    the receipt stays as it is.
    """
    parked = StatusEvent.objects.parked(now).order_by("next_offer_at").values_list("pk", flat=True)
    return sum(_offer_again(pk, now) for pk in parked[:limit])


def replay(*, now: datetime, post_id: int | None = None, quarantined: bool = False) -> int:
    """Handle posts again, and say how many were.

    By default those that were never finished, also those that were given up;
    ``quarantined`` means those of which some part was put aside, ``post_id``
    just this one. What was handled before stays handled.
    """
    posts = WebhookPost.objects.exclude(body=b"", processed_at__isnull=False)
    if post_id is not None:
        posts = posts.filter(pk=post_id)
    elif quarantined:
        posts = posts.filter(quarantined__isnull=False)
    else:
        posts = posts.unprocessed()
    waiting = sorted(set(posts.values_list("pk", flat=True)))
    # Whoever is at work on one now keeps it.
    WebhookPost.objects.filter(pk__in=waiting).update(processed_at=None, claims=0)
    return sum(work_off(now=now, post_id=pk, limit=1) for pk in waiting)


def _claim(now: datetime, post_id: int | None, older_than: timedelta | None) -> WebhookPost | None:
    """Take one post for the length of a lease."""
    waiting = WebhookPost.objects.claimable(now)
    if post_id is not None:
        waiting = waiting.filter(pk=post_id)
    if older_than is not None:
        waiting = waiting.filter(received_at__lt=now - older_than)
    with transaction.atomic():
        post = waiting.order_by("pk").select_for_update(skip_locked=True).first()
        if post:
            WebhookPost.objects.filter(pk=post.pk).update(claimed_until=now + LEASE, claims=F("claims") + 1)
            if post.claims + 1 == WebhookPost.MOST_CLAIMS:
                logger.error("webhook post id=%s outcome=last_try", post.pk)
    return post


def _work_off(post: WebhookPost, now: datetime) -> None:
    aside = dict(post.quarantined.values_list("path", "pk"))
    seen: Counter[str] = Counter()
    whole = ""
    for event in webhook_body.parse(
        bytes(post.body),
        phone_number_id=settings.WHATSAPP_PHONE_NUMBER_ID,
        business_account_id=settings.WHATSAPP_BUSINESS_ACCOUNT_ID,
    ):
        reason = _handle_alone(post, event, now)
        if reason:
            _put_aside(post, event.path, reason, now)
            whole = whole or ("" if event.path else reason)
        elif event.path in aside:
            QuarantinedItem.objects.filter(pk=aside[event.path]).delete()
        seen["quarantined" if reason else _kind(event)] += 1
    WebhookPost.objects.filter(pk=post.pk).update(processed_at=now, claimed_until=None, error=whole)
    logger.info(
        "webhook post id=%s messages=%d statuses=%d changes=%d ignored=%d quarantined=%d",
        post.pk,
        seen["messages"],
        seen["statuses"],
        seen["changes"],
        seen["ignored"],
        seen["quarantined"],
    )


def _kind(event: Event) -> str:
    match event:
        case MessageReceived():
            return "messages"
        case StatusReceived():
            return "statuses"
        case TemplateChanged() | AccountChanged():
            return "changes"
        case _:
            return "ignored"


def _handle_alone(post: WebhookPost, event: Event, now: datetime) -> str:
    """Handle one item in a transaction of its own; the kind of the fault, or ""."""
    try:
        with transaction.atomic():
            return _handle(post, event, now)
    except (OperationalError, InterfaceError):
        # The database, not the item: the whole post comes again.
        raise
    except Exception as error:
        # The kind only: the message of an error repeats what was in the item.
        return f"{type(error).__module__}.{type(error).__qualname__}"[:100]


def _handle(post: WebhookPost, event: Event, now: datetime) -> str:
    match event:
        case Unreadable():
            return event.reason
        case MessageReceived():
            _take_message(post, event, now)
        case StatusReceived():
            _take_status(event, now)
        case TemplateChanged():
            template = apply_change(event, now=now)
            signals.template_changed.send(sender=Template, template=template, event=event, now=now)
        case AccountChanged():
            _tell_of_account(event)
            signals.account_changed.send(sender=AccountChanged, event=event, now=now)
    return ""


def _put_aside(post: WebhookPost, path: str, reason: str, now: datetime) -> None:
    QuarantinedItem.objects.get_or_create(
        post=post, path=path, defaults={"reason": reason, "created_at": now}
    )
    logger.error("webhook item quarantined post=%s path=%s reason=%s", post.pk, path or "-", reason)


def _take_message(post: WebhookPost, event: MessageReceived, now: datetime) -> None:
    # The row first: of two that bring the same message, the key lets one through.
    message, is_new = InboundMessage.objects.get_or_create(
        wamid=event.wamid,
        defaults={
            "from_phone": event.phone,
            "from_user_id": event.user_id,
            "type": event.type,
            "text": event.text,
            "payload": event.payload,
            "context_wamid": event.context_wamid,
            "is_group": event.is_group,
            "sent_at": event.at,
            "received_at": now,
            "post": post,
        },
    )
    if not is_new:
        return
    _extend_window(event, now)
    signals.message_received.send(sender=InboundMessage, message=message, event=event, now=now)


def _extend_window(event: MessageReceived, now: datetime) -> None:
    if event.is_group or event.type in OPENS_NO_WINDOW:
        return
    until = min(event.at, now) + ConversationWindow.LENGTH
    # In a fixed order, so that two messages of one person cannot block each other.
    for address in sorted({event.phone, event.user_id} - {""}):
        ConversationWindow.extend(address, until)


def _take_status(event: StatusReceived, now: datetime) -> None:
    row, is_new = StatusEvent.objects.get_or_create(
        wamid=event.wamid,
        status=event.status,
        defaults={
            "reference": event.reference,
            "at": event.at,
            "recipient_phone": event.recipient_phone,
            "recipient_user_id": event.recipient_user_id,
            "errors": [asdict(fault) for fault in event.errors],
            "category": event.category,
            "received_at": now,
            "next_offer_at": now + FIRST_GAP,
        },
    )
    if is_new:
        _tell_of_status(row, event)
    else:
        row = StatusEvent.objects.select_for_update().get(pk=row.pk)
    if row.settled_at is None:
        _offer(row, event, now)


def _offer(row: StatusEvent, event: StatusReceived, now: datetime) -> bool:
    """Ask the receivers whose receipt it is."""
    answers = signals.status_received.send(sender=StatusEvent, event=event, now=now)
    is_settled = any(answer for _receiver, answer in answers)
    if is_settled:
        StatusEvent.objects.filter(pk=row.pk).update(settled_at=now, next_offer_at=None)
    return is_settled


def _offer_again(pk: int, now: datetime) -> bool:
    with transaction.atomic():
        row = StatusEvent.objects.parked(now).select_for_update(skip_locked=True).filter(pk=pk).first()
        if row is None:
            return False
        age = now - row.received_at
        last = row.received_at + PARKED_FOR
        again = min(now + max(age, FIRST_GAP), last) if now < last else None
        StatusEvent.objects.filter(pk=pk).update(next_offer_at=again)
        try:
            with transaction.atomic():
                return _offer(row, _event_of(row), now)
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:
            logger.error("parked status id=%s outcome=%s", pk, type(error).__name__)
            return False


def _event_of(row: StatusEvent) -> StatusReceived:
    return StatusReceived(
        wamid=row.wamid,
        status=row.status,
        at=row.at,
        reference=row.reference,
        recipient_phone=row.recipient_phone,
        recipient_user_id=row.recipient_user_id,
        errors=tuple(Fault(**fault) for fault in row.errors),
        category=row.category,
    )


def _tell_of_status(row: StatusEvent, event: StatusReceived) -> None:
    answer = event.verdict
    if event.category == "marketing" or (answer and answer.means_marketing):
        logger.error("template drift status=%s outcome=charged_as_marketing", row.pk)
    if answer and not answer.is_known:
        logger.error("unknown error code status=%s code=%s", row.pk, event.errors[0].code)


def _tell_of_account(event: AccountChanged) -> None:
    level = logging.INFO if event.urgency is Urgency.NOTE else logging.ERROR
    logger.log(
        level,
        "account kind=%s event=%s urgency=%s code=%s daily_limit=%s may_send=%s",
        event.kind,
        event.event or "-",
        event.urgency,
        event.error_code,
        event.daily_limit,
        event.may_send,
    )
