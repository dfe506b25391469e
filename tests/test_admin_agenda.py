"""The agenda's pages in the admin: forms, verbs as actions, words that help."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from appointments import booking
from appointments.models import Appointment, Availability, AvailabilityException, Doctor, Office, Patient
from tests.factories import (
    MARK,
    caracas,
    make_appointment,
    make_doctor,
    make_office,
    make_patient,
    make_specialty,
    make_user,
    soon,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def ruiz() -> Doctor:
    return make_doctor(user=make_user())


@pytest.fixture
def client(ruiz: Doctor) -> Client:
    return logged_in(ruiz.user)


def logged_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def address(model: str, page: str, *args: object) -> str:
    return reverse(f"admin:appointments_{model}_{page}", args=args)


def fields_of(visit: Appointment, **changes: Any) -> dict[str, Any]:
    history = {"history-TOTAL_FORMS": 0, "history-INITIAL_FORMS": 0}
    return {
        "doctor": visit.doctor_id,
        "patient": visit.patient_id,
        "specialty": "",
        "office": visit.office_id,
        "date": f"{visit.date:%d/%m/%Y}",
        "start_time": f"{visit.start_time:%H:%M}",
        "duration_minutes": visit.duration_minutes,
        "modality": visit.modality,
        "video_url": "",
        **history,
        **changes,
    }


def new_fields(doctor: Doctor, **changes: Any) -> dict[str, Any]:
    patient = Patient.objects.filter(doctors=doctor).first() or make_patient(doctor=doctor)
    visit = Appointment(
        doctor=doctor, patient=patient, office=doctor.offices.get(), date=caracas("2026-09-17T00:00").date(),
        start_time=caracas("2026-09-17T10:00").time(),
    )  # fmt: skip
    return fields_of(visit, **changes)


def errors(response: Any) -> dict[str, list[str]]:
    assert response.status_code == 200
    return dict(response.context["adminform"].form.errors)


def told(response: Any) -> list[str]:
    return [str(message) for message in get_messages(response.wsgi_request)]


def act(client: Client, action: str, *visits: Appointment) -> Any:
    chosen = {"action": action, "_selected_action": [str(visit.pk) for visit in visits]}
    return client.post(address("appointment", "changelist"), chosen)


# Visits


def test_a_visit_booked_at_the_desk_is_booked_by_the_verb(client, ruiz):
    response = client.post(address("appointment", "add"), new_fields(ruiz))
    assert response.status_code == 302, errors(response)
    visit = Appointment.objects.get()
    assert (visit.starts_at, visit.status) == (caracas("2026-09-17T10:00"), "scheduled")
    assert visit.booked_at is not None
    assert abs((visit.booked_at - visit.created_at).total_seconds()) < 60
    row = visit.history.get()
    assert (row.source, row.actor) == ("admin", ruiz.user)


def test_a_changed_start_moves_the_visit_by_the_verb(client, ruiz):
    visit = make_appointment(doctor=ruiz)
    booking.confirm(visit, actor=booking.SYSTEM)
    response = client.post(
        address("appointment", "change", visit.pk), fields_of(visit, date="18/09/2026", start_time="15:00")
    )
    assert response.status_code == 302, errors(response)
    visit.refresh_from_db()
    assert (visit.starts_at, visit.status, visit.sequence) == (caracas("2026-09-18T15:00"), "scheduled", 1)
    assert visit.history.last().source == "admin"


def test_saving_without_a_change_changes_nothing(client, ruiz):
    visit = make_appointment(doctor=ruiz)
    assert client.post(address("appointment", "change", visit.pk), fields_of(visit)).status_code == 302
    visit.refresh_from_db()
    assert (visit.sequence, visit.history.count()) == (0, 1)


def test_doctor_start_and_specialty_change_in_one_stroke(ruiz):
    visit = make_appointment(doctor=ruiz)
    other = make_doctor()
    make_appointment(doctor=ruiz, at="2026-09-18T15:00")  # which is no matter: it is the other's time
    change = fields_of(
        visit, doctor=other.pk, office=other.offices.get().pk, date="18/09/2026", start_time="15:00",
        specialty=make_specialty().pk,
    )  # fmt: skip
    ops = logged_in(make_user(is_superuser=True))
    response = ops.post(address("appointment", "change", visit.pk), change)
    assert response.status_code == 302, errors(response)
    visit.refresh_from_db()
    assert (visit.doctor, visit.sequence, visit.history.count()) == (other, 1, 2)
    assert visit.specialty.name == "Cardiología"
    assert other in visit.patient.doctors.all()


def test_an_overlap_is_an_error_of_the_form(client, ruiz):
    make_appointment(doctor=ruiz)
    response = client.post(address("appointment", "add"), new_fields(ruiz, start_time="10:15"))
    assert errors(response) == {"start_time": ["El médico ya tiene una cita a esa hora."]}
    response = client.post(
        address("appointment", "add"), new_fields(ruiz, start_time="10:15", is_overbooked="on")
    )
    assert response.status_code == 302


def test_a_skipped_hour_is_refused_with_the_first_valid_one(client, ruiz):
    Office.objects.update(time_zone="America/Santiago")
    response = client.post(
        address("appointment", "add"), new_fields(ruiz, date="06/09/2026", start_time="00:30")
    )
    assert errors(response) == {
        "start_time": [
            "Esa hora no existe ese día: el reloj se adelanta. "
            "La primera hora válida es las 01:00 del 06/09/2026."
        ]
    }


def test_a_repeated_hour_is_told(client, ruiz):
    Office.objects.update(time_zone="America/New_York")
    response = client.post(
        address("appointment", "add"), new_fields(ruiz, date="01/11/2026", start_time="01:30")
    )
    assert told(response)[0] == (
        "Esa hora ocurre dos veces ese día, porque el reloj se atrasa: se tomó la primera."
    )


def test_an_office_where_the_doctor_does_not_work_is_refused(ruiz):
    elsewhere = make_office()
    response = logged_in(make_user(is_superuser=True)).post(
        address("appointment", "add"), new_fields(ruiz, office=elsewhere.pk)
    )
    assert errors(response) == {"office": ["Este médico no atiende en ese consultorio."]}


@pytest.mark.parametrize("status", ["completed", "cancelled", "no_show", "in_consultation"])
def test_a_visit_that_is_no_longer_open_is_only_looked_at(status, client, ruiz):
    visit = make_appointment(doctor=ruiz)
    Appointment.objects.update(status=status)
    page = address("appointment", "change", visit.pk)
    assert 'name="start_time"' not in client.get(page).content.decode()
    client.post(page, fields_of(visit, start_time="15:00"))
    assert Appointment.objects.get().start_time == visit.start_time


def test_the_form_never_sets_a_status(client, ruiz):
    visit = make_appointment(doctor=ruiz)
    client.post(address("appointment", "change", visit.pk), fields_of(visit, status="completed", sequence=9))
    visit.refresh_from_db()
    assert (visit.status, visit.sequence) == ("scheduled", 0)


@pytest.mark.parametrize(
    ("action", "before", "after"),
    [
        ("confirm", "scheduled", "confirmed"),
        ("check_in", "confirmed", "checked_in"),
        ("complete", "checked_in", "completed"),
        ("mark_no_show", "scheduled", "no_show"),
        ("cancel", "confirmed", "cancelled"),
        ("reinstate", "cancelled", "scheduled"),
    ],
)
def test_an_action_calls_the_verb(action, before, after, client, ruiz):
    visit = make_appointment(doctor=ruiz)
    Appointment.objects.update(status=before)
    assert told(act(client, action, visit)) == ["Una cita quedó cambiada."]
    visit.refresh_from_db()
    assert visit.status == after
    assert (visit.history.last().source, visit.history.last().actor) == ("admin", ruiz.user)
    [again] = told(act(client, action, visit))[-1:]
    assert again == "Una cita quedó igual: su estado no lo permite, o ya estaba así."


def test_an_action_on_many_tells_how_many(client, ruiz):
    visits = [make_appointment(doctor=ruiz, at=f"2026-09-17T{hour}:00") for hour in (10, 11, 12)]
    booking.cancel(visits[0], actor=booking.SYSTEM)
    assert told(act(client, "confirm", *visits)) == [
        "2 citas quedaron cambiadas.",
        "Una cita quedó igual: su estado no lo permite, o ya estaba así.",
    ]


def test_reinstating_into_a_time_given_away_is_told(client, ruiz):
    visit = make_appointment(doctor=ruiz)
    booking.cancel(visit, actor=booking.SYSTEM)
    make_appointment(doctor=ruiz)
    assert told(act(client, "reinstate", visit)) == [
        "17/09/2026 10:00: El médico ya tiene una cita a esa hora."
    ]


def test_deleting_cancels_and_says_so(client, ruiz):
    visit = make_appointment(doctor=ruiz)
    page = address("appointment", "delete", visit.pk)
    asked = client.get(page).content.decode()
    assert "se cancelará. No se borra" in asked
    assert MARK not in asked
    assert told(client.post(page, {"post": "yes"})) == ["La cita del 17/09/2026 10:00 quedó cancelada."]
    visit.refresh_from_db()
    assert (visit.status, visit.history.last().source) == ("cancelled", "admin")
    assert LogEntry.objects.get().change_message == "Cancelada."
    assert client.post(page, {"post": "yes"}).status_code == 403


def test_no_action_deletes(client, ruiz):
    visit = make_appointment(doctor=ruiz)
    act(client, "delete_selected", visit)
    visit.refresh_from_db()
    assert visit.status == "scheduled"


def test_titles_hold_no_patients_name(client, ruiz):
    visit = make_appointment(doctor=ruiz)
    for model, key in [("appointment", visit.pk), ("patient", visit.patient_id)]:
        for page in ("change", "history"):
            html = client.get(address(model, page, key)).content.decode()
            assert MARK not in html[html.index("<title>") : html.index("</title>")]


# Patients


def patient_fields(**changes: Any) -> dict[str, Any]:
    return {
        "full_name": f"Ana {MARK}", "phone": "", "email": "", "time_zone": "",
        "care_set-TOTAL_FORMS": 0, "care_set-INITIAL_FORMS": 0, **changes,
    }  # fmt: skip


def test_a_phone_is_kept_as_typed_and_as_dialled(client):
    typed = "0412-5550001 / 0212-5551234"
    response = client.post(address("patient", "add"), patient_fields(phone=typed))
    assert response.status_code == 302, errors(response)
    patient = Patient.objects.get()
    assert (patient.phone, patient.phone_as_typed) == ("+584125550001", typed)
    assert "Hay varios teléfonos: se tomó +584125550001." in told(response)


def test_a_landline_is_warned_of(client):
    response = client.post(address("patient", "add"), patient_fields(phone="0212-5551234"))
    assert "+582125551234 es un teléfono fijo: no recibirá WhatsApp." in told(response)


def test_what_is_no_phone_is_refused_with_a_sentence(client):
    response = client.post(address("patient", "add"), patient_fields(phone="555-1234"))
    assert errors(response) == {
        "phone": ["A «555-1234» le falta el código de área; por ejemplo, 0412 o 0212."]
    }


def test_another_number_forgets_what_whatsapp_told_of_the_former(client, ruiz):
    patient = make_patient(doctor=ruiz, wa_id="584125550000", bsuid="VE.1")
    care = {"care_set-TOTAL_FORMS": 1, "care_set-INITIAL_FORMS": 1,
            "care_set-0-id": patient.care_set.get().pk, "care_set-0-patient": patient.pk,
            "care_set-0-doctor": ruiz.pk}  # fmt: skip
    page = address("patient", "change", patient.pk)
    assert client.post(page, patient_fields(phone=patient.phone, **care)).status_code == 302
    patient.refresh_from_db()
    assert (patient.wa_id, patient.bsuid) == ("584125550000", "VE.1")
    assert client.post(page, patient_fields(phone="0412-5559999", **care)).status_code == 302
    patient.refresh_from_db()
    assert (patient.phone, patient.wa_id, patient.bsuid) == ("+584125559999", "", "")


def test_whoever_makes_a_patient_treats_them(client, ruiz):
    other = make_doctor()
    other.staff.add(ruiz.user)
    client.post(address("patient", "add"), patient_fields())
    assert set(Patient.objects.get().doctors.all()) == {ruiz, other}


def test_a_patient_made_for_one_doctor_is_linked_to_that_one_alone(client, ruiz):
    make_doctor().staff.add(ruiz.user)
    chosen = {"care_set-TOTAL_FORMS": 1, "care_set-0-doctor": ruiz.pk}
    response = client.post(address("patient", "add"), patient_fields(**chosen))
    assert response.status_code == 302, errors(response)
    assert list(Patient.objects.get().doctors.all()) == [ruiz]


# The rest


def test_a_zone_that_would_make_visits_coincide_is_refused_with_a_sentence(ruiz):
    here, there = ruiz.offices.get(), make_office()
    ruiz.offices.add(there)
    make_appointment(doctor=ruiz, office=here, at="2030-09-17T10:00")
    make_appointment(doctor=ruiz, office=there, at="2030-09-17T11:00")
    ops = logged_in(make_user(is_superuser=True))
    response = ops.post(address("office", "change", here.pk), {"name": "X", "time_zone": "America/Bogota"})
    assert told(response) == [
        "No se guardó: con esa zona horaria, dos citas de un mismo médico coincidirían."
    ]
    assert Office.objects.get(pk=here.pk).time_zone == "America/Caracas"


def test_only_ops_change_doctors_specialties_users_and_zones(client, ruiz):
    pages = [
        address("doctor", "add"), address("specialty", "add"), address("office", "add"),
        reverse("admin:auth_user_changelist"), reverse("admin:auth_user_add"),
    ]  # fmt: skip
    assert [client.get(page).status_code for page in pages] == [403] * 5
    assert client.post(address("doctor", "change", ruiz.pk), {"name": "X"}).status_code == 403
    office = ruiz.offices.get()
    changed = client.post(
        address("office", "change", office.pk), {"name": "Piso 4", "time_zone": "America/Bogota"}
    )
    assert changed.status_code == 302
    office.refresh_from_db()
    assert (office.name, office.time_zone) == ("Piso 4", "America/Caracas")


def test_staff_who_act_for_nobody_have_no_pages():
    client = logged_in(make_user())
    assert client.get(address("appointment", "changelist")).status_code == 403


@pytest.mark.parametrize(
    "model", ["appointment", "patient", "doctor", "office", "availability", "availabilityexception"]
)
def test_a_list_asks_the_database_no_more_for_more_rows(model, client, ruiz, django_assert_max_num_queries):
    def fill(days: range) -> None:
        for day in days:
            at = caracas(f"2026-09-{day:02d}T10:00")
            make_appointment(doctor=ruiz, at=at)
            Availability.objects.create(
                doctor=ruiz, office=ruiz.offices.first(), weekday=0, starts="08:00", ends="12:00"
            )
            AvailabilityException.objects.create(
                doctor=ruiz, kind="closed", starts_at=at, ends_at=caracas("2027-01-01T00:00")
            )
            make_doctor(office=ruiz.offices.first()).staff.add(ruiz.user)
            ruiz.offices.add(make_office())

    fill(range(1, 3))
    page = address(model, "changelist")
    client.get(page)
    with django_assert_max_num_queries(30) as few:
        client.get(page)
    fill(range(3, 12))
    with django_assert_max_num_queries(len(few)):
        assert client.get(page).status_code == 200


@pytest.mark.parametrize(
    "model",
    ["appointment", "patient", "doctor", "office", "specialty", "availability", "availabilityexception"],
)
def test_every_list_and_empty_form_opens_for_ops(model):
    make_appointment()
    ops = logged_in(make_user(is_superuser=True))
    assert ops.get(address(model, "changelist")).status_code == 200
    assert ops.get(address(model, "changelist"), {"q": "a"}).status_code == 200
    assert ops.get(address(model, "add")).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_a_race_for_one_time_ends_in_the_form_and_not_in_a_fault():
    doctor = make_doctor(user=make_user())
    client = logged_in(doctor.user)
    fields = new_fields(doctor)
    patient = make_patient(doctor=doctor)

    def post() -> Any:
        try:
            return client.post(address("appointment", "add"), fields)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            make_appointment(doctor=doctor, patient=patient)
            # The form does not see what is not committed; its booking waits for us.
            response = pool.submit(post)
            wait_until_somebody_waits()
        assert errors(response.result(timeout=30)) == {
            "start_time": ["El médico ya tiene una cita a esa hora."]
        }
    assert Appointment.objects.count() == 1


def wait_until_somebody_waits() -> None:
    with connection.cursor() as cursor:
        for _look in range(100_000):
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone() != (0,):
                return
    raise AssertionError("nobody came to wait for the lock")


def test_visits_of_which_nobody_said_how_they_went_are_a_list(client, ruiz, set_clock):
    """Case E3: silence is not attendance."""
    set_clock("2026-09-10T09:00")
    forgotten = make_appointment(at="2026-09-17T10:00", doctor=ruiz)
    done = make_appointment(at="2026-09-17T11:00", doctor=ruiz)
    booking.complete(done, actor=booking.SYSTEM)
    foreign = make_appointment(at="2026-09-17T10:00")
    fresh = make_appointment(at="2026-09-17T12:00", doctor=ruiz)
    set_clock("2026-09-18T10:30")
    found = client.get(address("appointment", "changelist"), {"unclosed": "1"}).context["cl"].result_list
    assert list(found) == [forgotten]
    assert foreign not in found and fresh not in found


def test_a_form_that_stood_open_does_not_move_the_visit_back(client, ruiz):
    visit = make_appointment(at=soon(48), doctor=ruiz)
    stale = fields_of(visit, instructions="En ayunas", seen_version=visit.sequence)
    Appointment.objects.filter(pk=visit.pk).update(start_time=(soon(49)).time())
    visit.refresh_from_db()
    moved_to = visit.starts_at
    response = client.post(address("appointment", "change", visit.pk), stale)
    assert "cambió mientras tenía esta página abierta" in str(errors(response))
    visit.refresh_from_db()
    assert (visit.starts_at, visit.instructions) == (moved_to, "")


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("date", "10/12/3026", "revise el año"),
        ("date", "10/12/2020", "revise el año"),
        ("duration_minutes", "481", "480"),
    ],
)
def test_what_was_most_probably_mistyped_is_refused(client, ruiz, field, value, word):
    response = client.post(address("appointment", "add"), new_fields(ruiz, **{field: value}))
    assert word in str(errors(response)[field])
    assert not Appointment.objects.exists()


def test_a_visit_of_next_week_is_not_marked_as_attended(client, ruiz):
    visit = make_appointment(at=soon(24 * 7), doctor=ruiz)
    for action in ("check_in", "complete", "mark_no_show"):
        assert any("faltan días" in message for message in told(act(client, action, visit)))
    visit.refresh_from_db()
    assert visit.status == "scheduled"
