"""When nothing ticks, or the queue stands still, every page says so in red."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from appointments import clock
from reminders import health
from reminders.models import Heartbeat
from tests.browser import scrolls_sideways, serious_faults
from tests.factories import caracas, make_appointment, make_delivery, make_doctor, make_user

NOT_LEAVING = "Los recordatorios no están saliendo"


def ticked(**ago: float) -> None:
    Heartbeat.beat("tick", clock.now() - timedelta(**ago))


@pytest.fixture
def secretary(db: None) -> Client:
    user = make_user()
    make_doctor(user=user)
    client = Client()
    client.force_login(user)
    return client


# --- The sentence ---------------------------------------------------------------


def test_while_it_ticks_nothing_is_said(db):
    ticked(seconds=170)
    make_delivery(next_attempt_at=clock.now() - timedelta(minutes=4))
    assert health.alarm(clock.now()) == ""


def test_a_fresh_installation_is_no_reason_for_an_alarm(db):
    assert health.alarm(clock.now()) == ""


@pytest.mark.parametrize(
    ("last", "told"),
    [
        ("2026-09-17T09:48", "las 9:48 a. m."),
        ("2026-09-17T01:05", "la 1:05 a. m."),
        ("2026-09-16T18:30", "el 16/09/2026 a las 6:30 p. m."),
    ],
)
def test_nothing_that_ticks_is_said_with_since_when(set_clock, last, told):
    Heartbeat.beat("tick", caracas(last))
    assert health.alarm(set_clock("2026-09-17T10:00")) == (
        f"Los recordatorios no están saliendo: ningún proceso los envía desde {told} "
        "Avise a quien opera el sistema."
    )


def test_a_queue_that_stands_still_is_said_though_it_ticks(set_clock):
    now = set_clock("2026-09-17T10:00")
    Heartbeat.beat("tick", now)
    visit = make_appointment(at="2026-09-17T14:00")
    make_delivery(appointment=visit, next_attempt_at=caracas("2026-09-17T07:58"))
    assert health.alarm(now) == (
        "Los recordatorios no están saliendo a tiempo: el más atrasado espera desde las 7:58 a. m. "
        "Avise a quien opera el sistema."
    )


def test_the_sentence_stays_the_same_while_it_lasts(set_clock):
    """A page that refreshes itself would have a screen reader say it again and again."""
    now = set_clock("2026-09-17T10:00")
    Heartbeat.beat("tick", caracas("2026-09-17T09:48"))
    assert health.alarm(now) == health.alarm(now + timedelta(minutes=30))


def test_an_installation_that_never_ticked_is_told_of_once_it_is_missed(db):
    make_delivery()
    assert NOT_LEAVING in health.alarm(clock.now() + timedelta(minutes=4))


def test_it_costs_one_query(db, django_assert_num_queries):
    ticked(minutes=12)
    now = clock.now()
    with django_assert_num_queries(1):
        health.alarm(now)


# --- On the pages -----------------------------------------------------------------

PAGES = [
    "/admin/",
    "/admin/appointments/appointment/",
    "/admin/appointments/appointment/add/",
    "/admin/appointments/patient/add/?_popup=1",
    "/admin/password_change/",
]


@pytest.mark.complaint(
    "Nothing is sent, because nothing runs, and no screen says so.",
    about="clocks",
    source="LibreBooking/librebooking #269, #1046; calcom/cal.diy #7739, #28811; frappe/erpnext PR#21432",
)
@pytest.mark.parametrize("path", PAGES)
def test_every_page_of_the_admin_says_it(secretary, path):
    ticked(minutes=12)
    page = secretary.get(path).content.decode()
    assert f'role="alert">{NOT_LEAVING}' in page
    assert "reminders/engine_alarm.css" in page


@pytest.mark.parametrize("path", PAGES)
def test_no_page_says_anything_while_all_is_well(secretary, path):
    ticked(seconds=5)
    assert "engine-alarm" not in secretary.get(path).content.decode()


def test_whoever_is_not_logged_in_is_told_nothing(db):
    ticked(minutes=12)
    page = Client().get("/admin/login/").content.decode()
    assert "engine-alarm" not in page
    assert NOT_LEAVING not in page


def test_the_room_is_one_tap_away(secretary):
    ticked(seconds=5)
    assert '<a href="/sala/">Sala</a>' in secretary.get("/admin/").content.decode()


@pytest.mark.django_db(transaction=True)
def test_the_alarm_is_read_by_everybody(live_server: LiveServer, page: Page):
    ticked(minutes=12)
    user = make_user(is_superuser=True)
    page.goto(f"{live_server.url}/admin/")
    page.get_by_label("Nombre de usuario").fill(user.username)
    page.get_by_label("Contraseña").fill("secret-for-tests")
    page.get_by_role("button").last.click()
    expect(page.get_by_role("alert")).to_contain_text(NOT_LEAVING)
    expect(page.get_by_role("alert")).to_be_in_viewport()
    expect(page.get_by_role("link", name="Sala", exact=True)).to_be_visible()
    assert not scrolls_sideways(page)
    assert serious_faults(page) == []
