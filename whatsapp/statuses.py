"""Receipts as Meta sends them: kept once per message and kind, offered until somebody knows them."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

from django.db import InterfaceError, OperationalError, connection, transaction
from psycopg.errors import DeadlockDetected

from whatsapp import signals
from whatsapp.events import Fault, StatusReceived
from whatsapp.models import StatusEvent

logger = logging.getLogger(__name__)

PARKED_FOR = timedelta(minutes=15)
FIRST_GAP = timedelta(seconds=5)

_Key = tuple[str, str]


def take(events: Sequence[StatusReceived], *, now: datetime) -> None:
    """Keep receipts, and offer those that nobody has known so far; nothing of it when something raises."""
    first: dict[_Key, StatusReceived] = {}
    for event in events:
        first.setdefault(_key(event), event)
    with transaction.atomic():
        new = _insert(first, now)
        waiting = _locked_where_unsettled(first.keys() - new.keys())
        known = _offer([event for key, event in first.items() if key in new or key in waiting], now)
        unknown = [pk for key, pk in new.items() if key not in known]
        StatusEvent.objects.filter(pk__in=unknown).update(settled_at=None, next_offer_at=now + FIRST_GAP)
        _settle([pk for key, pk in waiting.items() if key in known], now)
    for key, pk in new.items():
        _tell(pk, first[key])


def offer_again(*, now: datetime, limit: int) -> int:
    """Offer the receipts that nobody knew once more, and say how many were settled.

    The gaps between two offers double; after a quarter of an hour they end, and
    the receipt stays as it is.
    """
    with transaction.atomic():
        parked = StatusEvent.objects.parked(now).order_by("next_offer_at", "pk")
        rows = list(parked.select_for_update(skip_locked=True)[:limit])
        for row in rows:
            last = row.received_at + PARKED_FOR
            again = now + max(now - row.received_at, FIRST_GAP)
            row.next_offer_at = min(again, last) if now < last else None
        StatusEvent.objects.bulk_update(rows, ["next_offer_at"])
        return _offer_parked(rows, now)


def _offer_parked(rows: Sequence[StatusEvent], now: datetime) -> int:
    """Together; each by itself where that does not work."""
    try:
        with transaction.atomic():
            known = _offer([_event_of(row) for row in rows], now)
            return _settle([row.pk for row in rows if (row.wamid, row.status) in known], now)
    except Exception as error:
        # A deadlock undid no more than these, and they are offered again.
        is_deadlock = isinstance(error.__cause__, DeadlockDetected)
        if isinstance(error, OperationalError | InterfaceError) and not is_deadlock:
            raise
        if len(rows) > 1:
            return sum(_offer_parked([row], now) for row in rows)
        logger.error("parked status id=%s outcome=%s", rows[0].pk, type(error).__name__)
        return 0


def _insert(events: dict[_Key, StatusReceived], now: datetime) -> dict[_Key, int]:
    """The ids of those that were not there yet, taken for settled: nearly all are known at once."""
    # In one order, or two that bring the same receipts could wait for each other.
    ordered = sorted(events.values(), key=lambda event: event.wamid)
    rows = [asdict(event) | {"at": event.at.isoformat()} for event in ordered]
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO whatsapp_statusevent (wamid, status, reference, at, recipient_phone,
                   recipient_user_id, errors, category, received_at, settled_at)
               SELECT wamid, status, reference, at, recipient_phone, recipient_user_id, errors, category,
                      %(now)s, %(now)s
               FROM json_to_recordset(%(rows)s::json) AS event (wamid text, status text, reference text,
                   at timestamptz, recipient_phone text, recipient_user_id text, errors jsonb, category text)
               ON CONFLICT (wamid, status) DO NOTHING RETURNING wamid, status, id""",
            {"rows": json.dumps(rows), "now": now},
        )
        return {(wamid, status): pk for wamid, status, pk in cursor.fetchall()}


def _locked_where_unsettled(keys: Collection[_Key]) -> dict[_Key, int]:
    rows = (
        StatusEvent.objects.filter(wamid__in={wamid for wamid, _ in keys}, settled_at=None)
        .order_by("pk")
        .select_for_update()
        .values_list("wamid", "status", "pk")
    )
    return {(wamid, status): pk for wamid, status, pk in rows if (wamid, status) in keys} if keys else {}


def _offer(events: Sequence[StatusReceived], now: datetime) -> set[_Key]:
    """Ask the receivers whose receipts these are; those that somebody knows."""
    known: set[_Key] = set()
    if events:
        for _receiver, answers in signals.statuses_received.send(sender=StatusEvent, events=events, now=now):
            assert answers is not None  # noqa: S101
            known |= {_key(event) for event, is_known in zip(events, answers, strict=True) if is_known}
    return known


def _settle(pks: Sequence[int], now: datetime) -> int:
    return StatusEvent.objects.filter(pk__in=pks).update(settled_at=now, next_offer_at=None)


def _key(event: StatusReceived) -> _Key:
    return event.wamid, event.status


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


def _tell(pk: int, event: StatusReceived) -> None:
    answer = event.verdict
    if event.category == "marketing" or (answer and answer.means_marketing):
        logger.error("template drift status=%s outcome=charged_as_marketing", pk)
    if answer and not answer.is_known:
        logger.error("unknown error code status=%s code=%s", pk, event.errors[0].code)
