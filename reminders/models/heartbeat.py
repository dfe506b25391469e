from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models


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
