from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q


class Heartbeat(models.Model):
    """When a periodic process last showed that it lives."""

    name = models.CharField(primary_key=True, max_length=20)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name

    @classmethod
    def beat(cls, name: str, now: datetime) -> None:
        """Note that the process lives."""
        cls.objects.update_or_create(name=name, defaults={"at": now})

    @classmethod
    def age(cls, name: str, now: datetime) -> timedelta | None:
        """The time since the last beat; None when there never was one."""
        beat = cls.objects.filter(name=name).first()
        return now - beat.at if beat else None

    @classmethod
    def take_turn(cls, name: str, now: datetime, *, every: timedelta) -> bool:
        """Whether the time for the next turn has come; of several who ask at once, one hears yes."""
        _, is_first = cls.objects.get_or_create(name=name, defaults={"at": now})
        # A stamp from the future was made by a clock that has been put right since.
        over = Q(at__lte=now - every) | Q(at__gt=now)
        return is_first or bool(cls.objects.filter(over, name=name).update(at=now))
