"""Who is next: the nearest visit first, read now and then, and nobody twice."""

from __future__ import annotations

from datetime import timedelta

import pytest

from appointments import clock
from reminders.line import Line, Room
from reminders.models import ReminderDelivery
from tests.factories import make_appointment, make_delivery, make_doctor, soon

pytestmark = pytest.mark.django_db


def rows(*hours: int, **fields) -> list[ReminderDelivery]:
    doctor = make_doctor()
    return [make_delivery(appointment=make_appointment(at=soon(h), doctor=doctor), **fields) for h in hours]


def line() -> Line[ReminderDelivery]:
    return Line(ReminderDelivery.objects.all())


def test_the_nearest_visit_goes_first_whatever_was_planned_first():
    far, near, nearer = rows(9, 5, 3)
    whole = line()
    taken = [whole.claim(1, now=clock.now())[0].pk for _ in range(3)]
    assert taken == [nearer.pk, near.pk, far.pk]


def test_one_read_serves_many_claims_and_an_empty_line_is_read_again(django_assert_num_queries):
    rows(3, 4, 5)
    whole = line()
    now = clock.now()
    with django_assert_num_queries(3):  # a look (its plan is fixed first), a claim
        assert len(whole.claim(1, now=now)) == 1
    with django_assert_num_queries(1):
        assert len(whole.claim(1, now=now)) == 1
    with django_assert_num_queries(3):  # the claim of the last, and a look that finds nobody
        assert len(whole.claim(2, now=now)) == 1
    assert whole.claim(1, now=clock.now()) == []
    [late] = rows(6)
    assert whole.claim(1, now=clock.now())[0].pk == late.pk


def test_what_another_took_meanwhile_is_passed_over():
    first, second = rows(3, 4)
    mine, theirs = line(), line()
    now = clock.now()
    assert mine.claim(1, now=now)[0].pk == first.pk
    assert theirs.claim(1, now=now)[0].pk == second.pk
    assert mine.claim(2, now=now) == []


def test_a_row_that_was_put_off_meanwhile_is_not_taken():
    first, second = rows(3, 4)
    whole = line()
    now = clock.now()
    assert whole.claim(1, now=now)[0].pk == first.pk
    ReminderDelivery.objects.filter(pk=second.pk).update(next_attempt_at=now + timedelta(hours=1))
    assert whole.claim(1, now=now) == []


def test_a_channel_without_room_keeps_its_place_and_the_others_go_past_it():
    mail, letter = rows(3, 4, channel="email")
    [message] = rows(5)
    whole = line()
    now = clock.now()
    room = {"email": 1, "whatsapp": 9}
    assert {row.pk for row in whole.claim(3, now=now, room=Room(room.__getitem__))} == {mail.pk, message.pk}
    room["email"] = 0
    assert whole.claim(3, now=now, room=Room(room.__getitem__)) == []
    room["email"] = 5
    assert [row.pk for row in whole.claim(3, now=now, room=Room(room.__getitem__))] == [letter.pk]
