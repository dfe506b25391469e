"""What a patient's answer by the page does, whatever became of the visit meanwhile."""

from __future__ import annotations

import threading
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.test import Client

from appointments import booking
from appointments.models import Appointment, AppointmentHistory
from reminders import links
from tests.factories import make_appointment, make_delivery, soon


def page_of(visit: Appointment) -> str:
    return urlsplit(links.visit_url(visit)).path


def history(visit: Appointment) -> list[tuple[str, str]]:
    rows = AppointmentHistory.objects.filter(appointment=visit, from_status__gt="")
    return list(rows.values_list("to_status", "source"))


def move(visit: Appointment) -> None:
    booking.reschedule(
        visit, date=visit.date + timedelta(days=1), start_time=visit.start_time, actor=booking.SYSTEM
    )


@pytest.mark.django_db
class TestAnswers:
    """In one transaction, with the clock a day before the visit."""

    @pytest.fixture(autouse=True)
    def a_day_before(self, set_clock):
        return set_clock("2026-09-16T09:00")

    @pytest.fixture
    def visit(self) -> Appointment:
        return make_appointment()

    @pytest.fixture
    def client(self) -> Client:
        """As a webview that keeps no cookie, and with the check that tests usually skip."""
        return Client(enforce_csrf_checks=True)

    def test_confirming_shows_the_page_again_with_the_new_state(self, client, visit):
        response = client.post(page_of(visit))
        assert (response.status_code, response["Location"]) == (302, page_of(visit))
        assert "Su cita está confirmada." in client.get(response["Location"]).content.decode()
        assert history(visit) == [("confirmed", "email")]

    def test_confirming_twice_changes_nothing_more(self, client, visit):
        first, second = client.post(page_of(visit)), client.post(page_of(visit))
        assert (first.status_code, first["Location"]) == (second.status_code, second["Location"])
        assert history(visit) == [("confirmed", "email")]

    def test_cancelling_asks_once_more(self, client, visit):
        asked = client.get(f"{page_of(visit)}cancelar/").content.decode()
        assert "¿Cancelar su cita?" in asked
        assert f'<form method="post" action="{page_of(visit)}cancelar/">' in asked
        assert f'href="{page_of(visit)}"' in asked
        assert history(visit) == []

    @pytest.mark.parametrize("status", ["scheduled", "confirmed"])
    def test_cancelling_shows_the_page_again_with_the_new_state(self, status, client, visit):
        Appointment.objects.filter(pk=visit.pk).update(status=status)
        response = client.post(f"{page_of(visit)}cancelar/")
        assert (response.status_code, response["Location"]) == (302, page_of(visit))
        assert "Esta cita está cancelada." in client.get(response["Location"]).content.decode()
        assert history(visit)[-1] == ("cancelled", "email")

    def test_cancelling_twice_changes_nothing_more(self, client, visit):
        for _ in range(2):
            response = client.post(f"{page_of(visit)}cancelar/")
            assert (response.status_code, response["Location"]) == (302, page_of(visit))
        assert history(visit) == [("cancelled", "email")]
        assert client.get(f"{page_of(visit)}cancelar/").status_code == 302

    @pytest.mark.parametrize(
        "status", ["confirmed", "checked_in", "in_consultation", "cancelled", "completed", "no_show"]
    )
    def test_a_late_confirmation_changes_nothing(self, status, client, visit):
        page = page_of(visit)
        Appointment.objects.filter(pk=visit.pk).update(status=status)
        before = history(visit)
        client.post(page)
        assert history(visit) == before

    @pytest.mark.parametrize("status", ["checked_in", "in_consultation", "cancelled", "completed", "no_show"])
    def test_a_late_cancellation_changes_nothing(self, status, client, visit):
        page = page_of(visit)
        Appointment.objects.filter(pk=visit.pk).update(status=status)
        before = history(visit)
        client.post(f"{page}cancelar/")
        assert history(visit) == before

    def test_a_visit_that_has_begun_is_not_cancelled_here(self, client, visit, set_clock):
        set_clock("2026-09-17T10:00")
        response = client.post(f"{page_of(visit)}cancelar/", follow=True)
        assert "Ya es la hora de su cita." in response.content.decode()
        assert history(visit) == []

    def test_who_is_late_may_still_say_that_they_come_until_the_end(self, client, visit, set_clock):
        set_clock("2026-09-17T10:29")
        client.post(page_of(visit))
        assert history(visit) == [("confirmed", "email")]

    def test_after_the_end_nothing_is_confirmed(self, client, visit, set_clock):
        set_clock("2026-09-17T10:30")
        assert client.post(page_of(visit)).status_code == 404
        assert history(visit) == []

    def test_an_old_button_never_confirms_the_new_time_but_the_new_one_does(self, client, visit):
        old = page_of(visit)
        move(visit)
        moved = history(visit)
        shown = client.post(old, follow=True).content.decode()
        assert "Su cita cambió." in shown
        assert history(visit) == moved
        client.post(page_of(visit))
        assert history(visit) == [*moved, ("confirmed", "email")]

    def test_an_old_button_never_cancels_the_new_time(self, client, visit):
        old = page_of(visit)
        move(visit)
        moved = history(visit)
        assert client.get(f"{old}cancelar/")["Location"] == old
        assert client.post(f"{old}cancelar/")["Location"] == old
        assert history(visit) == moved

    def test_a_button_from_before_a_cancellation_does_not_touch_the_reinstated_visit(self, client, visit):
        old = page_of(visit)
        booking.cancel(visit, actor=booking.SYSTEM)
        booking.reinstate(visit, actor=booking.SYSTEM)
        before = history(visit)
        client.post(old)
        client.post(f"{old}cancelar/")
        assert history(visit) == before

    @pytest.mark.parametrize(
        "kind", ["multipart/form-data", "application/x-www-form-urlencoded; charset=x", "nonsense"]
    )
    def test_it_does_not_matter_what_the_form_carries(self, kind, client, visit):
        client.generic("POST", page_of(visit), b"\xff\x00=%", content_type=kind)
        assert history(visit) == [("confirmed", "email")]


@pytest.mark.django_db(transaction=True)
def test_a_cancellation_by_the_page_calls_off_what_is_pending():
    visit = make_appointment(at=soon(30))
    row = make_delivery(appointment=visit)
    Client().post(f"{page_of(visit)}cancelar/")
    row.refresh_from_db()
    assert (row.status, row.reason) == ("cancelled", "visit_cancelled")


@pytest.mark.django_db(transaction=True)
def test_two_taps_at_once_are_one():
    visit = make_appointment(at=soon(30))
    page = page_of(visit)
    barrier = threading.Barrier(4)
    statuses: list[int] = []

    def tap() -> None:
        try:
            barrier.wait(timeout=20)
            statuses.append(Client().post(page).status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=tap) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert statuses == [302] * 4
    assert history(visit) == [("confirmed", "email")]
