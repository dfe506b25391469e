"""Whatever a timeline depends on leaves a mark when it changes, by whichever path."""

from __future__ import annotations

from datetime import date, time, timedelta

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from appointments import agenda_import, booking, clock
from appointments.models import Appointment, Care, Doctor
from reminders import marks
from reminders.models import ContactOptOut, Mark, NotificationPreference, ReminderRule
from tests.factories import (
    agree,
    make_appointment,
    make_doctor,
    make_office,
    make_patient,
    make_rule,
    make_specialty,
    soon,
)

pytestmark = pytest.mark.django_db


def left_by(change) -> set[tuple[str, str]]:
    """The marks that a change leaves, and nothing that stood there before."""
    Mark.objects.all().delete()
    change()
    return set(Mark.objects.values_list("subject", "subject_id"))


def sql(statement: str, *parameters: object):
    def run() -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters)

    return run


def of(appointment: Appointment) -> set[tuple[str, str]]:
    return {("appointment", str(appointment.pk))}


@pytest.fixture
def visit() -> Appointment:
    return make_appointment(at="2030-09-17T10:00")


def test_a_verb_leaves_a_mark(visit):
    assert left_by(lambda: booking.confirm(visit, actor=booking.SYSTEM)) == of(visit)


def test_a_save_leaves_a_mark(visit):
    visit.start_time = time(11)
    assert left_by(visit.save) == of(visit)


def test_an_update_of_many_leaves_a_mark_for_each(visit):
    other = make_appointment(at="2030-09-18T10:00")
    change = lambda: Appointment.objects.update(start_time=time(15))  # noqa: E731
    assert left_by(change) == of(visit) | of(other)


def test_a_bulk_create_leaves_a_mark_for_each(visit):
    new = [
        Appointment(
            doctor=visit.doctor, patient=visit.patient, office=visit.office,
            date=date(2030, 10, day), start_time=time(9),
        )
        for day in (1, 2)
    ]  # fmt: skip
    assert left_by(lambda: Appointment.objects.bulk_create(new)) == of(new[0]) | of(new[1])


def test_raw_sql_leaves_a_mark(visit):
    change = sql("UPDATE appointments_appointment SET status = 'confirmed' WHERE id = %s", visit.pk)
    assert left_by(change) == of(visit)


def test_a_save_in_the_admin_leaves_a_mark(visit, admin_client):
    address = reverse("admin:appointments_appointment_change", args=[visit.pk])
    form = admin_client.get(address).context["adminform"].form
    data = {name: value for name, value in form.initial.items() if value is not None}
    empty = {"history-TOTAL_FORMS": 0, "history-INITIAL_FORMS": 0}

    def change() -> None:
        response = admin_client.post(address, data | empty | {"start_time": "15:30"})
        assert response.status_code == 302, response.context["errors"]

    assert left_by(change) == of(visit)
    visit.refresh_from_db()
    assert visit.start_time == time(15, 30)


def test_an_action_on_many_in_the_admin_leaves_a_mark_for_each(visit, admin_client):
    other = make_appointment(at="2030-09-18T10:00")
    data = {"action": "cancel", "_selected_action": [visit.pk, other.pk]}
    address = reverse("admin:appointments_appointment_changelist")
    assert left_by(lambda: admin_client.post(address, data)) == of(visit) | of(other)


def test_an_import_leaves_a_mark():
    visit = make_appointment(at=soon(48).replace(hour=9))
    moved = agenda_import.Line(
        number=2, patient=visit.patient.full_name, doctor=visit.doctor.name, date=visit.date, start=time(16),
        phone=visit.patient.phone,
    )  # fmt: skip

    def take_in() -> None:
        report = agenda_import.take_in([moved], doctors=Doctor.objects.all(), now=clock.now(), dry_run=False)
        assert report.moved == 1

    assert of(visit) <= left_by(take_in)


@pytest.mark.parametrize("path", ["instance", "queryset", "sql"])
def test_deleting_means_cancelling_and_leaves_a_mark(visit, path):
    change = {
        "instance": visit.delete,
        "queryset": Appointment.objects.filter(pk=visit.pk).delete,
        "sql": sql("DELETE FROM appointments_appointment WHERE id = %s", visit.pk),
    }[path]
    assert left_by(change) == of(visit)
    visit.refresh_from_db()
    assert visit.status == "cancelled"


@pytest.mark.parametrize(
    "change",
    [
        {"date": date(2030, 9, 18)},
        {"start_time": time(11)},
        {"status": "completed"},
        {"modality": "virtual"},
        {"booked_at": timezone.now()},
    ],
)
def test_each_fact_of_a_visit_counts(visit, change):
    assert left_by(lambda: Appointment.objects.filter(pk=visit.pk).update(**change)) == of(visit)


def test_doctor_patient_place_and_specialty_of_a_visit_count(visit):
    one = Appointment.objects.filter(pk=visit.pk)
    for change in (
        {"doctor": make_doctor()},
        {"patient": make_patient()},
        {"office": make_office(name="Otra sede")},
        {"specialty": make_specialty()},
    ):
        assert left_by(lambda change=change: one.update(**change)) == of(visit)


def test_what_the_timeline_does_not_depend_on_leaves_none(visit):
    assert not left_by(lambda: Appointment.objects.update(external_id="7"))
    assert not left_by(lambda: type(visit.patient).objects.update(wa_id="58412", full_name="Otra"))


def test_a_corrected_zone_of_the_place_leaves_a_mark(visit):
    visit.office.time_zone = "Europe/Madrid"
    assert left_by(visit.office.save) == of(visit)


@pytest.mark.parametrize(
    "change", [{"phone": "+584140000000"}, {"email": "a@example.org"}, {"time_zone": "Europe/Madrid"}]
)
def test_each_contact_of_a_patient_counts(visit, change):
    patients = type(visit.patient).objects.filter(pk=visit.patient_id)
    assert left_by(lambda: patients.update(**change)) == {("patient", str(visit.patient_id))}


def test_consent_preference_and_care_count(visit):
    mark = {("patient", str(visit.patient_id))}
    assert left_by(lambda: agree(visit.patient)) == mark
    off = {"patient": visit.patient, "reminder_type": "control", "channel": "email", "is_enabled": False}
    assert left_by(lambda: NotificationPreference.objects.create(**off)) == mark
    assert left_by(lambda: NotificationPreference.objects.update(is_enabled=True)) == mark
    assert left_by(lambda: NotificationPreference.objects.all().delete()) == mark
    assert left_by(lambda: Care.objects.filter(patient=visit.patient).delete()) == mark


def test_an_opt_out_and_its_end_count():
    opt_out = {"address": "+584120000000", "channel": "whatsapp"}
    assert left_by(lambda: ContactOptOut.objects.create(**opt_out)) == {("address", "+584120000000")}
    assert left_by(lambda: ContactOptOut.objects.all().delete()) == {("address", "+584120000000")}


def test_a_rule_marks_its_doctor_and_a_default_marks_everything():
    doctor = make_doctor()
    mine = {("doctor", str(doctor.pk))}
    assert left_by(lambda: make_rule(-60, doctor=doctor)) == mine
    assert left_by(lambda: make_rule(-61, offset_unit="minutes")) == {("everything", "")}
    own = ReminderRule.objects.filter(doctor=doctor)
    assert left_by(lambda: own.update(offset_minutes=-180)) == mine
    assert left_by(lambda: own.delete()) == mine


def test_a_mark_says_when_the_change_became_true(set_clock, visit):
    moment = set_clock("2030-09-01T12:00")
    left_by(lambda: booking.confirm(visit, actor=booking.SYSTEM))
    assert Mark.objects.get().at == moment


def test_other_quiet_hours_mark_everything_once(settings):
    now = timezone.now()
    marks.note_settings(now)
    settings.REMINDER_QUIET_HOURS = (time(22), time(6))
    assert left_by(lambda: marks.note_settings(now)) == {("everything", "")}
    assert not left_by(lambda: marks.note_settings(now))


def test_a_broad_mark_becomes_one_for_each_visit_that_is_ahead(visit):
    past = make_appointment(at="2020-09-17T10:00", doctor=visit.doctor, patient=visit.patient)
    Mark.objects.all().delete()
    mark = Mark.objects.create(subject="patient", subject_id=str(visit.patient_id), at=timezone.now())
    marks.widen([mark], now=timezone.now())
    assert set(Mark.objects.values_list("subject", "subject_id")) == of(visit)
    assert past.starts_at < timezone.now() - timedelta(days=1)
