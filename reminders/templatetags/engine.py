"""The red sentence for whoever works with the reminders, on each of their pages."""

from __future__ import annotations

from django import template

from appointments import clock
from reminders import health

register = template.Library()


@register.inclusion_tag("reminders/engine_alarm.html")
def engine_alarm() -> dict[str, str]:
    """The alarm, asked for now; nothing at all while reminders go out.

    The page needs ``reminders/engine_alarm.css``.
    """
    return {"sentence": health.alarm(clock.now())}
