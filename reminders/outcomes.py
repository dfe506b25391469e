"""What becomes of a row whose call did not succeed: a policy, without a look at the database."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings

from reminders import backoff
from reminders.channels.base import AnswerLost, ChannelError, Throttled, Undeliverable
from reminders.models.outgoing import OutgoingMessage
from reminders.timeline import Reason

Status = OutgoingMessage.Status


def after_error(row: OutgoingMessage, error: ChannelError, now: datetime) -> dict[str, object]:
    """The new values of the row's columns: tried again later, ended, or left open.

    A definite refusal is tried again until the attempts or the time for them run
    out; a rate limit costs no attempt, only time; a lost answer is never repeated.
    """
    seen: dict[str, object] = {
        "error_code": error.code,
        "error_message": error.detail[:500],
        "lease_until": None,
    }
    if isinstance(error, AnswerLost):
        return {**seen, "status": Status.UNKNOWN, "next_attempt_at": now + unknown_wait()}
    if isinstance(error, Undeliverable):
        return {**seen, "status": Status.FAILED, "reason": Reason.REFUSED}
    window_ends = (row.called_at or now) + timedelta(seconds=settings.REMINDER_RETRY_WINDOW_SECONDS)
    asked = now + (error.retry_after or timedelta(0))
    retries, is_last = row.retry_count, now >= window_ends or asked > window_ends
    if not isinstance(error, Throttled):
        retries += 1
        is_last |= retries >= min(
            settings.REMINDER_MAX_ATTEMPTS, error.tries or settings.REMINDER_MAX_ATTEMPTS
        )
    seen["retry_count"] = retries
    if is_last:
        return {**seen, "status": Status.FAILED, "reason": Reason.ATTEMPTS_EXHAUSTED}
    # The last try comes at the end of the window and not after it.
    again = max(min(now + backoff.delay(retries or 1), window_ends), asked)
    return {**seen, "status": Status.PENDING, "next_attempt_at": again}


def unknown_wait() -> timedelta:
    """How long a row whose answer was lost waits for a receipt."""
    return timedelta(seconds=settings.REMINDER_UNKNOWN_WAIT_SECONDS)
