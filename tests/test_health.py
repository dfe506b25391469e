"""Whether the process lives, and whether messages go out and answers come in: for whoever watches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta

import psycopg
import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.test import Client

from appointments import clock
from reminders import health
from reminders.models import Heartbeat, Mark, ReminderRule
from tests.engine import database_url
from tests.factories import MARK, PHONE_MARK, agree, make_appointment, make_delivery, only_rules, soon
from whatsapp.models import QuarantinedItem, Template, WebhookPost

NOWHERE = "postgresql://postgres@127.0.0.1:1/nowhere"


@pytest.fixture
def ticking(db: None) -> datetime:
    """The present, in which the cluster has just ticked and nothing waits."""
    now = clock.now()
    Mark.objects.all().delete()
    Heartbeat.beat("tick", now)
    return now


def bad(now: datetime) -> set[str]:
    return {measure.name for measure in health.measure(now).measures if measure.is_bad}


def ago(now: datetime, **lapse: float) -> datetime:
    return now - timedelta(**lapse)


def make_post(**fields: object) -> WebhookPost:
    post = WebhookPost.objects.create(body=b"{}", sha256=os.urandom(32).hex())
    WebhookPost.objects.filter(pk=post.pk).update(**fields)
    return post


# --- /healthz: no database, which pytest would not let through here anyway ------


@pytest.mark.parametrize("method", ["get", "head"])
def test_that_the_process_lives_is_known_without_a_database(method):
    response = getattr(Client(), method)("/healthz")
    assert (response.status_code, response.headers["Cache-Control"]) == (200, "no-store")


def test_a_post_is_no_way_to_ask():
    assert Client(enforce_csrf_checks=True).post("/healthz").status_code == 405


# --- The measures -------------------------------------------------------------


def test_a_fresh_installation_in_which_nothing_is_planned_is_well(db):
    found = health.measure(clock.now() + timedelta(days=1))
    assert found.is_well
    assert found.is_ready


def test_a_first_visit_that_nobody_ever_ticks_for_is_missed_after_three_minutes(db):
    Mark.objects.all().delete()
    make_delivery(next_attempt_at=soon(48), scheduled_for=soon(48))
    now = clock.now()
    assert "tick_age_seconds" not in bad(now + timedelta(minutes=2))
    assert bad(now + timedelta(minutes=4)) == {"tick_age_seconds"}


def test_all_is_well_while_it_ticks(ticking):
    make_delivery(next_attempt_at=ticking)
    assert bad(ticking) == set()


@pytest.mark.parametrize(("age", "found"), [(179, set()), (181, {"tick_age_seconds"})])
def test_a_tick_is_missed_after_three_minutes(ticking, age, found):
    Heartbeat.beat("tick", ago(ticking, seconds=age))
    assert bad(ticking) == found


@pytest.mark.parametrize(("late", "found"), [(4, set()), (6, {"oldest_unsent_seconds"})])
def test_what_is_due_and_does_not_leave_is_bad_after_five_minutes(ticking, late, found):
    make_delivery(next_attempt_at=ago(ticking, minutes=late))
    make_delivery(next_attempt_at=ticking)
    assert bad(ticking) == found


def test_what_waits_for_the_morning_is_not_late(ticking):
    make_delivery(scheduled_for=ago(ticking, hours=3), next_attempt_at=ticking + timedelta(hours=5))
    assert bad(ticking) == set()


@pytest.mark.parametrize(("overdue", "found"), [(239, set()), (241, {"overdue_lease_seconds"})])
def test_a_lease_that_nobody_gives_back_is_bad_after_two_more_of_its_kind(ticking, overdue, found):
    make_delivery(status="sending", attempt=1, lease_until=ago(ticking, seconds=overdue))
    assert bad(ticking) == found


@pytest.mark.parametrize(("beyond", "found"), [(299, set()), (301, {"oldest_unknown_seconds"})])
def test_an_unknown_row_is_bad_five_minutes_after_its_wait(ticking, beyond, found):
    make_delivery(status="unknown", attempt=1, next_attempt_at=ago(ticking, seconds=beyond))
    assert bad(ticking) == found


@pytest.mark.parametrize(("age", "found"), [(119, set()), (121, {"webhook_lag_seconds"})])
def test_an_answer_of_a_patient_waits_two_minutes_at_most(ticking, age, found):
    make_post(received_at=ago(ticking, seconds=age))
    make_post(received_at=ago(ticking, days=1), processed_at=ticking)
    assert bad(ticking) == found


@pytest.mark.parametrize(("age", "found"), [(4, set()), (6, {"planner_lag_seconds"})])
def test_a_change_waits_five_minutes_for_its_plan_at_most(ticking, age, found):
    Mark.objects.create(subject="patient", subject_id="1", at=ago(ticking, minutes=age))
    assert bad(ticking) == found


def test_a_change_that_is_put_off_is_bad_once_it_failed_often(ticking):
    put_off = {"at": ago(ticking, hours=1), "not_before": ticking + timedelta(minutes=1)}
    Mark.objects.create(subject="appointment", subject_id="a", tries=1, **put_off)
    assert bad(ticking) == set()
    Mark.objects.create(subject="appointment", subject_id="b", tries=3, **put_off)
    assert bad(ticking) == {"failing_plans"}


def test_a_post_that_stops_every_worker_asks_for_a_person_and_is_no_delay(ticking):
    make_post(received_at=ago(ticking, hours=1), claims=WebhookPost.MOST_CLAIMS)
    assert bad(ticking) == {"webhook_posts_given_up"}


def test_what_could_not_be_read_asks_for_a_person(ticking):
    post = make_post(processed_at=ticking)
    QuarantinedItem.objects.create(post=post, path="entry.0", reason="unreadable", created_at=ticking)
    assert bad(ticking) == {"quarantined_items"}


def make_template(name: str, status: str, now: datetime) -> None:
    account = django_settings.WHATSAPP_BUSINESS_ACCOUNT_ID
    Template.objects.create(
        business_account_id=account, name=name, language="es", status=status, category="UTILITY", known_at=now
    )


def test_a_paused_template_is_bad_where_a_rule_needs_it(ticking):
    ReminderRule.objects.all().delete()
    Mark.objects.all().delete()
    make_template("appointment_reminder_24h", "PAUSED", ticking)
    make_template("appointment_reminder_2h", "APPROVED", ticking)
    assert bad(ticking) == set()
    only_rules(-1440)
    assert bad(ticking) == {"templates_withheld"}
    ReminderRule.objects.update(channels=["email"])
    Mark.objects.all().delete()
    assert bad(ticking) == set()


@pytest.mark.django_db(transaction=True)
def test_an_open_transaction_is_seen_with_its_age():
    with psycopg.connect(database_url()) as other:
        other.execute("SELECT 1")
        [found] = [m for m in health.measure(clock.now()).measures if m.name == "open_transaction_seconds"]
    assert found.value is not None
    assert 0 < found.value < 60
    assert found.threshold == 600
    assert not found.is_bad


def test_what_cannot_be_measured_is_bad_and_keeps_no_other_from_it(ticking, no_patient_in_the_logs):
    Heartbeat.beat("tick", ago(ticking, minutes=10))
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE whatsapp_quarantineditem RENAME TO elsewhere")
    found = {measure.name: measure for measure in health.measure(ticking).measures}
    assert "migrate" in found["quarantined_items"].what_to_do
    assert {name for name in found if found[name].is_bad} == {"quarantined_items", "tick_age_seconds"}
    assert any("health measure=quarantined_items failed" in line for line in no_patient_in_the_logs.lines)


@pytest.mark.django_db(transaction=True)
def test_a_question_that_takes_too_long_is_given_up():
    with psycopg.connect(database_url()) as other:
        other.execute("LOCK TABLE whatsapp_quarantineditem IN ACCESS EXCLUSIVE MODE")
        found = health.measure(clock.now())
    assert [measure.name for measure in found.measures if measure.fault] == ["quarantined_items"]


# --- /readyz ------------------------------------------------------------------


def get(path: str = "/readyz", **environment: str):
    return Client(SERVER_NAME="localhost").get(path, **environment)


def test_ready_says_each_measure_with_its_threshold(ticking):
    Heartbeat.beat("tick", ago(ticking, seconds=30))
    response = get()
    measures = response.json()["measures"]
    assert (response.status_code, response.headers["Cache-Control"]) == (200, "no-store")
    assert all(measure["ok"] for measure in measures.values())
    assert 30 <= measures["tick_age_seconds"]["value"] < 60
    assert measures["tick_age_seconds"]["threshold"] == 180


def test_not_ready_says_what_it_means_and_what_to_do(ticking):
    Heartbeat.beat("tick", ago(ticking, minutes=12))
    response = get()
    found = response.json()["measures"]["tick_age_seconds"]
    assert (response.status_code, response.json()["ready"], found["ok"]) == (503, False, False)
    assert "desde hace 12 minutos" in found["sentence"]
    assert "systemctl restart amedi-cluster" in found["what_to_do"]


def test_what_only_asks_for_a_person_does_not_take_the_site_away(ticking):
    make_post(received_at=ago(ticking, hours=1), claims=WebhookPost.MOST_CLAIMS)
    response = get()
    assert (response.status_code, response.json()["ready"], response.json()["well"]) == (200, True, False)


def test_nobody_is_named(ticking):
    visit = make_appointment(at=soon())
    agree(visit.patient)
    make_delivery(appointment=visit, next_attempt_at=ago(ticking, minutes=10))
    told = get().content.decode()
    assert not [mark for mark in (MARK, PHONE_MARK, str(visit.pk)) if mark in told]


def test_without_a_database_it_says_so_and_nothing_else():
    script = (
        "import django; django.setup()\n"
        "from django.test import Client\n"
        "for path in ('/healthz', '/readyz', '/metrics'):\n"
        "    response = Client(SERVER_NAME='localhost').get(path)\n"
        "    print(response.status_code, response.content.decode().replace('\\n', ' '))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=django_settings.BASE_DIR,
        env=os.environ | {"DATABASE_URL": NOWHERE, "DJANGO_SETTINGS_MODULE": "amedi.settings"},
        capture_output=True,
        text=True,
        check=True,
    )
    lives, ready, metrics = run.stdout.splitlines()
    assert lives.startswith("200 ok")
    assert ready.startswith("503 {")
    measures = json.loads(ready.removeprefix("503 "))["measures"]
    assert list(measures) == ["database_seconds"]
    assert "no contesta" in measures["database_seconds"]["sentence"]
    assert metrics.startswith("503 La base de datos no contesta")
    assert "Traceback" not in run.stdout + run.stderr
    assert "127.0.0.1" not in run.stdout


# --- Who may ask --------------------------------------------------------------

HERE = {"REMOTE_ADDR": "127.0.0.1"}
PATHS = pytest.mark.parametrize("path", ["/readyz", "/metrics"])


@pytest.fixture
def token(settings) -> Callable[[str], None]:
    def be(value: str) -> None:
        settings.METRICS_TOKEN = value

    be("")
    return be


@PATHS
@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
def test_without_a_token_this_machine_may_ask(ticking, token, path, address):
    assert get(path, REMOTE_ADDR=address).status_code == 200


@PATHS
@pytest.mark.parametrize(
    "environment",
    [
        {"REMOTE_ADDR": "192.0.2.7"},
        {"REMOTE_ADDR": "::ffff:192.0.2.7"},
        {"REMOTE_ADDR": ""},
        {"REMOTE_ADDR": "localhost"},
        HERE | {"HTTP_X_FORWARDED_FOR": "127.0.0.1"},
        HERE | {"HTTP_X_FORWARDED_PROTO": "https"},
        HERE | {"HTTP_FORWARDED": "for=192.0.2.7"},
        HERE | {"HTTP_X_REAL_IP": "192.0.2.7"},
        HERE | {"HTTP_VIA": "1.1 proxy"},
        HERE | {"HTTP_HOST": "citas.example.org"},
        HERE | {"HTTP_HOST": "citas.example.org:8000"},
    ],
)
def test_without_a_token_there_is_no_such_page_for_others(settings, token, path, environment):
    settings.ALLOWED_HOSTS = ["*"]
    assert get(path, **environment).status_code == 404


@PATHS
def test_with_a_token_only_the_token_counts(ticking, token, path):
    token("a-token-for-tests-0123456789-abcdef")
    far = {"REMOTE_ADDR": "192.0.2.7", "HTTP_X_FORWARDED_FOR": "192.0.2.7"}
    assert (
        get(path, **far, HTTP_AUTHORIZATION="Bearer a-token-for-tests-0123456789-abcdef").status_code == 200
    )
    for wrong in ("Bearer a-token", "Bearer ", "Basic a-token-for-tests-0123456789-abcdef", "Bearer ñ", ""):
        assert get(path, **far, HTTP_AUTHORIZATION=wrong).status_code == 404
    assert get(path, **HERE).status_code == 404
    assert get(f"{path}?token=a-token-for-tests-0123456789-abcdef", **HERE).status_code == 404


@PATHS
def test_it_is_only_read(ticking, token, path):
    client = Client(SERVER_NAME="localhost", enforce_csrf_checks=True)
    assert client.post(path).status_code == 405
    assert client.post(path, REMOTE_ADDR="192.0.2.7").status_code == 404
    assert client.head(path).status_code == 200
