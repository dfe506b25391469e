"""What is counted: added up by the processes that send, read from the database by the one that is asked."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest
from django.db import connection
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from appointments import clock
from reminders import depth, meters
from reminders.meters import Ended
from reminders.models import Heartbeat, Meter
from tests.engine import database_url, due_visit, settle
from tests.factories import MARK, PHONE_MARK, agree, make_appointment, make_delivery, soon


@pytest.fixture(autouse=True)
def nothing_counted_yet(db):
    """A dispatcher's thread counts in a connection of its own, which no test's rollback reaches."""
    Meter.objects.all().delete()


Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape() -> Series:
    response = Client(SERVER_NAME="localhost").get("/metrics")
    assert response.status_code == 200
    assert response.headers["Cache-Control"] == "no-store"
    families = text_string_to_metric_families(response.content.decode())
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def value(series: Series, name: str, **labels: str) -> float:
    return series[name, frozenset(labels.items())]


def accepted(late: float = 0.5, channel: str = "whatsapp") -> Ended:
    return Ended(channel, "accepted", late)


def refused() -> Ended:
    return Ended("whatsapp", "refused", None)


# --- Counting -----------------------------------------------------------------


@pytest.mark.django_db
def test_calls_are_counted_by_channel_and_outcome():
    meters.note([accepted(), accepted(), refused()])
    meters.note([accepted(), accepted(channel="email")])
    series = scrape()
    assert value(series, "amedi_sends_total", channel="whatsapp", outcome="accepted") == 3
    assert value(series, "amedi_sends_total", channel="whatsapp", outcome="refused") == 1
    assert value(series, "amedi_sends_total", channel="email", outcome="accepted") == 1


@pytest.mark.django_db
def test_a_channel_that_is_on_is_there_before_its_first_message():
    series = scrape()
    assert value(series, "amedi_sends_total", channel="whatsapp", outcome="lost") == 0
    assert value(series, "amedi_lateness_seconds_count", channel="whatsapp") == 0
    assert value(series, "amedi_queue_depth", channel="whatsapp", status="due") == 0


@pytest.mark.django_db
def test_lateness_is_a_histogram_from_a_second_to_hours():
    meters.note([accepted(late) for late in (-0.2, 0.5, 1.0, 1.5, 3000, 200_000)])
    series = scrape()

    def bucket(bound: str) -> float:
        return value(series, "amedi_lateness_seconds_bucket", channel="whatsapp", le=bound)

    assert [bucket(bound) for bound in ("1.0", "2.0", "1800.0", "3600.0", "86400.0", "+Inf")] == [
        3, 4, 4, 5, 5, 6,
    ]  # fmt: skip
    assert value(series, "amedi_lateness_seconds_count", channel="whatsapp") == 6
    assert value(series, "amedi_lateness_seconds_sum", channel="whatsapp") == 203_003


@pytest.mark.django_db
def test_nothing_ended_asks_the_database_nothing(django_assert_num_queries):
    with django_assert_num_queries(0):
        meters.note([])


@pytest.mark.django_db
def test_a_batch_is_one_statement(django_assert_num_queries):
    with django_assert_num_queries(1):
        meters.note([accepted(late) for late in range(500)] + [refused()])


@pytest.mark.django_db(transaction=True)
def test_workers_that_record_at_once_lose_nothing_and_never_stop_each_other():
    workers, batches = 6, 40
    ready = threading.Barrier(workers)

    def work(number: int) -> None:
        try:
            ready.wait()
            for _ in range(batches):
                # The same series in different orders: who locks as they come would deadlock.
                ended = [accepted(), refused(), accepted(100), accepted(channel="email")]
                meters.note(ended if number % 2 else ended[::-1])
        finally:
            connection.close()

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(workers)))
    counts = meters.read()
    assert counts.sends["whatsapp", "accepted"] == 2 * workers * batches
    assert counts.sends["whatsapp", "refused"] == workers * batches
    assert counts.sends["email", "accepted"] == workers * batches


@pytest.mark.django_db(transaction=True)
def test_a_count_waits_for_no_transaction_of_another_worker():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        [own] = cursor.fetchone()
    others = [psycopg.connect(database_url()) for _ in range(meters.PARTS)]
    other = next(other for other in others if (other.info.backend_pid - own) % meters.PARTS)
    Meter.objects.create(
        name="sends",
        channel="whatsapp",
        label="refused",
        part=other.info.backend_pid % meters.PARTS,
        value=1,
    )
    other.execute("UPDATE reminders_meter SET value = value + 1")
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '1s'")
        meters.note([refused()])
        cursor.execute("RESET lock_timeout")
    for each in others:
        each.close()
    assert meters.read().sends == {("whatsapp", "refused"): 2}


@pytest.mark.django_db(transaction=True)
def test_a_count_that_fails_costs_nobody_the_outcome(no_patient_in_the_logs):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE reminders_meter RENAME TO elsewhere")
    try:
        meters.note([accepted()])
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE elsewhere RENAME TO reminders_meter")
    assert any("meters calls=1 not counted" in line for line in no_patient_in_the_logs.lines)


@pytest.mark.django_db(transaction=True)
def test_what_the_engine_sends_is_counted_once(sandbox):
    due_visit()
    settle(sandbox)
    series = scrape()
    assert value(series, "amedi_sends_total", channel="whatsapp", outcome="accepted") == 1
    assert value(series, "amedi_lateness_seconds_count", channel="whatsapp") == 1
    assert 0 < value(series, "amedi_tick_age_seconds") < 60


# --- What stands in the queues --------------------------------------------------


@pytest.mark.django_db
def test_the_queue_is_told_by_channel_and_state():
    now = clock.now()
    make_delivery(next_attempt_at=now - timedelta(minutes=20))
    make_delivery(next_attempt_at=now - timedelta(seconds=1), channel="email")
    make_delivery(next_attempt_at=now + timedelta(minutes=30))
    make_delivery(next_attempt_at=now + timedelta(days=2))
    make_delivery(status="sending", attempt=1, lease_until=now)
    make_delivery(status="unknown", attempt=1)
    make_delivery(status="sent")
    counted = {pair: rows for pair, rows in depth.by_channel_and_state(now).items() if rows}
    assert counted == {
        ("whatsapp", "due"): 1,
        ("email", "due"): 1,
        ("whatsapp", "next_hour"): 1,
        ("whatsapp", "sending"): 1,
        ("whatsapp", "unknown"): 1,
    }
    assert 1190 < value(scrape(), "amedi_oldest_unsent_seconds") < 1260


@pytest.mark.django_db
def test_what_is_planned_for_later_is_known_without_counting_it():
    for hours in (30, 40, 50):
        make_delivery(next_attempt_at=soon(hours))
    make_delivery(status="sent")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE reminders_reminderdelivery")
    assert value(scrape(), "amedi_reminders_planned") == 3


@pytest.mark.django_db
def test_marks_posts_and_calls_are_told():
    # The booking itself has left a mark, and nobody plans here.
    make_delivery(status="failed", reason="refused")
    Heartbeat.beat("tick", clock.now())
    series = scrape()
    assert value(series, "amedi_call_list_size") == 1
    assert value(series, "amedi_planner_marks_waiting") > 0
    assert value(series, "amedi_planner_lag_seconds") > 0
    assert value(series, "amedi_webhook_posts_unprocessed") == 0
    assert value(series, "amedi_webhook_lag_seconds") == 0


@pytest.mark.django_db
def test_an_alarm_needs_no_threshold_of_its_own():
    Heartbeat.beat("tick", clock.now() - timedelta(minutes=10))
    series = scrape()
    assert value(series, "amedi_measure_bad", measure="tick_age_seconds") == 1
    assert value(series, "amedi_measure_bad", measure="webhook_lag_seconds") == 0
    assert value(series, "amedi_measure_threshold", measure="tick_age_seconds") == 180


@pytest.mark.django_db
def test_a_part_that_fails_leaves_the_others(no_patient_in_the_logs):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE reminders_reply RENAME TO elsewhere")
    series = scrape()
    assert ("amedi_queue_depth", frozenset({("channel", "whatsapp"), ("status", "due")})) not in series
    assert value(series, "amedi_measure_bad", measure="oldest_unsent_seconds") == 1
    assert value(series, "amedi_planner_marks_waiting") >= 0
    assert any("metrics part failed" in line for line in no_patient_in_the_logs.lines)


@pytest.mark.django_db
def test_no_label_names_a_patient_or_a_row():
    visit = make_appointment(at=soon())
    agree(visit.patient)
    row = make_delivery(appointment=visit, status="failed", reason="refused")
    told = Client(SERVER_NAME="localhost").get("/metrics").content.decode()
    for private in (MARK, PHONE_MARK, visit.patient.phone, str(visit.pk), str(row.pk)):
        assert private not in told
    labels = {name for _, labels in scrape() for name, _ in labels}
    assert labels == {"channel", "outcome", "status", "measure", "le"}
