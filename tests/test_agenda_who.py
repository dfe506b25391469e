"""Whom an event concerns: by labels, by its guests, by its title; and when it concerns nobody."""

from __future__ import annotations

from datetime import datetime

import pytest

from appointments.agenda_import import BadLine, Line, NotVisit, Told, read

NOBODY = "no nombra a ningún paciente. Si es una cita, escriba «Paciente: …» en la descripción."
DOCTOR = 'ORGANIZER;CN="Dra. Carmen Ruiz":mailto:ruiz@clinica.example'
GUEST = "ATTENDEE;CN=Ana Paz:mailto:ana@b.example"


def piece(*lines: str, told: Told | None = None, calendar: str = "") -> Line | BadLine | NotVisit:
    """What comes of one event with these lines."""
    text = "\n".join(
        [
            *["BEGIN:VCALENDAR", calendar or "VERSION:2.0"],
            *["BEGIN:VEVENT", "UID:e-1", "DTSTART:20260917T100000", *lines, "END:VEVENT", "END:VCALENDAR"],
        ]
    )
    [found] = read(text.encode(), told=told)
    assert isinstance(found, Line | BadLine | NotVisit)
    return found


def visit(*lines: str, **parts: object) -> Line:
    found = piece(*lines, **parts)
    assert isinstance(found, Line), found
    return found


def described(text: str, *lines: str) -> Line:
    return visit(f"DESCRIPTION:{text}", *lines)


# Labels


def test_labelled_lines_say_it_all():
    line = described(
        r"Paciente: PÉREZ GONZÁLEZ\, ANA\nTeléfono: 0412-0000001\nCorreo: ana@b.example\n"
        r"Médico: Dra. Carmen Ruiz\nEspecialidad: Cardiología\nConsultorio: Torre Médica\n"
        r"Reservada: 01/09/2026 8:00\nAcepta WhatsApp: Sí\nMotivo: control"
    )
    assert (line.patient, line.phone, line.email) == ("Ana Pérez González", "0412-0000001", "ana@b.example")
    assert (line.doctor, line.specialty, line.office) == ("Dra. Carmen Ruiz", "Cardiología", "Torre Médica")
    assert (line.booked_at, line.accepts_whatsapp) == (datetime.fromisoformat("2026-09-01T08:00"), True)


@pytest.mark.parametrize(
    "text",
    [
        r"PACIENTE: Ana Paz\nTELEFONO: 0412-0000001",
        r"nombre y apellido = Ana Paz\nTlf.: 0412-0000001",
        r"*Paciente:* Ana Paz (34 años)\n*Teléfono móvil:* 0412-0000001",
        r"- Paciente: Ana Paz\n- Celular: 0412-0000001",
        r"Nombre: Ana\nApellido: Paz\nTeléfono (WhatsApp): 0412-0000001",
        r"Paciente: Ana Paz\, Tel: 0412-0000001\, C.I.: 123",
        r"Paciente: Ana Paz - Telf: 0412-0000001",
        r"Paciente: Ana Paz; Número de teléfono: 0412-0000001",
        r"Paciente:\n\nAna Paz\n\nTeléfono:\n0412-0000001",
        "<p><b>Paciente:</b> Ana Paz</p><br/>Tel&eacute;fono: 0412-0000001",
        r"Paciente: Ana Paz V-12345678\nPhone: 0412-0000001",
        "Patient name: Ana Paz\\nMobile: 0412-0000001",
        r"Me\u0301dico: x".replace("\\u0301", "\u0301")
        + r"\nPaciente: Ana Paz\nMo\u0301vil: 0412-0000001".replace("\\u0301", "\u0301"),
    ],
)
def test_labels_are_known_in_any_dress(text):
    line = described(text)
    assert (line.patient, line.phone) == ("Ana Paz", "0412-0000001")


@pytest.mark.parametrize("name", ["SUMMARY", "LOCATION", "COMMENT", "CONTACT"])
def test_a_label_may_stand_in_any_text(name):
    assert visit(f"{name}:Paciente: Ana Paz").patient == "Ana Paz"


def test_a_property_of_the_clinics_own_is_a_label():
    line = visit("X-PACIENTE:Ana Paz", "X-PHONE-NUMBER:0412-0000001", "X-ACEPTA-WHATSAPP:no", "X-SALA:3")
    assert (line.patient, line.phone, line.accepts_whatsapp) == ("Ana Paz", "0412-0000001", False)


def test_two_phones_are_both_handed_on():
    line = described(r"Paciente: Ana Paz\nTeléfono: 0212-5551234\nCelular: 0412-0000001")
    assert line.phone == "0212-5551234 / 0412-0000001"


@pytest.mark.parametrize(
    "text",
    [
        "Event Name: 30 Minute Meeting",
        "Tel. consultorio: 0412-0000001",
        "Nombre del evento: Consulta",
        r"Teléfono:\nMotivo: dolor",
        "Reserva: 4711",
    ],
)
def test_other_words_before_a_colon_are_no_labels(text):
    line = described(rf"{text}\n", "X-PACIENTE:Ana Paz")
    assert (line.patient, line.booked_at, line.notes) == ("Ana Paz", None, ())


def test_what_cannot_be_read_after_an_optional_label_is_a_note():
    line = described(r"Paciente: Ana Paz\nAcepta WhatsApp: quizás\nReservada el: ayer")
    assert line.notes == (
        "Reservada: «ayer» no es una fecha; se espera dd/mm/aaaa.",
        "Acepta WhatsApp: «quizás» no es ni sí ni no.",
    )


def test_a_label_with_no_name_behind_it_is_told():
    assert piece("DESCRIPTION:Paciente: 12345").reason == "«12345» no es el nombre de un paciente."


# Guests


def test_the_guest_who_is_neither_host_nor_doctor_is_the_patient():
    line = visit(
        "SUMMARY:Consulta Cardiología entre Dra. Carmen Ruiz y Ana Paz",
        DOCTOR,
        DOCTOR.replace("ORGANIZER", "ATTENDEE"),
        "ATTENDEE;CUTYPE=RESOURCE;CN=Sala 2:mailto:sala@clinica.example",
        "ATTENDEE;CN=Dr. Luis Andrade:mailto:andrade@clinica.example",
        "ATTENDEE;ROLE=CHAIR;CN=Recepción:mailto:recepcion@clinica.example",
        GUEST,
    )
    assert (line.patient, line.email) == ("Ana Paz", "ana@b.example")
    assert {"Dra. Carmen Ruiz", "Dr. Luis Andrade"} <= set(line.hosts)


def test_a_guest_of_the_name_that_was_given_for_the_doctor_is_no_patient():
    line = visit("ATTENDEE;CN=Ruiz, Carmen:mailto:r@c.example", GUEST, told=Told(doctor="Dra. Carmen Ruiz"))
    assert (line.patient, line.doctor) == ("Ana Paz", "Dra. Carmen Ruiz")


def test_a_name_of_a_guest_with_a_comma_is_one_name():
    assert visit("ATTENDEE;CN=PAZ, ANA:mailto:ana@b.example").patient == "Ana Paz"
    assert visit('ATTENDEE;CN="PAZ, ANA":MAILTO:ana@b.example').email == "ana@b.example"


def test_a_guest_with_a_number_for_an_address_is_called_there():
    line = visit("ATTENDEE;CN=Ana Paz:tel:+58-412-0000001")
    assert (line.phone, line.email) == ("+58-412-0000001", "")


def test_several_guests_need_a_label():
    other = "ATTENDEE;CN=Beto Paz:mailto:beto@b.example"
    assert piece(GUEST, other).reason == (
        "El evento tiene varios invitados («Ana Paz», «Beto Paz»): escriba en la descripción «Paciente: …»."
    )
    line = visit(GUEST, other, "DESCRIPTION:Paciente: Beto Paz")
    assert (line.patient, line.email) == ("Beto Paz", "beto@b.example")


def test_the_address_of_several_guests_is_nobodys():
    line = visit(GUEST, "ATTENDEE;CN=Beto Paz:mailto:beto@b.example", "DESCRIPTION:Paciente: Carla Paz")
    assert line.email == ""


def test_a_guest_known_by_address_alone_shows_that_somebody_is_expected():
    line = visit("SUMMARY:Ana Paz", "ATTENDEE;CN=ana@b.example:mailto:ana@b.example")
    assert (line.patient, line.email) == ("Ana Paz", "ana@b.example")


def test_the_doctor_is_labelled_or_given_and_else_one_of_the_hosts():
    given = Told(doctor="Luis Andrade")
    assert visit(GUEST, "DESCRIPTION:Médico: Carmen Ruiz", told=given).doctor == "Carmen Ruiz"
    assert visit(GUEST, DOCTOR, told=given).doctor == "Luis Andrade"
    line = visit(GUEST, DOCTOR, calendar="X-WR-CALNAME:Agenda Ruiz")
    assert (line.doctor, line.hosts) == ("", ("Dra. Carmen Ruiz", "Agenda Ruiz"))


def test_the_place_is_labelled_or_free_text_or_given():
    given = Told(office="Centro")
    labelled = visit(GUEST, "LOCATION:Zoom", "DESCRIPTION:Consultorio: Torre", told=given)
    assert (labelled.office, labelled.location) == ("Torre", "")
    free = visit(GUEST, "LOCATION:Torre, piso 3", "DESCRIPTION:Lugar: Caracas", told=given)
    assert (free.office, free.location) == ("Centro", "Caracas · Torre, piso 3")


# The title


@pytest.mark.parametrize(
    "title",
    [
        "Cita Ana Paz",
        "CONSULTA: ANA PAZ",
        "Consulta (Ana Paz)",
        "Ana Paz - Control",
        "Control – Ana Paz",
        "Ana Paz (primera vez)",
        "1ra consulta con Ana Paz",
        "Paciente nueva | PAZ, ANA",
        "Consulta Medicina Interna - Ana Paz",
    ],
)
def test_a_title_that_speaks_of_a_visit_names_its_patient(title):
    assert visit(f"SUMMARY:{title}").patient == "Ana Paz"


@pytest.mark.parametrize(
    ("lines", "phone"),
    [
        (["SUMMARY:Ana Paz 0412-0000001"], "0412-0000001"),
        (["SUMMARY:Sra. Ana Paz (+58 412 000 00 01)"], "+58 412 000 00 01"),
        (["SUMMARY:ana paz", "DESCRIPTION:llamar al 04120000001"], "04120000001"),
        (["SUMMARY:Ana Paz", "DESCRIPTION:Tel: 0412-0000001"], "0412-0000001"),
        (["SUMMARY:Ana Paz", "LOCATION:0412 0000001"], "0412 0000001"),
        (["SUMMARY:Ana Paz - dolor de cabeza 0412-0000001"], "0412-0000001"),
    ],
)
def test_a_name_and_a_number_are_a_visit(lines, phone):
    line = visit(*lines)
    assert (line.patient, line.phone) == ("Ana Paz", phone)


def test_an_address_in_the_title_is_the_patients():
    assert visit("SUMMARY:Cita Ana Paz ana@b.example").email == "ana@b.example"


@pytest.mark.parametrize(
    "title",
    [
        "Almuerzo",
        "BLOQUEADO",
        "Ocupado",
        "Feriado nacional",
        "Congreso de Cardiología",
        "Reunión con Pedro Pérez 0414-0000003",
        "Cita con el contador",
        "Consulta Medicina Interna",
        "Consulta online",
        "Llamar al banco 0212-5551234",
        "Dra. Carmen Ruiz 0412-0000001",
        "Ana Paz",
        "Ana",
        "",
    ],
)
def test_a_title_that_names_nobody_for_sure_is_told_and_is_no_error(title):
    found = piece(f"SUMMARY:{title}")
    assert isinstance(found, NotVisit)
    assert found.reason == NOBODY


@pytest.mark.parametrize("title", ["Almuerzo", "Reunión con Ana", "Llamada - Ana Paz 0412-0000001"])
def test_a_title_that_speaks_of_something_else_outweighs_guest_and_number(title):
    assert isinstance(piece(f"SUMMARY:{title}", GUEST), NotVisit)
    assert isinstance(piece(f"SUMMARY:{title}", "DESCRIPTION:Tel: 0412-0000001"), NotVisit)
    assert isinstance(piece(f"SUMMARY:{title}", "DESCRIPTION:Paciente: Ana Paz"), Line)


def test_whoever_imports_may_say_that_titles_are_patients():
    told = Told(titles_are_patients=True)
    assert visit("SUMMARY:Ana Paz", told=told).patient == "Ana Paz"
    assert isinstance(piece("SUMMARY:Almuerzo", told=told), NotVisit)
    assert isinstance(piece("SUMMARY:Semana Santa", told=told), NotVisit)


def test_a_title_with_two_names_is_told():
    assert piece("SUMMARY:Ana Paz / Beto Paz", "DESCRIPTION:0412-0000001").reason == (
        "El título puede nombrar a «Ana Paz» o a «Beto Paz»: escriba en la descripción «Paciente: …»."
    )


# Numbers without a label


def test_a_line_on_land_in_the_place_is_the_places():
    assert visit("SUMMARY:Cita Ana Paz", r"LOCATION:Torre Médica\, 0212-5551234").phone == ""


@pytest.mark.parametrize(
    "text",
    [
        "Únete por teléfono: +1 402-555-0100 PIN 123 456 789#",
        "V-12345678",
        "17/09/2026 10:00",
        "Historia 2026-09-17-001",
        "Clínica 0212-5551234",
    ],
)
def test_a_number_in_the_description_that_is_no_mobile_of_here_is_nobodys(text):
    assert visit("SUMMARY:Cita Ana Paz", f"DESCRIPTION:{text}").phone == ""


def test_several_numbers_without_label_are_nobodys_with_a_note():
    line = visit("SUMMARY:Cita Ana Paz", r"DESCRIPTION:0412-0000001\n0414-0000002")
    assert line.phone == ""
    assert line.notes == (
        "La descripción trae varios teléfonos, sin tomar: escriba «Teléfono: …» ante el del paciente.",
    )


def test_one_number_said_twice_is_one():
    assert visit("SUMMARY:Cita Ana Paz", r"DESCRIPTION:0412-0000001\n+584120000001").notes == ()


def test_a_very_long_text_is_read_in_no_time():
    for text in (
        "(" * 50_000,
        "- " * 50_000,
        "a" * 50_000,
        "1 " * 50_000,
        r"\n" * 50_000,
        "Paciente " * 9_000,
    ):
        assert isinstance(piece(f"SUMMARY:{text}", f"DESCRIPTION:{text}"), NotVisit | BadLine)
