"""What is not known to have arrived, or to have been read, in time goes once more by the next channel."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import time, timedelta

import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from appointments import booking, clock
from reminders import call_list, dispatch, giving_up, planner, receipts
from reminders.channels import locmem
from reminders.channels.email import EmailChannel
from reminders.channels.in_app import InAppChannel
from reminders.channels.locmem import LocmemChannel
from reminders.channels.whatsapp import WhatsAppChannel
from reminders.flight import Flight
from reminders.models import Mark, Notification, ReminderDelivery
from reminders.receipts import Receipt
from reminders.tick import tick
from reminders.timeline import superseded_by
from tests.factories import (
    MARK,
    agree,
    caracas,
    make_appointment,
    make_delivery,
    make_patient,
    make_rule,
    make_user,
    only_rules,
    soon,
)
from tests.timeline_values import WHATSAPP_AND_MAIL, plan, rows_of, rule, told, visit

pytestmark = pytest.mark.django_db
LAST_WEEK = "2026-09-10T09:00"
SENT_AT = "2026-09-16T10:00"


class TellingChannel(LocmemChannel):
    """Takes everything, and is one whose receipts a test plays."""

    gives_receipts = True


@pytest.fixture
def outbox(settings):
    telling = {"BACKEND": "tests.test_given_up.TellingChannel"}
    settings.CHANNEL_BACKENDS = {"whatsapp": telling, "email": telling, "in_app": telling}
    settings.REMINDER_CHANNELS = ["whatsapp", "email", "in_app"]
    settings.REMINDER_QUIET_HOURS = (time(21), time(7))
    locmem.outbox.clear()
    return locmem.outbox


@pytest.fixture
def day(set_clock, outbox):
    """A visit on 2026-09-17 at 10:00; ``at`` sets the clock and lets the engine have its turn."""
    return Day(set_clock)


class Day:
    def __init__(self, set_clock) -> None:
        self.set_clock = set_clock
        set_clock(LAST_WEEK)

    def book(self, offset: int = -1440, *, channels=("whatsapp", "email"), minutes=None, **rule_fields):
        only_rules(offset, channels=list(channels), fallback_after_minutes=minutes, **rule_fields)
        patient = make_patient(email=f"ana.{MARK}@example.com", user=make_user())
        agree(patient)
        self.visit = make_appointment(patient=patient)
        return self.at(LAST_WEEK)

    def at(self, text: str) -> dict[str, str]:
        """The state of each channel's row after a turn at that time."""
        self.set_clock(text)
        for _ in range(2):
            dispatch.tidy(now=clock.now())
            planner.plan_marked(now=clock.now())
            with Flight(4) as flight:
                dispatch.run(clock=clock.now, flight=flight)
        return {row.channel: row.status for row in self.visit.deliveries.all()}

    def row(self, channel: str = "whatsapp") -> ReminderDelivery:
        return self.visit.deliveries.get(channel=channel)

    def receipt(self, status: str, text: str, channel: str = "whatsapp") -> None:
        moment = self.set_clock(text)
        row = self.row(channel)
        assert receipts.advance(
            Receipt(reference=row.reference, message_id=row.message_id, status=status, at=moment)
        )

    def to_call(self) -> list[str]:
        return [row.channel for row in call_list.unreached(clock.now())]


# --- Not delivered -----------------------------------------------------------------


def test_what_is_not_delivered_in_four_hours_goes_by_the_next_channel_and_keeps_its_state(day):
    day.book()
    assert day.at(SENT_AT) == {"whatsapp": "sent"}
    assert day.at("2026-09-16T13:59") == {"whatsapp": "sent"}
    assert day.at("2026-09-16T14:00") == {"whatsapp": "sent", "email": "sent"}
    first, second = day.row(), day.row("email")
    assert first.given_up_at == caracas("2026-09-16T14:00")
    assert second.fallback_of == first
    assert second.scheduled_for == first.scheduled_for
    assert day.at("2026-09-16T14:00") == {"whatsapp": "sent", "email": "sent"}
    assert len(locmem.outbox) == 2


def test_near_the_visit_the_wait_is_a_quarter_of_the_time_that_is_left(day):
    day.book(-120)
    day.at("2026-09-17T08:00")
    assert day.at("2026-09-17T08:29") == {"whatsapp": "sent"}
    assert day.at("2026-09-17T08:30") == {"whatsapp": "sent", "email": "sent"}


def test_after_the_visit_the_wait_is_four_hours(day):
    day.book(1440, reminder_type="seguimiento")
    day.set_clock("2026-09-17T11:05")
    assert booking.complete(day.visit, actor=booking.SYSTEM)
    day.at("2026-09-18T11:05")
    assert day.at("2026-09-18T15:04") == {"whatsapp": "sent"}
    assert day.at("2026-09-18T15:05") == {"whatsapp": "sent", "email": "sent"}


def test_what_was_delivered_in_time_is_followed_by_nothing(day):
    day.book()
    day.at(SENT_AT)
    day.receipt("delivered", "2026-09-16T13:59")
    assert day.at("2026-09-17T09:00") == {"whatsapp": "delivered"}


def test_a_receipt_settles_a_lost_answer_and_the_wait_still_counts_from_the_call(day):
    day.book()
    day.at(SENT_AT)
    day.visit.deliveries.update(status="unknown", next_attempt_at=caracas("2026-09-16T10:10"))
    day.receipt("sent", "2026-09-16T10:05")
    assert day.at("2026-09-16T13:59") == {"whatsapp": "sent"}
    assert day.at("2026-09-16T14:00") == {"whatsapp": "sent", "email": "sent"}


def test_a_retry_has_a_wait_of_its_own(day):
    day.book()
    day.at(SENT_AT)
    day.visit.deliveries.update(status="pending", next_attempt_at=caracas("2026-09-16T10:20"))
    day.at("2026-09-16T10:20")
    assert day.row().deliver_by == caracas("2026-09-16T14:20")


@pytest.mark.parametrize("late", ["delivered", "read"])
def test_a_late_receipt_is_recorded_and_nothing_more(day, late):
    day.book(channels=("whatsapp", "email", "in_app"))
    day.at(SENT_AT)
    day.at("2026-09-16T14:00")
    day.receipt(late, "2026-09-16T14:05")
    assert day.at("2026-09-17T09:00") == {"whatsapp": late, "email": "sent"}
    assert day.to_call() == []


def test_a_late_failure_is_recorded_and_nothing_more(day):
    day.book(channels=("whatsapp", "email"))
    day.at(SENT_AT)
    day.at("2026-09-16T14:00")
    day.receipt("failed", "2026-09-16T14:05")
    day.receipt("delivered", "2026-09-16T14:06", "email")
    assert day.at("2026-09-17T09:00") == {"whatsapp": "failed", "email": "delivered"}
    assert len(locmem.outbox) == 2


def at_noon_it_is_quiet(settings) -> None:
    settings.REMINDER_QUIET_HOURS = (time(12), time(15))


def test_the_next_channel_keeps_the_quiet_hours(day, settings):
    at_noon_it_is_quiet(settings)
    day.book()
    day.at(SENT_AT)
    assert day.at("2026-09-16T14:00") == {"whatsapp": "sent", "email": "pending"}
    assert day.at("2026-09-16T14:59") == {"whatsapp": "sent", "email": "pending"}
    assert day.at("2026-09-16T15:00") == {"whatsapp": "sent", "email": "sent"}


def test_a_late_receipt_takes_back_what_has_not_left(day, settings):
    at_noon_it_is_quiet(settings)
    day.book()
    day.at(SENT_AT)
    day.at("2026-09-16T14:00")
    day.receipt("delivered", "2026-09-16T14:30")
    assert day.at("2026-09-16T15:00") == {"whatsapp": "delivered", "email": "cancelled"}
    assert day.row("email").reason == "channel_replaced"
    assert day.at("2026-09-16T20:00") == {"whatsapp": "delivered", "email": "cancelled"}
    assert len(locmem.outbox) == 1


def test_the_last_look_sees_a_receipt_that_no_planning_has_seen(day, settings):
    at_noon_it_is_quiet(settings)
    day.book()
    day.at(SENT_AT)
    day.at("2026-09-16T14:00")
    day.receipt("delivered", "2026-09-16T15:00")
    with Flight(4) as flight:
        assert dispatch.run(clock=clock.now, flight=flight) == 0
    assert day.row("email").reason == "channel_replaced"


def test_the_next_channel_gives_way_to_a_nearer_reminder(day, settings):
    at_noon_it_is_quiet(settings)
    day.book()
    nearer = make_rule(-120, channels=["whatsapp"])
    day.at(SENT_AT)
    day.at("2026-09-16T14:00")
    day.visit.deliveries.filter(rule=nearer).update(next_attempt_at=caracas("2026-09-16T15:00"))
    day.at("2026-09-16T15:00")
    assert day.row("email").reason == "superseded"
    assert day.visit.deliveries.get(rule=nearer).status == "sent"


def test_a_channel_without_receipts_has_no_deadline(day, settings):
    silent = {"BACKEND": "reminders.channels.locmem.LocmemChannel"}
    settings.CHANNEL_BACKENDS = {"whatsapp": silent, "email": silent}
    day.book(minutes=60)
    day.at(SENT_AT)
    assert day.at("2026-09-17T09:00") == {"whatsapp": "sent"}
    assert (day.row().deliver_by, day.row().read_by) == (None, None)


def test_which_channels_tell_what_became_of_a_message(settings):
    assert WhatsAppChannel().gives_receipts
    assert InAppChannel().gives_receipts
    assert not LocmemChannel().gives_receipts
    settings.POSTMARK_SERVER_TOKEN, settings.POSTMARK_WEBHOOK_SECRET = "", ""
    assert not EmailChannel().gives_receipts
    settings.POSTMARK_SERVER_TOKEN, settings.POSTMARK_WEBHOOK_SECRET = "token", "user:secret"
    assert EmailChannel().gives_receipts


def test_a_visit_that_was_confirmed_meanwhile_needs_no_message_more(day):
    day.book()
    day.at(SENT_AT)
    day.set_clock("2026-09-16T11:00")
    assert booking.confirm(day.visit, actor=booking.SYSTEM)
    assert day.at("2026-09-17T09:00") == {"whatsapp": "sent"}
    row = day.row()
    assert (row.given_up_at, row.deliver_by) == (None, None)


def test_of_a_visit_that_was_moved_nothing_is_given_up(day):
    day.book()
    day.at(SENT_AT)
    day.set_clock("2026-09-16T11:00")
    noon = time(12)
    assert booking.reschedule(day.visit, date=day.visit.date, start_time=noon, actor=booking.SYSTEM)
    day.at("2026-09-16T14:00")
    assert day.visit.deliveries.get(sequence=0, channel="whatsapp").given_up_at is None
    assert not day.visit.deliveries.filter(channel="email", sequence=0).exists()


def test_a_confirmation_before_the_sending_does_not_count_as_an_answer(day):
    day.book()
    day.set_clock("2026-09-15T11:00")
    assert booking.confirm(day.visit, actor=booking.SYSTEM)
    day.at(SENT_AT)
    assert day.at("2026-09-16T14:00") == {"whatsapp": "sent", "email": "sent"}


# --- At most one -------------------------------------------------------------------


def test_what_goes_in_place_of_a_silent_message_is_not_followed_for_being_silent_too(day):
    day.book(channels=("whatsapp", "email", "in_app"))
    day.at(SENT_AT)
    assert day.at("2026-09-16T14:00") == {"whatsapp": "sent", "email": "sent"}
    assert day.to_call() == []
    assert day.at("2026-09-17T09:59") == {"whatsapp": "sent", "email": "sent"}
    assert len(locmem.outbox) == 2
    # Nothing says that either of them arrived: a person has to.
    assert len(day.to_call()) == 1


def test_but_where_it_fails_for_good_the_chain_goes_on_to_one_that_is_not_followed(day):
    day.book(channels=("whatsapp", "email", "in_app"))
    day.at(SENT_AT)
    day.at("2026-09-16T14:00")
    day.receipt("failed", "2026-09-16T14:10", "email")
    assert day.at("2026-09-16T14:10") == {"whatsapp": "sent", "email": "failed", "in_app": "sent"}
    assert day.to_call() == []
    assert day.at("2026-09-17T09:59") == {"whatsapp": "sent", "email": "failed", "in_app": "sent"}


def test_with_no_channel_left_a_person_is_told(day):
    day.book(channels=("whatsapp",))
    day.at(SENT_AT)
    assert day.to_call() == []
    assert day.at("2026-09-16T14:00") == {"whatsapp": "sent"}
    assert day.to_call() == ["whatsapp"]
    day.receipt("delivered", "2026-09-16T16:00")
    assert day.to_call() == []


# --- Not read ----------------------------------------------------------------------


def test_what_is_delivered_and_not_read_goes_by_the_next_channel_when_the_rule_says_so(day):
    """Case I12."""
    day.book(minutes=240)
    day.at(SENT_AT)
    day.receipt("delivered", "2026-09-16T10:01")
    assert day.at("2026-09-16T13:59") == {"whatsapp": "delivered"}
    assert day.at("2026-09-16T14:00") == {"whatsapp": "delivered", "email": "sent"}
    assert day.row("email").read_by is None
    # Read receipts may be switched off: one message more, and no third.
    assert day.at("2026-09-17T09:59") == {"whatsapp": "delivered", "email": "sent"}
    assert day.to_call() == []


def test_what_was_read_in_time_does_not(day):
    """Case I12."""
    day.book(minutes=240)
    day.at(SENT_AT)
    day.receipt("delivered", "2026-09-16T10:01")
    day.receipt("read", "2026-09-16T13:59")
    assert day.at("2026-09-17T09:59") == {"whatsapp": "read"}


def test_without_the_rules_word_nobody_waits_for_a_reading(day):
    day.book()
    day.at(SENT_AT)
    day.receipt("delivered", "2026-09-16T10:01")
    assert day.at("2026-09-17T09:59") == {"whatsapp": "delivered"}


def test_what_is_not_even_delivered_is_not_read_either(day):
    day.book(minutes=60)
    day.at(SENT_AT)
    assert day.at("2026-09-16T10:59") == {"whatsapp": "sent"}
    assert day.at("2026-09-16T11:00") == {"whatsapp": "sent", "email": "sent"}


def test_delivered_in_time_it_is_still_to_be_read_later_than_that(day):
    day.book(minutes=600)
    day.at(SENT_AT)
    day.receipt("delivered", "2026-09-16T13:00")
    assert day.at("2026-09-16T19:59") == {"whatsapp": "delivered"}
    assert day.at("2026-09-16T20:00") == {"whatsapp": "delivered", "email": "sent"}


@pytest.mark.parametrize(("late", "left"), [("delivered", "sent"), ("read", "cancelled")])
def test_where_it_was_to_be_read_only_a_reading_takes_back_what_has_not_left(day, settings, late, left):
    at_noon_it_is_quiet(settings)
    day.book(minutes=180)
    day.at(SENT_AT)
    day.at("2026-09-16T13:00")
    day.receipt(late, "2026-09-16T13:30")
    assert day.at("2026-09-16T15:00") == {"whatsapp": late, "email": left}


def test_a_message_more_that_would_come_too_late_is_not_waited_for(day):
    day.book(minutes=1430)
    day.at(SENT_AT)
    assert day.row().read_by is None


def test_what_is_read_in_the_inbox_of_the_application_counts(day):
    day.book(minutes=240, channels=("in_app", "email"))
    day.at(SENT_AT)
    row = day.row("in_app")
    Notification.objects.create(user=day.visit.patient.user, delivery=row, subject="x", body="x")
    day.receipt("delivered", SENT_AT, "in_app")
    now = day.set_clock("2026-09-16T13:00")
    assert Notification.objects.for_user(day.visit.patient.user).mark_read(now=now) == 1
    row.refresh_from_db()
    assert (row.status, row.read_at) == ("read", now)
    assert day.at("2026-09-16T14:00") == {"in_app": "read"}


def test_what_stands_unread_in_the_inbox_of_the_application_does_not(day):
    day.book(minutes=240, channels=("in_app", "email"))
    day.at(SENT_AT)
    day.receipt("delivered", SENT_AT, "in_app")
    assert day.at("2026-09-16T14:00") == {"in_app": "delivered", "email": "sent"}


# --- The plan ----------------------------------------------------------------------


R24 = rule("24h", channels=WHATSAPP_AND_MAIL)


def given_up(status: str = "sent", channel: str = "whatsapp", **fields):
    planned = rows_of(plan(visit(), R24), [R24])
    return [
        replace(row, status=status, was_called=True, channel=channel, is_given_up=True, **fields)
        for row in planned
    ]


@pytest.mark.parametrize("status", ["sent", "delivered"])
def test_the_plan_goes_on_after_a_row_that_is_given_up_at_the_same_promise(status):
    [next_step] = plan(visit(), R24, rows=given_up(status))
    assert told([next_step]) == ["24h email 2026-09-16T10:00"]
    assert next_step.in_place_of == "whatsapp"


def test_the_plan_does_not_go_on_after_a_second_one():
    three = replace(R24, channels=("whatsapp", "email", "in_app"))
    assert plan(visit(), three, rows=[*given_up(), *given_up(channel="email")]) == []


def test_a_nearer_reminder_that_is_given_up_takes_nobodys_place():
    [nearer] = given_up()
    nearer = replace(nearer, offset_minutes=-120, rule="2h")
    [later] = [replace(row, channel="email", is_fallback=True, is_given_up=False) for row in given_up()]
    assert not superseded_by(later, [nearer])
    assert superseded_by(later, [replace(nearer, is_given_up=False)])


# --- The table ---------------------------------------------------------------------


def test_who_gives_up_by_whatever_path_marks_the_visit():
    row = make_delivery(status="sent", called_at=clock.now())
    Mark.objects.all().delete()
    ReminderDelivery.objects.filter(pk=row.pk).update(given_up_at=clock.now())
    assert [mark.subject_id for mark in Mark.objects.all()] == [str(row.appointment_id)]
    Mark.objects.all().delete()
    ReminderDelivery.objects.filter(pk=row.pk).update(status="delivered")
    assert [mark.subject_id for mark in Mark.objects.all()] == [str(row.appointment_id)]


def test_what_arrives_in_time_marks_nothing():
    row = make_delivery(status="sent", called_at=clock.now())
    Mark.objects.all().delete()
    ReminderDelivery.objects.filter(pk=row.pk).update(status="delivered")
    assert not Mark.objects.exists()


def test_what_is_overdue_is_found_by_its_indexes():
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    now = clock.now()
    assert "delivery_awaited" in ReminderDelivery.objects.undelivered(now).order_by().explain()
    assert "delivery_unread" in ReminderDelivery.objects.unread(now).order_by().explain()


def test_a_deadline_costs_no_query(day, settings):
    silent = {"BACKEND": "reminders.channels.locmem.LocmemChannel"}
    counts = []
    for backend in (silent, {"BACKEND": "tests.test_given_up.TellingChannel"}):
        settings.CHANNEL_BACKENDS = {"whatsapp": backend}
        only_rules(-120, fallback_after_minutes=60)
        make_delivery()
        with CaptureQueriesContext(connection) as queries, Flight(4) as flight:
            assert dispatch.run(clock=clock.now, flight=flight) == 1
        counts.append(len(queries))
    assert counts[0] == counts[1]


# --- Races -------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_receipt_that_races_the_deadline_and_two_workers_cost_at_most_one_email(
    sandbox, postmark, settings
):
    settings.REMINDER_CHANNELS = ["whatsapp", "email"]
    sandbox.change(receipts=())
    with transaction.atomic(), connection.cursor() as cursor:
        # A rule acts on moments after it was made: this one stands since long ago.
        cursor.execute("SELECT set_config('amedi.now', '2026-01-01T00:00Z', true)")
        only_rules(-120, channels=["whatsapp", "email"])
    for number in range(6):
        patient = make_patient(email=f"ana.{MARK}{number}@example.com")
        agree(patient)
        make_appointment(at=soon(2) - timedelta(minutes=1), patient=patient)
    tick()
    sent = list(ReminderDelivery.objects.filter(status="sent", channel="whatsapp"))
    assert len(sent) == 6
    ReminderDelivery.objects.filter(status="sent").update(deliver_by=clock.now())
    start = threading.Barrier(3)

    def worker() -> None:
        try:
            start.wait()
            tick()
            tick()
        finally:
            connections.close_all()

    def receive() -> None:
        try:
            start.wait()
            for row in sent:
                receipts.advance(
                    Receipt(
                        reference=row.reference,
                        message_id=row.message_id,
                        status="delivered",
                        at=clock.now(),
                    )
                )
        finally:
            connections.close_all()

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(worker), pool.submit(worker), pool.submit(receive)]:
            done.result(60)
    tick()
    for row in sent:
        row.refresh_from_db()
        assert row.status == "delivered"
        assert len(sandbox.accepted_for(f"d:{row.pk}")) == 1
        if row.given_up_at is None:
            assert not ReminderDelivery.objects.filter(fallback_of=row, called_at__isnull=False).exists()
    assert all(count == 1 for count in postmark.accepted_per_delivery().values())
    assert not ReminderDelivery.objects.filter(status__in=["pending", "sending", "unknown"]).exists()


@pytest.mark.django_db(transaction=True)
def test_what_somebody_holds_is_not_given_up_now():
    row = make_delivery(status="sent", called_at=clock.now(), deliver_by=clock.now() - timedelta(minutes=1))
    start, done = threading.Barrier(2), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                ReminderDelivery.objects.select_for_update().get(pk=row.pk)
                start.wait()
                done.wait(20)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(hold)
        start.wait()
        giving_up.give_up(now=clock.now())
        row.refresh_from_db()
        assert row.given_up_at is None
        done.set()
        held.result(20)
    giving_up.give_up(now=clock.now())
    row.refresh_from_db()
    assert row.given_up_at
