"""An address may be as long as mail allows, everywhere that one is kept."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.apps import apps
from django.core.validators import validate_email
from django.db import connection, models, transaction

from appointments import clock
from appointments.models import Patient
from reminders import planner, preferences
from reminders.models import ContactOptOut, DeliveryAttempt, Notification
from reminders.retired import Why, retire_email
from reminders.tick import tick
from tests.factories import MARK, make_appointment, make_doctor, make_patient, make_user, only_rules, soon

pytestmark = pytest.mark.django_db(transaction=True)
LABEL = "x" * 60
LONG = f"ana.{MARK}@{LABEL}.{LABEL}.{LABEL}.{LABEL[:44]}.com"
LONGEST = Patient._meta.get_field("email").max_length


@pytest.fixture
def patient(settings):
    settings.REMINDER_CHANNELS = ["email"]
    secretary, doctor = make_user(), make_doctor()
    doctor.staff.add(secretary)
    return make_patient(doctor=doctor, phone="", email=LONG)


@pytest.fixture
def visit(patient):
    """Its reminder of two hours before has just fallen due."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('amedi.now', '2026-01-01T00:00Z', true)")
        only_rules(-120, channels=["email"])
    return make_appointment(at=soon(2) - timedelta(minutes=1), patient=patient, doctor=patient.doctors.get())


def test_it_is_an_address_that_a_patients_file_takes():
    validate_email(LONG)
    assert 240 < len(LONG) <= LONGEST


def test_a_mail_goes_to_it(visit, postmark):
    tick()
    assert postmark.flush()
    assert (visit.deliveries.get().status, visit.deliveries.get().address) == ("delivered", LONG)
    assert DeliveryAttempt.objects.get().address == LONG


def test_it_can_be_opted_out_and_the_planner_hears_of_it(visit):
    planner.plan_marked(now=clock.now())
    assert preferences.opt_out(address=LONG, channel="email", patient=visit.patient, evidence="página")
    planner.plan_marked(now=clock.now())
    assert ContactOptOut.objects.get().address == LONG.lower()
    assert set(visit.deliveries.values_list("status", "reason")) == {("skipped", "opted_out")}


def test_it_can_be_retired_and_those_at_the_desk_are_told(patient):
    assert retire_email(LONG, why=Why.BOUNCED)
    assert LONG in Notification.objects.get().body


def test_no_column_that_holds_an_address_is_shorter_than_a_patients_own():
    columns = [
        field
        for model in apps.get_app_config("reminders").get_models()
        for field in model._meta.get_fields()
        if isinstance(field, models.CharField) and field.name in ("address", "subject_id")
    ]
    assert len(columns) >= 6
    assert all(column.max_length >= LONGEST for column in columns)
