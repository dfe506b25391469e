from __future__ import annotations

from django.db import models


class Meter(models.Model):
    """A part of one count. What a count is, is the sum of its parts.

    The processes that send are not the one that is asked for the metrics, so the
    counts live here. A worker adds to the part of its own connection, or two that
    record at once would wait for each other.
    """

    pk = models.CompositePrimaryKey("name", "channel", "label", "part")
    name = models.CharField(max_length=20)
    channel = models.CharField(max_length=10)
    label = models.CharField(max_length=20)
    part = models.SmallIntegerField()
    value = models.FloatField()

    def __str__(self) -> str:
        return f"{self.name} {self.channel} {self.label}"
