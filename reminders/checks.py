"""Settings that cannot work, found at start and not in the rush of eight o'clock."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, register
from django.utils.module_loading import import_string

from reminders.models.labels import ChannelName


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
    longest = settings.WHATSAPP_CONNECT_TIMEOUT_SECONDS + settings.WHATSAPP_READ_TIMEOUT_SECONDS
    if longest + 10 < settings.REMINDER_LEASE_SECONDS:
        return []
    return [
        Error(
            f"REMINDER_LEASE_SECONDS is {settings.REMINDER_LEASE_SECONDS}, but a call may take {longest}.",
            hint=f"Set it to more than {longest + 10}.",
            id="reminders.E003",
        )
    ]
