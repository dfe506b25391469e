"""One tap on a card calls the verb, once, for one's own visits, and says what came of it."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from appointments import booking
from appointments.models import Appointment, AppointmentHistory, Doctor
from reminders.room.actions import ACTIONS, IF_MISTAKEN, OFFERED
from tests.factories import make_appointment, make_doctor
from tests.room import make_desk

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def now(set_clock):
    return set_clock("2026-09-17T09:30")


@pytest.fixture
def doctor() -> Doctor:
    return make_doctor()


@pytest.fixture
def desk(doctor: Doctor) -> User:
    return make_desk(doctor)


@pytest.fixture
def client(desk: User) -> Client:
    client = Client()
    client.force_login(desk)
    return client


@pytest.fixture
def visit(doctor: Doctor) -> Appointment:
    return make_appointment(doctor=doctor)


def tap(client: Client, visit: Appointment, action: str) -> dict[str, object]:
    response = client.post(f"/sala/citas/{visit.pk}/{action}/", headers={"X-Room": "again"})
    assert response.status_code == 200
    visit.refresh_from_db()
    return response.json()


@pytest.mark.parametrize(
    ("action", "status", "words"),
    [
        ("confirmo", "confirmed", "Confirmada"),
        ("llego", "checked_in", "En sala de espera"),
        ("paso", "in_consultation", "En consulta"),
        ("atendida", "completed", "Atendida"),
        ("no-asistio", "no_show", "No asistió"),
    ],
)
def test_a_tap_calls_its_verb_in_the_name_of_whoever_tapped(action, status, words, client, desk, visit):
    outcome = tap(client, visit, action)
    assert visit.status == status
    assert outcome == {"sentence": f"La cita de las 10:00 a. m. quedó en «{words}».", "isRefused": False}
    step = AppointmentHistory.objects.get(to_status=status)
    assert (step.source, step.actor) == ("admin", desk)


@pytest.mark.parametrize("action", ACTIONS)
def test_a_second_tap_changes_nothing_and_is_no_fault(action, client, visit):
    tap(client, visit, action)
    count = AppointmentHistory.objects.count()
    outcome = tap(client, visit, action)
    assert "ya estaba en" in str(outcome["sentence"])
    assert not outcome["isRefused"]
    assert AppointmentHistory.objects.count() == count


def test_what_no_longer_applies_says_so_with_the_present_state(client, visit):
    booking.cancel(visit, actor=booking.SYSTEM)
    outcome = tap(client, visit, "llego")
    assert outcome["isRefused"]
    assert "ahora está en «Cancelada»" in str(outcome["sentence"])
    assert visit.status == "cancelled"


def test_a_wrong_tap_is_corrected_where_the_verbs_allow_it(client, visit):
    tap(client, visit, "atendida")
    tap(client, visit, "no-asistio")
    assert visit.status == "no_show"
    tap(client, visit, "atendida")
    assert visit.status == "completed"


def test_a_no_show_whose_time_was_given_away_says_so(client, doctor, visit):
    tap(client, visit, "no-asistio")
    make_appointment(doctor=doctor)
    outcome = tap(client, visit, "atendida")
    assert outcome["isRefused"]
    assert "a las 10:00 a. m. el médico ya tiene otra cita" in str(outcome["sentence"])
    assert visit.status == "no_show"


@pytest.mark.parametrize("status", Appointment.Status.values)
def test_a_card_offers_only_what_the_verb_then_does(status, client, doctor):
    for action in OFFERED[status]:
        visit = make_appointment(doctor=doctor, is_overbooked=True)
        Appointment.objects.filter(pk=visit.pk).update(status=status)
        tap(client, visit, action.name)
        assert visit.status == action.result
    assert status == "scheduled" or IF_MISTAKEN[status]


@pytest.mark.parametrize("action", ACTIONS)
def test_another_doctors_visit_does_not_exist(action, client):
    foreign = make_appointment()
    for headers in ({}, {"X-Room": "again"}):
        assert client.post(f"/sala/citas/{foreign.pk}/{action}/", headers=headers).status_code == 404
    foreign.refresh_from_db()
    assert foreign.status == "scheduled"


def test_an_unknown_action_does_not_exist_and_an_address_alone_does_nothing(client, visit):
    assert client.post(f"/sala/citas/{visit.pk}/cancelar/").status_code == 404
    assert client.get(f"/sala/citas/{visit.pk}/llego/").status_code == 405
    visit.refresh_from_db()
    assert visit.status == "scheduled"


def test_a_tap_from_another_site_is_refused(desk, visit):
    client = Client(enforce_csrf_checks=True)
    client.force_login(desk)
    assert client.post(f"/sala/citas/{visit.pk}/llego/").status_code == 403
    visit.refresh_from_db()
    assert visit.status == "scheduled"


def test_a_tap_after_the_login_ran_out_leads_to_it_and_back_to_the_room(visit):
    response = Client().post(f"/sala/citas/{visit.pk}/llego/")
    assert (response.status_code, response["Location"]) == (302, "/admin/login/?next=/sala/")


def test_without_javascript_a_tap_comes_back_to_its_card_with_the_sentence(client, doctor, visit):
    response = client.post(f"/sala/citas/{visit.pk}/llego/", {"medico": doctor.pk})
    assert response["Location"] == f"/sala/?medico={doctor.pk}#cita-{visit.pk}"
    page = client.get(response["Location"]).content.decode()
    assert "La cita de las 10:00 a. m. quedó en «En sala de espera»." in page
