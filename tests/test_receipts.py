"""Receipts only move a row upwards, in whatever order and however often they come."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from appointments import clock
from reminders import dispatch, planner, receipts
from reminders.channels.base import AnswerLost, ChannelError, Undeliverable
from reminders.channels.base import Receipt as Accepted
from reminders.foreign_words import CODE_LENGTH, DETAIL_LENGTH, ID_LENGTH
from reminders.models import DeliveryAttempt, ReminderDelivery, Reply
from tests.factories import MARK, agree, make_appointment, make_delivery, make_patient, only_rules
from tests.mail_values import make_sent_mail
from tests.test_claim import call_for

pytestmark = pytest.mark.django_db
RANK = ["sent", "delivered", "read"]
FELL = ["sent", "failed"]


@pytest.fixture
def called() -> ReminderDelivery:
    """A row whose attempt is written down and whose call is in the air."""
    row = make_delivery()
    assert len(dispatch.prepare(1, now=clock.now())) == 1
    row.refresh_from_db()
    return row


def tell(row: ReminderDelivery, status: str, **fields: object) -> bool:
    fields.setdefault("reference", row.reference)
    fields.setdefault("message_id", "wamid.one")
    return receipts.advance(receipts.Receipt(status=status, at=clock.now(), **fields))


def status_of(row: ReminderDelivery) -> str:
    row.refresh_from_db()
    return row.status


@pytest.mark.parametrize(
    "order", [order for length in (1, 2, 3) for order in itertools.permutations(RANK, length)], ids="-".join
)
def test_every_order_of_receipts_ends_at_the_highest(called, order):
    """T25 and case C13."""
    for status in (*order, *order):
        assert tell(called, status)
    assert status_of(called) == max(order, key=RANK.index)
    for status in order:
        assert getattr(called, f"{status}_at")
    assert (called.message_id, called.lease_until) == ("wamid.one", None)


@pytest.mark.parametrize("reached", ["delivered", "read"])
def test_a_late_failure_does_not_undo_what_arrived(called, reached):
    tell(called, reached)
    tell(called, "failed", error_code="131026")
    assert status_of(called) == reached
    assert called.reason == ""


def test_a_failure_counts_from_sent_and_keeps_its_reason(called):
    tell(called, "sent")
    tell(called, "failed", error_code="131026", error_message="no")
    assert status_of(called) == "failed"
    assert (called.reason, called.error_code) == ("refused", "131026")


@pytest.mark.parametrize("order", list(itertools.permutations(["sent", "failed", "delivered"])), ids="-".join)
def test_what_arrived_has_arrived_however_its_failure_was_told(called, order):
    """T25: the same end for each order."""
    for status in order:
        tell(called, status)
    assert (status_of(called), called.reason) == ("delivered", "")


def test_the_answer_of_the_call_does_not_lower_what_a_receipt_said(called):
    tell(called, "delivered")
    dispatch.record([(call_for(called), Accepted(message_id="wamid.one"))], now=clock.now())
    assert status_of(called) == "delivered"
    assert called.attempts.get().outcome == "accepted"


def test_a_receipt_is_found_by_the_providers_id_when_it_brings_no_reference(called):
    dispatch.record([(call_for(called), Accepted(message_id="wamid.one"))], now=clock.now())
    assert tell(called, "delivered", reference="")
    assert status_of(called) == "delivered"


@pytest.mark.parametrize(
    "reference",
    ["", "d:", "d:x:1", "x:1:2", "att_01", "d:00000000-0000-0000-0000-000000000000:1", "d:1:\x00", "d:1:²"],
)
def test_a_receipt_that_names_nothing_of_ours_is_left_to_be_parked(called, reference):
    assert not tell(called, "delivered", reference=reference, message_id="wamid.other")
    assert status_of(called) == "sending"


def test_a_failure_of_an_earlier_attempt_does_not_end_a_later_one(called):
    ReminderDelivery.objects.filter(pk=called.pk).update(attempt=2)
    assert tell(called, "failed", reference=f"d:{called.pk}:1")
    assert status_of(called) == "sending"


def test_a_refused_attempt_that_got_there_after_all_is_not_sent_again(called):
    dispatch.record([(call_for(called), ChannelError("131016"))], now=clock.now())
    assert status_of(called) == "pending"
    assert tell(called, "delivered")
    assert status_of(called) == "delivered"
    assert dispatch.prepare(5, now=clock.now() + timedelta(hours=1)) == []


def test_an_earlier_attempt_that_got_there_lifts_the_row_that_failed_later(called):
    ReminderDelivery.objects.filter(pk=called.pk).update(attempt=2, status="failed", reason="refused")
    assert tell(called, "read", reference=f"d:{called.pk}:1")
    assert (status_of(called), called.reason) == ("read", "")


def test_what_was_given_up_without_an_answer_is_lifted_to_what_happened(called):
    dispatch.tidy(now=clock.now() + timedelta(hours=1))
    dispatch.tidy(now=clock.now() + timedelta(hours=2))
    assert (status_of(called), called.reason) == ("failed", "no_answer")
    tell(called, "read")
    assert (status_of(called), called.reason) == ("read", "")


@pytest.fixture
def called_twice(called) -> ReminderDelivery:
    """The first attempt was refused for now; the call of the second is in the air."""
    dispatch.record([(call_for(called), ChannelError("131016"))], now=clock.now())
    later = clock.now() + timedelta(minutes=5)
    assert len(dispatch.prepare(1, now=later)) == 1
    called.refresh_from_db()
    assert called.attempt == 2
    return called


@pytest.mark.parametrize("order", [order for n in (2, 3) for order in itertools.product(FELL, repeat=n)])
def test_sent_says_nothing_new_of_a_message_that_failed_afterwards(called, order):
    for status in order:
        tell(called, status)
    expected = ("failed", "refused") if "failed" in order else ("sent", "")
    assert (status_of(called), called.reason) == expected


@pytest.mark.parametrize("order", list(itertools.permutations([*RANK, "failed"])), ids="-".join)
def test_every_order_of_all_news_ends_alike_however_often_it_is_told(called, order):
    """T25."""
    for status in (*order, *reversed(order)):
        tell(called, status)
    assert (status_of(called), called.reason) == ("read", "")
    assert called.attempts.get().outcome == "accepted"


def test_the_answer_of_the_call_does_not_lift_what_a_quicker_receipt_failed(called):
    tell(called, "failed", error_code="131026")
    dispatch.record([(call_for(called), Accepted(message_id="wamid.one"))], now=clock.now())
    tell(called, "sent")
    assert (status_of(called), called.error_code) == ("failed", "131026")
    assert called.attempts.get().outcome == "refused"


@pytest.mark.parametrize("late", [AnswerLost("answer_lost"), ChannelError("131016")])
def test_a_lost_answer_does_not_hide_in_the_ledger_what_a_receipt_told(called, late):
    tell(called, "sent")
    dispatch.record([(call_for(called), late)], now=clock.now())
    assert status_of(called) == "sent"
    assert called.attempts.get().outcome == "accepted"


@pytest.mark.parametrize("refused", [ChannelError("131016"), Undeliverable("131026")])
def test_a_call_that_was_refused_and_taken_after_all_is_lifted_by_sent(called, refused):
    dispatch.record([(call_for(called), refused)], now=clock.now())
    assert tell(called, "sent")
    assert (status_of(called), called.reason) == ("sent", "")


def test_a_lost_answer_is_lifted_by_sent_after_the_wait(called):
    dispatch.tidy(now=clock.now() + timedelta(hours=1))
    dispatch.tidy(now=clock.now() + timedelta(hours=2))
    tell(called, "sent")
    assert (status_of(called), called.reason) == ("sent", "")


@pytest.mark.parametrize("order", list(itertools.permutations(["sent", "failed"])), ids="-".join)
def test_a_retry_that_waits_ends_when_its_message_was_taken_and_failed(called, order):
    dispatch.record([(call_for(called), ChannelError("131016"))], now=clock.now())
    for status in order:
        tell(called, status)
    assert (status_of(called), called.reason) == ("failed", "refused")


@pytest.mark.parametrize(
    "order", list(itertools.permutations([(1, "sent"), (2, "sent"), (2, "failed")])), ids=str
)
def test_a_first_attempt_that_was_taken_outlives_the_failure_of_the_second(called_twice, order):
    for number, status in order:
        tell(called_twice, status, reference=f"d:{called_twice.pk}:{number}", message_id=f"wamid.{number}")
    assert (status_of(called_twice), called_twice.reason) == ("sent", "")


@pytest.mark.parametrize(
    "order",
    list(itertools.permutations([(1, "sent"), (1, "failed"), (2, "sent"), (2, "failed")])),
    ids=str,
)
def test_where_both_attempts_failed_the_row_has_failed(called_twice, order):
    for number, status in order:
        tell(called_twice, status, reference=f"d:{called_twice.pk}:{number}", message_id=f"wamid.{number}")
    assert (status_of(called_twice), called_twice.reason) == ("failed", "refused")


def test_a_search_that_says_sent_does_not_lift_what_bounced_meanwhile():
    attempt = make_sent_mail(status="unknown")
    row = attempt.delivery
    tell(row, "failed", error_code="HardBounce", message_id="mail-one")
    tell(row, "sent", message_id="mail-one")
    assert (status_of(row), row.error_code) == ("failed", "HardBounce")


def test_the_next_channel_stays_planned_when_sent_comes_behind_failed(settings, set_clock):
    settings.REMINDER_CHANNELS = ["whatsapp", "email"]
    set_clock("2026-09-10T09:00")
    only_rules(-120, channels=["whatsapp", "email"])
    visit = make_appointment(at="2026-09-17T10:00", patient=make_patient(email=f"ana.{MARK}@example.com"))
    agree(visit.patient)
    planner.plan_marked(now=clock.now())
    set_clock("2026-09-17T08:00")
    assert len(dispatch.prepare(1, now=clock.now())) == 1
    row = visit.deliveries.get()
    for status in ("failed", "sent", "failed", "sent"):
        tell(row, status)
        planner.plan_marked(now=clock.now())
    assert set(visit.deliveries.values_list("channel", "status")) == {
        ("whatsapp", "failed"),
        ("email", "pending"),
    }


def test_words_that_cannot_be_stored_do_not_cost_a_receipt(called):
    assert tell(called, "failed", error_code="1" * 60, error_message="mailbox\x00 \ud83d full" + "!" * 600)
    assert (status_of(called), called.error_code) == ("failed", "1" * 40)
    assert called.error_message.startswith("mailbox\ufffd \ufffd full!")
    assert len(called.error_message) == 500
    assert called.attempts.get().error_message == called.error_message


@pytest.mark.parametrize("odd", ["5" * 200, "58\x00412", "\ud83d"])
def test_a_name_that_cannot_be_stored_does_not_cost_a_receipt(called, odd):
    assert tell(called, "delivered", wa_id=odd, user_id=odd)
    assert status_of(called) == "delivered"
    called.patient.refresh_from_db()
    assert (called.patient.wa_id, called.patient.bsuid) == ("", "")


@pytest.mark.parametrize("odd", ["w" * 300, "wamid\x00", "\ud83d"])
def test_an_id_that_cannot_be_stored_does_not_cost_a_receipt(called, odd):
    assert tell(called, "delivered", message_id=odd)
    assert status_of(called) == "delivered"
    assert not tell(called, "read", reference="", message_id=odd)


def test_what_is_kept_of_a_providers_words_fits_its_columns():
    for model in (DeliveryAttempt, ReminderDelivery, Reply):
        for column, length in (("message_id", 255), ("error_code", 40), ("error_message", 500)):
            assert model._meta.get_field(column).max_length == length
    assert (ID_LENGTH, CODE_LENGTH, DETAIL_LENGTH) == (255, 40, 500)


def test_what_whatsapp_calls_the_patient_is_kept_and_the_dialled_number_stays(called):
    number = called.patient.phone
    tell(called, "delivered", wa_id="584120000009", user_id="VE.12345")
    called.patient.refresh_from_db()
    assert (called.patient.phone, called.patient.wa_id, called.patient.bsuid) == (
        number, "584120000009", "VE.12345",
    )  # fmt: skip
