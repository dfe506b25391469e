"""The screen of the waiting room: who is in and who is next, and nobody's name."""

from __future__ import annotations

from datetime import date, time

import pytest
from django.contrib.auth.models import User
from django.test import Client

from appointments import booking
from appointments.models import Appointment, Doctor
from reminders.room import board, turns, waiting
from tests.factories import MARK, PHONE_MARK, make_appointment, make_doctor, make_patient
from tests.room import make_desk

pytestmark = pytest.mark.django_db
PAGE = "/sala/espera/"


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


def arrive(hour: str, doctor: Doctor, name: str = f"Ana {MARK}") -> Appointment:
    patient = make_patient(doctor=doctor, full_name=name)
    visit = make_appointment(at=f"2026-09-17T{hour}", doctor=doctor, patient=patient)
    booking.check_in(visit, actor=booking.SYSTEM)
    return visit


@pytest.mark.parametrize("page", [PAGE, f"{PAGE}?ver=turnos"])
def test_no_name_no_phone_and_nothing_to_tap(page, client, doctor):
    inside, waits = arrive("09:00", doctor), arrive("10:00", doctor)
    booking.start(inside, actor=booking.SYSTEM)
    body = client.get(page).content.decode()
    assert MARK not in body
    assert "Ana" not in body
    assert PHONE_MARK not in body
    assert "<button" not in body
    assert str(waits.pk) in body


def test_who_is_in_and_who_waits_by_initials_in_the_order_of_the_visits(desk, doctor, now):
    arrive("10:00", doctor, f"Berta de la Cruz {MARK}")
    arrive("09:00", doctor, f"Carla {MARK}")
    booking.start(arrive("11:00", doctor, f"Diego {MARK}"), actor=booking.SYSTEM)
    make_appointment(at="2026-09-17T08:00", doctor=doctor)
    [queue] = waiting.read(desk, doctor=None, by_turn=False, now=now)
    assert [each.name for each in queue.inside] == ["D. Z."]
    assert [(each.name, each.hour) for each in queue.waiting] == [
        ("C. Z.", "9:00 a. m."),
        ("B. C. Z.", "10:00 a. m."),
    ]


def test_with_turns_they_stand_in_the_order_in_which_they_came(desk, doctor, now):
    arrive("10:00", doctor)
    arrive("09:00", doctor)
    [queue] = waiting.read(desk, doctor=None, by_turn=True, now=now)
    assert [(each.name, each.hour) for each in queue.waiting] == [("1", ""), ("2", "")]


def test_a_turn_stays_the_same_all_day_whatever_becomes_of_the_others(desk, doctor, now):
    first, second, third = (arrive(hour, doctor) for hour in ("09:00", "10:00", "11:00"))
    before = turns.of_today(desk, now=now)
    assert [before[visit.pk] for visit in (first, second, third)] == [1, 2, 3]
    booking.complete(first, actor=booking.SYSTEM)
    booking.reschedule(second, date=date(2026, 9, 20), start_time=time(10), actor=booking.SYSTEM)
    booking.start(third, actor=booking.SYSTEM)
    early = arrive("08:00", doctor)
    after = turns.of_today(desk, now=now)
    assert (after[third.pk], after[early.pk]) == (3, 4)


def test_each_doctor_counts_from_one_and_each_day_anew(desk, doctor, set_clock):
    other = make_doctor()
    other.staff.add(desk)
    set_clock("2026-09-16T09:00")
    arrive("09:00", doctor)
    now = set_clock("2026-09-17T09:30")
    mine, theirs = arrive("10:00", doctor), arrive("10:00", other)
    numbers = turns.of_today(desk, now=now)
    assert (numbers[mine.pk], numbers[theirs.pk]) == (1, 1)


def test_the_desk_reads_the_same_turn_on_its_card(desk, doctor, now):
    visit = arrive("10:00", doctor)
    cards = [card for part in board.read(desk, doctor=None, now=now).sections for card in part.cards]
    assert [(card.id, card.turn) for card in cards] == [(visit.pk, 1)]


def test_of_a_long_queue_the_first_are_shown_and_the_others_counted(client, doctor):
    for minute in range(8):
        arrive(f"{10 + minute}:00", doctor)
    assert "y 3 más" in client.get(PAGE).content.decode()


def test_strangers_patients_are_not_on_the_screen(client, desk, now):
    arrive("10:00", make_doctor())
    assert waiting.read(desk, doctor=None, by_turn=True, now=now) == []
    assert "Bienvenidos" in client.get(PAGE).content.decode()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Ana Pérez", "A. P."),
        ("ángel de la cruz ÑÁÑEZ", "Á. C. Ñ."),
        ("José Gregorio del Valle Pérez García López", "J. G. V. P."),
        ("123 ·", "–"),
        ("", "–"),
    ],
)
def test_initials(name, told):
    assert waiting.initials(name) == told
