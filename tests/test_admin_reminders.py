"""Doctors edit their own rules and look at what was sent to their own patients."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from appointments import clock
from reminders import dispatch
from reminders.models import ConsentEvent, ReminderDelivery, ReminderRule
from tests.factories import make_delivery, make_doctor, make_office, make_rule, make_user

pytestmark = pytest.mark.django_db
RULE = {
    "reminder_type": "cita_proxima", "is_enabled": "on", "offset_minutes": "-2880", "offset_unit": "hours",
    "first_channel": "whatsapp", "body_template": "Hola {nombre}: {fecha} a las {hora}.",
}  # fmt: skip


def doctor_with_login():
    user = make_user()
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="reminders"))
    doctor = make_doctor(user=user, office=make_office())
    client = Client()
    client.force_login(user)
    return doctor, client


@pytest.fixture
def mine():
    return doctor_with_login()


def test_a_doctor_adds_a_rule_of_their_own(mine):
    doctor, client = mine
    response = client.post(reverse("admin:reminders_reminderrule_add"), RULE | {"doctor": doctor.pk})
    assert response.status_code == 302
    rule = ReminderRule.objects.get(doctor=doctor)
    assert (rule.offset_minutes, rule.channels) == (-2880, ["whatsapp"])


def test_a_doctor_cannot_make_a_default_for_all_nor_a_rule_of_another(mine):
    _, client = mine
    other = make_doctor()
    before = ReminderRule.objects.count()
    for owner in ("", other.pk):
        response = client.post(reverse("admin:reminders_reminderrule_add"), RULE | {"doctor": owner})
        assert response.status_code == 200
        assert response.context["errors"]
    assert ReminderRule.objects.count() == before


def test_a_doctor_sees_the_defaults_and_changes_none(mine):
    _, client = mine
    default = ReminderRule.objects.filter(doctor=None).first()
    address = reverse("admin:reminders_reminderrule_change", args=[default.pk])
    assert client.get(address).status_code == 200
    assert client.post(address, RULE).status_code == 403


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("body_template", "Hola {nombr}", "¿Quiso decir {nombre}?"),
        ("body_template", "Hola {nombre", "{"),
        ("offset_minutes", "-90", "número entero de su unidad"),
        ("offset_minutes", "120", "van antes de la cita"),
    ],
)
def test_a_rule_that_cannot_work_is_refused_with_a_sentence(mine, field, value, sentence):
    doctor, client = mine
    response = client.post(
        reverse("admin:reminders_reminderrule_add"), RULE | {"doctor": doctor.pk, field: value}
    )
    assert response.status_code == 200
    assert sentence in str(response.context["errors"])
    assert not ReminderRule.objects.filter(doctor=doctor).exists()


def test_a_second_active_rule_for_the_same_moment_is_refused(mine):
    doctor, client = mine
    make_rule(-2880, doctor=doctor)
    response = client.post(reverse("admin:reminders_reminderrule_add"), RULE | {"doctor": doctor.pk})
    assert "Ya hay una regla activa" in str(response.context["errors"])


def test_what_was_sent_is_only_looked_at(mine):
    doctor, client = mine
    row = make_delivery()
    row.appointment.doctor = doctor
    row.appointment.save()
    ReminderDelivery.objects.update(sequence=1)
    dispatch.prepare(1, now=clock.now())
    address = reverse("admin:reminders_reminderdelivery_change", args=[row.pk])
    page = client.get(address)
    assert page.status_code == 200
    assert 'name="_save"' not in page.content.decode()
    assert "Sin resultado" in page.content.decode()  # the attempt beneath it
    assert client.post(address, {"status": "sent"}).status_code == 403
    assert client.get(reverse("admin:reminders_reminderdelivery_add")).status_code == 403
    row.refresh_from_db()
    assert row.status == "sending"


def test_another_doctors_rows_do_not_exist(mine):
    _, client = mine
    row = make_delivery()
    dispatch.prepare(1, now=clock.now())
    attempt = row.attempts.get()
    rule = make_rule(-2880, doctor=row.appointment.doctor)
    event = ConsentEvent.objects.get(patient=row.patient)
    for name, pk in (
        ("reminderdelivery", row.pk), ("deliveryattempt", attempt.pk), ("reminderrule", rule.pk),
        ("consentevent", event.pk),
    ):  # fmt: skip
        for page in ("change", "history", "delete"):
            response = client.get(reverse(f"admin:reminders_{name}_{page}", args=[pk]))
            assert response.status_code in (403, 404), (name, page)
            assert row.patient.full_name not in response.content.decode()
        assert client.get(reverse(f"admin:reminders_{name}_change", args=[pk])).status_code == 404
        listed = client.get(reverse(f"admin:reminders_{name}_changelist")).content.decode()
        assert row.patient.full_name not in listed
        assert reverse(f"admin:reminders_{name}_change", args=[pk]) not in listed


def test_consent_is_added_by_the_desk_and_never_changed(mine):
    doctor, client = mine
    row = make_delivery()
    row.patient.doctors.add(doctor)
    response = client.post(
        reverse("admin:reminders_consentevent_add"),
        {"patient": row.patient_id, "channel": "whatsapp", "evidence": "firmó el formulario"},
    )
    assert response.status_code == 302
    event = ConsentEvent.objects.first()
    assert (event.agrees, event.how, event.recorded_by) == (False, "desk", doctor.user)
    assert client.post(reverse("admin:reminders_consentevent_change", args=[event.pk]), {}).status_code == 403


@pytest.mark.parametrize(
    "name", ["reminderrule", "reminderdelivery", "deliveryattempt", "reply", "consentevent"]
)
def test_the_lists_ask_few_questions_however_long_they_are(admin_client, django_assert_max_num_queries, name):
    for _ in range(6):
        make_delivery()
    dispatch.prepare(6, now=clock.now())
    with django_assert_max_num_queries(12):
        assert admin_client.get(reverse(f"admin:reminders_{name}_changelist")).status_code == 200
