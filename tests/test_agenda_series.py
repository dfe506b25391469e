"""A recurring event, into the visits of the coming months."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

import pytest

from appointments.agenda_import import BadLine, Line, NotVisit, Remark, read
from appointments.agenda_lines import CalledOff
from appointments.agenda_series import Series
from tests.factories import caracas

NOW = caracas("2026-09-10T09:00").astimezone(UTC)
MONDAY = "DTSTART;TZID=America/Caracas:20260914T100000"


def event(*lines: str, starts: str = MONDAY, uid: str = "s-1") -> str:
    return "\n".join(
        ["BEGIN:VEVENT", f"UID:{uid}", starts, "DESCRIPTION:Paciente: Ana Paz", *lines, "END:VEVENT"]
    )


def visits(*events: str, now: datetime = NOW) -> list[object]:
    """All that comes of a calendar of these events."""
    pieces = read("\n".join(["BEGIN:VCALENDAR", *events, "END:VCALENDAR"]).encode())
    return [
        each for piece in pieces for each in (piece.visits(now=now) if isinstance(piece, Series) else [piece])
    ]


def days(*events: str, **options: datetime) -> list[str]:
    return [f"{piece.date:%m-%d}" for piece in visits(*events, **options) if isinstance(piece, Line)]


def of_kind(kind: type, *events: str) -> list[object]:
    return [piece for piece in visits(*events) if isinstance(piece, kind)]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=WEEKLY;COUNT=3", ["09-14", "09-21", "09-28"]),
        ("FREQ=WEEKLY;INTERVAL=2;COUNT=2", ["09-14", "09-28"]),
        ("FREQ=WEEKLY;BYDAY=MO,TH;COUNT=3", ["09-14", "09-17", "09-21"]),
        ("FREQ=DAILY;COUNT=2", ["09-14", "09-15"]),
        ("FREQ=MONTHLY;BYDAY=2MO;COUNT=2", ["09-14", "10-12"]),
        ("freq=weekly;count=2", ["09-14", "09-21"]),
        # The end in UTC, and by the day.
        ("FREQ=WEEKLY;UNTIL=20260921T140000Z", ["09-14", "09-21"]),
        ("FREQ=WEEKLY;UNTIL=20260921T135959Z", ["09-14"]),
        ("FREQ=WEEKLY;UNTIL=20260921", ["09-14", "09-21"]),
        ("FREQ=WEEKLY;UNTIL=20260921T100000", ["09-14", "09-21"]),
        ("FREQ=WEEKLY;WKST=SU;COUNT=1", ["09-14"]),
    ],
)
def test_a_rule_becomes_its_visits(rule, expected):
    assert days(event(f"RRULE:{rule}")) == expected


def test_each_visit_keeps_the_hour_on_the_wall_over_a_change_of_the_clock():
    found = visits(
        event("RRULE:FREQ=WEEKLY;COUNT=3", starts="DTSTART;TZID=America/New_York:20261026T100000"),
    )
    assert [piece.start for piece in found if isinstance(piece, Line)] == [time(10)] * 3


def test_each_visit_has_an_identifier_of_its_own_and_the_first_the_bare_one():
    first, second = of_kind(Line, event("RRULE:FREQ=WEEKLY;COUNT=2"))
    assert (first.external_id, second.external_id) == ("s-1", "s-1/20260921")
    assert second.title == "«», 21/09/2026 10:00 a. m."


def test_days_are_added_and_left_out():
    rule = "RRULE:FREQ=WEEKLY;COUNT=4"
    assert days(
        event(rule, "EXDATE;TZID=America/Caracas:20260921T100000,20260928T100000", "EXDATE:20261005T140000Z")
    ) == ["09-14"]
    assert days(event(rule, "EXDATE;VALUE=DATE:20260921")) == ["09-14", "09-28", "10-05"]
    assert days(event("RDATE;TZID=America/Caracas:20260916T100000", "RDATE;VALUE=DATE:20260918")) == [
        "09-14", "09-16", "09-18",
    ]  # fmt: skip
    assert days(event("RDATE;VALUE=PERIOD:20260916T140000Z/PT30M")) == ["09-14", "09-16"]


def test_an_occurrence_that_differs_is_a_visit_of_its_own():
    series = event("RRULE:FREQ=WEEKLY;COUNT=3")
    moved = event(
        "RECURRENCE-ID;TZID=America/Caracas:20260921T100000",
        starts="DTSTART;TZID=America/Caracas:20260922T113000",
    )
    for events in ([series, moved], [moved, series]):
        lines = sorted(of_kind(Line, *events), key=lambda line: line.date)
        assert [(line.external_id, line.date.day, line.start) for line in lines] == [
            ("s-1", 14, time(10)),
            ("s-1/20260921", 22, time(11, 30)),
            ("s-1/20260928", 28, time(10)),
        ]


def test_an_occurrence_is_known_by_its_day_in_the_zone_of_the_event():
    late = "DTSTART;TZID=America/Caracas:20260914T210000"
    moved = event("RECURRENCE-ID:20260922T010000Z", starts="DTSTART;TZID=America/Caracas:20260921T200000")
    assert days(event("RRULE:FREQ=WEEKLY;COUNT=2", starts=late), moved) == ["09-14", "09-21"]


def test_a_cancelled_occurrence_is_called_off_alone():
    cancelled = event("RECURRENCE-ID;TZID=America/Caracas:20260921T100000", "STATUS:CANCELLED")
    found = visits(event("RRULE:FREQ=WEEKLY;COUNT=3"), cancelled)
    assert [piece.date.day for piece in found if isinstance(piece, Line)] == [14, 28]
    assert [piece.external_id for piece in found if isinstance(piece, CalledOff) and not piece.until] == [
        "s-1/20260921"
    ]


def test_a_series_says_which_of_its_visits_stand():
    [rest] = of_kind(CalledOff, event("RRULE:FREQ=WEEKLY;COUNT=3", "EXDATE:20260928T140000Z"))
    assert (rest.external_id, rest.keeps) == ("s-1", {"s-1", "s-1/20260921"})


def test_a_series_without_identifier_calls_nothing_off():
    found = visits(event("RRULE:FREQ=WEEKLY;COUNT=2", uid=""))
    assert [type(piece) for piece in found] == [Line, Line]


def test_a_series_is_taken_in_half_a_year_ahead_and_says_so():
    found = visits(event("RRULE:FREQ=WEEKLY"))
    last = [piece for piece in found if isinstance(piece, Line)][-1]
    assert last.date == date(2027, 3, 8)
    assert [piece.text for piece in found if isinstance(piece, Remark)] == [
        "La serie sigue después del 09/03/2027: importe la agenda de nuevo antes de ese día."
    ]


@pytest.mark.complaint(
    "A series brings reminders of all its past dates.",
    about="clocks",
    source="odoo/odoo PR#62701",
)
def test_of_a_series_begun_long_ago_the_past_is_left_alone():
    old = event("RRULE:FREQ=WEEKLY;COUNT=1000", starts="DTSTART;TZID=America/Caracas:20200106T100000")
    assert days(old)[0] == "09-14"
    assert days(old, now=caracas("2026-09-14T18:00"))[0] == "09-14", "today's, also when its hour has passed"


def test_a_series_that_is_over_is_told_and_is_no_error():
    over = event("RRULE:FREQ=WEEKLY;COUNT=3", starts="DTSTART;TZID=America/Caracas:20260106T100000")
    assert [piece.reason for piece in of_kind(NotVisit, over)] == ["es una serie que ya terminó."]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["RRULE:FREQ=HOURLY"], "Se repite varias veces al día: en la agenda, cree las citas una por una."),
        (
            ["RRULE:FREQ=DAILY;BYHOUR=9,15"],
            "Se repite varias veces al día: en la agenda, cree las citas una por una.",
        ),
        (
            ["RRULE:FREQ=WEEKLY;BYDAY=LU"],
            "No se entiende cómo se repite: en la agenda, cree las citas una por una.",
        ),
        (
            ["RRULE:FREQ=WEEKLY;UNTIL=20269999"],
            "No se entiende cómo se repite: en la agenda, cree las citas una por una.",
        ),
        *(
            (
                [f"RRULE:FREQ={rule}"],
                "No se entiende cómo se repite: en la agenda, cree las citas una por una.",
            )
            for rule in (
                "DAILY;INTERVAL=0",
                "WEEKLY;INTERVAL=;BYDAY=MO",
                "DAILY;INTERVAL=-1",
                "DAILY;BYSETPOS=5",
            )
        ),
        (["RRULE:FREQ=WEEKLY", "EXDATE:x"], "«x» no es una fecha ni una hora de calendario."),
        (
            ["RECURRENCE-ID;RANGE=THISANDFUTURE:20260921T140000Z"],
            "El cambio vale para «esta cita y las siguientes»: en la agenda, cámbielas una por una.",
        ),
    ],
)
def test_a_repetition_beyond_reading_is_told_with_a_way_out(lines, sentence):
    found = visits(event(*lines))
    assert [piece.reason for piece in found if isinstance(piece, BadLine)] == [sentence]
    assert not [piece for piece in found if isinstance(piece, Line | CalledOff)]


def test_two_on_one_day_are_told():
    found = visits(event("RDATE;TZID=America/Caracas:20260914T160000"))
    assert [piece.reason for piece in found if isinstance(piece, BadLine)] == [
        "La serie tiene dos citas el 14/09/2026: en la agenda, cree la segunda como un evento aparte."
    ]


def test_a_series_without_a_patient_is_no_visit():
    lunch = event("RRULE:FREQ=DAILY").replace("Paciente: Ana Paz", "12 m.")
    assert [type(piece) for piece in visits(lunch)] == [NotVisit]


def test_a_series_by_the_clock_of_the_office_stays_so():
    found = of_kind(Line, event("RRULE:FREQ=WEEKLY;COUNT=2;", starts="DTSTART:20260914T100000"))
    assert [(line.start, line.zone) for line in found] == [(time(10), None)] * 2
