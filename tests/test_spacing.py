"""Nobody gets two messages in one second, whatever falls due together."""

from __future__ import annotations

from datetime import timedelta

import pytest

from appointments import clock
from reminders import dispatch
from reminders.channels import locmem
from reminders.flight import Flight
from reminders.models import ReminderDelivery
from reminders.spacing import APART, Spacing
from tests.factories import caracas, make_appointment, make_delivery, make_patient, soon

NOON = caracas("2026-09-17T12:00")


@pytest.fixture
def outbox(settings, set_clock):
    settings.CHANNEL_BACKENDS = {"whatsapp": {"BACKEND": "reminders.channels.locmem.LocmemChannel"}}
    locmem.outbox.clear()
    return locmem.outbox


def send() -> int:
    with Flight(8) as flight:
        return dispatch.run(clock=clock.now, flight=flight)


@pytest.mark.django_db
def test_a_mother_of_three_gets_one_message_at_a_time_the_nearest_visit_first(outbox, set_clock):
    """Case I5, after an outage in which all three fell due."""
    for hours in (4, 2, 3):
        child = make_patient(phone="+584125550001")
        make_delivery(appointment=make_appointment(at=soon(hours), patient=child))
    assert send() == 1
    waiting = ReminderDelivery.objects.filter(status="pending")
    assert waiting.count() == 2
    assert all(row.next_attempt_at >= clock.now() + APART / 2 for row in waiting)
    [first] = outbox
    assert first.time_left == min(message.time_left for message in outbox)
    for _ in range(2):
        ReminderDelivery.objects.filter(status="pending").update(next_attempt_at=clock.now())
        assert send() == 1
    assert [message.time_left for message in outbox] == sorted(message.time_left for message in outbox)


@pytest.mark.django_db
def test_others_do_not_wait_for_them(outbox):
    make_delivery()
    make_delivery()
    assert send() == 2


def test_the_next_message_to_an_address_comes_after_a_pause():
    spacing = Spacing()
    assert spacing.turn("a", NOON) == NOON
    assert spacing.turn("b", NOON) == NOON
    assert spacing.turn("a", NOON) == NOON + APART
    assert spacing.turn("a", NOON + APART) == NOON + APART


def test_a_clock_that_was_set_back_holds_nobody_up():
    """Case D8."""
    spacing = Spacing()
    spacing.turn("a", NOON)
    an_hour_ago = NOON - timedelta(hours=1)
    assert spacing.turn("a", an_hour_ago) == an_hour_ago
