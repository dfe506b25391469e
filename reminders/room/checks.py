"""Where the live stream is served, looked at when a process starts."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register  # noqa: A004


@register
def stream_is_of_the_same_host(**_: Any) -> list[CheckMessage]:
    """A browser sends the login along only to the host that it logged in at."""
    site, stream = urlsplit(settings.SITE_URL), urlsplit(settings.ROOM_STREAM_URL)
    if (site.scheme, site.hostname) == (stream.scheme, stream.hostname):
        return []
    return [
        Warning(
            f"ROOM_STREAM_URL ({settings.ROOM_STREAM_URL}) is not of the host of SITE_URL "
            f"({settings.SITE_URL}): no room will be live.",
            hint="Serve the stream at the same host, by path or by port.",
            id="reminders.W010",
        )
    ]
