from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from django_q.models import Schedule

TICK = {
    "func": "reminders.tick.scheduled_tick",
    "schedule_type": Schedule.MINUTES,
    "minutes": 1,
    "repeats": -1,
}


class Command(BaseCommand):
    """Part of every deployment. Running it again changes nothing."""

    help = "Create or correct the django-q2 schedules: the tick of every minute."

    def handle(self, **options: Any) -> None:
        _, created = Schedule.objects.update_or_create(name="tick", defaults=TICK)
        self.stdout.write(
            "The tick is scheduled for every minute." if created else "The tick was scheduled already."
        )
