"""The room's page: today's visits of one's own doctors by status, and what each card says."""

from __future__ import annotations

from datetime import time, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from appointments import booking
from appointments.models import Appointment, Doctor
from reminders.models import Heartbeat
from reminders.room import board
from tests.factories import (
    make_appointment,
    make_delivery,
    make_doctor,
    make_office,
    make_patient,
    make_user,
    only_rules,
)
from tests.room import make_desk

pytestmark = pytest.mark.django_db
PAGE = "/sala/"


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


def visit_at(hour: str, **fields: Any) -> Appointment:
    return make_appointment(at=f"2026-09-17T{hour}", **fields)


def cards(user: User, now: Any, section: str = "") -> list[board.Card]:
    read = board.read(user, doctor=None, now=now)
    return [card for part in read.sections if section in ("", part.name) for card in part.cards]


def test_each_visit_stands_in_the_section_of_its_status_in_the_order_of_the_day(desk, doctor, now):
    by_status = {
        "scheduled": visit_at("11:00", doctor=doctor), "confirmed": visit_at("10:00", doctor=doctor),
        "checked_in": visit_at("09:00", doctor=doctor), "in_consultation": visit_at("08:30", doctor=doctor),
        "completed": visit_at("08:00", doctor=doctor), "no_show": visit_at("07:30", doctor=doctor),
        "cancelled": visit_at("07:00", doctor=doctor),
    }  # fmt: skip
    for status, visit in by_status.items():
        Appointment.objects.filter(pk=visit.pk).update(status=status)
    read = board.read(desk, doctor=None, now=now)
    assert {part.name: [card.status for card in part.cards] for part in read.sections} == {
        "por-llegar": ["confirmed", "scheduled"],
        "en-sala": ["checked_in"],
        "en-consulta": ["in_consultation"],
        "cerradas": ["cancelled", "no_show", "completed"],
    }


def test_only_the_visits_of_ones_own_doctors_are_there(client, desk, doctor, now):
    mine = visit_at("10:00", doctor=doctor)
    visit_at("10:00", patient=make_patient(full_name="Ajena Zzyzx"))
    assert [card.id for card in cards(desk, now)] == [mine.pk]
    assert b"Ajena" not in client.get(PAGE).content


def test_the_doctor_sees_their_own_and_ops_see_all(now):
    doctor = make_doctor(user=make_user())
    mine, other = visit_at("10:00", doctor=doctor), visit_at("11:00")
    assert [card.id for card in cards(doctor.user, now)] == [mine.pk]
    assert [card.id for card in cards(make_user(is_superuser=True), now)] == [mine.pk, other.pk]


def test_today_is_the_day_that_it_now_is_at_the_office(desk, doctor, set_clock):
    far = make_office(time_zone="Asia/Tokyo")
    doctor.offices.add(far)
    now = set_clock("2026-09-17T20:30")  # the 18th in Tokyo
    here = visit_at("23:30", doctor=doctor, office=doctor.offices.exclude(pk=far.pk).get())
    there = make_appointment(at="2026-09-18T00:10", doctor=doctor, office=far)
    make_appointment(at="2026-09-17T22:00", doctor=doctor, office=far)
    make_appointment(at="2026-09-18T00:30", doctor=doctor, office=here.office)
    assert {card.id for card in cards(desk, now)} == {here.pk, there.pk}
    assert {card.hour for card in cards(desk, now)} == {"11:30 p. m.", "12:10 a. m."}


def test_one_doctor_can_be_chosen_and_a_foreign_one_does_not_exist(client, desk, doctor):
    other = make_doctor()
    other.staff.add(desk)
    visit_at("10:00", doctor=doctor)
    visit_at("11:00", doctor=other, patient=make_patient(doctor=other, full_name="Berta Zzyzx"))
    assert b"Berta" in client.get(PAGE).content
    assert b"Berta" not in client.get(PAGE, {"medico": doctor.pk}).content
    assert b"Berta" in client.get(PAGE, {"medico": other.pk}).content
    for foreign in (make_doctor().pk, "x"):
        assert client.get(PAGE, {"medico": foreign}).status_code == 404


def test_doctor_and_place_are_named_only_where_there_are_several(desk, doctor, now):
    visit_at("10:00", doctor=doctor)
    [card] = cards(desk, now)
    assert (card.doctor, card.place) == ("", "")
    other = make_doctor(name="Otra")
    other.staff.add(desk)
    visit_at("11:00", doctor=other)
    visit_at("12:00", doctor=doctor, modality="virtual")
    shown = [(card.doctor, card.place) for card in cards(desk, now)]
    assert shown[0] == (str(doctor), "Torre Médica, piso 3")
    assert shown[1][0] == "Dra. Otra"
    assert shown[2][1] == "Videollamada"


def test_who_is_late_stands_out(desk, doctor, now):
    visit_at("08:10", doctor=doctor)
    waiting = visit_at("09:00", doctor=doctor)
    visit_at("10:00", doctor=doctor)
    booking.check_in(waiting, actor=booking.SYSTEM)
    assert [card.late for card in cards(desk, now)] == ["1 h 20 min de retraso", "", ""]


def test_the_state_is_told_with_its_hour_and_by_which_way_it_was_confirmed(desk, doctor, now, set_clock):
    by_phone, by_desk, in_room, inside = (
        visit_at(hour, doctor=doctor) for hour in ("10:00", "11:00", "12:00", "13:00")
    )
    set_clock("2026-09-17T09:12")
    booking.confirm(by_phone, actor=booking.Actor(source="whatsapp"))
    booking.confirm(by_desk, actor=booking.Actor(source="admin", user_id=desk.pk))
    booking.check_in(in_room, actor=booking.SYSTEM)
    booking.start(inside, actor=booking.SYSTEM)
    assert [card.state for card in cards(desk, now)] == [
        "Confirmó por WhatsApp, 9:12 a. m.",
        "Confirmada, 9:12 a. m.",
        "Llegó 9:12 a. m., espera 18 min",
        "En consulta desde 9:12 a. m.",
    ]


def test_the_card_tells_the_reminder_of_the_visit_as_it_now_stands(desk, doctor, now):
    visit = visit_at("15:00", doctor=doctor)
    make_delivery(appointment=visit, status="read", called_at=now, read_at=now - timedelta(minutes=18))
    assert cards(desk, now)[0].reminder.words == "Leído 9:12 a. m."
    booking.reschedule(visit, date=visit.date, start_time=time(16), actor=booking.SYSTEM)
    assert cards(desk, now)[0].reminder.words == "Sin recordatorio"


def test_whom_no_message_reached_is_to_be_called_until_they_answer(client, desk, doctor, now):
    [rule] = only_rules(-120)
    visit = visit_at("11:00", doctor=doctor)
    make_delivery(appointment=visit, rule=rule, status="failed", reason="refused", called_at=now)
    [card] = cards(desk, now)
    assert (card.must_be_called, card.phone) == (True, visit.patient.phone)
    assert card.phone_as_told.startswith("0412-555")
    page = client.get(PAGE).content.decode()
    assert f'href="tel:{visit.patient.phone}"' in page
    assert "1 por llamar" in page
    booking.confirm(visit, actor=booking.SYSTEM)
    [card] = cards(desk, now)
    assert (card.must_be_called, card.phone) == (False, "")


def test_a_phone_number_stands_only_where_somebody_has_to_call(client, doctor):
    visit = visit_at("11:00", doctor=doctor)
    assert visit.patient.phone not in client.get(PAGE).content.decode()


def test_a_patient_without_a_phone_is_marked_all_the_same(client, desk, doctor, now):
    [rule] = only_rules(-120)
    visit = visit_at("11:00", doctor=doctor, patient=make_patient(doctor=doctor, phone=""))
    make_delivery(appointment=visit, rule=rule, status="skipped", reason="no_channel", channel="")
    assert cards(desk, now)[0].must_be_called
    assert "no hay teléfono anotado" in client.get(PAGE).content.decode()


def test_a_day_without_visits_says_so_and_leads_on(client):
    page = client.get(PAGE).content.decode()
    assert "Hoy no hay citas" in page
    assert reverse("admin:appointments_appointment_add") in page


@pytest.mark.parametrize("path", ["/sala/", "/sala/espera/"])
def test_whoever_acts_for_no_doctor_is_told_so(path):
    client = Client()
    client.force_login(make_user())
    response = client.get(path)
    assert response.status_code == 200
    assert "no trabaja para ningún médico" in response.content.decode()


@pytest.mark.parametrize("path", ["/sala/", "/sala/espera/?ver=turnos"])
def test_whoever_is_not_logged_in_comes_back_after_the_login(path):
    response = Client().get(path)
    assert response.status_code == 302
    assert response["Location"].startswith("/admin/login/?next=/sala/")


@pytest.mark.parametrize("path", ["/sala/", "/sala/espera/"])
def test_no_page_is_kept_and_only_our_own_files_run(path, client, settings):
    settings.SITE_URL, settings.ROOM_STREAM_URL = (
        "https://citas.example.org",
        "https://citas.example.org:8443",
    )
    response = client.get(path)
    assert response["Cache-Control"] == "no-store"
    policy = response["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "connect-src 'self' https://citas.example.org:8443;" in policy
    assert 'data-stream="https://citas.example.org:8443/sala/eventos/"' in response.content.decode()


def test_where_the_site_serves_the_stream_itself_its_address_is_a_path(client):
    assert 'data-stream="/sala/eventos/"' in client.get(PAGE).content.decode()


def test_an_open_page_gets_the_cards_alone(client, doctor):
    visit_at("11:00", doctor=doctor)
    page = client.get(PAGE, headers={"X-Room": "again"}).content.decode()
    assert 'class="card' in page
    assert "<html" not in page


def test_when_nothing_is_sent_the_room_says_so(client, now):
    Heartbeat.beat("tick", now - timedelta(hours=2))
    for headers in ({}, {"X-Room": "again"}):
        assert "Los recordatorios no están saliendo" in client.get(PAGE, headers=headers).content.decode()


def test_a_full_day_costs_no_more_queries_than_a_quiet_one(client, doctor, django_assert_max_num_queries):
    for hour in range(8, 20):
        make_delivery(appointment=visit_at(f"{hour:02}:00", doctor=doctor))
    with django_assert_max_num_queries(10):
        client.get(PAGE)
