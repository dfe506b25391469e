"""Two who want the same thing at once, on real connections."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, time
from threading import Barrier

import pytest
from django.db import connection, transaction

from appointments import booking
from appointments.models import Appointment, Office
from tests.factories import make_appointment, make_doctor, make_office, make_patient

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(*deeds: Callable[[], object]) -> list[object]:
    """What each deed returned or raised, all begun together."""
    start = Barrier(len(deeds))

    def work(deed: Callable[[], object]) -> object:
        try:
            start.wait(timeout=30)
            return deed()
        except Exception as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(deeds)) as pool:
        return list(pool.map(work, deeds))


def test_of_four_who_book_one_time_at_once_one_gets_it_and_the_others_are_told():
    doctor, office = make_doctor(), make_office()
    doctor.offices.add(office)
    patients = [make_patient() for _ in range(4)]
    for day in range(1, 9):

        def book(patient, day=day):
            return booking.book(
                doctor=doctor, patient=patient, office=office, date=date(2026, 9, day), start_time=time(10),
                booked_at=None, actor=booking.SYSTEM,
            )  # fmt: skip

        outcomes = at_once(*(lambda patient=patient: book(patient) for patient in patients))
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Appointment", *["SlotTaken"] * 3]
    assert Appointment.objects.count() == 8


def test_two_who_fill_one_day_from_both_ends_do_not_block_each_other_for_ever():
    doctor = make_doctor()
    office, patient = doctor.offices.get(), make_patient()

    def fill(day: int, minutes: range) -> int:
        visits = [
            Appointment(
                doctor=doctor, office=office, patient=patient, date=date(2026, 9, day),
                start_time=time(minute // 60, minute % 60), duration_minutes=5,
            )
            for minute in minutes
        ]  # fmt: skip
        with booking.acting(booking.SYSTEM):
            return len(Appointment.objects.bulk_create(visits))

    whole_day = range(0, 1440, 5)
    for day in range(1, 7):
        outcomes = at_once(lambda day=day: fill(day, whole_day), lambda day=day: fill(day, whole_day[::-1]))
        assert sorted(map(str, outcomes)) == ["288", "El médico ya tiene una cita a esa hora."]


def test_of_two_who_move_to_one_time_at_once_one_gets_it_and_the_other_stays():
    doctor = make_doctor()
    visits = [make_appointment(doctor=doctor, at=f"2026-09-17T{hour}:00") for hour in (10, 11)]

    def move(visit):
        return booking.reschedule(visit, date=date(2026, 9, 18), start_time=time(9), actor=booking.SYSTEM)

    outcomes = at_once(*(lambda visit=visit: move(visit) for visit in visits))
    assert sorted(map(str, outcomes)) == ["El médico ya tiene una cita a esa hora.", "True"]
    assert Appointment.objects.filter(date=date(2026, 9, 18)).count() == 1
    assert Appointment.objects.filter(date=date(2026, 9, 17), sequence=0).count() == 1


def test_of_two_who_confirm_at_once_one_changes_the_visit():
    visit = make_appointment()
    copies = [Appointment.objects.get(pk=visit.pk) for _ in range(2)]
    outcomes = at_once(*(lambda copy=copy: booking.confirm(copy, actor=booking.SYSTEM) for copy in copies))
    assert sorted(outcomes) == [False, True]
    assert visit.history.count() == 2


def test_a_visit_booked_while_the_zone_is_corrected_gets_the_corrected_one():
    office = make_office()
    doctor = make_doctor(office=office)
    is_corrected, may_commit = Barrier(2), Barrier(2)

    def correct():
        with transaction.atomic():
            Office.objects.filter(pk=office.pk).update(time_zone="America/Bogota")
            is_corrected.wait(timeout=30)
            may_commit.wait(timeout=30)

    def book():
        is_corrected.wait(timeout=30)
        with transaction.atomic():
            with connection.cursor() as cursor:
                # Fails at once, in place of waiting, if the correction holds the office.
                cursor.execute("SET LOCAL lock_timeout = '100ms'")
            try:
                return make_appointment(doctor=doctor, at="2030-09-17T10:00")
            finally:
                may_commit.wait(timeout=30)

    _corrected, outcome = at_once(correct, book)
    assert "lock timeout" in str(outcome)
    assert f"{make_appointment(doctor=doctor, at='2030-09-17T10:00').starts_at:%H:%M}" == "15:00"
