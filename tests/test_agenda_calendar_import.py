"""Events of a calendar become visits, move and are called off; twice changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from appointments import booking, clock
from appointments.agenda_import import Report, Told, read, take_in
from appointments.models import Appointment, AppointmentHistory, Doctor, Patient
from tests.factories import (
    MARK,
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
RUIZ = Told(doctor="Carmen Ruiz")
BY_HAND = booking.Actor(source=AppointmentHistory.Source.ADMIN)


@pytest.fixture
def ruiz() -> Doctor:
    make_specialty("Cardiología")
    return make_doctor(name="Carmen Ruiz", title="Dra.", office=make_office(name="Torre Médica"))


def import_raw(raw: bytes, *, told: Told = RUIZ, **options: Any) -> Report:
    options = {"doctors": Doctor.objects.all(), "now": NOW, "dry_run": False} | options
    return take_in(read(raw, told=told), **options)


def event(
    *lines: str, uid: str = "e-1", at: str = "20260917T100000", who: str = f"Ana {MARK}", zone: str = ""
) -> str:
    starts = f"DTSTART;TZID={zone}:{at}" if zone else f"DTSTART:{at}"
    return "\n".join(["BEGIN:VEVENT", f"UID:{uid}", starts, f"X-PACIENTE:{who}", *lines, "END:VEVENT"])


def import_events(*events: str, top: str = "VERSION:2.0", **options: Any) -> Report:
    return import_raw("\n".join(["BEGIN:VCALENDAR", top, *events, "END:VCALENDAR"]).encode(), **options)


def counts(report: Report) -> tuple[int, int, int, int, int]:
    return report.created, report.moved, report.unchanged, report.cancelled, len(report.bad)


def notes(report: Report) -> list[str]:
    return [note.text for note in report.notes]


def standing() -> list[str]:
    visits = Appointment.objects.exclude(status="cancelled").order_by("starts_at")
    return [f"{visit.date:%m-%d} {visit.start_time:%H:%M}" for visit in visits]


def everything() -> list[Any]:
    """All that an import could have touched."""
    return [
        list(model._base_manager.order_by("pk").values())
        for model in (Appointment, AppointmentHistory, Patient, Patient.doctors.through)
    ]


# Files as programs write them


@pytest.mark.parametrize(
    ("name", "expected", "visits"),
    [
        (
            "google.ics",
            (5, 0, 0, 0, 0),
            [
                ("09-14 08:00", f"Carla {MARK}", "+584125550103", 45),
                ("09-17 10:00", f"Ana {MARK}", "+584125550101", 30),
                ("09-17 11:00", f"Beto {MARK}", "+584125550102", 45),
                ("09-29 09:30", f"Carla {MARK}", "+584125550103", 45),
                ("10-05 08:00", f"Carla {MARK}", "+584125550103", 45),
            ],
        ),
        (
            "outlook.ics",
            (2, 0, 0, 0, 0),
            [
                ("09-17 09:00", f"Darío {MARK} Peña", "+584125550104", 30),
                ("09-17 10:00", f"Elba {MARK}", "+584125550105", 40),
            ],
        ),
        (
            "apple.ics",
            (2, 0, 0, 0, 0),
            [
                ("09-17 08:00", f"Félix {MARK}", "+584125550106", 30),
                ("09-17 09:00", f"Gloria {MARK}", "+584125550107", 30),
            ],
        ),
        ("calcom.ics", (1, 0, 0, 0, 0), [("09-17 15:30", f"Héctor {MARK}", "+584125550108", 30)]),
        ("doctoralia.ics", (1, 0, 1, 0, 0), [("09-17 15:00", f"Inés {MARK}", "+584125550109", 20)]),
    ],
)
def test_a_file_as_a_calendar_exports_it_goes_in_and_twice_changes_nothing(name, expected, visits, ruiz):
    raw = (AGENDAS / name).read_bytes()
    first = import_raw(raw, told=Told())
    assert counts(first) == expected, first
    assert [
        (f"{visit.date:%m-%d} {visit.start_time:%H:%M}", visit.patient.full_name, visit.patient.phone,
         visit.duration_minutes)
        for visit in Appointment.objects.order_by("starts_at")
    ] == visits  # fmt: skip
    assert {visit.doctor for visit in Appointment.objects.all()} == {ruiz}
    before = everything()
    again = import_raw(raw, told=Told())
    assert (again.created, again.moved, again.cancelled, again.bad) == (0, 0, 0, [])
    assert again.not_visits == first.not_visits
    assert everything() == before


def test_what_an_event_says_of_the_patient_is_kept(ruiz):
    import_raw((AGENDAS / "doctoralia.ics").read_bytes(), told=Told())
    visit = Appointment.objects.get()
    assert (visit.patient.email, visit.specialty.name) == ("ines@zzyzx.example", "Cardiología")
    assert visit.external_id == "visita-880011"


def test_what_is_no_visit_is_told_and_is_no_error(ruiz):
    report = import_raw((AGENDAS / "google.ics").read_bytes(), told=Told())
    assert [(other.number, other.title, other.reason) for other in report.not_visits] == [
        (51, "«Almuerzo», 17/09/2026 12:00 p. m.",
         "no nombra a ningún paciente. Si es una cita, escriba «Paciente: …» en la descripción."),
        (63, "«Congreso de Cardiología», 18/09/2026", "dura todo el día."),
    ]  # fmt: skip


# Time


@pytest.mark.parametrize(
    ("zone", "at"),
    [
        ("", "20260917T100000"),
        ("", "20260917T140000Z"),
        ("America/Caracas", "20260917T100000"),
        ("America/New_York", "20260917T100000"),
        ("Europe/Madrid", "20260917T160000"),
        ("Venezuela Standard Time", "20260917T100000"),
    ],
)
def test_a_time_becomes_what_the_clock_of_the_office_shows(zone, at, ruiz):
    import_events(event(at=at, zone=zone))
    assert standing() == ["09-17 10:00"]


def test_a_time_beyond_midnight_elsewhere_is_of_another_day_here(ruiz):
    import_events(event(at="20260918T013000Z"))
    assert standing() == ["09-17 21:30"]


@pytest.mark.parametrize("zone", ["", "America/Santiago"])
def test_an_hour_that_the_clock_skips_moves_ahead_with_a_note(zone):
    make_doctor(name="Carmen Ruiz", office=make_office(time_zone="America/Santiago"))
    report = import_events(event(at="20260906T003000", zone=zone))
    assert standing() == ["09-06 01:30"]
    assert notes(report) == ["A las 12:30 a. m. de ese día el reloj se adelanta: se tomó 1:30 a. m."]


@pytest.mark.parametrize("at", ["20261101T013000", "20261101T053000Z", "20261101T063000Z"])
def test_an_hour_that_comes_twice_means_the_first_with_a_note(at):
    make_doctor(name="Carmen Ruiz", office=make_office(time_zone="America/New_York"))
    report = import_events(event(at=at))
    assert Appointment.objects.get().starts_at == datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    assert notes(report) == [
        "Las 1:30 a. m. ocurren dos veces ese día, porque el reloj se atrasa: se tomó la primera."
    ]


def test_an_event_of_long_ago_is_no_error(ruiz):
    report = import_events(event(at="20200917T100000"))
    assert counts(report) == (0, 0, 0, 0, 0)
    assert [other.reason for other in report.not_visits] == ["es de hace más de dos años."]


def test_an_event_far_ahead_is_told(ruiz):
    [bad] = import_events(event(at="22000101T000000Z")).bad
    assert bad.reason == ("La fecha 01/01/2200 está a más de dos años de hoy: parece un error al escribirla.")


# Doctor and place


def test_the_doctor_is_who_is_labelled_or_given_or_hosts_the_event(ruiz):
    andrade = make_doctor(name="Luis Andrade")
    import_events(event("X-MEDICO:Luis Andrade"))
    import_events(event(uid="e-2", at="20260917T110000"))
    import_events(
        event("ORGANIZER;CN=Dr. Luis Andrade:mailto:a@c.example", uid="e-3", at="20260917T120000"),
        told=Told(),
    )
    import_events(
        event(uid="e-4", at="20260917T130000"), top="X-WR-CALNAME:Agenda de Carmen Ruiz", told=Told()
    )
    assert [visit.doctor for visit in Appointment.objects.order_by("starts_at")] == [
        andrade, ruiz, andrade, ruiz,
    ]  # fmt: skip


@pytest.mark.parametrize("top", ["X-WR-CALNAME:Agenda", "X-WR-CALNAME:Carmen Ruiz y Luis Andrade"])
def test_an_event_of_no_doctor_for_sure_is_told_with_a_way_out(top, ruiz):
    make_doctor(name="Luis Andrade")
    [bad] = import_events(event(), top=top, told=Told()).bad
    assert bad.reason == "Falta el médico: escriba «Médico: …» en la descripción, o importe con --doctor."
    assert bad.title == "«», 17/09/2026 10:00 a. m."


def test_an_office_that_the_location_names_is_the_place(ruiz):
    ruiz.offices.add(make_office(name="Torre Médica, piso 3"), make_office(name="Centro"))
    for number, location in enumerate(
        [r"TORRE MEDICA\, piso 3\, Caracas", r"Torre Médica\, Caracas", "Zoom"]
    ):
        import_events(
            event(f"LOCATION:{location}", uid=f"e-{number}", at=f"20260917T1{number}0000"),
            told=Told(doctor="Carmen Ruiz", office="centro"),
        )
    visits = Appointment.objects.order_by("starts_at")
    assert [visit.office.name for visit in visits] == ["Torre Médica, piso 3", "Torre Médica", "Centro"]


def test_of_several_offices_one_must_be_named(ruiz):
    ruiz.offices.add(make_office(name="Centro"))
    [bad] = import_events(event("LOCATION:Zoom")).bad
    assert bad.reason == "Falta el consultorio: Dra. Carmen Ruiz atiende en «Centro», «Torre Médica»."


def test_a_place_that_is_no_office_is_told_where_there_is_but_one(ruiz):
    assert notes(import_events(event("LOCATION:Clínica Ávila"))) == [
        "El lugar «Clínica Ávila» no es un consultorio de Dra. Carmen Ruiz: se tomó «Torre Médica»."
    ]


def test_the_phone_of_the_office_is_not_the_patients(ruiz):
    ruiz.offices.update(phone="0412-5559999")
    report = import_events(event("DESCRIPTION:Cambios al 0412-5559999"))
    assert notes(report) == ["+584125559999 es el teléfono del consultorio: la cita entra sin teléfono."]
    assert Patient.objects.get().phone == ""


# Changes


def test_a_moved_event_moves_its_visit(ruiz):
    import_events(event("SEQUENCE:0"))
    assert counts(import_events(event("SEQUENCE:1", at="20260918T150000"))) == (0, 1, 0, 0, 0)
    assert standing() == ["09-18 15:00"]
    assert Appointment.objects.get().history.last().source == "import"


@pytest.mark.parametrize(
    "event_and_top",
    [(["STATUS:CANCELLED"], "VERSION:2.0"), ([], "METHOD:CANCEL")],
    ids=["status", "method"],
)
def test_a_cancelled_event_cancels_its_visit_once(event_and_top, ruiz):
    lines, top = event_and_top
    import_events(event())
    gone = event(*lines).replace(f"X-PACIENTE:Ana {MARK}", "SUMMARY:x")
    assert counts(import_events(gone, top=top)) == (0, 0, 0, 1, 0)
    visit = Appointment.objects.get()
    assert (visit.status, visit.history.last().source) == ("cancelled", "import")
    before = everything()
    assert counts(import_events(gone, top=top)) == (0, 0, 1, 0, 0)
    assert everything() == before


def test_a_cancelled_event_of_a_visit_that_nobody_knows_changes_nothing(ruiz):
    make_appointment(doctor=ruiz, at="2026-09-17T10:00")
    assert counts(import_events(event("STATUS:CANCELLED"))) == (0, 0, 1, 0, 0)
    assert standing() == ["09-17 10:00"]


def test_a_cancelled_event_leaves_its_time_to_another_of_the_same_file(ruiz):
    import_events(event())
    report = import_events(event(uid="e-2", who=f"Beto {MARK}"), event("STATUS:CANCELLED"))
    assert counts(report) == (1, 0, 0, 1, 0)


def test_only_the_named_doctors_visit_is_cancelled(ruiz):
    andrade = make_doctor(name="Luis Andrade")
    import_events(event())
    import_events(event(), told=Told(doctor="Luis Andrade"))
    import_events(event("STATUS:CANCELLED"), told=Told(doctor="Luis Andrade"))
    assert Appointment.objects.get(doctor=andrade).status == "cancelled"
    assert Appointment.objects.get(doctor=ruiz).status == "scheduled"


def test_a_doctor_who_may_not_be_named_loses_no_visit(ruiz):
    import_events(event())
    others = Doctor.objects.filter(pk=make_doctor(name="Luis Andrade").pk)
    assert counts(import_events(event("STATUS:CANCELLED"), told=Told(), doctors=others)) == (0, 0, 1, 0, 0)
    assert [bad.reason for bad in import_events(event("STATUS:CANCELLED"), doctors=others).bad] == [
        "No hay ningún médico llamado «Carmen Ruiz»."
    ]
    assert standing() == ["09-17 10:00"]


def test_a_visit_that_took_place_is_not_cancelled(ruiz):
    import_events(event())
    booking.complete(Appointment.objects.get(), actor=booking.SYSTEM)
    report = import_events(event("STATUS:CANCELLED"))
    assert notes(report) == ["La cita ya está «Atendida»: sigue a las 10:00 a. m. del 17/09/2026."]
    assert Appointment.objects.get().status == "completed"


def test_an_event_that_is_gone_from_the_file_cancels_nothing(ruiz):
    import_events(event(), event(uid="e-2", at="20260917T110000", who=f"Beto {MARK}"))
    assert counts(import_events(event())) == (0, 0, 1, 0, 0)
    assert standing() == ["09-17 10:00", "09-17 11:00"]


def test_what_was_moved_here_since_the_calendar_changed_stays(ruiz):
    before, after = (f"LAST-MODIFIED:{clock.now() + delta:%Y%m%dT%H%M%SZ}" for delta in
                     (timedelta(hours=-1), timedelta(hours=1)))  # fmt: skip
    import_events(event(before))
    booking.reschedule(
        Appointment.objects.get(), date=caracas("2026-09-18T10:00").date(), start_time=time(16), actor=BY_HAND
    )
    report = import_events(event(before))
    assert counts(report) == (0, 0, 1, 0, 0)
    assert notes(report) == [
        "Se cambió aquí después que en el calendario: sigue a las 4:00 p. m. del 18/09/2026."
    ]
    assert counts(import_events(event(after))) == (0, 1, 0, 0, 0)
    assert standing() == ["09-17 10:00"]


def test_what_was_reinstated_here_since_the_calendar_cancelled_stays(ruiz):
    long_ago = "LAST-MODIFIED:20260101T000000Z"
    import_events(event(long_ago))
    visit = Appointment.objects.get()
    booking.cancel(visit, actor=BY_HAND)
    booking.reinstate(visit, actor=BY_HAND)
    report = import_events(event(long_ago, "STATUS:CANCELLED"))
    assert notes(report) == [
        "Se cambió aquí después de cancelarse allí: sigue a las 10:00 a. m. del 17/09/2026."
    ]
    assert standing() == ["09-17 10:00"]


def test_a_confirmation_here_does_not_hold_up_a_move_there(ruiz):
    long_ago = "LAST-MODIFIED:20260101T000000Z"
    import_events(event(long_ago))
    booking.confirm(Appointment.objects.get(), actor=BY_HAND)
    assert counts(import_events(event(long_ago, at="20260917T110000"))) == (0, 1, 0, 0, 0)


def test_a_visit_of_the_csv_is_known_again_by_its_time(ruiz):
    patient = make_patient(doctor=ruiz, full_name=f"Ana {MARK}")
    make_appointment(doctor=ruiz, patient=patient, at="2026-09-17T10:00")
    assert counts(import_events(event())) == (0, 0, 1, 0, 0)
    assert Appointment.objects.get().external_id == "e-1"


# Series


def series(*lines: str, at: str = "20260914T100000", rule: str = "FREQ=WEEKLY;COUNT=4") -> str:
    return event(f"RRULE:{rule}", *lines, at=at, uid="s-1")


def test_a_series_becomes_visits_and_twice_changes_nothing(ruiz):
    assert counts(import_events(series())) == (4, 0, 0, 0, 0)
    before = everything()
    assert counts(import_events(series())) == (0, 0, 4, 0, 0)
    assert everything() == before


def test_a_series_moved_to_another_hour_moves_its_visits(ruiz):
    import_events(series())
    assert counts(import_events(series(at="20260914T110000"))) == (0, 4, 0, 0, 0)
    assert standing() == ["09-14 11:00", "09-21 11:00", "09-28 11:00", "10-05 11:00"]


@pytest.mark.parametrize(
    ("lines", "rule", "left"),
    [
        (["EXDATE:20260921T100000"], "FREQ=WEEKLY;COUNT=4", ["09-14", "09-28", "10-05"]),
        ([], "FREQ=WEEKLY;UNTIL=20260922", ["09-14", "09-21"]),
    ],
)
def test_a_day_that_a_series_no_longer_holds_is_called_off(lines, rule, left, ruiz):
    import_events(series())
    report = import_events(series(*lines, rule=rule))
    assert (report.cancelled, report.bad) == (4 - len(left), [])
    assert [day[:5] for day in standing()] == left


def test_a_cancelled_series_cancels_what_lies_ahead(ruiz):
    import_events(series(at="20260907T100000"), now=NOW - timedelta(days=5))
    booking.complete(Appointment.objects.get(external_id="s-1"), actor=BY_HAND)
    assert counts(import_events(event("STATUS:CANCELLED", uid="s-1"))) == (0, 0, 0, 3, 0)
    assert standing() == ["09-07 10:00"]


def test_an_event_that_is_repeated_from_now_on_keeps_its_visit(ruiz):
    import_events(event(uid="s-1", at="20260914T100000"))
    assert counts(import_events(series())) == (3, 0, 1, 0, 0)
    assert counts(import_events(event(uid="s-1", at="20260914T100000"))) == (0, 0, 1, 0, 0)


def test_a_visit_of_a_series_that_was_put_off_here_is_not_called_off(ruiz):
    import_events(series(at="20260907T100000"), now=NOW - timedelta(days=5))
    for visit in Appointment.objects.filter(external_id__in=["s-1", "s-1/20260914"]):
        booking.reschedule(visit, date=visit.date + timedelta(days=10), start_time=time(8), actor=BY_HAND)
    import_events(series("LAST-MODIFIED:20260101T000000Z", at="20260907T100000"))
    assert standing() == ["09-17 08:00", "09-21 10:00", "09-24 08:00", "09-28 10:00"]


@pytest.mark.parametrize(
    ("lines", "left"),
    [(["STATUS:CANCELLED"], ["09-21", "09-28", "10-05"]), ([], ["09-15", "09-21", "09-28", "10-05"])],
    ids=["cancelled", "moved"],
)
def test_the_first_visit_of_a_series_may_differ_too(lines, left, ruiz):
    import_events(series())
    differing = event("RECURRENCE-ID:20260914T100000", *lines, uid="s-1", at="20260915T100000")
    assert import_events(series(), differing).bad == []
    assert [day[:5] for day in standing()] == left


def test_a_series_without_identifier_leaves_others_visits_alone(ruiz):
    make_appointment(doctor=ruiz, at="2026-09-18T10:00")
    assert counts(import_events(series().replace("UID:s-1", "UID:"))) == (4, 0, 0, 0, 0)
    assert "09-18 10:00" in standing()


# The whole


def test_a_dry_run_tells_the_same_and_writes_nothing(ruiz):
    import_events(event(uid="e-9", at="20260918T100000", who=f"Beto {MARK}"))
    raw = (AGENDAS / "google.ics").read_bytes()
    before = everything()
    tried = import_raw(raw, dry_run=True)
    assert everything() == before
    assert tried == import_raw(raw)


def test_a_broken_event_costs_itself_alone(ruiz):
    report = import_events(
        event(), event(uid="e-2", at="x"), event(uid="e-3", at="20260917T110000", who=f"Beto {MARK}")
    )
    assert counts(report) == (2, 0, 0, 0, 1)
    assert report.bad[0].number == 8


def test_a_line_costs_few_queries_and_a_known_one_fewer(ruiz):
    def queries(count: int) -> int:
        events = [
            event(
                uid=f"q-{number}",
                at=f"2026{10 + number // 20}{1 + number % 20:02d}T100000",
                who=f"N {name} {MARK}",
            )
            for number, name in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:count])
        ]
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert import_events(*events).bad == []
        return len(captured)

    few, more = queries(4), queries(24)
    assert more - few <= 20 * 10 + 4, "a new line: transaction, visit, patient, booking"
    few, more = queries(4), queries(24)
    assert more - few <= 20 * 3, "a known line: transaction and visit"
