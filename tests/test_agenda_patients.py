"""Whom a line of an agenda means: only among the doctor's own patients, by name and phone."""

from __future__ import annotations

from datetime import UTC

import pytest

from appointments.agenda_import import Report, read, take_in
from appointments.models import Appointment, Doctor, Patient
from tests.factories import caracas, make_appointment, make_doctor, make_patient

pytestmark = pytest.mark.django_db

NOW = caracas("2026-09-10T09:00").astimezone(UTC)
PHONE, OTHER_PHONE = "+584120000001", "+584140000002"


@pytest.fixture
def ruiz() -> Doctor:
    return make_doctor(name="Carmen Ruiz", title="Dra.")


def import_rows(*rows: str) -> Report:
    text = "\n".join(["ID;Paciente;Teléfono;Correo;Médico;Fecha;Hora", *rows])
    return take_in(read(text.encode()), doctors=Doctor.objects.all(), now=NOW, dry_run=False)


def notes(report: Report) -> list[str]:
    return [note.text for note in report.notes]


@pytest.mark.parametrize(("stored", "typed"), [(PHONE, "0412-0000001"), ("", "0412-0000001"), (PHONE, "")])
def test_one_name_and_no_other_phone_is_one_patient(stored, typed, ruiz):
    ana = make_patient(doctor=ruiz, full_name="Ana Páez", phone=stored)
    report = import_rows(f";PAEZ, ANA;{typed};;Carmen Ruiz;17/09/2026;10:00")
    assert (report.created, notes(report)) == (1, [])
    assert Appointment.objects.get().patient == ana
    ana.refresh_from_db()
    assert (ana.full_name, ana.phone) == ("Ana Páez", PHONE)


def test_a_namesake_with_another_phone_is_a_new_patient_with_a_note(ruiz):
    make_patient(doctor=ruiz, full_name="Ana Páez", phone=PHONE)
    report = import_rows(";Ana Páez;0414-0000002;;Carmen Ruiz;17/09/2026;10:00")
    assert notes(report) == ["Ya hay un paciente con ese nombre y otro teléfono: se tomó por otra persona."]
    assert set(Patient.objects.values_list("phone", flat=True)) == {PHONE, OTHER_PHONE}


def test_the_phone_of_a_visit_known_by_its_identifier_was_corrected(ruiz):
    import_rows("A-1;Ana Páez;0412-0000001;;Carmen Ruiz;17/09/2026;10:00")
    report = import_rows("A-1;Ana Páez;0414-0000002;;Carmen Ruiz;18/09/2026;10:00")
    assert (report.moved, report.bad, notes(report)) == (1, [], [])
    assert Patient.objects.get().phone == OTHER_PHONE


def test_the_phone_of_a_visit_known_by_its_day_was_corrected(ruiz):
    import_rows(";Ana Páez;0412-0000001;;Carmen Ruiz;17/09/2026;10:00")
    report = import_rows(";Ana Páez;0414-0000002;;Carmen Ruiz;17/09/2026;10:00")
    assert (report.unchanged, notes(report)) == (1, [])
    assert Patient.objects.get().phone == OTHER_PHONE


def test_what_whatsapp_told_of_the_former_number_goes_with_it(ruiz):
    import_rows("A-1;Ana Páez;0412-0000001;;Carmen Ruiz;17/09/2026;10:00")
    Patient.objects.update(wa_id="584120000001", bsuid="VE.1")
    import_rows("A-1;Ana Páez;0414-0000002;;Carmen Ruiz;17/09/2026;10:00")
    ana = Patient.objects.get()
    assert (ana.phone_as_typed, ana.wa_id, ana.bsuid) == ("0414-0000002", "", "")


def test_email_is_filled_in_and_changed_and_a_blank_erases_nothing(ruiz):
    row = "A-1;Ana Páez;%s;%s;Carmen Ruiz;17/09/2026;10:00"
    for phone, email in [("", ""), ("0412-0000001", "a@b.example"), ("", ""), ("", "c@d.example"), ("", "")]:
        assert import_rows(row % (phone, email)).bad == []
    ana = Patient.objects.get()
    assert (ana.phone, ana.email) == (PHONE, "c@d.example")


def test_lines_that_disagree_on_one_patients_contacts_settle_on_the_first(ruiz):
    rows = [
        "A-1;Ana Páez;0412-0000001;a@b.example;Carmen Ruiz;17/09/2026;10:00",
        "A-2;Ana Páez;0412-0000001;c@d.example;Carmen Ruiz;18/09/2026;10:00",
    ]
    assert notes(import_rows(*rows)) == ["Otra línea da otro correo al mismo paciente: se conservó aquel."]
    ana = Patient.objects.values().get()
    assert ana["email"] == "a@b.example"
    import_rows(*rows)
    assert Patient.objects.values().get() == ana


def test_two_phones_of_one_patient_settle_too(ruiz):
    import_rows(*(f"A-{n};Ana Páez;;;Carmen Ruiz;1{n}/09/2026;10:00" for n in (1, 2)))
    rows = [
        "A-1;Ana Páez;0412-0000001;;Carmen Ruiz;11/09/2026;10:00",
        "A-2;Ana Páez;0414-0000002;;Carmen Ruiz;12/09/2026;10:00",
    ]
    assert notes(import_rows(*rows)) == ["Otra línea da otro teléfono al mismo paciente: se conservó aquel."]
    import_rows(*rows)
    assert Patient.objects.get().phone == PHONE


def test_a_line_without_phone_that_fits_two_patients_is_told(ruiz):
    make_patient(doctor=ruiz, full_name="Ana Páez", phone=PHONE)
    expected = make_patient(doctor=ruiz, full_name="Ana Páez", phone=OTHER_PHONE)
    row = ";Ana Páez;;;Carmen Ruiz;17/09/2026;12:00"
    assert [line.reason for line in import_rows(row).bad] == [
        "Hay varios pacientes con ese nombre: hace falta el teléfono."
    ]
    make_appointment(doctor=ruiz, patient=expected, at="2026-09-17T10:00")
    assert import_rows(row).moved == 1


def test_a_family_shares_one_number_and_stays_several_patients(ruiz):
    import_rows(
        ";María Salazar;0412-0000001;;Carmen Ruiz;17/09/2026;9:00",
        ";Sofía Salazar;0412-0000001;;Carmen Ruiz;17/09/2026;9:30",
    )
    assert list(Patient.objects.values_list("full_name", "phone")) == [
        ("María Salazar", PHONE),
        ("Sofía Salazar", PHONE),
    ]


def test_a_patient_of_another_doctor_is_neither_found_nor_touched_nor_told(ruiz):
    theirs = make_patient(doctor=make_doctor(name="Luis Andrade"), full_name="Ana Páez", phone=PHONE)
    before = Patient.objects.values().get(pk=theirs.pk)
    report = import_rows(";Ana Páez;0412-0000001;ana@b.example;Carmen Ruiz;17/09/2026;10:00")
    assert (report.created, notes(report)) == (1, [])
    mine = Appointment.objects.get().patient
    assert mine != theirs
    assert Patient.objects.values().get(pk=theirs.pk) == before
    assert list(mine.doctors.all()) == [ruiz]


@pytest.mark.parametrize(
    ("typed", "stored", "note"),
    [
        (
            "0414-00000",
            "",
            "«0414-00000» no es un teléfono de Venezuela (once cifras, como 0412-0000001) ni uno "
            "de otro país con + delante. La cita entra sin teléfono, y no habrá WhatsApp.",
        ),
        ("0212-5551234", "+582125551234", "+582125551234 es un teléfono fijo: no recibirá WhatsApp."),
        ("0212-5551234 / 0412-0000001", PHONE, f"Hay varios teléfonos: se tomó {PHONE}."),
    ],
)
def test_a_phone_that_whatsapp_cannot_reach_does_not_lose_the_visit(typed, stored, note, ruiz):
    report = import_rows(f";Ana Páez;{typed};;Carmen Ruiz;17/09/2026;10:00")
    assert (report.created, notes(report)) == (1, [note])
    assert Patient.objects.get().phone == stored


def test_a_bad_phone_leaves_the_good_one_in_place(ruiz):
    import_rows("A-1;Ana Páez;0412-0000001;;Carmen Ruiz;17/09/2026;10:00")
    import_rows("A-1;Ana Páez;0414-00000;;Carmen Ruiz;17/09/2026;10:00")
    assert Patient.objects.get().phone == PHONE


def test_a_bad_email_does_not_lose_the_visit(ruiz):
    report = import_rows(";Ana Páez;0412-0000001;ana@;Carmen Ruiz;17/09/2026;10:00")
    assert (report.created, notes(report)) == (1, ["«ana@» no es un correo: la cita entra sin él."])
