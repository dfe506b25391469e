"""The metrics, read from the database at each scrape: whoever sends is another process than this one.

No label holds more than a channel, a state or the name of a measure.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import Error
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from reminders import depth, meters
from reminders.health import Health
from reminders.meters import BEYOND, BUCKETS, Lateness
from reminders.models import DeliveryAttempt
from reminders.questions import bounded

logger = logging.getLogger(__name__)
OUTCOMES = [outcome for outcome in DeliveryAttempt.Outcome.values if outcome]


@dataclass(frozen=True, kw_only=True)
class Metrics(Collector):
    """Everything that is counted, at a time."""

    health: Health
    now: datetime

    def collect(self) -> Iterator[Metric]:
        """The families. One whose question fails is left out, and the log says so."""
        yield from _measures(self.health)
        parts: tuple[Callable[[], Iterable[Metric]], ...] = (
            _counts,
            lambda: _queue_depth(self.now),
            _planned,
            lambda: [
                _gauge("amedi_planner_marks_waiting", "Changes not yet planned.", depth.marks_waiting())
            ],
            lambda: [
                _gauge(
                    "amedi_webhook_posts_unprocessed",
                    "Webhook posts that were not worked off.",
                    depth.posts_waiting(),
                )
            ],
            lambda: [
                _gauge(
                    "amedi_call_list_size",
                    "Reminders that reached nobody, for which somebody has to call.",
                    depth.to_call(self.now),
                )
            ],
        )
        for part in parts:
            try:
                with bounded():
                    families = list(part())
            except Error as error:
                logger.warning("metrics part failed kind=%s", type(error).__name__)
            else:
                yield from families


def _gauge(name: str, explanation: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, explanation, value=value)


def _measures(health: Health) -> Iterator[Metric]:
    alarm = GaugeMetricFamily(
        "amedi_measure_bad", "1 when a measure is beyond its threshold or unknown.", labels=["measure"]
    )
    threshold = GaugeMetricFamily(
        "amedi_measure_threshold", "Up to where a measure is well.", labels=["measure"]
    )
    for measure in health.measures:
        alarm.add_metric([measure.name], float(measure.is_bad))
        threshold.add_metric([measure.name], measure.threshold)
        if not measure.fault:
            # A series that comes and goes would be no series: 0 where nothing waits.
            yield _gauge(f"amedi_{measure.name}", measure.sign.explanation, measure.value or 0.0)
    yield from (alarm, threshold)


def _counts() -> Iterator[Metric]:
    """Channels that are switched on are there from the start, or their first message would be no change."""
    counts = meters.read()
    sends = CounterMetricFamily(
        "amedi_sends", "Calls to providers that have ended.", labels=["channel", "outcome"]
    )
    none_yet = {(channel, outcome): 0.0 for channel in settings.REMINDER_CHANNELS for outcome in OUTCOMES}
    for labels, count in sorted((none_yet | counts.sends).items()):
        sends.add_metric(labels, count)
    lateness = HistogramMetricFamily(
        "amedi_lateness_seconds",
        "From when a message was due to when it had left, of what providers accepted.",
        labels=["channel"],
    )
    on_time = {channel: Lateness() for channel in settings.REMINDER_CHANNELS}
    for channel, late in sorted((on_time | counts.lateness).items()):
        lateness.add_metric([channel], _cumulative(late), late.total_seconds)
    yield from (sends, lateness)


def _cumulative(late: Lateness) -> list[tuple[str, float]]:
    # By value: counts of an earlier version's bounds still stand where they belong.
    return [
        (str(float(bound)), sum(count for label, count in late.counts.items() if float(label) <= bound))
        for bound in BUCKETS
    ] + [(BEYOND, sum(late.counts.values()))]


def _queue_depth(now: datetime) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "amedi_queue_depth",
        f"Messages by state, counted up to {depth.MOST}.",
        labels=["channel", "status"],
    )
    for labels, rows in sorted(depth.by_channel_and_state(now).items()):
        family.add_metric(labels, rows)
    yield family


def _planned() -> Iterator[Metric]:
    if (planned := depth.planned()) is not None:
        yield _gauge("amedi_reminders_planned", "Reminders that wait, by Postgres' own statistics.", planned)
