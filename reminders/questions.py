"""What the database is asked to know how the engine is. An index answers each question.

An age is in seconds, and None where there is nothing that could be old.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, models, transaction
from django.db.models import Min

from reminders.channels.whatsapp import TEMPLATES
from reminders.models import Heartbeat, Mark, ReminderDelivery, ReminderRule, Reply
from reminders.models.labels import ChannelName
from reminders.models.outgoing import OutgoingMessage, QueueQuerySet
from reminders.outcomes import unknown_wait
from reminders.tick import HEARTBEAT
from whatsapp.models import QuarantinedItem, Template, WebhookPost
from whatsapp.templates import standard_templates

PATIENCE = timedelta(seconds=2)
"""A question that takes longer is given up: whoever watches must not become the load."""
MANY_TRIES = 3
"""So often has the planning of a visit failed that it will not mend itself."""
CLOCKS_MAY_DIFFER = 60.0
"""Seconds by which a stamp of another machine may be ahead of ours."""
MOST_COUNTED = 1_000

# Where nothing ever ticked, what waits for a tick tells since when it is missed: a
# glance at the first of each queue does. In a fresh installation nothing is
# planned, and nothing is missed.
_LAST_TICK = """
coalesce(
    (SELECT at FROM reminders_heartbeat WHERE name = %(heartbeat)s),
    least((SELECT min(created_at) FROM (SELECT created_at FROM reminders_reminderdelivery
                                        WHERE status = 'pending' ORDER BY next_attempt_at LIMIT 100) AS d),
          (SELECT min(at) FROM (SELECT at, subject FROM reminders_mark ORDER BY id LIMIT 100) AS m
           WHERE subject = 'appointment'),
          (SELECT received_at FROM whatsapp_webhookpost WHERE processed_at IS NULL ORDER BY id LIMIT 1)))
"""
_OLDEST_PENDING = """
least((SELECT min(next_attempt_at) FROM reminders_reminderdelivery WHERE status = 'pending'),
      (SELECT min(next_attempt_at) FROM reminders_reply WHERE status = 'pending'))
"""


@contextmanager
def bounded() -> Iterator[None]:
    """A transaction in which no query takes longer than our patience."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {PATIENCE // timedelta(milliseconds=1)}")
        yield


def last_tick_and_oldest_unsent(now: datetime) -> tuple[float | None, float | None]:
    """Seconds since a tick was alive, and since the oldest pending message fell due; one query.

    The first is None where nothing ever ticked and nothing has missed it, the
    second where nothing is due.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_LAST_TICK}, {_OLDEST_PENDING}", {"heartbeat": HEARTBEAT})
        ticked, due = cursor.fetchone()
    return _age(ticked, now), _age(due if due and due <= now else None, now)


def _age(moment: datetime | None, now: datetime) -> float | None:
    """Seconds since then. A stamp of the future, from before the clock was set back, tells nothing good."""
    if moment is None:
        return None
    age = (now - moment).total_seconds()
    return abs(age) if age < -CLOCKS_MAY_DIFFER else max(age, 0.0)


def _oldest(queries: Iterable[models.QuerySet[Any]], field: str, now: datetime) -> float | None:
    moments = [rows.aggregate(oldest=Min(field))["oldest"] for rows in queries]
    return _age(min((moment for moment in moments if moment), default=None), now)


def _count(rows: models.QuerySet[Any]) -> int:
    """How many, up to where it makes no difference any more."""
    return rows.order_by()[:MOST_COUNTED].count()


def _queues() -> tuple[QueueQuerySet[Any], ...]:
    return ReminderDelivery.objects.all(), Reply.objects.all()


def seconds_to_answer(_now: datetime) -> float:
    """How long the database takes for the least of all queries."""
    asked = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return time.monotonic() - asked


def overdue_lease(now: datetime) -> float | None:
    """Since when a row is overdue that a worker, most probably dead, still holds."""
    return _oldest((queue.abandoned(now) for queue in _queues()), "lease_until", now)


def oldest_unknown(now: datetime) -> float | None:
    """Since when nobody knows of a message whether it was taken."""
    unknown = (queue.filter(status=OutgoingMessage.Status.UNKNOWN) for queue in _queues())
    # The next moment of such a row is the end of the wait that began when it became one.
    return _oldest(unknown, "next_attempt_at", now + unknown_wait())


def webhook_lag(now: datetime) -> float | None:
    """Since when a webhook post waits; those that were given up wait for a person."""
    waiting = WebhookPost.objects.unprocessed().filter(claims__lt=WebhookPost.MOST_CLAIMS)
    return _age(waiting.order_by("pk").values_list("received_at", flat=True).first(), now)


def planner_lag(now: datetime) -> float | None:
    """Since when a change waits for the planner; those that are put off do not count."""
    if Heartbeat.age(HEARTBEAT, now) is None:
        return None  # that nobody has planned yet, the missing tick says, and only where it is missed
    return _age(Mark.objects.ready(now).order_by("pk").values_list("at", flat=True).first(), now)


def failing_plans(_now: datetime) -> int:
    """Changes whose planning has failed several times."""
    return _count(Mark.objects.filter(not_before__isnull=False, tries__gte=MANY_TRIES))


def posts_given_up(_now: datetime) -> int:
    """Webhook posts that stopped every worker that took them."""
    return _count(WebhookPost.objects.unprocessed().filter(claims__gte=WebhookPost.MOST_CLAIMS))


def quarantined(_now: datetime) -> int:
    """Parts of webhook posts that were put aside."""
    return _count(QuarantinedItem.objects.all())


def templates_withheld(_now: datetime) -> int:
    """How many of the templates that the rules need Meta does not let through."""
    if ChannelName.WHATSAPP not in settings.REMINDER_CHANNELS:
        return 0
    rules = ReminderRule.objects.filter(is_enabled=True, channels__contains=[ChannelName.WHATSAPP])
    types = set(rules.values_list("reminder_type", flat=True))
    names = {name for kind in types for name in TEMPLATES.get(kind, ())}
    withheld = Template.objects.withheld_by_meta().filter(
        business_account_id=settings.WHATSAPP_BUSINESS_ACCOUNT_ID, name__in=names
    )
    ours = {(template.name, template.language) for template in standard_templates().values()}
    return len(ours.intersection(withheld.values_list("name", "language")))


def open_transaction(_now: datetime) -> float | None:
    """How long the oldest transaction of anybody else is open, as far as our role may see."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extract(epoch FROM clock_timestamp() - min(xact_start))::float8 FROM pg_stat_activity"
            " WHERE datname = current_database() AND backend_type = 'client backend'"
            " AND pid <> pg_backend_pid()"
        )
        [seconds] = cursor.fetchone()
    return None if seconds is None else float(seconds)
