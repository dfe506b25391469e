"""Instants, version, stamps and history are right whichever way a visit is written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, time

import pytest
from django.db import IntegrityError, connection, transaction

from appointments import booking, clock
from appointments.models import Appointment, AppointmentHistory, Office
from tests.factories import caracas, make_appointment, make_doctor, make_office, make_patient

pytestmark = pytest.mark.django_db

Status = Appointment.Status
NEW_DAY = date(2026, 9, 18)
MOVED = caracas("2026-09-18T10:00")


def sql(statement: str, *values: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def by_verb(visit: Appointment) -> None:
    booking.reschedule(visit, date=NEW_DAY, start_time=time(10), actor=booking.SYSTEM)


def by_save(visit: Appointment) -> None:
    visit.date = NEW_DAY
    visit.save()


def by_update(visit: Appointment) -> None:
    Appointment.objects.filter(pk=visit.pk).update(date=NEW_DAY)


def by_bulk_update(visit: Appointment) -> None:
    visit.date = NEW_DAY
    Appointment.objects.bulk_update([visit], ["date"])


def by_sql(visit: Appointment) -> None:
    sql("UPDATE appointments_appointment SET date = %s WHERE id = %s", NEW_DAY, visit.pk)


MOVES = [by_verb, by_save, by_update, by_bulk_update, by_sql]


@pytest.mark.complaint(
    "Moving a visit on another screen, or by drag and drop, moves no reminder.",
    about="moves",
    source="onehashai/Cal-ID #1953; help pages of NexHealth and HENO",
)
@pytest.mark.parametrize("moved", MOVES)
def test_every_way_of_moving_a_confirmed_visit_makes_a_new_version_to_confirm(moved):
    visit = make_appointment()
    booking.confirm(visit, actor=booking.SYSTEM)
    moved(Appointment.objects.get(pk=visit.pk))
    visit.refresh_from_db()
    assert (visit.starts_at, visit.ends_at) == (MOVED, caracas("2026-09-18T10:30"))
    assert (visit.status, visit.confirmed_at, visit.sequence) == ("scheduled", None, 1)
    last = visit.history.last()
    assert (last.from_status, last.to_status, last.sequence, last.source) == (
        "confirmed",
        "scheduled",
        1,
        "system",
    )
    assert (last.old_starts_at, last.new_starts_at) == (caracas("2026-09-17T10:00"), MOVED)
    assert visit.history.count() == 3


def made_by_verb() -> None:
    make_appointment()


def unsaved() -> Appointment:
    doctor = make_doctor()
    return Appointment(
        doctor=doctor, office=doctor.offices.get(), patient=make_patient(), date=date(2026, 9, 17),
        start_time=time(10),
    )  # fmt: skip


def made_by_save() -> None:
    unsaved().save()


def made_by_bulk_create() -> None:
    Appointment.objects.bulk_create([unsaved()])


def made_by_sql() -> None:
    visit = unsaved()
    sql(
        "INSERT INTO appointments_appointment (id, doctor_id, office_id, patient_id, date, start_time,"
        " duration_minutes, modality, video_url, status, is_overbooked, external_id, starts_at, sequence)"
        " VALUES (%s, %s, %s, %s, %s, %s, 30, 'in_person', '', 'scheduled', false, '', now(), 7)",
        visit.pk, visit.doctor_id, visit.office_id, visit.patient_id, visit.date, visit.start_time,
    )  # fmt: skip


@pytest.mark.parametrize("made", [made_by_verb, made_by_save, made_by_bulk_create, made_by_sql])
def test_every_way_of_making_a_visit_derives_its_instants_and_begins_its_history(made):
    before = clock.now()
    made()
    visit = Appointment.objects.get()
    assert (visit.starts_at, visit.ends_at) == (caracas("2026-09-17T10:00"), caracas("2026-09-17T10:30"))
    assert visit.sequence == 0
    assert before <= visit.created_at == visit.sequence_at <= clock.now()
    row = visit.history.get()
    assert (row.from_status, row.to_status, row.old_starts_at) == ("", "scheduled", None)
    assert (row.new_starts_at, row.sequence, row.source) == (visit.starts_at, 0, "system")


def gone_by_instance(visit: Appointment) -> None:
    visit.delete()


def gone_by_queryset(visit: Appointment) -> None:
    Appointment.objects.filter(pk=visit.pk).delete()


def gone_by_sql(visit: Appointment) -> None:
    sql("DELETE FROM appointments_appointment WHERE id = %s", visit.pk)


@pytest.mark.complaint(
    "One way of cancelling (a link, the API) forgets the reminders.",
    about="moves",
    source="calcom/cal.diy #6905, #17785, #10166",
)
@pytest.mark.parametrize("gone", [gone_by_instance, gone_by_queryset, gone_by_sql])
def test_every_way_of_deleting_cancels_and_keeps_the_history(gone):
    visit = make_appointment()
    for _twice in range(2):
        gone(Appointment.objects.get())
    visit.refresh_from_db()
    assert (visit.status, visit.sequence, visit.history.count()) == ("cancelled", 0, 2)
    assert visit.cancelled_at


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.NO_SHOW, Status.IN_CONSULTATION])
@pytest.mark.parametrize("gone", [gone_by_instance, gone_by_queryset, gone_by_sql])
def test_deleting_what_has_happened_does_nothing(gone, status):
    visit = make_appointment()
    Appointment.objects.update(status=status)
    gone(visit)
    assert Appointment.objects.get().status == status


def test_deleting_a_set_tells_how_many_were_cancelled():
    doctor = make_doctor()
    for hour in (9, 10, 11):
        make_appointment(doctor=doctor, at=f"2026-09-17T{hour:02d}:00")
    booking.complete(Appointment.objects.earliest("starts_at"), actor=booking.SYSTEM)
    assert Appointment.objects.all().delete() == (2, {"appointments.Appointment": 2})


def other_patient(visit: Appointment) -> dict[str, object]:
    return {"patient": make_patient()}


def other_doctor(visit: Appointment) -> dict[str, object]:
    return {"doctor": make_doctor()}


def other_office(visit: Appointment) -> dict[str, object]:
    return {"office": make_office()}


RAISES: list[Callable[[Appointment], dict[str, object]]] = [
    lambda visit: {"date": NEW_DAY},
    lambda visit: {"start_time": time(10, 1)},
    lambda visit: {"modality": "virtual"},
    other_patient,
    other_doctor,
    other_office,
]
KEEPS: list[dict[str, object]] = [
    {"duration_minutes": 45},
    {"status": Status.CONFIRMED},
    {"external_id": "A-1"},
    {"video_url": "https://v.example/1"},
    {"is_overbooked": True},
    {"booked_at": None},
    {"date": date(2026, 9, 17)},
]


@pytest.mark.parametrize("change", RAISES)
def test_start_place_doctor_and_patient_make_a_new_version(change):
    visit = make_appointment()
    Appointment.objects.update(**change(visit))
    visit.refresh_from_db()
    assert (visit.sequence, visit.history.count()) == (1, 2)
    assert visit.sequence_at > visit.created_at


@pytest.mark.parametrize("change", KEEPS)
def test_anything_else_stays_the_same_version(change):
    visit = make_appointment()
    Appointment.objects.update(**change)
    visit.refresh_from_db()
    assert visit.sequence == 0
    assert visit.sequence_at == visit.created_at


def test_a_reinstated_visit_is_a_new_version():
    visit = make_appointment()
    booking.cancel(visit, actor=booking.SYSTEM)
    assert visit.sequence == 0
    booking.reinstate(visit, actor=booking.SYSTEM)
    assert (visit.sequence, visit.status, visit.cancelled_at) == (1, "scheduled", None)


def test_nobody_sets_what_the_triggers_own():
    visit = make_appointment()
    Appointment.objects.update(
        starts_at=MOVED, ends_at=MOVED, sequence=9, sequence_at=MOVED, created_at=MOVED, confirmed_at=MOVED
    )
    after = Appointment.objects.get()
    assert (after.starts_at, after.ends_at, after.sequence) == (visit.starts_at, visit.ends_at, 0)
    assert (after.sequence_at, after.created_at, after.confirmed_at) == (
        visit.created_at,
        visit.created_at,
        None,
    )


def test_an_object_read_earlier_does_not_wipe_a_stamp_out():
    visit = unsaved()
    visit.status = Status.CONFIRMED
    visit.save()
    assert visit.confirmed_at is None  # not read back
    visit.external_id = "A-1"
    visit.save()
    visit.refresh_from_db()
    assert visit.confirmed_at == visit.created_at


def test_each_status_has_its_stamp_and_a_step_back_takes_it_away():
    visit = make_appointment()
    stamps = ("confirmed_at", "checked_in_at", "completed_at", "cancelled_at")

    def stamped(status: str) -> list[str]:
        Appointment.objects.update(status=status)
        visit.refresh_from_db()
        return [name.removesuffix("_at") for name in stamps if getattr(visit, name)]

    assert stamped("confirmed") == ["confirmed"]
    assert stamped("checked_in") == ["confirmed", "checked_in"]
    assert stamped("completed") == ["confirmed", "checked_in", "completed"]
    assert stamped("no_show") == ["confirmed", "checked_in"]
    assert stamped("cancelled") == ["confirmed", "checked_in", "cancelled"]
    assert stamped("scheduled") == []


def test_facts_are_stamped_by_the_one_clock():
    with transaction.atomic():
        sql("SELECT set_config('amedi.now', '2030-01-01T12:00:00Z', true)")
        visit = make_appointment()
        visit.refresh_from_db()
        assert visit.created_at == visit.history.get().at == clock.now()
    assert f"{visit.created_at:%Y-%m-%d %H:%M}" == "2030-01-01 12:00"


# The zone of a place is corrected


def soon_at(office: Office, *hours: str) -> list[Appointment]:
    doctor = make_doctor(office=office)
    return [make_appointment(doctor=doctor, at=f"2030-09-17T{hour}") for hour in hours]


def test_a_corrected_zone_shifts_the_instant_and_keeps_clock_version_and_confirmation():
    office = make_office()
    [visit] = soon_at(office, "10:00")
    booking.confirm(visit, actor=booking.SYSTEM)
    Office.objects.update(time_zone="America/Bogota")
    visit.refresh_from_db()
    assert (visit.start_time, visit.sequence, visit.status) == (time(10), 0, "confirmed")
    assert f"{visit.starts_at:%H:%M}" == "15:00"
    last = visit.history.last()
    assert (last.from_status, last.to_status, last.sequence) == ("confirmed", "confirmed", 0)
    assert (last.new_starts_at - last.old_starts_at).total_seconds() == 3600


@pytest.mark.parametrize("zone", ["America/Bogota", "America/Halifax"])
def test_a_corrected_zone_shifts_a_whole_day_of_visits_side_by_side(zone):
    office = make_office()
    visits = soon_at(office, "10:00", "10:30", "11:00", "11:30", "12:00")
    Office.objects.update(time_zone=zone)
    starts = [visit.starts_at.astimezone(Office.objects.get().zone) for visit in Appointment.objects.all()]
    assert [f"{start:%H:%M}" for start in starts] == [f"{visit.start_time:%H:%M}" for visit in visits]


def test_a_corrected_zone_leaves_the_past_as_it_was():
    visit = make_appointment(at="2020-09-17T10:00")
    Office.objects.update(time_zone="America/Bogota")
    visit.refresh_from_db()
    assert visit.starts_at == caracas("2020-09-17T10:00")


# What must hold


def test_the_database_refuses_an_overlap_from_any_side():
    visit = make_appointment()
    other = make_appointment(doctor=visit.doctor, at="2026-09-17T12:00")
    with pytest.raises(IntegrityError, match="appointment_no_overlap"), transaction.atomic():
        Appointment.objects.filter(pk=other.pk).update(start_time=time(10, 15))
    make_appointment(at="2026-09-17T10:00")


def test_an_identifier_of_the_clinic_names_one_visit_of_a_doctor():
    visit = make_appointment(external_id="A-1")
    make_appointment(external_id="A-1")
    with pytest.raises(IntegrityError), transaction.atomic():
        make_appointment(doctor=visit.doctor, external_id="A-1", at="2026-09-18T10:00")
    make_appointment(doctor=visit.doctor, at="2026-09-18T11:00")
    make_appointment(doctor=visit.doctor, at="2026-09-18T12:00")


def test_the_history_is_written_by_nothing_but_the_triggers():
    visit = make_appointment()
    booking.confirm(visit, actor=booking.SYSTEM)
    visit.save()
    assert AppointmentHistory.objects.count() == 2
