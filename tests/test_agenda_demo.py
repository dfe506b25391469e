"""The demonstration's agenda: dates from the present, and what an import makes of it at any hour."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from amedi.demo_agenda import UnknownPlaceholder, expand
from appointments.agenda_import import read, take_in
from appointments.models import Appointment, Doctor
from tests.factories import CARACAS, caracas, make_doctor, make_office, make_specialty

NOW = caracas("2026-09-10T12:30").replace(second=40)
TEMPLATE = Path(__file__).parent.parent / "demo" / "agenda.csv"


@pytest.mark.parametrize(
    ("placeholder", "text"),
    [
        ("{fecha:+2h1m}", "10/09/2026"),
        ("{hora:+2h1m}", "2:31 p. m."),
        ("{hora24:+2h1m}", "14:31"),
        ("{hora:-1h}", "11:30 a. m."),
        ("{fecha:+1d}", "11/09/2026"),
        ("{fecha:+1d12h}", "12/09/2026"),
        ("{reservada:-5d}", "05/09/2026 12:30"),
    ],
)
def test_a_placeholder_counts_from_the_present(placeholder, text):
    assert expand(f"a;{placeholder};b", now=NOW, zone=CARACAS) == f"a;{text};b"


@pytest.mark.parametrize(
    "wrong", ["{fecha}", "{fecha:}", "{dia:+1d}", "{fecha:1d}", "{fecha:+}", "{fecha:+1w}"]
)
def test_a_placeholder_of_another_kind_is_refused(wrong):
    with pytest.raises(UnknownPlaceholder):
        expand(wrong, now=NOW, zone=CARACAS)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "hour", [f"{hour:02d}:{minute}" for hour in (0, 7, 12, 21, 23) for minute in ("00", "58")]
)
def test_at_any_hour_all_but_two_lines_of_the_demonstration_go_in(hour):
    for name in ("Cardiología", "Medicina interna", "Pediatría"):
        make_specialty(name)
    torre = make_office(name="Torre Médica Las Mercedes")
    ruiz = make_doctor(name="Carmen Ruiz", title="Dra.", office=torre)
    ruiz.offices.add(make_office(name="Centro Clínico El Ávila"))
    make_doctor(name="Luis Andrade", title="Dr.", office=torre).offices.add(
        make_office(name="Policlínica Chacao")
    )
    now = datetime.fromisoformat(f"2026-09-10T{hour}:30").replace(tzinfo=CARACAS)

    text = expand(TEMPLATE.read_text(encoding="utf-8"), now=now, zone=CARACAS)
    report = take_in(read(text.encode()), doctors=Doctor.objects.all(), now=now, dry_run=False)

    assert [(line.number, line.reason) for line in report.bad] == [
        (18, "No hay ningún médico llamado «Dra. Carmen Ruis». ¿Será «Dra. Carmen Ruiz»?"),
        (19, "La fecha «31/02/2027» no existe; se espera dd/mm/aaaa."),
    ]
    assert report.created >= 14
    due = {
        visit.external_id: [visit.starts_at - timedelta(hours=before) - now for before in (2, 24)]
        for visit in Appointment.objects.order_by("external_id")
    }
    first_minute = [
        key for key, waits in due.items() if any(0 < wait.total_seconds() <= 60 for wait in waits)
    ]
    assert first_minute == ["CR-101", "CR-103", "LA-201", "LA-203"]
