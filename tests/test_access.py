"""Who sees whose rows: for_user, for every model of the agenda."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser

from appointments import access
from appointments.models import (
    Appointment,
    AppointmentHistory,
    Availability,
    AvailabilityException,
    Care,
    Doctor,
    Office,
    Patient,
    Specialty,
)
from tests.factories import caracas, make_appointment, make_doctor, make_specialty, make_user

pytestmark = pytest.mark.django_db

OWNED = [Appointment, AppointmentHistory, Availability, AvailabilityException, Care, Doctor, Office, Patient]


@pytest.fixture
def ruiz() -> Doctor:
    return make_full_doctor()


@pytest.fixture(autouse=True)
def andrade() -> Doctor:
    return make_full_doctor()


def make_full_doctor() -> Doctor:
    """A doctor with one row of everything."""
    doctor = make_doctor(user=make_user())
    doctor.staff.add(make_user())
    make_appointment(doctor=doctor)
    office = doctor.offices.get()
    Availability.objects.create(doctor=doctor, office=office, weekday=0, starts="08:00", ends="12:00")
    AvailabilityException.objects.create(
        doctor=doctor,
        kind="closed",
        starts_at=caracas("2026-12-24T08:00"),
        ends_at=caracas("2026-12-25T08:00"),
    )
    return doctor


@pytest.mark.parametrize("model", OWNED)
def test_a_doctor_sees_their_own_rows_and_no_others(model, ruiz):
    mine = model.objects.for_user(ruiz.user)
    assert (mine.count(), model.objects.count()) == (1, 2)


@pytest.mark.parametrize("model", OWNED)
def test_a_secretary_sees_the_rows_of_the_doctors_they_work_for(model, ruiz, andrade):
    secretary = ruiz.staff.get()
    assert set(model.objects.for_user(secretary)) == set(model.objects.for_user(ruiz.user))
    andrade.staff.add(secretary)
    assert model.objects.for_user(secretary).count() == 2


@pytest.mark.parametrize("model", OWNED)
def test_ops_see_all(model, ruiz):
    assert model.objects.for_user(make_user(is_superuser=True)).count() == 2


@pytest.mark.parametrize("model", [*OWNED, Specialty])
def test_whoever_is_not_let_in_sees_nothing(model, ruiz):
    make_specialty()
    ruiz.user.is_active = False
    for nobody in (AnonymousUser(), ruiz.user, make_user(is_superuser=True, is_active=False)):
        assert not model.objects.for_user(nobody).exists()


@pytest.mark.parametrize("model", OWNED)
def test_staff_of_nobody_see_nothing(model, ruiz):
    assert not model.objects.for_user(make_user()).exists()


def test_specialties_are_public_words():
    make_specialty()
    assert Specialty.objects.for_user(make_user()).count() == 1


@pytest.mark.parametrize("model", [Patient, Office])
def test_a_shared_row_is_seen_once_by_whoever_acts_for_both(model, ruiz, andrade):
    secretary = ruiz.staff.get()
    andrade.staff.add(secretary)
    andrade.offices.add(ruiz.offices.get())
    Patient.objects.for_user(ruiz.user).get().doctors.add(andrade)
    assert model.objects.for_user(secretary).count() == 2
    assert model.objects.for_user(andrade.user).count() == 2
    assert model.objects.for_user(ruiz.user).count() == 1


def test_a_care_link_opens_the_patient_and_none_of_the_other_doctors_visits(ruiz, andrade):
    shared = Patient.objects.for_user(ruiz.user).get()
    shared.doctors.add(andrade)
    assert shared in Patient.objects.for_user(andrade.user)
    assert not Appointment.objects.for_user(andrade.user).filter(patient=shared).exists()
    assert Care.objects.for_user(andrade.user).filter(patient=shared).count() == 1


def test_a_doctor_who_is_also_staff_acts_for_both(ruiz, andrade):
    andrade.staff.add(ruiz.user)
    assert set(access.doctors_of(ruiz.user)) == {ruiz, andrade}


def test_words_of_a_set_keep_the_limits(ruiz):
    assert Appointment.objects.for_user(ruiz.user).open().count() == 1
    assert Appointment.objects.open().for_user(ruiz.user).count() == 1
