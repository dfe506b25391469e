"""Receipts only move a row upwards, in whatever order and however often they come."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from appointments import clock
from reminders import dispatch, receipts
from reminders.channels.base import ChannelError
from reminders.channels.base import Receipt as Accepted
from reminders.models import ReminderDelivery
from tests.factories import make_delivery
from tests.test_claim import call_for

pytestmark = pytest.mark.django_db
RANK = ["sent", "delivered", "read"]


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


def test_what_whatsapp_calls_the_patient_is_kept_and_the_dialled_number_stays(called):
    number = called.patient.phone
    tell(called, "delivered", wa_id="584120000009", user_id="VE.12345")
    called.patient.refresh_from_db()
    assert (called.patient.phone, called.patient.wa_id, called.patient.bsuid) == (
        number, "584120000009", "VE.12345",
    )  # fmt: skip
