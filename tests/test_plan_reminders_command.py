"""The planner by hand: what it plans, and what it would."""

from __future__ import annotations

import io
from datetime import time

import pytest
from django.core.management import call_command

from appointments import booking, clock
from appointments.models import Patient
from reminders import marks, planner
from reminders.models import Mark, ReminderDelivery, ReminderRule
from tests.factories import MARK, agree, break_office, make_appointment, make_patient, only_rules

pytestmark = pytest.mark.django_db


def say(*arguments: str) -> str:
    output = io.StringIO()
    call_command("plan_reminders", *arguments, stdout=output, no_color=True)
    return output.getvalue()


@pytest.fixture
def visit(set_clock):
    """Booked on the 10th for the 17th at ten, with R24 and R2, and not planned yet."""
    set_clock("2026-09-10T09:00")
    only_rules(-1440, -120)
    visit = make_appointment()
    agree(visit.patient)
    return visit


def table() -> list[dict[str, object]]:
    return [*ReminderDelivery.objects.order_by("pk").values(), *Mark.objects.order_by("pk").values()]


def words(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_it_plans_all_that_is_marked_and_says_how_many_visits(visit):
    assert "Visits planned: 1" in say()
    assert visit.deliveries.filter(status="pending").count() == 2
    assert "Visits planned: 0" in say()


def test_a_changed_setting_is_planned_too(visit, settings):
    marks.note_settings(clock.now())
    say()
    settings.REMINDER_QUIET_HOURS = (time(9), time(11))
    assert "Visits planned: 1" in say()


def test_what_cannot_be_planned_is_told(visit):
    break_office(visit)
    assert "Marks left for a later look" in say()


def test_a_dry_run_says_what_would_go_out_and_writes_nothing(visit):
    before = table()
    told = words(say("--dry-run"))
    assert table() == before
    assert "Visits that can still change: 1, to be planned: 1" in told
    assert "2 cita_proxima whatsapp" in told
    assert f"2026-09-16 10:00 cita_proxima whatsapp {visit.pk}" in told
    assert f"2026-09-17 08:00 cita_proxima whatsapp {visit.pk}" in told


def test_a_dry_run_says_why_the_others_would_not(visit):
    agree(visit.patient, agrees=False)
    late = make_appointment(at="2026-09-10T10:00", booked_at="2026-09-10T09:00")
    agree(late.patient)
    told = words(say("--dry-run"))
    assert "2 cita_proxima whatsapp no_consent" in told
    assert "2 cita_proxima - no_channel" in told
    assert "Would go out: 0" in told
    assert "2 cita_proxima whatsapp booked_late" in told


def test_it_foresees_what_planning_then_does(visit, settings):
    """Whatever left the mark: the booking, a contact, the rules, or a setting."""
    settings.REMINDER_CHANNELS = ["whatsapp", "email"]
    marks.note_settings(clock.now())
    planner.plan_marked(now=clock.now())
    only = make_appointment(at="2026-09-18T10:00", patient=make_patient(phone="", email="a@example.com"))
    booking.reschedule(visit, date=visit.date.replace(day=20), start_time=time(6), actor=booking.SYSTEM)
    Patient.objects.filter(pk=only.patient_id).update(email="")
    ReminderRule.objects.filter(offset_minutes=-120).update(channels=["email", "whatsapp"])
    settings.REMINDER_QUIET_HOURS = (time(20), time(8))
    foreseen = words(say("--dry-run"))[2:]
    say()
    assert words(say("--dry-run"))[2:] == foreseen
    assert "to be planned: 0" in say("--dry-run")


def test_a_broken_visit_hides_none_of_the_others(visit):
    break_office(make_appointment())
    told = words(say("--dry-run"))
    assert "Visits that cannot be planned: 1 (the log names them)" in told
    assert "2 cita_proxima whatsapp" in told


def test_only_ids_are_printed(visit):
    told = say("--dry-run")
    assert MARK not in told
    assert visit.patient.phone not in told


def test_the_first_twenty_are_told_one_by_one(visit):
    for day in range(1, 26):
        agree(make_appointment(at=f"2026-10-{day:02}T10:00").patient)
    told = say("--dry-run")
    assert "Would go out: 52" in told
    assert "The first 20, by the clock of the place:" in told
    assert len(told[told.index("The first 20") :].splitlines()) == 21
