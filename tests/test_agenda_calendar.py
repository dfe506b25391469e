"""An iCalendar file, in whatever shape, into lines: pure reading."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from appointments.agenda_import import BadLine, Line, NotVisit, Remark, read
from appointments.agenda_lines import CalledOff
from tests.factories import CARACAS

UTC = ZoneInfo("UTC")
WHEN = "DTSTART;TZID=America/Caracas:20260917T100000"


def event(
    *lines: str, uid: str = "e-1", starts: str = WHEN, who: str = "DESCRIPTION:Paciente: Ana Paz"
) -> str:
    return "\n".join(["BEGIN:VEVENT", f"UID:{uid}", starts, who, *lines, "END:VEVENT"])


def calendar(*parts: str) -> str:
    return "\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", *parts, "END:VCALENDAR", ""])


def pieces(text: str | bytes) -> list[object]:
    return list(read(text.encode() if isinstance(text, str) else text))


def only(*lines: str, **parts: str) -> Line:
    [line] = pieces(calendar(event(*lines, **parts)))
    assert isinstance(line, Line), line
    return line


def reason(*lines: str, **parts: str) -> str:
    [line] = pieces(calendar(event(*lines, **parts)))
    assert isinstance(line, BadLine), line
    return line.reason


def zone(name: str, *observances: str) -> str:
    return "\n".join(["BEGIN:VTIMEZONE", f"TZID:{name}", *observances, "END:VTIMEZONE"])


def standard(offset: str, *, starts: str = "16010101T000000", before: str = "", rule: str = "") -> str:
    lines = [
        "BEGIN:STANDARD",
        f"DTSTART:{starts}",
        f"TZOFFSETFROM:{before or offset}",
        f"TZOFFSETTO:{offset}",
    ]
    return "\n".join([*lines, *([f"RRULE:{rule}"] if rule else []), "END:STANDARD"])


# When


@pytest.mark.parametrize(
    ("starts", "told", "zone_told"),
    [
        (WHEN, "10:00", CARACAS),
        ('DTSTART;TZID="America/Caracas":20260917T100030', "10:00", CARACAS),
        ("DTSTART;tzid=america/caracas:20260917T100000", "10:00", CARACAS),
        ("DTSTART;TZID=Venezuela Standard Time:20260917T100000", "10:00", CARACAS),
        ("DTSTART;TZID=SA Western Standard Time:20260917T100000", "10:00", ZoneInfo("America/La_Paz")),
        ("DTSTART;TZID=/freeassociation.sourceforge.net/America/Caracas:20260917T100000", "10:00", CARACAS),
        ("DTSTART;TZID=/mozilla.org/20050126_1/America/Caracas:20260917T100000", "10:00", CARACAS),
        ("DTSTART:20260917T140000Z", "14:00", UTC),
        ("DTSTART;TZID=UTC-04:20260917T100000", "14:00", UTC),
        ("DTSTART:20260917T100000", "10:00", None),
        ("DTSTART;TZID=:20260917T100000", "10:00", None),
        ("DTSTART;VALUE=DATE-TIME:20260917T100000", "10:00", None),
    ],
)
def test_a_start_is_told_in_a_zone_in_utc_or_by_the_clock_of_the_office(starts, told, zone_told):
    line = only(starts=starts)
    assert (line.date, line.start) == (date(2026, 9, 17), time.fromisoformat(told))
    assert line.zone == zone_told


def test_a_zone_of_unknown_name_follows_the_rules_that_the_file_brings():
    text = calendar(
        zone("Hora propia", standard("-0330")), event(starts="DTSTART;TZID=Hora propia:20260917T100000")
    )
    [line] = pieces(text)
    assert (line.start, line.zone) == (time(13, 30), UTC)


@pytest.mark.parametrize(
    ("told", "utc"),
    [
        ("20260716T100000", "2026-07-16T14:00"),
        ("20261216T100000", "2026-12-16T15:00"),
        # The clock is put forward at two, and back at two: the offset from before.
        ("20260308T023000", "2026-03-08T07:30"),
        ("20261101T013000", "2026-11-01T05:30"),
    ],
)
def test_rules_of_the_file_hold_in_summer_in_winter_and_when_the_clock_jumps(told, utc):
    winter = standard(
        "-0500", before="-0400", starts="16011104T020000", rule="FREQ=YEARLY;BYDAY=1SU;BYMONTH=11"
    )
    summer = standard(
        "-0400", before="-0500", starts="16010311T020000", rule="FREQ=YEARLY;BYDAY=2SU;BYMONTH=3"
    )
    text = calendar(
        zone("Este", winter, summer.replace("STANDARD", "DAYLIGHT")),
        event(starts=f"DTSTART;TZID=Este:{told}"),
    )
    [line] = pieces(text)
    assert datetime.combine(line.date, line.start) == datetime.fromisoformat(utc)


def test_a_known_name_means_todays_rules_and_not_those_of_an_old_program():
    text = calendar(
        zone("Venezuela Standard Time", standard("-0430")),
        event(starts="DTSTART;TZID=Venezuela Standard Time:20260917T100000"),
    )
    [line] = pieces(text)
    assert (line.start, line.zone) == (time(10), CARACAS)


def test_the_place_in_a_zones_definition_names_it():
    rules = zone("Mi zona", "X-LIC-LOCATION:America/Caracas", standard("-0430"))
    [line] = pieces(calendar(rules, event(starts="DTSTART;TZID=Mi zona:20260917T100000")))
    assert (line.start, line.zone) == (time(10), CARACAS)


@pytest.mark.parametrize("definition", ["", zone("Rara"), zone("Rara", "BEGIN:STANDARD", "END:STANDARD")])
def test_a_zone_that_nobody_knows_is_told_with_a_way_out(definition):
    text = calendar(definition, event(starts="DTSTART;TZID=Rara:20260917T100000"))
    [line] = pieces(text)
    assert line.reason == (
        "No se conoce la zona horaria «Rara», y el archivo no la define: "
        "ponga el evento en la de su consultorio, por ejemplo America/Caracas."
    )


@pytest.mark.parametrize(
    ("lines", "minutes"),
    [
        (["DTEND;TZID=America/Caracas:20260917T104500"], 45),
        (["DTEND:20260917T144500Z"], 45),
        (["DTEND;TZID=America/New_York:20260917T104500"], 45),
        (["DURATION:PT1H30M"], 90),
        (["DURATION:P0DT0H20M0S"], 20),
        ([], None),
        (["DTEND;TZID=America/Caracas:20260917T100000"], None),
        (["DURATION:PT0S"], None),
    ],
)
def test_the_end_or_the_duration_says_how_long(lines, minutes):
    assert only(*lines).duration_minutes == minutes


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            ["DTEND;TZID=America/Caracas:20260917T093000"],
            "La duración «-30 min» no está entre 5 y 480 minutos.",
        ),
        (
            ["DTEND;TZID=America/Caracas:20260917T190000"],
            "La duración «540 min» no está entre 5 y 480 minutos.",
        ),
        (["DURATION:media hora"], "«media hora» no es una duración de calendario."),
        (["DTEND:pronto"], "«pronto» no es una fecha ni una hora de calendario."),
    ],
)
def test_a_length_that_no_visit_has_is_told(lines, sentence):
    assert reason(*lines) == sentence


@pytest.mark.parametrize(
    ("starts", "sentence"),
    [
        ("DTSTART:20260931T100000", "«20260931T100000» no es una fecha ni una hora de calendario."),
        ("DTSTART:20260917T250000", "«20260917T250000» no es una fecha ni una hora de calendario."),
        ("DTSTART:2026-09-17 10:00", "«2026-09-17 10:00» no es una fecha ni una hora de calendario."),
        ("DTSTART:00010101T000000Z", "«00010101T000000Z» no es una fecha ni una hora de calendario."),
        ("X-NOTHING:1", "Falta la hora de comienzo (DTSTART)."),
        ("DTSTART", "Falta la hora de comienzo (DTSTART)."),
    ],
)
def test_a_start_beyond_reading_is_told(starts, sentence):
    assert reason(starts=starts) == sentence


@pytest.mark.parametrize("starts", ["DTSTART;VALUE=DATE:20260917", "DTSTART:20260917"])
def test_what_lasts_all_day_is_no_visit(starts):
    assert pieces(calendar(event("SUMMARY:Feriado", starts=starts))) == [
        NotVisit(number=3, title="«Feriado», 17/09/2026", reason="dura todo el día.")
    ]


@pytest.mark.parametrize(
    ("created", "booked_at"),
    [
        ("CREATED:20260901T120000Z", datetime(2026, 9, 1, 12, tzinfo=UTC)),
        # As Google writes it of events that it does not know the age of.
        ("CREATED:00001231T000000Z", None),
        ("CREATED:ayer", None),
    ],
)
def test_an_event_was_booked_when_it_was_created(created, booked_at):
    assert only(created).booked_at == booked_at


# Which one


def test_the_uid_is_the_visits_identifier():
    assert only(uid="4h2k@google.com").external_id == "4h2k@google.com"


def test_a_uid_too_long_to_keep_is_kept_by_its_digest():
    long = "040000008200E00074C5B7101A82E008" + "0" * 80
    first, second = only(uid=long).external_id, only(uid=f"{long[:-1]}1").external_id
    assert first != second
    assert len(first) == len(second) == len("sha256:") + 64
    assert only(uid=long).external_id == first


@pytest.mark.parametrize("cancelled", ["STATUS:CANCELLED", "STATUS:cancelled"])
def test_a_cancelled_event_needs_no_patient_and_no_valid_zone(cancelled):
    text = calendar(event(cancelled, "SUMMARY:x", who="X-A:1", starts="DTSTART;TZID=Rara:20260917T100000"))
    [piece] = pieces(text)
    assert isinstance(piece, CalledOff)
    assert (piece.external_id, piece.title) == ("e-1", "«x»")


def test_a_calendar_that_cancels_cancels_all_its_events():
    assert all(
        isinstance(piece, CalledOff)
        for piece in pieces(calendar("METHOD:CANCEL", event(), event(uid="e-2", starts="SUMMARY:x")))
    )


def test_a_cancelled_event_without_identifier_is_told():
    assert reason("STATUS:CANCELLED", uid="") == (
        "Está cancelado y no trae identificador (UID): cancele la cita a mano."
    )


def test_the_answer_to_an_invitation_is_no_visit():
    [piece] = pieces(calendar("METHOD:REPLY", event()))
    assert piece.reason == "es la respuesta a una invitación."


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (["SEQUENCE:1", "LAST-MODIFIED:20260905T120000Z"], ["SEQUENCE:2", "LAST-MODIFIED:20260904T120000Z"]),
        (["LAST-MODIFIED:20260904T120000Z"], ["LAST-MODIFIED:20260905T120000Z"]),
        (["DTSTAMP:20260904T120000Z"], ["DTSTAMP:20260905T120000Z"]),
        (["SEQUENCE:no"], ["SEQUENCE:1"]),
    ],
)
@pytest.mark.parametrize("is_newer_first", [True, False])
def test_of_several_versions_the_newest_counts(older, newer, is_newer_first):
    versions = [
        event(*newer, starts="DTSTART:20260917T110000"),
        event(*older, starts="DTSTART:20260917T100000"),
    ]
    [line] = pieces(calendar(*(versions if is_newer_first else reversed(versions))))
    assert line.start == time(11)


def test_the_same_event_twice_is_one():
    assert len(pieces(calendar(event(), event()) + calendar(event()))) == 1


def test_two_events_of_one_identifier_and_one_age_are_both_told():
    first, second = pieces(calendar(event(), event(starts="DTSTART:20260918T100000")))
    assert (first.number, second.number) == (3, 8)
    assert first.reason == "El identificador (UID) está también en la línea 8: cada evento necesita el suyo."
    assert second.reason == "El identificador (UID) está también en la línea 3: cada evento necesita el suyo."


def test_events_without_identifier_are_events_of_their_own():
    assert len(pieces(calendar(event(uid=""), event(uid="")))) == 2


def test_the_last_change_in_the_calendar_is_kept():
    line = only("DTSTAMP:20260906T120000Z", "LAST-MODIFIED:20260905T120000Z")
    assert line.changed_at == datetime(2026, 9, 5, 12, tzinfo=UTC)
    assert only("DTSTAMP:20260906T120000Z").changed_at == datetime(2026, 9, 6, 12, tzinfo=UTC)


# The file


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_encoding_and_line_end_reads_the_same(encoding, end):
    text = calendar(event(who="DESCRIPTION:Paciente: José Núñez Ibáñez")).replace("\n", end)
    [line] = pieces(text.encode(encoding))
    assert (line.number, line.patient) == (3, "José Núñez Ibáñez")


@pytest.mark.parametrize("fold", [b"\r\n ", b"\n ", b"\r\n\t"])
def test_a_fold_may_cut_a_letter_in_two(fold):
    raw = calendar(event(who="DESCRIPTION:Paciente: Peña Paz"), event(uid="e-2")).encode()
    cut = raw.index("ñ".encode()) + 1
    first, second = pieces(raw[:cut] + fold + raw[cut:])
    assert first.patient == "Peña Paz"
    assert second.number == 9, "a folded line counts as the lines that an editor shows"


def test_a_broken_letter_garbles_its_own_line_alone():
    raw = calendar(event("SUMMARY:x#y", who="DESCRIPTION:Paciente: Peña Paz")).encode().replace(b"#", b"\xff")
    [line] = pieces(raw)
    assert line.patient == "Peña Paz"


def test_escaped_commas_newlines_and_backslashes_are_text():
    line = only(
        r"LOCATION:Torre Médica\, piso 3\; ala A", who=r"DESCRIPTION:Paciente: PAZ\, ANA\nTel: 0412\\"
    )
    assert (line.patient, line.phone) == ("Ana Paz", "0412\\")
    assert line.location == "Torre Médica, piso 3; ala A"


def test_lines_beyond_reading_and_parts_that_are_no_events_are_passed_over():
    text = calendar(
        "BEGIN:VTODO\nSUMMARY:x\nEND:VTODO",
        "BEGIN:X-OTHER\nBEGIN:X-INNER\nEND:X-INNER\nEND:X-OTHER",
        event(
            "una línea sin nada", "ATTACH;FMTTYPE=x/y;B:1", "X-APPLE-THING;VALUE=URI:geo:1,2",
            "BEGIN:VALARM\nTRIGGER:-PT15M\nDESCRIPTION:Paciente: Otro Nombre\nSUMMARY:y\nEND:VALARM",
        ),
    )  # fmt: skip
    [line] = pieces(text)
    assert (line.patient, line.title) == ("Ana Paz", "«», 17/09/2026 10:00 a. m.")


def test_a_broken_event_costs_itself_alone():
    text = calendar(event(), event(uid="e-2", starts="DTSTART:x"), event(uid="e-3"))
    assert [type(piece) for piece in pieces(text)] == [Line, BadLine, Line]


def test_an_event_that_never_ends_costs_itself_alone():
    text = calendar(event().replace("\nEND:VEVENT", ""), event(uid="e-2"))
    bad, line = pieces(text)
    assert bad == BadLine(
        number=3,
        title="«», 17/09/2026 10:00 a. m.",
        reason="El evento no termina: el archivo quedó a medias; expórtelo de nuevo.",
    )
    assert line.external_id == "e-2"


def test_a_file_cut_off_keeps_what_came_before():
    whole = calendar(event(), event(uid="e-2"))
    assert [type(piece) for piece in pieces(whole[: whole.rindex("DESCRIPTION")])] == [BadLine, Line]


def test_several_calendars_in_one_file_each_with_its_zones():
    text = calendar(
        zone("Local", standard("-0400")), event(starts="DTSTART;TZID=Local:20260917T100000")
    ) + calendar(
        zone("Local", standard("-0300")), event(uid="e-2", starts="DTSTART;TZID=Local:20260917T100000")
    )
    assert [line.start for line in pieces(text)] == [time(14), time(13)]


def test_events_without_a_calendar_around_them_are_read():
    assert len(pieces(event())) == 1


def test_a_calendar_without_events_is_told():
    assert pieces(calendar()) == [Remark(number=1, text="El calendario no trae ningún evento.")]


@pytest.mark.parametrize(
    ("raw", "name", "sentence"),
    [
        (b"", "agenda.ics", "El archivo está vacío: no trae ninguna cita."),
        (b"\xef\xbb\xbf\r\n", "AGENDA.ICS", "El archivo está vacío: no trae ninguna cita."),
        (
            b"<html>Inicie su sesi\xc3\xb3n</html>",
            "agenda.ics",
            "El archivo no es un calendario: no empieza con BEGIN:VCALENDAR. Expórtelo de nuevo como .ics.",
        ),
        (
            b"PK\x03\x04..ana@gmail.com.ics..",
            "agenda.ical.zip",
            "El archivo es un ZIP con calendarios: descomprímalo y traiga cada archivo .ics.",
        ),
    ],
)
def test_a_file_that_is_no_calendar_is_told_in_one_sentence(raw, name, sentence):
    assert list(read(raw, name=name)) == [BadLine(number=1, reason=sentence)]


def test_a_calendar_is_known_by_its_content_whatever_its_name():
    assert len(list(read(calendar(event()).encode(), name="agenda.txt"))) == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"BEGIN:VCALENDAR" + bytes(range(256)) * 20,
        b"BEGIN:VEVENT\n" * 50,
        b"BEGIN:VEVENT\nEND:VEVENT\n" * 3,
        b"BEGIN:VCALENDAR\nEND:VEVENT\nEND:VCALENDAR\nEND:VCALENDAR\nBEGIN\nEND\n:\n;\n",
        b"BEGIN:VEVENT\nDTSTART;TZID:x\nRRULE\nEXDATE:,\nRDATE:/\nATTENDEE\nORGANIZER:\nEND:VEVENT",
    ],
)
def test_no_bytes_break_the_reading(raw):
    assert all(isinstance(piece, BadLine | NotVisit | Remark) for piece in pieces(raw))


def test_ten_thousand_events_are_read():
    first = datetime(2026, 9, 1, 8, tzinfo=UTC)
    events = [
        event(uid=f"e-{number}", starts=f"DTSTART:{first + timedelta(minutes=5 * number):%Y%m%dT%H%M%S}")
        for number in range(10_000)
    ]
    assert sum(isinstance(piece, Line) for piece in pieces(calendar(*events))) == 10_000
