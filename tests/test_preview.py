"""Before a rule is saved: how many reminders would move, stay, vanish or come."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from appointments import clock
from reminders import planner, preview
from reminders.models import ReminderDelivery, ReminderRule
from tests.factories import (
    agree,
    break_office,
    caracas,
    make_appointment,
    make_doctor,
    make_patient,
    make_rule,
    make_specialty,
    only_rules,
)

pytestmark = pytest.mark.django_db


def book(**fields):
    """Booked on the 10th for the 24th at ten; the patient has agreed."""
    fields.setdefault("at", "2026-09-24T10:00")
    visit = make_appointment(**fields)
    agree(visit.patient)
    planner.plan_marked(now=clock.now())
    return visit


@pytest.fixture
def rule(set_clock) -> ReminderRule:
    """R24, the default for all, and the only rule."""
    set_clock("2026-09-10T09:00")
    [rule] = only_rules(-1440)
    return rule


def counts(found: preview.Preview) -> tuple[int, int, int, int]:
    """Moved, kept, vanished, new."""
    return found.moved, found.kept, found.vanished, found.new


def of_rule(rule: ReminderRule, **changes) -> preview.Preview:
    for name, value in changes.items():
        setattr(rule, name, value)
    return preview.of_rule(rule, now=clock.now())


def test_a_moment_that_is_ahead_moves_the_row(rule, set_clock):
    """Case H1."""
    visit = book()
    set_clock("2026-09-20T09:00")
    found = of_rule(rule, offset_minutes=-2880)
    assert counts(found) == (1, 0, 0, 0)
    [move] = found.first_moves
    assert (move.visit, move.channel, move.reminder_type) == (visit.pk, "whatsapp", "cita_proxima")
    assert (move.before, move.after) == (caracas("2026-09-23T10:00"), caracas("2026-09-22T10:00"))
    assert move.before.astimezone(move.zone).hour == 10


def test_a_moment_that_is_past_leaves_the_row_where_it_is_and_the_preview_says_so(rule, set_clock):
    """Case H2."""
    book()
    set_clock("2026-09-23T08:00")
    assert counts(of_rule(rule, offset_minutes=-2880)) == (0, 1, 0, 0)


def test_a_rule_that_is_switched_off_or_deleted_takes_its_rows_along(rule):
    """Cases H4 and H8."""
    book()
    assert counts(preview.of_deletion(rule, now=clock.now())) == (0, 0, 1, 0)
    assert counts(of_rule(rule, is_enabled=False)) == (0, 0, 1, 0)


def test_a_rule_that_is_switched_on_again_brings_its_rows_back(rule):
    """Case H4."""
    book()
    ReminderRule.objects.update(is_enabled=False)
    planner.plan_marked(now=clock.now())
    rule.refresh_from_db()
    assert counts(of_rule(rule, is_enabled=True)) == (0, 0, 0, 1)


def test_new_words_change_nothing(rule):
    book()
    assert counts(of_rule(rule, body_template="Otra cosa.")) == (0, 0, 0, 0)


def test_another_channel_is_another_row(rule, settings):
    settings.REMINDER_CHANNELS = ["whatsapp", "email"]
    book(patient=make_patient(email="ana@example.com"))
    assert counts(of_rule(rule, channels=["email"])) == (0, 0, 1, 1)


def test_do_not_send_makes_rows_vanish(rule):
    book()
    assert counts(of_rule(rule, channels=[])) == (0, 0, 1, 0)


def test_a_new_rule_of_the_same_level_adds_rows(rule):
    """Case H11."""
    book()
    new = ReminderRule(reminder_type="cita_proxima", offset_minutes=-120, offset_unit="hours",
                       channels=["whatsapp"])  # fmt: skip
    assert counts(of_rule(new)) == (0, 0, 0, 1)
    assert new.pk is None


def test_a_doctors_first_rule_takes_the_place_of_the_clinics(rule):
    """Case H13."""
    doctor = book().doctor
    book(doctor=make_doctor())
    first = ReminderRule(reminder_type="cita_proxima", offset_minutes=-2880, offset_unit="hours",
                         channels=["whatsapp"], doctor=doctor)  # fmt: skip
    assert counts(of_rule(first)) == (0, 0, 1, 1)


def test_a_doctors_first_rule_whose_moment_is_past_leaves_the_clinics_reminder(rule, set_clock):
    """P12 and H13."""
    doctor = book().doctor
    set_clock("2026-09-23T08:00")
    first = ReminderRule(reminder_type="cita_proxima", offset_minutes=-2880, offset_unit="hours",
                         channels=["whatsapp"], doctor=doctor)  # fmt: skip
    assert counts(of_rule(first)) == (0, 1, 0, 0)


def test_a_rule_of_a_specialty_that_is_switched_off_gives_way_to_the_general_one(rule):
    """Case H12."""
    heart = make_specialty("Cardiología")
    own = make_rule(-2880, specialty=heart)
    book(specialty=heart)
    book()
    assert counts(of_rule(own, is_enabled=False)) == (0, 0, 1, 1)


def test_what_was_sent_stays_out_of_it(rule):
    book()
    ReminderDelivery.objects.update(status="sent", called_at=clock.now())
    assert counts(of_rule(rule, offset_minutes=-2880)) == (0, 0, 0, 0)


def test_the_first_twenty_moves_are_those_that_were_due_soonest(rule):
    for day in range(1, 26):
        book(at=f"2026-10-{day:02}T10:00")
    found = of_rule(rule, offset_minutes=-2880)
    assert (found.moved, len(found.first_moves)) == (25, 20)
    before = [move.before for move in found.first_moves]
    assert before == sorted(before)
    assert before[0] == caracas("2026-09-30T10:00")


def test_only_the_visits_that_a_rule_concerns_are_read(rule):
    own = make_rule(-2880, doctor=book().doctor)
    for _ in range(3):
        break_office(book(doctor=make_doctor()))
    assert of_rule(own, offset_minutes=-4320).unplannable == 0
    assert of_rule(rule, offset_minutes=-4320).unplannable == 3


def test_nothing_is_written_and_nothing_is_locked(rule):
    book()
    with CaptureQueriesContext(
        connection,
    ) as asked:
        of_rule(rule, offset_minutes=-2880)
        preview.of_deletion(rule, now=clock.now())
    assert all(query["sql"].lstrip().startswith("SELECT") for query in asked)
    assert not any("FOR UPDATE" in query["sql"] for query in asked)


def test_many_visits_cost_few_questions(rule, django_assert_max_num_queries):
    for day in range(1, 21):
        book(at=f"2026-10-{day:02}T10:00")
    with django_assert_max_num_queries(12):
        of_rule(rule, offset_minutes=-2880)
