"""An address that leads nowhere is used by nobody any more, until it is corrected."""

from __future__ import annotations

import pytest

from appointments import clock
from reminders import planner, reach
from reminders.models import ContactOptOut, Mark, Notification, RetiredContact
from reminders.retired import Why, retire_email
from reminders.timeline import Reason, ReminderType
from tests.factories import (
    MARK,
    make_appointment,
    make_doctor,
    make_patient,
    make_user,
    only_rules,
    soon,
)

pytestmark = pytest.mark.django_db
ADDRESS = f"Ana.{MARK}@Example.com"


@pytest.fixture(autouse=True)
def email_is_on(settings):
    settings.REMINDER_CHANNELS = ["whatsapp", "email"]


def obstacle(patient) -> Reason | None:
    return reach.of([patient])[patient.pk].obstacles(ReminderType.CITA_PROXIMA)["email"]


def test_a_retired_address_counts_as_none():
    patient = make_patient(email=ADDRESS)
    assert obstacle(patient) is None
    retire_email(ADDRESS, why=Why.BOUNCED)
    assert obstacle(patient) == Reason.NO_CONTACT


def test_however_it_is_written():
    retire_email(ADDRESS.upper(), why=Why.BOUNCED)
    assert obstacle(make_patient(email=ADDRESS.lower())) == Reason.NO_CONTACT
    assert obstacle(make_patient(email=ADDRESS)) == Reason.NO_CONTACT
    assert obstacle(make_patient(email=f"x{ADDRESS}")) is None


def test_an_opt_out_holds_however_the_address_is_written():
    ContactOptOut.objects.create(address=ADDRESS.upper(), channel="email")
    assert obstacle(make_patient(email=ADDRESS)) == Reason.OPTED_OUT


def test_a_corrected_address_is_used_again():
    patient = make_patient(email=ADDRESS)
    retire_email(ADDRESS, why=Why.BOUNCED)
    patient.email = f"otra.{MARK}@example.com"
    patient.save()
    assert obstacle(patient) is None


def test_whoever_acts_for_a_doctor_of_the_patient_is_told_once():
    doctors_user, secretary, stranger, retired_secretary = (make_user() for _ in range(4))
    doctor = make_doctor(user=doctors_user)
    retired_secretary.is_active = False
    retired_secretary.save()
    doctor.staff.add(secretary, doctors_user, retired_secretary)
    make_doctor(user=stranger)
    patient = make_patient(doctor=doctor, email=ADDRESS)
    assert retire_email(ADDRESS, why=Why.BOUNCED)
    assert not retire_email(ADDRESS.lower(), why=Why.INACTIVE)
    told = {notification.user: notification for notification in Notification.objects.all()}
    assert told.keys() == {doctors_user, secretary}
    news = told[secretary]
    assert news.subject == f"No llega el correo de {patient.full_name}"
    assert "rebotó" in news.body
    assert news.about == patient


def test_a_family_with_one_address_is_told_of_by_name_and_to_each_their_own():
    mothers, childs = make_user(), make_user()
    mother = make_patient(doctor=make_doctor(user=mothers), email=ADDRESS)
    child = make_patient(doctor=make_doctor(user=childs), email=ADDRESS.lower())
    retire_email(ADDRESS, why=Why.INACTIVE)
    assert [(news.user, news.about) for news in Notification.objects.order_by("id")] == [
        (mothers, mother),
        (childs, child),
    ]
    assert child.full_name not in Notification.objects.get(user=mothers).body


def test_who_has_another_address_by_now_is_not_told_of():
    make_patient(doctor=make_doctor(user=make_user()), email=f"otra.{MARK}@example.com")
    retire_email(ADDRESS, why=Why.BOUNCED)
    assert not Notification.objects.exists()


def test_to_retire_an_address_and_to_give_it_back_leaves_marks():
    Mark.objects.all().delete()
    retire_email(ADDRESS, why=Why.BOUNCED)
    assert list(Mark.objects.values_list("subject", "subject_id")) == [("address", ADDRESS.lower())]
    Mark.objects.all().delete()
    RetiredContact.objects.all().delete()
    assert list(Mark.objects.values_list("subject", "subject_id")) == [("address", ADDRESS.lower())]


def test_the_plan_passes_on_to_the_next_channel_and_comes_back():
    only_rules(-60, channels=["email", "whatsapp"])
    patient = make_patient(email=ADDRESS)
    visit = make_appointment(at=soon(30), patient=patient, doctor=make_doctor())
    patient.refresh_from_db()
    planner.plan_marked(now=clock.now())
    [row] = visit.deliveries.filter(status="pending")
    assert row.channel == "email"
    retire_email(ADDRESS, why=Why.BOUNCED)
    planner.plan_marked(now=clock.now())
    row.refresh_from_db()
    assert (row.status, row.reason) == ("skipped", "no_contact")
    RetiredContact.objects.all().delete()
    planner.plan_marked(now=clock.now())
    row.refresh_from_db()
    assert row.status == "pending"


def test_an_opt_out_in_capitals_stops_what_is_planned():
    only_rules(-60, channels=["email"])
    visit = make_appointment(at=soon(30), patient=make_patient(email=ADDRESS))
    planner.plan_marked(now=clock.now())
    ContactOptOut.objects.create(address=ADDRESS.upper(), channel="email")
    planner.plan_marked(now=clock.now())
    assert visit.deliveries.get(channel="email").reason == "opted_out"
