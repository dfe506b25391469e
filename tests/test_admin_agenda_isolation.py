"""A crawl of the agenda's pages as another doctor: 404, and no byte of what is not theirs."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from appointments import booking
from appointments.models import (
    Appointment,
    Availability,
    AvailabilityException,
    Care,
    Doctor,
    Office,
    Patient,
)
from appointments.scoped_admin import ScopedAdmin
from tests.factories import caracas, make_appointment, make_doctor, make_office, make_patient, make_user

pytestmark = pytest.mark.django_db

SECRET = "Xylophon"
"""Stands in everything of the other doctor, and nowhere else."""
MODELS = [Appointment, Availability, AvailabilityException, Doctor, Office, Patient]
THEIR_PHONE = "+584125557777"


def make_full_doctor(word: str, **patient: Any) -> Doctor:
    """A doctor with one row of everything, all with the word in them."""
    user = make_user(username=f"{word}-doctor")
    doctor = make_doctor(name=word, user=user, office=make_office(name=word, address=word))
    doctor.staff.add(make_user(username=f"{word}-staff"))
    known = make_patient(doctor=doctor, full_name=word, email=f"{word}@b.example", **patient)
    visit = make_appointment(doctor=doctor, patient=known)
    booking.confirm(visit, actor=booking.Actor(source="admin", user_id=user.pk))
    Availability.objects.create(doctor=doctor, office=visit.office, weekday=0, starts="08:00", ends="12:00")
    AvailabilityException.objects.create(
        doctor=doctor, kind="closed", note=word,
        starts_at=caracas("2026-12-24T08:00"), ends_at=caracas("2026-12-25T08:00"),
    )  # fmt: skip
    return doctor


@pytest.fixture(autouse=True)
def theirs() -> Doctor:
    return make_full_doctor(SECRET, phone=THEIR_PHONE)


@pytest.fixture
def mine() -> Doctor:
    return make_full_doctor("Mine")


@pytest.fixture(params=["doctor", "secretary"])
def client(request: Any, mine: Doctor) -> Client:
    client = Client()
    client.force_login(mine.user if request.param == "doctor" else mine.staff.get())
    return client


def address(model: Any, page: str, *args: object) -> str:
    return reverse(f"admin:appointments_{model._meta.model_name}_{page}", args=args)


def of(doctor: Doctor, model: Any) -> Any:
    return model.objects.for_user(doctor.user).get()


def clean(response: Any) -> Any:
    body = response.content.decode()
    assert SECRET not in body
    assert THEIR_PHONE not in body
    return response


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("page", ["change", "delete", "history"])
def test_a_page_of_another_doctors_row_does_not_exist(model, page, client, theirs):
    # Nobody but ops deletes a doctor, an office or a patient, whosever they are.
    expected = {403} if page == "delete" and model in (Doctor, Office, Patient) else {404}
    key = of(theirs, model).pk
    for response in (
        client.get(address(model, page, key)),
        client.get(address(model, page, key), {"_popup": 1}),
        client.post(address(model, page, key), {"post": "yes", "name": "X"}),
    ):
        if model is Doctor and response.wsgi_request.method == "POST":
            assert response.status_code in (403, 404)
        else:
            assert response.status_code in expected
        clean(response)


def test_an_own_page_exists(client, mine):
    for model in MODELS:
        for page in ("change", "history"):
            clean(client.get(address(model, page, of(mine, model).pk)))
    assert client.get(address(Appointment, "change", of(mine, Appointment).pk)).status_code == 200


@pytest.mark.parametrize("model", MODELS)
def test_a_list_shows_and_finds_and_filters_only_own_rows(model, client, theirs):
    # A part of the word is enough to find by, and is all that the page may repeat.
    page = address(model, "changelist")
    asked = [
        {}, {"q": SECRET[:5]}, {"q": THEIR_PHONE[-6:]}, {"all": ""}, {"o": "1.2.3"},
        {"doctor__id__exact": theirs.pk}, {"office__id__exact": of(theirs, Office).pk},
        {"doctors__id__exact": theirs.pk}, {"_facets": "True"}, {"_popup": 1},
    ]  # fmt: skip
    for query in asked:
        assert clean(client.get(page, query)).status_code in (200, 302, 400)


@pytest.mark.parametrize(
    ("model", "lookup"),
    [
        (Patient, "doctors__name__startswith"),
        (Patient, "appointment__doctor__name"),
        (Patient, "appointment__date"),
        (Patient, "care__doctor"),
        (Appointment, "patient__email__startswith"),
        (Appointment, "patient__doctors__name"),
        (Appointment, "doctor__user__password__startswith"),
        (Doctor, "user__password__startswith"),
        (Doctor, "staff__username"),
        (Office, "doctors__name"),
    ],
)
def test_an_address_cannot_ask_through_related_rows(model, lookup, client):
    assert client.get(address(model, "changelist"), {lookup: "x"}).status_code == 400


def test_a_filter_names_own_rows_and_answers_for_no_others(client, mine, theirs):
    shared = of(mine, Patient)
    Care.objects.create(doctor=theirs, patient=shared)
    page = address(Patient, "changelist")
    clean(client.get(page))
    for doctor, rows in [(mine, 1), (theirs, 0)]:
        response = client.get(page, {"doctors__id__exact": doctor.pk})
        assert response.context["cl"].result_count == rows


def test_a_shared_patient_shows_nothing_of_the_other_doctor(client, mine, theirs):
    shared = of(mine, Patient)
    Care.objects.create(doctor=theirs, patient=shared)
    make_appointment(doctor=theirs, patient=shared, at="2026-09-20T10:00")
    for page in ("change", "history"):
        clean(client.get(address(Patient, page, shared.pk)))
    assert client.get(address(Appointment, "changelist")).context["cl"].result_count == 1


def autocomplete(client: Client, model: str, field: str, term: str = "") -> Any:
    return client.get(
        reverse("admin:autocomplete"),
        {"app_label": "appointments", "model_name": model, "field_name": field, "term": term},
    )


@pytest.mark.parametrize("term", ["", SECRET, THEIR_PHONE])
@pytest.mark.parametrize(
    ("model", "field"),
    [("appointment", "patient"), ("appointment", "doctor"), ("appointment", "office"), ("care", "patient"),
     ("availability", "doctor")],
)  # fmt: skip
def test_autocomplete_offers_only_own_rows(model, field, term, client):
    assert clean(autocomplete(client, model, field, term)).status_code == 200


def test_autocomplete_of_users_is_for_ops(client):
    assert autocomplete(client, "patient", "user").status_code == 403
    assert autocomplete(client, "doctor", "staff").status_code == 403


@pytest.mark.parametrize("model", [Appointment, Availability, AvailabilityException, Patient])
def test_an_empty_form_offers_only_own_rows(model, client):
    assert clean(client.get(address(model, "add"))).status_code == 200


@pytest.mark.parametrize("field", ["doctor", "patient", "office"])
def test_another_doctors_row_cannot_be_grafted_onto_an_own_visit(field, client, mine, theirs):
    visit = of(mine, Appointment)
    foreign = {"doctor": Doctor, "patient": Patient, "office": Office}[field]
    fields = {
        "doctor": mine.pk, "patient": visit.patient_id, "office": visit.office_id, "date": "18/09/2026",
        "start_time": "10:00", "duration_minutes": 30, "modality": "in_person",
        "history-TOTAL_FORMS": 0, "history-INITIAL_FORMS": 0,
        field: of(theirs, foreign).pk,
    }  # fmt: skip
    for page in (address(Appointment, "add"), address(Appointment, "change", visit.pk)):
        response = clean(client.post(page, fields))
        assert field in response.context["adminform"].form.errors
    assert Appointment.objects.count() == 2
    visit.refresh_from_db()
    assert visit.sequence == 0


def test_another_doctors_care_link_cannot_be_written(client, mine, theirs):
    patient, link = of(mine, Patient), Care.objects.get(doctor=theirs)
    fields = {"full_name": "Mine", "care_set-TOTAL_FORMS": 1, "care_set-INITIAL_FORMS": 0,
              "care_set-0-patient": patient.pk, "care_set-0-doctor": theirs.pk}  # fmt: skip
    clean(client.post(address(Patient, "change", patient.pk), fields))
    fields |= {"care_set-INITIAL_FORMS": 1, "care_set-0-id": link.pk, "care_set-0-doctor": mine.pk}
    clean(client.post(address(Patient, "change", patient.pk), fields))
    link.refresh_from_db()
    assert (link.doctor, Care.objects.count()) == (theirs, 2)


@pytest.mark.parametrize("action", ["confirm", "cancel", "complete", "reinstate", "no_such_action"])
def test_an_action_on_another_doctors_visit_does_not_exist(action, client, mine, theirs):
    before = Appointment.objects.order_by("pk").values_list("status", flat=True)
    for chosen in (
        [of(theirs, Appointment).pk],
        [of(mine, Appointment).pk, of(theirs, Appointment).pk],
        ["x"],
    ):
        response = client.post(
            address(Appointment, "changelist"), {"action": action, "_selected_action": chosen}
        )
        assert response.status_code == 404
    assert set(before) == {"confirmed"}


def test_deleting_other_doctors_rows_by_action_does_not_exist(client, theirs):
    response = client.post(
        address(Availability, "changelist"),
        {"action": "delete_selected", "_selected_action": [of(theirs, Availability).pk], "post": "yes"},
    )
    assert response.status_code == 404
    assert Availability.objects.for_user(theirs.user).exists()


def test_every_model_of_the_agenda_in_the_admin_is_limited():
    registered = [
        model_admin
        for model, model_admin in admin.site._registry.items()
        if model._meta.app_label == "appointments"
    ]
    assert len(registered) == 7
    assert all(isinstance(model_admin, ScopedAdmin) for model_admin in registered)
