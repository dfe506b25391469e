"""Settings that cannot work, found at start and not in the rush of eight o'clock."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, register
from django.utils.module_loading import import_string

from reminders.models.labels import ChannelName

MARGIN = 10
"""Seconds around a call, for what is read before it and written after it."""
DAY = 24 * 60
LEAST_OPEN = 60
"""In minutes."""


@register
def channels_exist(**_: Any) -> list[CheckMessage]:
    """Every channel that is switched on has a backend that can be imported."""
    problems: list[CheckMessage] = []
    if not settings.REMINDER_CHANNELS:
        problems.append(
            checks.Warning(
                "REMINDER_CHANNELS names no channel: nothing will be sent.",
                hint="Name at least one, such as whatsapp.",
                id="reminders.W001",
            )
        )
    for name in settings.REMINDER_CHANNELS:
        declared = settings.CHANNEL_BACKENDS.get(name)
        if declared is None:
            known = ", ".join(sorted(set(settings.CHANNEL_BACKENDS) & set(ChannelName.values)))
            problems.append(
                Error(
                    f"REMINDER_CHANNELS names {name!r}, for which there is no backend.",
                    hint=f"Use one of: {known}; or declare it in CHANNEL_BACKENDS.",
                    id="reminders.E001",
                )
            )
            continue
        try:
            import_string(declared["BACKEND"])
        except ImportError as error:
            problems.append(
                Error(
                    f"The backend of channel {name!r} cannot be imported: {error}",
                    hint="See CHANNEL_BACKENDS in the settings.",
                    id="reminders.E002",
                )
            )
    return problems


@register
def lease_outlives_a_call(**_: Any) -> list[CheckMessage]:
    """A worker that is only waiting for its answer must not lose the row."""
    least = _longest_call() + MARGIN
    if least < settings.REMINDER_LEASE_SECONDS:
        return []
    return [
        Error(
            f"REMINDER_LEASE_SECONDS is {settings.REMINDER_LEASE_SECONDS}, but a call may take "
            f"{_longest_call()}.",
            hint=f"Set it to more than {least}.",
            id="reminders.E003",
        )
    ]


@register
def cluster_outlives_a_tick(**_: Any) -> list[CheckMessage]:
    """Longest tick < timeout < retry, or django-q2 kills a tick at work, or runs a second copy of it."""
    problems: list[CheckMessage] = []
    cluster: dict[str, Any] = settings.Q_CLUSTER
    timeout, retry = cluster["timeout"], cluster["retry"]
    # The calls that are in the air when a tick's time is over.
    longest = settings.REMINDER_TICK_SECONDS + _longest_call() + MARGIN
    if timeout < longest:
        problems.append(
            Error(
                f"Q_CLUSTER's timeout is {timeout}, but a tick may work for {longest}: it would be killed.",
                hint=f"Set the timeout to {longest} at least, or lower REMINDER_TICK_SECONDS.",
                id="reminders.E004",
            )
        )
    if retry <= timeout:
        problems.append(
            Error(
                f"Q_CLUSTER's retry is {retry}, and its timeout {timeout}: a task that still runs would be "
                "started again.",
                hint="Set retry to more than timeout.",
                id="reminders.E005",
            )
        )
    return problems


@register
def waits_outlive_a_lease(**_: Any) -> list[CheckMessage]:
    """What is decided after a lease must leave the time for it."""
    problems: list[CheckMessage] = []
    lease = settings.REMINDER_LEASE_SECONDS
    if lease > settings.REMINDER_UNKNOWN_WAIT_SECONDS:
        problems.append(
            Error(
                f"REMINDER_UNKNOWN_WAIT_SECONDS is {settings.REMINDER_UNKNOWN_WAIT_SECONDS}, less than the "
                f"lease of {lease}: a message would go to the next channel before its receipt can come.",
                hint="Leave it at 600: receipts come within minutes.",
                id="reminders.E006",
            )
        )
    if lease > settings.REMINDER_RETRY_WINDOW_SECONDS:
        problems.append(
            checks.Warning(
                f"REMINDER_RETRY_WINDOW_SECONDS is {settings.REMINDER_RETRY_WINDOW_SECONDS}, less than the "
                f"lease of {lease}: what a dead worker held would hardly be tried again.",
                hint="Leave it at 1800, or set it to several times REMINDER_LEASE_SECONDS.",
                id="reminders.W002",
            )
        )
    return problems


@register
def quiet_hours_leave_a_day(**_: Any) -> list[CheckMessage]:
    """Between two quiet nights there is time to send."""
    start, end = settings.REMINDER_QUIET_HOURS
    quiet = (end.hour * 60 + end.minute - start.hour * 60 - start.minute) % DAY
    if DAY - quiet >= LEAST_OPEN:
        return []
    return [
        Error(
            f"REMINDER_QUIET_HOURS is {start:%H:%M}-{end:%H:%M}, which leaves {DAY - quiet} minutes of a day "
            "to send in.",
            hint="Leave an hour at least; 00:00-00:00 means no quiet hours.",
            id="reminders.E007",
        )
    ]


def _longest_call() -> int:
    """Seconds that a call to a provider over HTTP may take, of the channels that are switched on."""
    times: dict[str, int] = {
        ChannelName.WHATSAPP: (
            settings.WHATSAPP_CONNECT_TIMEOUT_SECONDS + settings.WHATSAPP_READ_TIMEOUT_SECONDS
        ),
        ChannelName.EMAIL: settings.EMAIL_CONNECT_TIMEOUT_SECONDS + settings.EMAIL_READ_TIMEOUT_SECONDS,
    }
    return max((times[name] for name in settings.REMINDER_CHANNELS if name in times), default=0)
