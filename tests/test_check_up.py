"""A check-up is called for in calendar months, and not from whom has a visit ahead already."""

from __future__ import annotations

import pytest

from appointments import booking, clock
from reminders import dispatch, planner
from reminders.channels import locmem
from reminders.flight import Flight
from tests.factories import agree, make_appointment, make_doctor, make_patient, make_rule, only_rules

pytestmark = pytest.mark.django_db
SIX_MONTHS = 6 * 43_200


@pytest.fixture
def completed(settings, set_clock):
    """A visit of the 31st of August that took place, with a check-up six months later."""
    settings.CHANNEL_BACKENDS = {"whatsapp": {"BACKEND": "reminders.channels.locmem.LocmemChannel"}}
    locmem.outbox.clear()
    set_clock("2026-08-01T09:00")
    only_rules()
    make_rule(SIX_MONTHS, reminder_type="control", offset_unit="months")
    patient = make_patient()
    agree(patient)
    visit = make_appointment(at="2026-08-31T10:00", booked_at="2026-08-01T09:00", patient=patient)
    set_clock("2026-08-31T11:05")
    booking.complete(visit, actor=booking.SYSTEM)
    planner.plan_marked(now=clock.now())
    return visit


def send() -> int:
    with Flight(4) as flight:
        return dispatch.run(clock=clock.now, flight=flight)


def outcome(visit) -> tuple[str, str]:
    row = visit.deliveries.get(reminder_type="control")
    return row.status, row.reason


def test_it_goes_on_the_last_day_of_a_shorter_month(completed, set_clock):
    """Case E6."""
    set_clock("2027-02-28T09:59")
    assert send() == 0
    set_clock("2027-02-28T10:00")
    assert send() == 1


def test_not_to_a_patient_who_has_a_later_visit_to_the_doctor(completed, set_clock):
    make_appointment(at="2027-03-10T10:00", doctor=completed.doctor, patient=completed.patient)
    set_clock("2027-02-28T10:00")
    assert send() == 0
    assert outcome(completed) == ("skipped", "has_later_visit")


@pytest.mark.parametrize("case", ["cancelled", "past", "another doctor's", "another patient's"])
def test_a_visit_that_is_off_or_past_or_anothers_does_not_count(completed, set_clock, case):
    doctor = make_doctor() if case == "another doctor's" else completed.doctor
    patient = make_patient(doctor=doctor) if case == "another patient's" else completed.patient
    at = "2027-01-10T10:00" if case == "past" else "2027-03-10T10:00"
    other = make_appointment(at=at, doctor=doctor, patient=patient)
    if case == "cancelled":
        booking.cancel(other, actor=booking.SYSTEM)
    set_clock("2027-02-28T10:00")
    assert send() == 1
    assert outcome(completed) == ("sent", "")
