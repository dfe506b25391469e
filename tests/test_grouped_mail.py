"""One mail for the visits of one patient on one day; each visit keeps its own delivery."""

from __future__ import annotations

import threading
from datetime import date, time, timedelta

import pytest
from django.db import connection, connections, transaction

from appointments import booking, clock
from appointments.models import Appointment
from reminders import dispatch, look_up, planner, preferences, same_day
from reminders.channels.base import AnswerLost, Undeliverable
from reminders.models import DeliveryAttempt, Heartbeat, ReminderDelivery
from reminders.postmark.client import Client, references_of
from reminders.tick import tick
from tests.days import Days
from tests.factories import (
    CARACAS,
    MARK,
    make_appointment,
    make_patient,
    make_rule,
    make_user,
    only_rules,
    soon,
)

pytestmark = pytest.mark.django_db
ADDRESS = f"ana.{MARK}@example.com"
NINE, ELEVEN = "2026-09-17T09:00", "2026-09-17T11:00"
TOGETHER = ["24h email 2026-09-16T09:00"]


@pytest.fixture
def days(settings, set_clock):
    return Days(settings, set_clock)


def book(days, *starts, **fields):
    patient = make_patient(email=ADDRESS, phone="")
    return [days.book(start, patient=patient, **fields) for start in starts]


def rows(visits):
    return [visit.deliveries.get(channel="email") for visit in visits]


def statuses(visits):
    return [row.status for row in rows(visits)]


def claim(days, text):
    """Claim what is due at a time, and what goes along with it."""
    days.now_is(text)
    planner.plan_marked(now=clock.now())
    due = dispatch.Lines().deliveries.claim(10, now=clock.now())
    return due, same_day.claim_companions(due, now=clock.now())


def look(claimed):
    return dispatch._look(dispatch.last_look.deliveries, claimed, clock.now())


def test_the_later_visits_reminder_goes_along_with_the_nearest_ones(days):
    days.rules("24h", channels=["email"])
    visits = book(days, NINE, ELEVEN)
    assert days.until("2026-09-17T12:00") == TOGETHER
    [sent] = days.sent
    assert sent.row.appointment_id == visits[0].pk
    [other] = sent.message.also
    assert [sent.message.values["hora"], other.values["hora"]] == ["9:00 a. m.", "11:00 a. m."]
    assert statuses(visits) == ["sent", "sent"]
    assert DeliveryAttempt.objects.count() == 2


@pytest.mark.parametrize(
    "starts",
    [
        pytest.param((NINE, "2026-09-18T09:00"), id="of another day"),
        pytest.param((NINE,), id="one alone"),
    ],
)
def test_what_is_not_of_the_day_goes_by_itself(days, starts):
    days.rules("24h", channels=["email"])
    book(days, *starts)
    days.until("2026-09-18T12:00")
    assert [sent.message.also for sent in days.sent] == [()] * len(starts)


def test_a_mail_names_five_visits_and_the_rest_come_in_a_second(days):
    days.rules("24h", channels=["email"])
    visits = book(days, *(f"2026-09-17T{hour:02}:00" for hour in range(9, 16)))
    days.until("2026-09-17T16:00")
    assert [1 + len(sent.message.also) for sent in days.sent] == [5, 2]
    assert statuses(visits) == ["sent"] * 7


def test_a_companion_called_off_between_claim_and_call_is_not_named(days):
    days.rules("24h", channels=["email"])
    visits = book(days, NINE, ELEVEN)
    due, companions = claim(days, "2026-09-16T09:00")
    assert [row.appointment_id for row in companions] == [visits[1].pk]
    Appointment.objects.filter(pk=visits[1].pk).update(status="cancelled")
    [call] = look([*due, *companions])
    assert (call.also, call.message.also) == ((), ())


def test_a_companion_whose_carrier_does_not_go_keeps_its_own_moment_and_its_tries(days):
    days.rules("24h", channels=["email"])
    visits = book(days, NINE, ELEVEN)
    due, companions = claim(days, "2026-09-16T09:00")
    Appointment.objects.filter(pk=visits[0].pk).update(status="cancelled")
    assert look([*due, *companions]) == []
    row = rows(visits)[1]
    assert (row.status, row.retry_count, row.lease_until) == ("pending", 0, None)
    assert row.next_attempt_at == row.scheduled_for
    assert days.until("2026-09-16T11:00") == ["24h email 2026-09-16T11:00"]


def test_a_worker_that_dies_before_the_ledger_sends_nothing_early_by_itself(days):
    days.rules("24h", channels=["email"])
    visits = book(days, NINE, ELEVEN)
    claim(days, "2026-09-16T09:00")
    days.now_is("2026-09-16T09:30")
    dispatch.tidy(now=clock.now())
    row = rows(visits)[1]
    assert (row.status, row.next_attempt_at) == ("pending", row.scheduled_for)


def test_after_the_ledger_all_rows_of_the_mail_become_unknown_and_none_is_sent_again(days):
    days.rules("24h", channels=["email"])
    visits = book(days, NINE, ELEVEN)
    due, companions = claim(days, "2026-09-16T09:00")
    [call] = look([*due, *companions])
    assert [one.row.appointment_id for one in call.also] == [visits[1].pk]
    days.now_is("2026-09-16T09:30")
    dispatch.tidy(now=clock.now())
    assert statuses(visits) == ["unknown", "unknown"]
    assert days.until("2026-09-17T12:00") == []


def test_two_workers_never_hold_the_same_companion(days):
    days.rules("24h", channels=["email"])
    book(days, NINE, ELEVEN)
    due, companions = claim(days, "2026-09-16T09:00")
    assert len(companions) == 1
    assert same_day.claim_companions(due, now=clock.now()) == []


@pytest.mark.parametrize(
    ("outcome", "status"), [(Undeliverable("406"), "failed"), (AnswerLost("answer_lost"), "unknown")]
)
def test_each_row_gets_the_outcome(days, outcome, status):
    days.rules("24h", channels=["email"])
    visits = book(days, NINE, ELEVEN)
    due, companions = claim(days, "2026-09-16T09:00")
    [call] = look([*due, *companions])
    dispatch.record([(call, outcome)], now=clock.now())
    assert statuses(visits) == [status, status]


def test_a_companion_moved_to_another_day_between_claim_and_call_is_not_named(days):
    days.rules("24h", channels=["email"])
    visits = book(days, NINE, ELEVEN)
    due, companions = claim(days, "2026-09-16T09:00")
    booking.reschedule(visits[1], date=date(2026, 9, 18), start_time=time(11), actor=booking.SYSTEM)
    [call] = look([*due, *companions])
    assert (call.row.appointment_id, call.also) == (visits[0].pk, ())


def test_who_opts_out_between_claim_and_call_gets_no_mail(days):
    days.rules("24h", channels=["email"])
    visits = book(days, NINE, ELEVEN)
    due, companions = claim(days, "2026-09-16T09:00")
    preferences.opt_out(address=ADDRESS, channel="email", patient=visits[0].patient, evidence="prueba")
    assert look([*due, *companions]) == []
    assert days.until("2026-09-17T12:00") == []


def test_a_companion_is_not_pulled_into_quiet_hours(days):
    days.rules("24h", channels=["email"])
    days.quiet("21:00", "10:00")
    visits = book(days, NINE, ELEVEN)
    days.until("2026-09-17T12:00")
    assert all(10 <= sent.at.astimezone(CARACAS).hour < 21 for sent in days.sent)
    assert statuses(visits) == ["sent", "sent"]


def test_notices_that_are_due_go_in_one_mail(days):
    make_rule(0, reminder_type="reserva", offset_unit="minutes", channels=["email"])
    visits = book(days, NINE, ELEVEN, booked="2026-09-10T09:00")
    days.until("2026-09-10T10:00")
    [sent] = days.sent
    assert len(sent.message.also) == 1
    assert statuses(visits) == ["sent", "sent"]


def test_a_batch_without_mail_asks_nothing(django_assert_num_queries):
    rows = [ReminderDelivery(channel="whatsapp"), ReminderDelivery(channel="in_app")]
    now = clock.now()
    with django_assert_num_queries(0):
        assert same_day.claim_companions(rows, now=now) == []


# --- Through Postmark ----------------------------------------------------------------


@pytest.fixture
def two_due(settings, postmark):
    """Two visits of one patient on one day whose reminders go by mail, the first now."""
    return make_two_due(settings)


def make_two_due(settings, **patient):
    """Both about noon, whatever the hour at which the test runs."""
    settings.REMINDER_CHANNELS = ["email", "in_app"]
    start = (soon(24)).replace(hour=12, minute=0)
    minutes = (start - clock.now()) // timedelta(minutes=1) + 1
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('amedi.now', '2026-01-01T00:00Z', true)")
        only_rules(-minutes, offset_unit="minutes", channels=["email", "in_app"])
    patient = make_patient(email=ADDRESS, phone="", **patient)
    return [make_appointment(at=start + timedelta(minutes=40 * i), patient=patient) for i in range(2)]


@pytest.mark.django_db(transaction=True)
def test_one_mail_has_a_calendar_file_and_a_link_for_each_and_its_receipts_move_all(two_due, postmark):
    assert tick() == 1
    [accepted] = postmark.accepted
    first, second = rows(two_due)
    assert dict(accepted.metadata) == {
        "delivery": str(first.pk), "attempt": "1", "delivery2": str(second.pk), "attempt2": "1",
    }  # fmt: skip
    assert [attachment.name for attachment in accepted.mail.attachments] == ["cita.ics", "cita-2.ics"]
    assert [first.message_id, second.message_id] == [accepted.message_id, f"{accepted.message_id}#2"]
    assert postmark.flush()
    assert statuses(two_due) == ["delivered", "delivered"]
    postmark.open(ADDRESS, accepted.message_id)
    assert postmark.flush()
    assert statuses(two_due) == ["read", "read"]


@pytest.mark.django_db(transaction=True)
def test_a_lost_answer_is_looked_up_for_every_row_of_the_mail(two_due, postmark):
    assert tick() == 1
    [accepted] = postmark.accepted
    client = Client()
    first, second = rows(two_due)
    assert client.find(first.reference) == accepted.message_id
    assert client.find(second.reference) == f"{accepted.message_id}#2"


@pytest.mark.django_db(transaction=True)
def test_a_bounce_sends_each_visit_to_its_next_channel(settings, postmark):
    postmark.change(bounce_for={ADDRESS.lower(): "HardBounce"})
    visits = make_two_due(settings, user=make_user())
    for _ in range(3):
        tick()
        assert postmark.flush()
    assert [(row.status, row.reason) for row in rows(visits)] == [("failed", "refused")] * 2
    # The inbox keeps the promise of each: the later visit's comes at its own moment.
    assert [visit.deliveries.get(channel="in_app").status for visit in visits] == ["delivered", "pending"]
    assert len(postmark.accepted) == 1


@pytest.mark.django_db(transaction=True)
def test_a_refused_mail_sends_each_visit_to_its_next_channel(settings, postmark):
    postmark.change(inactive=frozenset([ADDRESS.lower()]))
    visits = make_two_due(settings, user=make_user())
    for _ in range(3):
        tick()
    assert [row.status for row in rows(visits)] == ["failed"] * 2
    assert [visit.deliveries.get(channel="in_app").status for visit in visits] == ["delivered", "pending"]
    assert postmark.accepted == []


@pytest.mark.django_db(transaction=True)
def test_an_answer_that_is_lost_is_looked_up_and_settles_every_row(settings, postmark):
    postmark.change(lose_answer_for=frozenset([ADDRESS.lower()]), events=())
    visits = make_two_due(settings)
    assert tick() == 1
    assert statuses(visits) == ["unknown", "unknown"]
    # Half a minute later providers are asked.
    Heartbeat.objects.filter(name=look_up.HEARTBEAT).delete()
    tick()
    assert statuses(visits) == ["sent", "sent"]
    assert len(postmark.accepted) == 1


@pytest.mark.django_db(transaction=True)
def test_two_dispatchers_at_once_send_each_visit_once(settings, postmark):
    visits = make_two_due(settings)

    def dispatcher() -> None:
        try:
            tick()
        finally:
            connections.close_all()

    planner.plan_marked(now=clock.now())
    workers = [threading.Thread(target=dispatcher) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    named = [reference for mail in postmark.accepted for reference in references_of(mail.mail.metadata)]
    assert sorted(named) == sorted(row.reference for row in rows(visits))


@pytest.mark.django_db(transaction=True)
def test_by_smtp_it_is_one_mail_too(settings, mailoutbox):
    settings.POSTMARK_SERVER_TOKEN = ""
    settings.REMINDER_QUIET_HOURS = (time(0), time(0))
    visits = make_two_due(settings)
    assert tick() == 1
    [mail] = mailoutbox
    assert mail.body.count("12:00 p. m.") >= 1
    assert mail.body.count("12:40 p. m.") >= 1
    assert statuses(visits) == ["sent", "sent"]


def test_visits_called_off_together_are_told_in_one_mail_each_with_its_entry(days):
    make_rule(0, reminder_type="cancelacion", offset_unit="minutes", channels=["email"])
    visits = book(days, NINE, ELEVEN)
    days.until("2026-09-10T10:00")
    for visit in visits:
        booking.cancel(visit, actor=booking.SYSTEM)
    days.until("2026-09-10T11:00")
    [sent] = days.sent
    assert [one.kind for one in (sent.message, *sent.message.also)] == ["cancelacion", "cancelacion"]
    assert statuses(visits) == ["sent", "sent"]
