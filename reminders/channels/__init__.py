"""The channels, by the names that rules use. See docs/adding-a-channel.md."""

from django.conf import settings
from django.utils.module_loading import import_string

from reminders.channels.base import Channel


def get_channel(name: str) -> Channel:
    """The backend that CHANNEL_BACKENDS declares for the name; KeyError for none."""
    declared = settings.CHANNEL_BACKENDS[name]
    backend: type[Channel] = import_string(declared["BACKEND"])
    return backend(**declared.get("OPTIONS", {}))
