"""A clinic's exported file, in whatever shape, into lines: pure reading."""

from datetime import date, datetime, time

import pytest

from appointments.agenda_import import BadLine, Line, Remark, read

HEADING = "Paciente;Médico;Fecha;Hora"


def lines_of(text: str, encoding: str = "utf-8") -> list[Line | BadLine | Remark]:
    return list(read(text.encode(encoding)))


def only(text: str) -> Line:
    [line] = lines_of(text)
    assert isinstance(line, Line), line
    return line


def reason(text: str) -> str:
    [line] = lines_of(text)
    assert isinstance(line, BadLine), line
    return line.reason


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_delimiter_encoding_and_line_end_reads_the_same(delimiter, encoding, end):
    rows = [["Teléfono", "Paciente", "Médico", "Fecha", "Hora"],
            ["0412-0000001", "José Núñez", "Dra. Begoña Ibáñez", "17/09/2026", "2:30 p. m."]]  # fmt: skip
    [line] = lines_of(end.join(delimiter.join(row) for row in rows) + end, encoding)
    assert line == Line(
        number=2, patient="José Núñez", doctor="Dra. Begoña Ibáñez", phone="0412-0000001",
        date=date(2026, 9, 17), start=time(14, 30),
    )  # fmt: skip


def test_headings_are_known_in_english_in_any_order_and_case():
    line = only(
        "Accepts WhatsApp,BOOKED AT,External ID,duration,START,date,"
        "office,specialty,doctor,EMAIL,phone,patient\n"
        "yes,2026-09-01 10:30,A-1,45,14:30,2026-09-17,"
        "North,Cardiology,Dr. Who,a@b.example,0412-0000001,Ana Paz"
    )
    assert line == Line(
        number=2, patient="Ana Paz", doctor="Dr. Who", date=date(2026, 9, 17), start=time(14, 30),
        duration_minutes=45, phone="0412-0000001", email="a@b.example", specialty="Cardiology",
        office="North", external_id="A-1", booked_at=datetime.fromisoformat("2026-09-01T10:30"),
        accepts_whatsapp=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    "heading",
    [
        "NOMBRE;DOCTORA;FECHA DE LA CITA;INICIO",
        "  nombre   y apellido ;Médico tratante; fecha ;Hora de inicio",
        'Paciente:;medico;Fecha;"Hora"',
        "\ufeffPaciente;Médico;Fecha;Hora",
        "sep=;\nPaciente;Médico;Fecha;Hora",
        "Pacie\u0301nte".replace("\u0301", "") + ";Me\u0301dico;Fecha;Hora",
    ],
)
def test_headings_are_known_by_their_synonyms(heading):
    line = only(f"{heading}\nAna Paz;Dra. Ruiz;17/09/2026;10:00")
    assert (line.number, line.patient, line.doctor) == (2, "Ana Paz", "Dra. Ruiz")


def test_a_surname_in_a_column_of_its_own_joins_the_name():
    assert only("Apellidos;Nombre;Médico;Fecha;Hora\nPAZ;ANA;Ruiz;17/09/2026;10:00").patient == "Ana Paz"


def test_two_columns_of_phones_are_both_handed_on():
    line = only("Teléfono;Celular;Paciente;Médico;Fecha;Hora\n0212-5551234;0412-0000001;A;B;17/09/2026;10:00")
    assert line.phone == "0212-5551234 / 0412-0000001"


@pytest.mark.parametrize(
    ("typed", "clock"),
    [
        ("2:30 p. m.", "14:30"), ("2:30 p.\u00a0m.", "14:30"), ("02:30PM", "14:30"), ("2:30 pm", "14:30"),
        ("14:30", "14:30"), ("14:30:00", "14:30"), ("14.30", "14:30"), ("8 am", "08:00"),
        ("8:05 A.M.", "08:05"),
        ("12:00 m.", "12:00"), ("12 m", "12:00"), ("12:15 a. m.", "00:15"), ("12:15 p. m.", "12:15"),
        ("14h30", "14:30"), ("8h", "08:00"), ("14:30 p. m.", "14:30"), ("0:00", "00:00"),
        ("14:30 hrs", "14:30"),
    ],
)  # fmt: skip
def test_a_time_is_read_in_twelve_and_in_twenty_four_hours(typed, clock):
    assert only(f"{HEADING}\nA;B;17/09/2026;{typed}").start == time.fromisoformat(clock)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("14", "«14» no es una hora; se espera, por ejemplo, 14:30 o 2:30 p. m."),
        ("mañana", "«mañana» no es una hora; se espera, por ejemplo, 14:30 o 2:30 p. m."),
        ("14:3", "«14:3» no es una hora; se espera, por ejemplo, 14:30 o 2:30 p. m."),
        ("25:00", "La hora «25:00» no existe."),
        ("10:60", "La hora «10:60» no existe."),
        ("13:00 a. m.", "La hora «13:00 a. m.» no existe."),
        ("9 m.", "La hora «9 m.» no existe."),
        ("", "Falta: hora."),
    ],
)
def test_a_time_that_nobody_can_keep_is_refused_with_a_sentence(typed, sentence):
    assert reason(f"{HEADING}\nA;B;17/09/2026;{typed}") == sentence


@pytest.mark.parametrize(
    "typed",
    ["17/09/2026", "17-09-2026", "17.9.2026", "2026-09-17", "2026-9-17", "2026/09/17", "2026-09-17 00:00:00",
     "17/09/2026 0:00"],
)  # fmt: skip
def test_a_date_is_day_month_year_or_iso(typed):
    assert only(f"{HEADING}\nA;B;{typed};10:00").date == date(2026, 9, 17)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("17/09/26", "La fecha «17/09/26» trae el año con dos cifras: escríbalo con cuatro."),
        ("31/02/2026", "La fecha «31/02/2026» no existe; se espera dd/mm/aaaa."),
        ("09/17/2026", "La fecha «09/17/2026» no existe; se espera dd/mm/aaaa."),
        ("jueves", "«jueves» no es una fecha; se espera dd/mm/aaaa."),
        ("46282", "«46282» no es una fecha; se espera dd/mm/aaaa."),
        ("", "Falta: fecha."),
    ],
)
def test_a_date_that_cannot_be_meant_is_refused_with_a_sentence(typed, sentence):
    assert reason(f"{HEADING}\nA;B;{typed};10:00") == sentence


@pytest.mark.parametrize(
    ("typed", "minutes"),
    [
        ("", None),
        ("30", 30),
        ("30 min", 30),
        ("45 minutos", 45),
        ("0:45", 45),
        ("1:30", 90),
        ("1 h", 60),
        ("30.0", 30),
    ],
)
def test_a_duration_is_in_minutes_or_hours(typed, minutes):
    assert only(f"{HEADING};Duración\nA;B;17/09/2026;10:00;{typed}").duration_minutes == minutes


@pytest.mark.parametrize("typed", ["4", "481", "0", "9:00"])
def test_a_duration_out_of_bounds_is_refused(typed):
    told = reason(f"{HEADING};Duración\nA;B;17/09/2026;10:00;{typed}")
    assert told == f"La duración «{typed}» no está entre 5 y 480 minutos."


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("PÉREZ GONZÁLEZ, ANA", "Ana Pérez González"),
        ("MARÍA DE LOS ÁNGELES DEL RÍO", "María de los Ángeles del Río"),
        ("rafael d'suze", "Rafael D'Suze"),
        ("Ana  MacDonald ", "Ana MacDonald"),
        ("Pérez, Ana", "Ana Pérez"),
        ("JOSE\u0301 PAZ", "José Paz"),
        ("Ana\u200b \u202eP\0az", "Ana Paz"),
    ],
)
def test_a_name_is_said_in_its_usual_order_and_case(typed, name):
    assert only(f"{HEADING}\n{typed};B;17/09/2026;10:00").patient == name


@pytest.mark.parametrize("typed", ["12345", "***", "A" * 201])
def test_what_is_no_name_is_refused(typed):
    assert reason(f"{HEADING}\n{typed};B;17/09/2026;10:00").endswith("no es el nombre de un paciente.")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("Sí", True),
        ("SI", True),
        ("x", True),
        ("yes", True),
        ("1", True),
        ("no", False),
        ("0", False),
        ("", None),
    ],
)
def test_consent_is_yes_no_or_not_said(typed, said):
    assert only(f"{HEADING};Acepta WhatsApp\nA;B;17/09/2026;10:00;{typed}").accepts_whatsapp is said


def test_an_optional_cell_beyond_reading_counts_as_not_said_with_a_note():
    line = only(f"{HEADING};Acepta WhatsApp;Reservada\nA;B;17/09/2026;10:00;quizás;ayer")
    assert (line.accepts_whatsapp, line.booked_at) == (None, None)
    assert line.notes == (
        "Reservada: «ayer» no es una fecha; se espera dd/mm/aaaa.",
        "Acepta WhatsApp: «quizás» no es ni sí ni no.",
    )


@pytest.mark.parametrize(
    ("typed", "booked"),
    [
        ("01/09/2026", "2026-09-01T00:00"),
        ("01/09/2026 2:30 p. m.", "2026-09-01T14:30"),
        ("01/09/2026, 14:30", "2026-09-01T14:30"),
        ("2026-09-01T14:30:00", "2026-09-01T14:30"),
        ("2026-09-01 2:30 pm", "2026-09-01T14:30"),
        ("2026-09-01T14:30-04:00", "2026-09-01T14:30-04:00"),
    ],
)
def test_the_time_of_booking_is_a_date_with_or_without_a_time(typed, booked):
    assert only(f'{HEADING};Reservada\nA;B;17/09/2026;10:00;"{typed}"').booked_at == datetime.fromisoformat(
        booked
    )


def test_rows_are_numbered_as_a_spreadsheet_shows_them():
    rows = lines_of(
        f'{HEADING}\n\n;;;\n"Ana\nPaz";B;17/09/2026;10:00\nBeto;B;x;10:00\n\nCarla;B;17/09/2026;11:00\n'
    )
    assert [row.number for row in rows] == [4, 5, 7]
    assert rows[0].patient == "Ana Paz"


def test_blank_rows_before_the_heading_count_as_rows():
    [line] = lines_of(f"\n;;;\n{HEADING}\nA;B;17/09/2026;10:00")
    assert line.number == 4


def test_a_quote_that_never_closes_costs_its_own_line_alone():
    rows = lines_of(
        f'{HEADING}\nAna;B;17/09/2026;10:00\n"Beto;B;17/09/2026;10:00\nCarla;B;17/09/2026;11:00\n'
    )
    assert [row.number for row in rows] == [2, 3, 4]
    assert isinstance(rows[1], BadLine)
    assert rows[1].reason.startswith("Las comillas de esta línea no se cierran bien")
    assert rows[2].patient == "Carla"


def test_a_delimiter_within_quotes_is_text():
    assert (
        only('Patient,Doctor,Date,Start\n"PAZ, ANA","RUIZ, CARMEN",17/09/2026,10:00').doctor == "RUIZ, CARMEN"
    )


@pytest.mark.parametrize("row", ["A;B;17/09/2026;10:00;30;de más", "A;B;17/09/2026"])
def test_a_row_with_too_many_or_too_few_columns_is_refused(row):
    told = reason(f"{HEADING};Duración\n{row}")
    width = row.count(";") + 1
    assert told == f"La línea tiene {width} columnas y el encabezado 5: falta o sobra un separador."


@pytest.mark.parametrize("row", ["A;B;17/09/2026;10:00", "A;B;17/09/2026;10:00;;;;"])
def test_blank_columns_at_the_end_may_be_more_or_fewer(row):
    assert only(f"{HEADING};Duración\n{row}").patient == "A"


def test_a_column_that_nobody_knows_is_told_and_ignored():
    remark, line = lines_of(f"{HEADING};Seguro;Sala\nA;B;17/09/2026;10:00;X;3")
    assert remark == Remark(number=1, text="Columnas que no se usan: «Seguro», «Sala».")
    assert isinstance(line, Line)


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"", "El archivo está vacío: no trae ni encabezado ni citas."),
        (b"\n\n;;\n", "El archivo está vacío: no trae ni encabezado ni citas."),
        (b"\xef\xbb\xbf", "El archivo está vacío: no trae ni encabezado ni citas."),
        (b"\0\0\0", "El archivo está vacío: no trae ni encabezado ni citas."),
        (b"PK\x03\x04rest", "El archivo es de Excel (.xlsx): ábralo y guárdelo como CSV, y traiga ese."),
        (
            "Paciente;Médico;Fecha\nA;B;17/09/2026".encode(),
            "Falta la columna «hora»; el encabezado trae: «Paciente», «Médico», «Fecha».",
        ),
        (
            b"Paciente;Cuando\nA;B",
            "Faltan las columnas «médico», «fecha», «hora»; el encabezado trae: «Paciente», «Cuando».",
        ),
    ],
)
def test_a_file_that_is_no_agenda_is_told_in_one_sentence(raw, sentence):
    assert list(read(raw)) == [BadLine(number=1, reason=sentence)]


def test_a_heading_alone_is_an_agenda_without_visits():
    assert lines_of(HEADING) == []


@pytest.mark.parametrize("raw", [bytes(range(256)) * 20, b"\xff\xfe\x00", b'"' * 5001, b"\x80;\x81\n" * 50])
def test_no_bytes_break_the_reading(raw):
    assert all(isinstance(line, BadLine) for line in read(raw))
