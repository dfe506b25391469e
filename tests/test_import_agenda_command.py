"""The clinic's file becomes visits with consent and plan, and importing it again changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from appointments.models import Appointment, AppointmentHistory
from reminders import consent
from reminders.models import ConsentEvent, ReminderDelivery
from tests.factories import MARK, make_doctor, make_rule, only_rules

pytestmark = pytest.mark.django_db
HEADING = "Paciente;Teléfono;Médico;Fecha;Hora;Acepta WhatsApp\n"


@pytest.fixture
def agenda(tmp_path, set_clock):
    """Import lines under the usual heading, on the 10th, and give what was printed."""
    set_clock("2026-09-10T09:00")
    only_rules(-1440)
    make_doctor(name="Carmen Ruiz")

    def take_in(*lines: str, **options: object) -> list[ConsentEvent]:
        file = tmp_path / "agenda.csv"
        file.write_text(HEADING + "\n".join(lines), encoding="utf-8")
        call_command("import_agenda", str(file), **options)
        return list(ConsentEvent.objects.order_by("pk"))

    return take_in


def line(
    *, who: str = f"Ana {MARK}", phone: str = "0412-5550001", hour: str = "10:00", accepts: str = "Sí"
) -> str:
    return f"{who};{phone};Carmen Ruiz;17/09/2026;{hour};{accepts}"


def test_a_line_becomes_a_visit_a_consent_and_a_planned_reminder(agenda, capsys):
    [event] = agenda(line())
    assert (event.agrees, event.how) == (True, "import")
    assert ReminderDelivery.objects.get().status == "pending"
    assert "1 nuevas, 0 movidas, 0 sin cambios, 0 no entraron." in capsys.readouterr().out


@pytest.mark.parametrize("notify", [False, True])
def test_new_visits_are_told_to_their_patients_only_when_asked_for(agenda, set_clock, notify):
    set_clock("2026-09-01T09:00")
    make_rule(0, reminder_type="reserva", offset_unit="minutes")
    set_clock("2026-09-10T09:00")
    agenda(line(), notify=notify)
    assert ReminderDelivery.objects.filter(reminder_type="reserva", status="pending").exists() is notify


def test_importing_it_again_changes_nothing(agenda, capsys):
    agenda(line())
    before = list(ReminderDelivery.objects.values())
    assert len(agenda(line())) == 1
    assert "0 nuevas, 0 movidas, 1 sin cambios" in capsys.readouterr().out
    assert list(ReminderDelivery.objects.values()) == before
    assert AppointmentHistory.objects.count() == 1


def test_a_no_in_the_file_is_a_refusal_also_under_a_source(agenda):
    [event] = agenda(line(accepts="No"), consent="formulario 2026")
    assert event.agrees is False
    assert not ReminderDelivery.objects.filter(status="pending").exists()


def test_the_source_speaks_for_lines_that_say_nothing(agenda):
    assert agenda(line(accepts="")) == []
    [event] = agenda(line(accepts=""), consent="formulario 2026")
    assert (event.agrees, event.evidence) == (True, "formulario 2026")


def test_an_agenda_never_overrides_what_the_patient_said_since(agenda):
    [event] = agenda(line())
    ConsentEvent.objects.create(
        patient=event.patient, channel="whatsapp", agrees=False, how="patient", evidence="BAJA"
    )
    assert len(agenda(line(), consent="formulario 2026")) == 2
    assert not consent.note_from_agenda(event.patient, agrees=True, evidence="otra agenda")


def test_a_changed_hour_moves_the_visit_and_its_reminder(agenda, capsys):
    agenda(line())
    agenda(line(hour="3:30 p. m."))
    assert "0 nuevas, 1 movidas" in capsys.readouterr().out
    visit = Appointment.objects.get()
    assert (visit.sequence, f"{visit.start_time:%H:%M}") == (1, "15:30")
    assert list(visit.deliveries.order_by("sequence").values_list("status", "reason")) == [
        ("cancelled", "moved"), ("pending", ""),
    ]  # fmt: skip


def test_a_dry_run_tells_and_changes_nothing(agenda, capsys):
    assert agenda(line(), "mala;línea", dry_run=True) == []
    printed = capsys.readouterr().out
    assert "Simulación: 1 nuevas" in printed and "Línea 3: no entró." in printed
    assert not Appointment.objects.exists()


def test_bad_lines_are_named_and_the_good_ones_go_in(agenda, capsys):
    agenda(line(), line(who=f"Beto {MARK}", hour="25:70"), line(who=f"Carla {MARK}", hour="11:00"))
    printed = capsys.readouterr().out
    assert "Línea 3: no entró." in printed
    assert "2 nuevas" in printed and "1 no entraron" in printed
    assert Appointment.objects.count() == 2


def test_a_file_that_is_not_there_is_one_sentence(db):
    with pytest.raises(CommandError, match="No se puede leer"):
        call_command("import_agenda", "/nowhere/agenda.csv")


def test_a_file_of_which_nothing_goes_in_is_a_failure(agenda):
    with pytest.raises(CommandError, match="No entró ninguna línea"):
        agenda("mala;línea")


def test_the_doctor_may_be_told_where_the_file_names_none(agenda, tmp_path, capsys):
    file = tmp_path / "agenda.csv"
    file.write_text(f"Paciente;Fecha;Hora\nAna {MARK};17/09/2026;10:00", encoding="utf-8")
    with pytest.raises(CommandError):
        call_command("import_agenda", str(file))
    assert "Falta la columna «médico»" in capsys.readouterr().out
    call_command("import_agenda", str(file), "--doctor", "carmen ruiz", "--office", "Torre Médica, piso 3")
    assert Appointment.objects.get().doctor.name == "Carmen Ruiz"


# A calendar


@pytest.fixture
def calendar(tmp_path, agenda):
    """Import events of these lines, for the one doctor."""

    def take_in(*events: list[str], options: tuple[str, ...] = ()) -> None:
        file = tmp_path / "agenda.ics"
        lines = [line for event in events for line in ("BEGIN:VEVENT", *event, "END:VEVENT")]
        text = "\r\n".join(["BEGIN:VCALENDAR", *lines, "END:VCALENDAR"])
        file.write_text(text, encoding="utf-8")
        call_command("import_agenda", str(file), "--doctor", "Carmen Ruiz", *options)

    return take_in


ANA = [
    "UID:e-1",
    "DTSTART:20260917T140000Z",
    f"SUMMARY:Consulta Ana {MARK}",
    "DESCRIPTION:Tel: 0412-5550001\\nAcepta WhatsApp: sí",
]


def test_an_event_becomes_a_visit_a_consent_and_a_planned_reminder(calendar, capsys):
    calendar(ANA)
    assert "1 nuevas, 0 movidas, 0 sin cambios, 0 no entraron.\n" in capsys.readouterr().out
    assert (ConsentEvent.objects.get().agrees, ReminderDelivery.objects.get().status) == (True, "pending")
    calendar(ANA)
    assert "0 nuevas, 0 movidas, 1 sin cambios" in capsys.readouterr().out
    assert ReminderDelivery.objects.count() == ConsentEvent.objects.count() == 1


def test_a_cancelled_event_takes_its_reminder_along(calendar, capsys):
    calendar(ANA)
    calendar([*ANA, "STATUS:CANCELLED"])
    assert "0 no entraron, 1 canceladas." in capsys.readouterr().out
    assert ReminderDelivery.objects.get().reason == "visit_cancelled"


def test_each_event_that_deserves_a_word_is_found_again_by_its_title(calendar, capsys):
    lunch = ["UID:e-2", "DTSTART:20260917T160000Z", "SUMMARY:Almuerzo"]
    broken = ["UID:e-3", "DTSTART;TZID=Marte:20260917T100000", f"SUMMARY:Cita Beto {MARK}"]
    calendar(ANA, lunch, broken)
    printed = capsys.readouterr().out
    assert f"Línea 13 («Cita Beto {MARK}»): no entró. No se conoce la zona horaria «Marte»" in printed
    assert (
        "Línea 8 («Almuerzo», 17/09/2026 12:00 p. m.): no es una cita: no nombra a ningún paciente."
        in printed
    )
    assert "1 nuevas, 0 movidas, 0 sin cambios, 1 no entraron, 1 no son citas." in printed


def test_a_title_is_a_patient_where_whoever_imports_says_so(calendar):
    alone = ["UID:e-4", "DTSTART:20260917T140000Z", f"SUMMARY:Ana {MARK}"]
    calendar(alone)
    assert not Appointment.objects.exists()
    calendar(alone, options=("--titles-are-patients",))
    assert Appointment.objects.get().patient.full_name == f"Ana {MARK}"


def test_a_file_named_as_a_calendar_that_is_none_is_told(agenda, tmp_path, capsys):
    file: Path = tmp_path / "agenda.ics"
    file.write_text("<html>")
    with pytest.raises(CommandError):
        call_command("import_agenda", str(file))
    assert "no empieza con BEGIN:VCALENDAR" in capsys.readouterr().out
