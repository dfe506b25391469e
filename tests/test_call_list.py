"""The call list names each visit of which no message told the patient, with its reason, and no other."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from appointments import booking, clock
from reminders import call_list
from reminders.models import ReminderDelivery, Unreached
from tests.factories import (
    make_appointment,
    make_delivery,
    make_doctor,
    make_patient,
    make_rule,
    make_user,
    soon,
)

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def visit():
    return make_appointment(at=soon(3), doctor=make_doctor())


def fallen(visit, status="failed", reason="refused", **fields) -> ReminderDelivery:
    fields.setdefault("called_at", clock.now() - timedelta(minutes=1))
    return make_delivery(appointment=visit, status=status, reason=reason, **fields)


def listed() -> list[tuple[object, str]]:
    return [(row.appointment_id, row.reason) for row in call_list.unreached(clock.now())]


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("failed", "refused"),
        ("failed", "attempts_exhausted"),
        ("failed", "no_answer"),
        ("skipped", "no_channel"),
        ("skipped", "quiet_hours"),
        ("expired", "too_late"),
    ],
)
def test_what_reached_nobody_is_listed_with_its_reason(visit, status, reason):
    fallen(visit, status, reason)
    assert listed() == [(visit.pk, reason)]


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("skipped", "opted_out"),
        ("skipped", "do_not_send"),
        ("skipped", "booked_late"),
        ("skipped", "superseded"),
        ("cancelled", "rule_disabled"),
    ],
)
def test_what_was_not_to_be_sent_is_not(visit, status, reason):
    fallen(visit, status, reason)
    assert listed() == []


@pytest.mark.parametrize("status", ["pending", "sending", "unknown", "sent", "delivered", "read"])
def test_not_while_another_channel_of_the_rule_may_reach_the_patient_or_has(visit, status):
    row = fallen(visit)
    make_delivery(appointment=visit, rule=row.rule, channel="email", status=status)
    # The factory clears what was planned and not called; the failed row was called.
    assert ReminderDelivery.objects.count() == 2
    assert listed() == []


def test_a_later_reminder_that_arrived_takes_the_visit_off_and_one_before_does_not(visit):
    now = clock.now()
    fallen(visit, scheduled_for=now - timedelta(hours=2))
    earlier = make_delivery(
        appointment=visit, rule=make_rule(-300), status="delivered", scheduled_for=now - timedelta(hours=5)
    )
    assert [pk for pk, _ in listed()] == [visit.pk]
    ReminderDelivery.objects.filter(pk=earlier.pk).update(scheduled_for=now - timedelta(hours=1))
    assert listed() == []


def test_one_row_for_a_rule_of_which_two_channels_failed(visit):
    row = fallen(visit)
    fallen(visit, rule=row.rule, channel="email", reason="attempts_exhausted")
    assert [pk for pk, _ in listed()] == [visit.pk]


def test_a_visit_that_was_confirmed_since_leaves_the_list(visit):
    fallen(visit, scheduled_for=clock.now() - timedelta(hours=1))
    assert booking.confirm(visit, actor=booking.SYSTEM)
    assert listed() == []


def test_a_visit_that_was_confirmed_before_stays(visit):
    """Case D2: the reminder of the day found nobody, whatever was answered the day before."""
    assert booking.confirm(visit, actor=booking.SYSTEM)
    fallen(visit, "expired", "too_late", scheduled_for=clock.now() + timedelta(minutes=1), called_at=None)
    assert listed() == [(visit.pk, "too_late")]


def test_who_was_called_before_the_reminders_moment_is_not_called_again(visit):
    fallen(visit, "skipped", "no_channel", channel="", called_at=None, scheduled_for=clock.now() + DAY)
    assert listed() == [(visit.pk, "no_channel")]
    assert booking.confirm(visit, actor=booking.SYSTEM)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE reminders_reminderdelivery SET created_at = now() - interval '1 hour'")
    assert listed() == []


@pytest.mark.parametrize("verb", ["cancel", "check_in", "complete", "mark_no_show"])
def test_a_visit_that_is_called_off_or_has_begun_needs_no_call(visit, verb):
    fallen(visit)
    assert getattr(booking, verb)(visit, actor=booking.SYSTEM)
    assert listed() == []


def test_a_moved_visit_starts_anew(visit):
    fallen(visit)
    local = soon(5)
    assert booking.reschedule(visit, date=local.date(), start_time=local.time(), actor=booking.SYSTEM)
    assert listed() == []


def test_the_nearest_visit_stands_first():
    doctor = make_doctor()
    later, sooner = (make_appointment(at=soon(hours), doctor=doctor) for hours in (9, 4))
    fallen(later)
    fallen(sooner)
    assert [pk for pk, _ in listed()] == [sooner.pk, later.pk]


def test_the_admins_list_shows_phone_and_reason_and_only_ones_own_patients(client):
    mine, foreign = make_doctor(user=make_user()), make_doctor()
    patient = make_patient(doctor=mine)
    fallen(make_appointment(at=soon(3), doctor=mine, patient=patient))
    hidden = make_appointment(at=soon(3), doctor=foreign)
    fallen(hidden)
    client.force_login(mine.user)
    page = client.get("/admin/reminders/unreached/").content.decode()
    assert patient.full_name in page
    assert f'href="tel:{patient.phone}"' in page
    assert "El proveedor lo rechazó" in page
    assert hidden.patient.full_name not in page
    row = Unreached.objects.get(appointment=hidden)
    assert client.get(f"/admin/reminders/unreached/{row.pk}/change/").status_code == 404


def test_the_list_is_found_by_its_index():
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    assert "delivery_unreached" in call_list.unreached(clock.now()).explain()
