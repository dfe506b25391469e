"""Each verb of a visit: from which states it acts, what it writes, and that twice changes nothing."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Any

import pytest

from appointments import booking, local_time, signals
from appointments.booking import Actor, SlotTaken
from appointments.models import Appointment, AppointmentHistory, Care
from tests.factories import caracas, make_appointment, make_doctor, make_office, make_patient, make_user

pytestmark = pytest.mark.django_db

Status = Appointment.Status
OPEN = {Status.SCHEDULED, Status.CONFIRMED, Status.CHECKED_IN}
VERBS = {
    booking.confirm: (Status.CONFIRMED, {Status.SCHEDULED}),
    booking.cancel: (Status.CANCELLED, OPEN),
    booking.check_in: (Status.CHECKED_IN, {Status.SCHEDULED, Status.CONFIRMED}),
    booking.start: (Status.IN_CONSULTATION, OPEN),
    booking.complete: (Status.COMPLETED, OPEN | {Status.IN_CONSULTATION, Status.NO_SHOW}),
    booking.mark_no_show: (Status.NO_SHOW, OPEN | {Status.COMPLETED}),
    booking.reinstate: (Status.SCHEDULED, {Status.CANCELLED}),
}
EVERY_STEP = [(verb, before) for verb in VERBS for before in Status]


def in_state(status: str) -> Appointment:
    visit = make_appointment()
    Appointment.objects.filter(pk=visit.pk).update(status=status)
    visit.refresh_from_db()
    return visit


@pytest.mark.parametrize(("verb", "before"), EVERY_STEP, ids=[f"{v.__name__}-{s}" for v, s in EVERY_STEP])
def test_a_verb_acts_from_the_states_it_names_and_from_no_other(verb, before):
    to, allowed = VERBS[verb]
    visit = in_state(before)
    changed = verb(visit, actor=booking.SYSTEM)
    assert changed == (before in allowed)
    assert visit.status == (to if changed else before)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_a_verb_said_twice_changes_and_tells_nothing_the_second_time(verb):
    visit = in_state(Status.CANCELLED if verb is booking.reinstate else Status.SCHEDULED)
    told: list[Any] = []

    def hear(*, appointment_id: Any, **_news: Any) -> None:
        told.append(appointment_id)

    signals.changed.connect(hear)
    try:
        assert verb(visit, actor=booking.SYSTEM)
        before = Appointment.objects.values().get(), AppointmentHistory.objects.count()
        assert not verb(visit, actor=booking.SYSTEM)
    finally:
        signals.changed.disconnect(hear)
    assert (Appointment.objects.values().get(), AppointmentHistory.objects.count()) == before
    assert told == [visit.pk]


def test_a_verb_is_not_fooled_by_an_object_read_earlier():
    visit = make_appointment()
    stale = Appointment.objects.get()
    booking.cancel(visit, actor=booking.SYSTEM)
    assert not booking.confirm(stale, actor=booking.SYSTEM)
    assert stale.status == Status.CANCELLED


def test_the_history_says_who_did_what_and_from_where():
    user = make_user()
    visit = make_appointment()
    booking.confirm(visit, actor=Actor(source="admin", user_id=user.pk))
    booking.check_in(visit, actor=Actor(source="whatsapp"))
    rows = visit.history.values_list("from_status", "to_status", "actor", "source", "sequence")
    assert list(rows) == [
        ("", "scheduled", None, "system", 0),
        ("scheduled", "confirmed", user.pk, "admin", 0),
        ("confirmed", "checked_in", None, "whatsapp", 0),
    ]


def test_an_actor_is_forgotten_after_their_deed():
    visit = make_appointment()
    with booking.acting(Actor(source="import")):
        booking.confirm(visit, actor=Actor(source="admin", user_id=make_user().pk))
        Appointment.objects.filter(pk=visit.pk).update(status=Status.CHECKED_IN)
    Appointment.objects.filter(pk=visit.pk).update(status=Status.CANCELLED)
    assert list(visit.history.values_list("source", flat=True)) == ["system", "admin", "import", "system"]


def test_booking_makes_the_doctor_treat_the_patient():
    doctor, patient = make_doctor(), make_patient()
    for hour in (10, 11):
        make_appointment(doctor=doctor, patient=patient, at=f"2026-09-17T{hour}:00")
    assert Care.objects.filter(doctor=doctor, patient=patient).count() == 1


def test_a_skipped_hour_is_refused_with_the_first_valid_one():
    office = make_office(time_zone="America/Santiago")
    with pytest.raises(local_time.DoesNotExist) as refused:
        make_appointment(office=office, at="2026-09-06T00:30")
    assert str(refused.value) == (
        "Esa hora no existe ese día: el reloj se adelanta. "
        "La primera hora válida es las 01:00 del 06/09/2026."
    )
    visit = make_appointment(office=office, at="2026-09-06T01:00")
    with pytest.raises(local_time.DoesNotExist):
        booking.reschedule(visit, date=date(2026, 9, 6), start_time=time(0, 30), actor=booking.SYSTEM)
    assert visit.starts_at == datetime(2026, 9, 6, 4, tzinfo=UTC)


def move(visit: Appointment, hour: int = 15, **details: Any) -> bool:
    return booking.reschedule(
        visit, date=date(2026, 9, 18), start_time=time(hour), actor=booking.SYSTEM, **details
    )


def test_a_move_is_a_new_version_to_be_confirmed_again():
    visit = in_state(Status.CONFIRMED)
    assert move(visit)
    assert (visit.starts_at, visit.status, visit.sequence) == (caracas("2026-09-18T15:00"), "scheduled", 1)
    assert visit.confirmed_at is None
    last = visit.history.last()
    assert (last.old_starts_at, last.new_starts_at) == (caracas("2026-09-17T10:00"), visit.starts_at)
    assert not move(visit)
    assert (visit.sequence, visit.history.count()) == (1, 3)


@pytest.mark.parametrize("status", [status for status in Status if status not in OPEN])
def test_a_visit_that_is_over_or_called_off_is_not_moved(status):
    visit = in_state(status)
    assert not move(visit)
    assert (visit.date, visit.sequence) == (date(2026, 9, 17), 0)


def test_a_move_to_another_doctor_links_the_patient_to_them():
    visit = make_appointment()
    other = make_doctor()
    assert move(visit, doctor=other, office=other.offices.get())
    assert (visit.doctor, visit.sequence) == (other, 1)
    assert set(visit.patient.doctors.all()) >= {other}


def test_a_longer_visit_is_the_same_version():
    visit = make_appointment()
    assert booking.reschedule(
        visit, date=visit.date, start_time=visit.start_time, duration_minutes=45, actor=booking.SYSTEM
    )
    assert (visit.sequence, visit.ends_at) == (0, caracas("2026-09-17T10:45"))


def test_a_taken_time_is_refused_and_nothing_changes():
    doctor = make_doctor()
    make_appointment(doctor=doctor, at="2026-09-18T15:00")
    visit = make_appointment(doctor=doctor)
    with pytest.raises(SlotTaken) as refused:
        make_appointment(doctor=doctor, at="2026-09-18T15:29")
    assert str(refused.value) == "El médico ya tiene una cita a esa hora."
    with pytest.raises(SlotTaken):
        move(visit)
    visit.refresh_from_db()
    assert (visit.date, Appointment.objects.count()) == (date(2026, 9, 17), 2)


def test_times_that_only_touch_do_not_overlap():
    doctor = make_doctor()
    for at in ("10:00", "10:30", "09:30"):
        make_appointment(doctor=doctor, at=f"2026-09-17T{at}")
    assert Appointment.objects.count() == 3


@pytest.mark.parametrize("verb", [booking.cancel, booking.mark_no_show])
def test_a_visit_that_will_not_be_frees_its_time_and_cannot_take_it_back(verb):
    doctor = make_doctor()
    visit = make_appointment(doctor=doctor)
    verb(visit, actor=booking.SYSTEM)
    make_appointment(doctor=doctor)
    back = booking.reinstate if verb is booking.cancel else booking.complete
    with pytest.raises(SlotTaken):
        back(visit, actor=booking.SYSTEM)


def test_an_overbooked_visit_may_coincide():
    doctor = make_doctor()
    make_appointment(doctor=doctor)
    make_appointment(doctor=doctor, is_overbooked=True)
    make_appointment(doctor=doctor, is_overbooked=True)
    with pytest.raises(SlotTaken):
        make_appointment(doctor=doctor)


def test_a_refusal_leaves_the_callers_transaction_usable():
    visit = make_appointment()
    with pytest.raises(SlotTaken):
        make_appointment(doctor=visit.doctor)
    assert booking.confirm(visit, actor=booking.SYSTEM)
