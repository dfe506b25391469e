"""Webhook posts: stored first, worked off later, each item on its own.

Every step may be repeated: a worker may die at any line, and two may hold the
same post for a while. What must happen once is decided by unique keys.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F, Func, IntegerField
from psycopg.errors import DeadlockDetected

from whatsapp import signals, statuses, webhook_body
from whatsapp.events import (
    AccountChanged,
    Event,
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
    Template,
    WebhookPost,
)
from whatsapp.templates import apply_change

logger = logging.getLogger(__name__)

LEASE = timedelta(minutes=2)
"""For one worker's posts: a thousand messages take some twenty seconds; Meta puts no more into one post."""
POSTS_AT_ONCE = 50
BYTES_AT_ONCE = 512 * 1024
STATUSES_AT_ONCE = 250

# A reaction, an edit and the like may not count as a message from the patient
# for Meta, and without a window a text is refused.
OPENS_NO_WINDOW = frozenset({"reaction", "edit", "revoke", "system"})


def store(raw: bytes) -> WebhookPost | None:
    """Keep a body; None when the same bytes are known already."""
    digest = hashlib.sha256(raw).hexdigest()
    with connection.cursor() as cursor:
        # One statement, and none that Django has to compose: Meta counts how long it takes.
        cursor.execute(
            """INSERT INTO whatsapp_webhookpost (body, sha256, claims, error) VALUES (%s, %s, 0, '')
               ON CONFLICT (sha256) DO NOTHING
               RETURNING id, EXISTS (
                   SELECT FROM whatsapp_webhookpost WHERE processed_at IS NULL AND claims = 0
               )""",
            [raw, digest],
        )
        new = cursor.fetchone()
    if new is None:
        return None
    post = WebhookPost(pk=new[0], body=raw, sha256=digest)
    post.is_awaited = new[1]
    return post


def work_off(
    *,
    now: datetime,
    post_id: int | None = None,
    limit: int = 100,
    older_than: timedelta | None = None,
) -> int:
    """Handle waiting posts, the oldest first, and say how many were.

    ``post_id`` means only this one, ``older_than`` only those that wait longer.
    Raises what the database raises when it is not to be reached: the posts then
    stay, and are taken again when their lease is over.
    """
    done = 0
    while done < limit and (posts := _claim(now, post_id, older_than, limit - done)):
        _work_off(posts, now)
        done += len(posts)
    return done


def settle_parked(*, now: datetime, limit: int = 500) -> int:
    """Offer the receipts that nobody knew once more, and say how many were settled."""
    return statuses.offer_again(now=now, limit=limit)


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


def _claim(now: datetime, post_id: int | None, older_than: timedelta | None, limit: int) -> list[WebhookPost]:
    """Take a few posts for the length of a lease."""
    waiting = WebhookPost.objects.claimable(now)
    if post_id is not None:
        waiting = waiting.filter(pk=post_id)
    if older_than is not None:
        waiting = waiting.filter(received_at__lt=now - older_than)
    with transaction.atomic():
        size = Func(F("body"), function="octet_length", output_field=IntegerField())
        free = waiting.order_by("pk").select_for_update(skip_locked=True).annotate(size=size)
        taken = _together(free.values_list("pk", "claims", "size")[: min(limit, POSTS_AT_ONCE)])
        WebhookPost.objects.filter(pk__in=taken).update(claimed_until=now + LEASE, claims=F("claims") + 1)
    posts = list(WebhookPost.objects.filter(pk__in=taken).order_by("pk"))
    for post in posts:
        if post.claims == WebhookPost.MOST_CLAIMS:
            logger.error("webhook post id=%s outcome=last_try", post.pk)
    return posts


def _together(posts: Iterable[tuple[int, int, int]]) -> list[int]:
    """Of posts with their claims and sizes, the first one and those behind it that go well with it.

    One that was claimed before goes alone: it may be what its worker died of.
    """
    taken: list[int] = []
    bytes_taken = 0
    for pk, claims, size in posts:
        bytes_taken += size
        if taken and (claims or bytes_taken > BYTES_AT_ONCE):
            break
        taken.append(pk)
        if claims:
            break
    return taken


@dataclass(kw_only=True)
class _Item:
    """One thing that a post tells, and what was wrong with it: the kind of the fault, or ""."""

    post: WebhookPost
    event: Event
    fault: str = ""


def _work_off(posts: Sequence[WebhookPost], now: datetime) -> None:
    items = [_Item(post=post, event=event) for post in posts for event in _events(post)]
    receipts = [item for item in items if isinstance(item.event, StatusReceived)]
    for item in items:
        # Whoever tapped waits; receipts do not.
        if not isinstance(item.event, StatusReceived):
            _handle_alone(item, now)
    for first in range(0, len(receipts), STATUSES_AT_ONCE):
        _take_together(receipts[first : first + STATUSES_AT_ONCE], now)
    _finish(posts, items, now)


def _events(post: WebhookPost) -> Iterator[Event]:
    return webhook_body.parse(
        bytes(post.body),
        phone_number_id=settings.WHATSAPP_PHONE_NUMBER_ID,
        business_account_id=settings.WHATSAPP_BUSINESS_ACCOUNT_ID,
    )


def _take_together(items: Sequence[_Item], now: datetime) -> None:
    """Receipts in one transaction; each in its own where that does not work."""
    try:
        statuses.take([item.event for item in items if isinstance(item.event, StatusReceived)], now=now)
    except Exception as error:
        if _is_lost(error) and not isinstance(error.__cause__, DeadlockDetected):
            raise
        for item in items:
            _handle_alone(item, now)


def _handle_alone(item: _Item, now: datetime) -> None:
    """Handle one item in a transaction of its own, and keep the kind of its fault."""
    try:
        with transaction.atomic():
            item.fault = _handle(item.post, item.event, now)
    except Exception as error:
        if _is_lost(error):
            raise
        # The kind only: the message of an error repeats what was in the item.
        item.fault = f"{type(error).__module__}.{type(error).__qualname__}"[:100]


def _is_lost(error: Exception) -> bool:
    """Whether it is the database that fails, and not the item: then the posts come again."""
    return isinstance(error, OperationalError | InterfaceError)


def _finish(posts: Sequence[WebhookPost], items: Sequence[_Item], now: datetime) -> None:
    """Put aside what could not be handled, and take back what now could."""
    aside = {
        (post, path): pk
        for pk, post, path in QuarantinedItem.objects.filter(post__in=posts).values_list("pk", "post", "path")
    }
    seen: dict[int, Counter[str]] = {post.pk: Counter() for post in posts}
    whole: dict[int, str] = {}
    for item in items:
        pk, path = item.post.pk, item.event.path
        if item.fault:
            _put_aside(item.post, path, item.fault, now)
            if not path:
                whole.setdefault(pk, item.fault)
        elif (pk, path) in aside:
            QuarantinedItem.objects.filter(pk=aside[pk, path]).delete()
        seen[pk]["quarantined" if item.fault else _kind(item.event)] += 1
    WebhookPost.objects.filter(pk__in=seen).update(processed_at=now, claimed_until=None, error="")
    for pk, fault in whole.items():
        WebhookPost.objects.filter(pk=pk).update(error=fault)
    for pk, count in seen.items():
        logger.info(
            "webhook post id=%s messages=%d statuses=%d changes=%d ignored=%d quarantined=%d",
            pk,
            count["messages"],
            count["statuses"],
            count["changes"],
            count["ignored"],
            count["quarantined"],
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


def _handle(post: WebhookPost, event: Event, now: datetime) -> str:
    match event:
        case Unreadable():
            return event.reason
        case MessageReceived():
            _take_message(post, event, now)
        case StatusReceived():
            statuses.take([event], now=now)
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
