"""Lines of a clinic's agenda become visits; twice changes nothing; a bad line costs itself alone."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import pytest

from appointments import booking, signals
from appointments.agenda_import import BadLine, Remark, Report, read, take_in
from appointments.models import Appointment, AppointmentHistory, Doctor, Patient
from tests.factories import (
    CARACAS,
    caracas,
    make_appointment,
    make_doctor,
    make_office,
    make_patient,
    make_specialty,
)

pytestmark = pytest.mark.django_db

NOW = caracas("2026-09-10T09:00").astimezone(UTC)
AGENDAS = Path(__file__).parent / "agendas"
HEADING = "ID;Paciente;Teléfono;Médico;Fecha;Hora"


@pytest.fixture
def ruiz() -> Doctor:
    make_specialty("Cardiología")
    return make_doctor(name="Carmen Ruiz", title="Dra.", office=make_office(name="Torre Médica"))


def import_text(text: str, *, doctors: Any = None, dry_run: bool = False) -> Report:
    return take_in(read(text.encode()), doctors=doctors or Doctor.objects.all(), now=NOW, dry_run=dry_run)


def import_row(row: str, heading: str = HEADING) -> Report:
    return import_text(f"{heading}\n{row}")


def counts(report: Report) -> tuple[int, int, int, int]:
    return report.created, report.moved, report.unchanged, len(report.bad)


def refused(report: Report) -> str:
    assert counts(report) == (0, 0, 0, 1), report
    return report.bad[0].reason


def everything() -> list[Any]:
    """All that an import could have touched."""
    return [
        list(model._base_manager.order_by("pk").values())
        for model in (Appointment, AppointmentHistory, Patient, Patient.doctors.through)
    ]


# A line goes in


def test_a_line_becomes_a_visit_of_a_patient_whom_the_doctor_treats(ruiz):
    report = import_row(
        "A-1;PÉREZ, ANA;0422-0000006;ana@b.example;dra. carmen RUIZ;cardiologia;torre medica;17/09/2026;"
        "2:30 p. m.;45;01/09/2026 8:00;Sí",
        "ID;Paciente;Teléfono;Correo;Médico;Especialidad;Consultorio;Fecha;Hora;Duración;Reservada;"
        "Acepta WhatsApp",
    )
    assert counts(report) == (1, 0, 0, 0)
    visit = Appointment.objects.get()
    assert (visit.doctor, visit.external_id, visit.duration_minutes) == (ruiz, "A-1", 45)
    assert (visit.specialty.name, visit.office.name) == ("Cardiología", "Torre Médica")
    assert (visit.starts_at, visit.booked_at) == (caracas("2026-09-17T14:30"), caracas("2026-09-01T08:00"))
    patient = visit.patient
    assert (patient.full_name, patient.email) == ("Ana Pérez", "ana@b.example")
    assert (patient.phone, patient.phone_as_typed) == ("+584220000006", "0422-0000006")
    assert list(patient.doctors.all()) == [ruiz]
    assert visit.history.get().source == "import"


def test_what_the_file_does_not_say_is_unknown_or_usual(ruiz):
    import_row(";Ana;;Ruiz, Carmen;17/09/2026;10:00")
    visit = Appointment.objects.get()
    assert (visit.duration_minutes, visit.booked_at, visit.specialty) == (30, None, None)
    assert visit.office.name == "Torre Médica"


def test_a_visit_already_past_is_taken_in_as_history(ruiz):
    assert counts(import_row(";Ana;;Ruiz, Carmen;01/09/2026;10:00")) == (1, 0, 0, 0)


@pytest.mark.parametrize("name", ["latin1.csv", "excel.csv"])
def test_a_file_as_clinics_export_it_goes_in(name, ruiz):
    raw = (AGENDAS / name).read_bytes()
    report = take_in(read(raw), doctors=Doctor.objects.all(), now=NOW, dry_run=False)
    assert counts(report) == (2, 0, 0, 0), report
    assert set(Patient.objects.values_list("full_name", flat=True)) == {"José Núñez Ibáñez", "Ana Peña"}


def test_a_skipped_hour_moves_ahead_of_the_gap_with_a_note():
    make_doctor(name="Ruiz", office=make_office(time_zone="America/Santiago"))
    report = import_row(";Ana;;Ruiz;06/09/2026;00:30")
    assert Appointment.objects.get().start_time == time(1, 30)
    assert report.notes == [
        Remark(number=2, text="A las 12:30 a. m. de ese día el reloj se adelanta: se tomó 1:30 a. m.")
    ]
    assert counts(import_row(";Ana;;Ruiz;06/09/2026;00:30")) == (0, 0, 1, 0)


def test_a_repeated_hour_means_the_first_with_a_note():
    make_doctor(name="Ruiz", office=make_office(time_zone="America/New_York"))
    report = import_row(";Ana;;Ruiz;01/11/2026;1:30 am")
    assert Appointment.objects.get().starts_at == datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    [note] = report.notes
    assert note.text == (
        "Las 1:30 a. m. ocurren dos veces ese día, porque el reloj se atrasa: se tomó la primera."
    )


def test_a_booking_that_lies_ahead_is_not_believed(ruiz):
    heading = "Paciente;Médico;Fecha;Hora;Reservada"
    report = import_row("Ana;Carmen Ruiz;17/09/2026;10:00;11/09/2026", heading)
    assert Appointment.objects.get().booked_at is None
    assert [note.text for note in report.notes] == ["La fecha de la reserva está por venir: no se tomó."]


# A line that cannot


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            "Ana;Dra. Carmen Ruis;;;17/09/2026",
            "No hay ningún médico llamado «Dra. Carmen Ruis». ¿Será «Dra. Carmen Ruiz»?",
        ),
        ("Ana;Dr. House;;;17/09/2026", "No hay ningún médico llamado «Dr. House»."),
        (
            "Ana;Carmen Ruiz;;Torre Medica 2;17/09/2026",
            "Dra. Carmen Ruiz no atiende en «Torre Medica 2». ¿Será «Torre Médica»?",
        ),
        (
            "Ana;Carmen Ruiz;Cardiolojía;;17/09/2026",
            "No hay ninguna especialidad «Cardiolojía». ¿Será «Cardiología»?",
        ),
        (
            "Ana;Carmen Ruiz;;;17/09/2029",
            "La fecha 17/09/2029 está a más de dos años de hoy: parece un error al escribirla.",
        ),
        (
            "Ana;Carmen Ruiz;;;17/09/2016",
            "La fecha 17/09/2016 está a más de dos años de hoy: parece un error al escribirla.",
        ),
        ("Ana;;;;17/09/2026", "Falta: médico."),
    ],
)
def test_a_line_that_cannot_be_placed_is_told_in_one_sentence(row, sentence, ruiz):
    heading = "Paciente;Médico;Especialidad;Consultorio;Fecha;Hora"
    assert refused(import_row(f"{row};10:00", heading)) == sentence
    assert not Appointment.objects.exists()
    assert Doctor.objects.count() == 1


def test_an_office_of_another_doctor_is_none_of_this_one(ruiz):
    make_doctor(name="Luis Andrade", office=make_office(name="Policlínica"))
    told = refused(
        import_row("Ana;Carmen Ruiz;Policlínica;17/09/2026;10:00", "Paciente;Médico;Sede;Fecha;Hora")
    )
    assert told == "Dra. Carmen Ruiz no atiende en «Policlínica»."


def test_a_doctor_of_several_offices_needs_one_named(ruiz):
    ruiz.offices.add(make_office(name="Centro Clínico"))
    told = refused(import_row(";Ana;;Carmen Ruiz;17/09/2026;10:00"))
    assert told == "Falta el consultorio: Dra. Carmen Ruiz atiende en «Centro Clínico», «Torre Médica»."


def test_two_doctors_of_one_name_cannot_be_told_apart(ruiz):
    make_doctor(name="Cármen Ruíz")
    assert (
        refused(import_row(";Ana;;Carmen Ruiz;17/09/2026;10:00"))
        == "Hay más de un médico llamado «Carmen Ruiz»."
    )


def test_only_the_given_doctors_are_known(ruiz):
    make_doctor(name="Luis Andrade")
    report = import_text(
        f"{HEADING}\n;Ana;;Luis Andrade;17/09/2026;10:00", doctors=Doctor.objects.filter(pk=ruiz.pk)
    )
    assert refused(report) == "No hay ningún médico llamado «Luis Andrade»."


def test_a_time_that_is_taken_is_told_and_the_others_go_in(ruiz):
    make_appointment(doctor=ruiz, at="2026-09-17T10:00")
    report = import_text(
        f"{HEADING}\n;Ana;;Carmen Ruiz;17/09/2026;10:15\n;Beto;;Carmen Ruiz;17/09/2026;11:00\n;C;;C;x;y"
    )
    assert counts(report) == (1, 0, 0, 2)
    assert report.bad == [
        BadLine(number=2, reason="El médico ya tiene una cita a esa hora."),
        BadLine(number=4, reason="«x» no es una fecha; se espera dd/mm/aaaa."),
    ]
    assert not Patient.objects.filter(full_name="Ana").exists()


def test_two_lines_of_one_patient_on_one_day_need_an_identifier(ruiz):
    text = (
        f"{HEADING}\n%s;ANA PAZ;0412-0000001;Carmen Ruiz;17/09/2026;10:00\n"
        "%s;Ana Paz;;Carmen Ruiz;17/09/2026;12:00"
    )
    sentence = "El paciente tiene otra cita ese día en la línea %d: cada una necesita identificador."
    assert import_text(text % ("", "")).bad == [
        BadLine(number=2, reason=sentence % 3),
        BadLine(number=3, reason=sentence % 2),
    ]
    assert counts(import_text(text % ("A-1", ""))) == (1, 0, 0, 1)
    assert counts(import_text(text % ("A-1", "A-2"))) == (1, 0, 1, 0)


def test_two_lines_of_one_identifier_are_both_told(ruiz):
    report = import_text(
        f"{HEADING}\nA-1;Ana;;Carmen Ruiz;17/09/2026;10:00\nA-1;Beto;;Carmen Ruiz;18/09/2026;10:00"
    )
    assert [line.number for line in report.bad] == [2, 3]
    assert report.bad[0].reason == (
        "El identificador «A-1» está también en la línea 3: cada cita necesita el suyo."
    )


def test_two_namesakes_on_one_day_are_told_apart_by_their_phones(ruiz):
    text = (
        f"{HEADING}\n;Ana Paz;0412-0000001;Carmen Ruiz;17/09/2026;10:00\n"
        ";Ana Paz;0412-0000002;Carmen Ruiz;17/09/2026;11:00"
    )
    assert counts(import_text(text)) == (2, 0, 0, 0)
    before = everything()
    lines = text.splitlines()
    assert counts(import_text("\n".join([lines[0], lines[2], lines[1]]))) == (0, 0, 2, 0)
    assert everything() == before


# Again, and changed


def test_twice_changes_nothing(ruiz):
    text = (AGENDAS / "messy.csv").read_text()
    first = import_text(text)
    before = everything()
    second = import_text(text)
    assert counts(first) == (5, 0, 0, 2), first
    assert counts(second) == (0, 0, 5, 2), second
    assert second.bad == first.bad
    assert everything() == before


def test_a_changed_time_moves_the_visit_which_is_then_to_be_confirmed_again(ruiz):
    import_row("A-1;Ana;;Carmen Ruiz;17/09/2026;10:00")
    visit = Appointment.objects.get()
    booking.confirm(visit, actor=booking.SYSTEM)
    assert counts(import_row("A-1;Ana;;Carmen Ruiz;18/09/2026;3 pm")) == (0, 1, 0, 0)
    visit.refresh_from_db()
    assert (visit.starts_at, visit.status, visit.sequence) == (caracas("2026-09-18T15:00"), "scheduled", 1)
    assert visit.history.last().source == "import"


def test_without_an_identifier_the_day_names_the_visit(ruiz):
    import_row(";Ana;;Carmen Ruiz;17/09/2026;10:00")
    assert counts(import_row(";ANA;;Carmen Ruiz;17/09/2026;12:00")) == (0, 1, 0, 0)
    assert counts(import_row(";ANA;;Carmen Ruiz;18/09/2026;12:00")) == (1, 0, 0, 0)


def test_a_changed_office_or_duration_moves_the_visit(ruiz):
    ruiz.offices.add(make_office(name="Centro"))
    heading = "ID;Paciente;Médico;Sede;Fecha;Hora;Duración"
    import_row("A-1;Ana;Carmen Ruiz;Centro;17/09/2026;10:00;30", heading)
    assert counts(import_row("A-1;Ana;Carmen Ruiz;Torre Médica;17/09/2026;10:00;30", heading)) == (0, 1, 0, 0)
    assert counts(import_row("A-1;Ana;Carmen Ruiz;Torre Médica;17/09/2026;10:00;40", heading)) == (0, 1, 0, 0)
    assert counts(import_row("A-1;Ana;Carmen Ruiz;Torre Médica;17/09/2026;10:00;", heading)) == (0, 0, 1, 0)


def test_a_line_that_is_gone_cancels_nothing(ruiz):
    import_text(f"{HEADING}\nA-1;Ana;;Carmen Ruiz;17/09/2026;10:00\nA-2;Beto;;Carmen Ruiz;17/09/2026;11:00")
    assert counts(import_row("A-2;Beto;;Carmen Ruiz;17/09/2026;11:00")) == (0, 0, 1, 0)
    assert set(Appointment.objects.values_list("status", flat=True)) == {"scheduled"}


def test_visits_may_move_into_each_others_places_down_the_day(ruiz):
    rows = [("A-1", "Ana"), ("A-2", "Beto"), ("A-3", "Carla")]

    def day(*hours: str) -> str:
        told = [
            f"{id_};{name};;Carmen Ruiz;17/09/2026;{hour}"
            for (id_, name), hour in zip(rows, hours, strict=True)
        ]
        return "\n".join([HEADING, *told])

    import_text(day("9:00", "9:30", "10:00"))
    assert counts(import_text(day("9:30", "10:00", "10:30"))) == (0, 3, 0, 0)


@pytest.mark.parametrize("id_", ["A-1", ""])
def test_a_cancelled_visit_named_again_stays_cancelled_with_a_note(id_, ruiz):
    row = f"{id_};Ana;;Carmen Ruiz;17/09/2026;10:00"
    import_row(row)
    booking.cancel(Appointment.objects.get(), actor=booking.SYSTEM)
    report = import_row(row)
    assert counts(report) == (0, 0, 1, 0)
    assert [note.text for note in report.notes] == [
        "La cita está cancelada aquí: sigue cancelada; si vale, repóngala a mano."
    ]
    assert Appointment.objects.get().status == "cancelled"


def test_after_a_cancelled_visit_another_time_that_day_is_a_new_one(ruiz):
    import_row(";Ana;;Carmen Ruiz;17/09/2026;10:00")
    booking.cancel(Appointment.objects.get(), actor=booking.SYSTEM)
    assert counts(import_row(";Ana;;Carmen Ruiz;17/09/2026;12:00")) == (1, 0, 0, 0)
    assert counts(import_row(";Ana;;Carmen Ruiz;17/09/2026;12:00")) == (0, 0, 1, 0)


@pytest.mark.parametrize(
    ("verb", "word"), [(booking.complete, "Atendida"), (booking.mark_no_show, "No asistió")]
)
def test_a_closed_visit_is_not_moved(verb, word, ruiz):
    import_row("A-1;Ana;;Carmen Ruiz;17/09/2026;10:00")
    verb(Appointment.objects.get(), actor=booking.SYSTEM)
    report = import_row("A-1;Ana;;Carmen Ruiz;17/09/2026;12:00")
    assert counts(report) == (0, 0, 1, 0)
    assert report.notes[0].text == f"La cita ya está «{word}»: sigue a las 10:00 a. m. del 17/09/2026."
    assert Appointment.objects.get().start_time == time(10)


def test_a_visit_booked_before_the_agenda_had_identifiers_is_known_by_its_time(ruiz):
    import_row(";Ana;;Carmen Ruiz;17/09/2026;10:00")
    assert counts(import_row("A-1;Ana;;Carmen Ruiz;17/09/2026;10:00")) == (0, 0, 1, 0)
    assert counts(import_row("A-1;Ana;;Carmen Ruiz;18/09/2026;10:00")) == (0, 1, 0, 0)


def test_one_identifier_means_two_visits_with_two_doctors(ruiz):
    make_doctor(name="Luis Andrade")
    report = import_text(
        f"{HEADING}\n1;Ana;;Carmen Ruiz;17/09/2026;10:00\n1;Beto;;Luis Andrade;17/09/2026;10:00"
    )
    assert counts(report) == (2, 0, 0, 0)


def test_an_identifier_of_another_patients_visit_is_told(ruiz):
    import_row("A-1;Ana;;Carmen Ruiz;17/09/2026;10:00")
    told = refused(import_row("A-1;Beto;;Carmen Ruiz;17/09/2026;10:00"))
    assert told == (
        "El identificador «A-1» es de la cita de otro paciente: "
        "corrija el nombre donde esté mal, o cree la cita de nuevo en la agenda."
    )
    assert not Patient.objects.filter(full_name="Beto").exists()


# A dry run, and the news of each line


def test_a_dry_run_tells_the_same_and_writes_nothing(ruiz):
    text = (AGENDAS / "messy.csv").read_text()
    import_row("M-1;José Núñez;;Carmen Ruiz;16/09/2026;8:00")
    before = everything()
    tried = import_text(text, dry_run=True)
    assert everything() == before
    assert tried == import_text(text)
    assert counts(tried) == (4, 1, 0, 2)


def test_each_line_is_announced_within_its_transaction(ruiz):
    heard: list[dict[str, Any]] = []

    def hear(**news: Any) -> None:
        heard.append({key: news[key] for key in ("appointment_id", "patient_id", "accepts_whatsapp", "now")})

    signals.line_read.connect(hear)
    try:
        heading = "ID;Paciente;Médico;Fecha;Hora;Acepta WhatsApp"
        row = "A-%d;Ana;Carmen Ruiz;1%d/09/2026;10:00;%s"
        import_text("\n".join([heading, row % (1, 1, "Sí"), row % (2, 2, "no"), row % (3, 3, "")]))
    finally:
        signals.line_read.disconnect(hear)
    visits = Appointment.objects.order_by("external_id")
    assert heard == [
        {"appointment_id": visit.pk, "patient_id": visit.patient_id, "accepts_whatsapp": said, "now": NOW}
        for visit, said in zip(visits, [True, False, None], strict=True)
    ]


def test_a_receivers_fault_costs_that_line_alone(ruiz, no_patient_in_the_logs):
    def fail(*, appointment_id: Any, **_news: Any) -> None:
        if Appointment.objects.get(pk=appointment_id).external_id == "A-1":
            raise RuntimeError("Zzyzx is no consent")

    signals.line_read.connect(fail)
    try:
        report = import_text(
            f"{HEADING}\nA-1;Ana;;Carmen Ruiz;17/09/2026;10:00\nA-2;Beto;;Carmen Ruiz;17/09/2026;11:00"
        )
    finally:
        signals.line_read.disconnect(fail)
    assert counts(report) == (1, 0, 0, 1)
    assert report.bad == [
        BadLine(number=2, reason="No se pudo guardar por un fallo interno; intente de nuevo.")
    ]
    assert set(Patient.objects.values_list("full_name", flat=True)) == {"Beto"}
    assert any(
        "agenda line=2 outcome=fault kind=RuntimeError" in line for line in no_patient_in_the_logs.lines
    )


def test_the_doctors_visit_of_a_hand_booked_patient_is_known_again(ruiz):
    patient = make_patient(doctor=ruiz, full_name="Ana Paz", phone="+584120000001")
    make_appointment(doctor=ruiz, patient=patient, at="2026-09-17T10:00")
    assert counts(import_row(";ana páz;;Carmen Ruiz;17/09/2026;10:00")) == (0, 0, 1, 0)
    assert Appointment.objects.get().date == date(2026, 9, 17)


def test_the_zone_of_the_office_says_which_day_it_is():
    tokyo = make_office(time_zone="Asia/Tokyo")
    make_doctor(name="Ruiz", office=tokyo)
    import_row("Ana;Ruiz;17/09/2026;10:00;10/09/2026 21:00", "Paciente;Médico;Fecha;Hora;Reservada")
    visit = Appointment.objects.get()
    assert visit.starts_at == datetime(2026, 9, 17, 1, tzinfo=UTC)
    assert visit.booked_at == datetime(2026, 9, 10, 12, tzinfo=UTC)
    assert visit.starts_at.astimezone(CARACAS).date() == date(2026, 9, 16)
