"""How a call ends, over real HTTP, and what comes of each ending."""

from __future__ import annotations

from datetime import timedelta

import pytest

from appointments import clock
from reminders import dispatch
from reminders.channels.base import AnswerLost, ChannelError, Receipt, Throttled, Undeliverable
from reminders.models import DeliveryAttempt, ReminderDelivery
from reminders.outcomes import after_error
from reminders.tick import tick
from tests.engine import due_visit, settle
from tests.factories import make_delivery

pytestmark = pytest.mark.django_db(transaction=True)


def the_row(visit) -> ReminderDelivery:
    return visit.deliveries.get(channel="whatsapp")


@pytest.fixture
def visit(sandbox):
    return due_visit()


@pytest.mark.parametrize("code", [131026, 132001, 132018, 131049, 100])
def test_a_refusal_for_good_ends_the_row_with_its_code(sandbox, visit, code):
    sandbox.change(error_for={visit.patient.phone: code})
    assert tick() == 1
    row = the_row(visit)
    assert (row.status, row.reason, row.error_code) == ("failed", "refused", str(code))
    assert row.attempts.get().outcome == "refused"
    assert tick() == 0


@pytest.mark.parametrize("code", [131016, 131000, 190])
def test_a_refusal_for_now_is_tried_again_later_and_not_sent_twice(sandbox, visit, code):
    sandbox.change(error_for={visit.patient.phone: code})
    tick()
    row = the_row(visit)
    assert (row.status, row.retry_count, row.error_code) == ("pending", 1, str(code))
    assert row.next_attempt_at > clock.now()
    assert tick() == 0
    sandbox.change(error_for={})
    ReminderDelivery.objects.filter(pk=row.pk).update(next_attempt_at=clock.now())
    assert tick() == 1
    row.refresh_from_db()
    assert (row.status, row.attempt) == ("sent", 2)
    assert len(sandbox.accepted_for(f"d:{row.pk}")) == 1
    assert list(row.attempts.order_by("number").values_list("outcome", flat=True)) == ["refused", "accepted"]


@pytest.mark.parametrize("code", [130429, 131056])
def test_a_rate_limit_costs_no_retry(sandbox, visit, code):
    sandbox.change(error_for={visit.patient.phone: code})
    tick()
    row = the_row(visit)
    assert (row.status, row.retry_count) == ("pending", 0)
    assert row.next_attempt_at > clock.now()


@pytest.mark.parametrize("where", ["before_status_line", "in_status_line", "in_body"])
def test_a_lost_answer_is_never_repeated_and_a_receipt_settles_it(sandbox, visit, where):
    sandbox.change(lose_answer_for=[visit.patient.phone], lose_answer=where, receipts=())
    tick()
    row = the_row(visit)
    assert (row.status, row.reason) == ("unknown", "")
    assert row.attempts.get().outcome == "lost"
    assert tick() == 0
    sandbox.open_phone(visit.patient.phone)
    [accepted] = sandbox.accepted_for(f"d:{row.pk}")
    sandbox.change(receipts=("sent", "delivered"))
    sandbox.send_receipts(accepted)
    settle(sandbox)
    row.refresh_from_db()
    assert (row.status, row.message_id) == ("delivered", accepted.wamid)
    assert len(sandbox.accepted) == 1


def test_a_lost_answer_without_any_receipt_ends_without_answer(sandbox, visit, settings):
    settings.REMINDER_UNKNOWN_WAIT_SECONDS = 1
    sandbox.change(lose_answer_for=[visit.patient.phone], receipts=())
    tick()
    row = the_row(visit)
    assert row.status == "unknown"
    dispatch.tidy(now=clock.now() + timedelta(seconds=2))
    row.refresh_from_db()
    assert (row.status, row.reason) == ("failed", "no_answer")
    # Months later the truth still counts.
    [accepted] = sandbox.accepted
    sandbox.change(receipts=("sent", "delivered"))
    sandbox.send_receipts(accepted)
    settle(sandbox)
    row.refresh_from_db()
    assert (row.status, row.reason) == ("delivered", "")
    assert len(sandbox.accepted) == 1


def test_a_provider_that_cannot_be_reached_took_nothing(sandbox, visit, settings):
    sandbox.stop()
    settings.WHATSAPP_API_URL = "http://127.0.0.1:9"
    tick()
    row = the_row(visit)
    assert (row.status, row.retry_count, row.error_code) == ("pending", 1, "not_reached")


@pytest.mark.parametrize("odd", ["wamid.twice", "w" * 300])
def test_an_id_that_cannot_be_kept_costs_neither_the_row_nor_its_neighbours(odd):
    rows = [make_delivery(), make_delivery()]
    first, second = dispatch.prepare(2, now=clock.now())
    dispatch.record([(first, Receipt(message_id="wamid.twice"))], now=clock.now())
    dispatch.record([(second, Receipt(message_id=odd))], now=clock.now())
    for row in rows:
        row.refresh_from_db()
    assert sorted(row.status for row in rows) == ["sent", "unknown"]


def test_receipts_may_be_quicker_than_the_answer(sandbox, visit):
    """T24: the provider posts the status before it answers the send."""
    sandbox.change(webhooks_before_answer=True, reorder_webhooks=True)
    tick()
    settle(sandbox)
    row = the_row(visit)
    assert (row.status, row.error_code) == ("delivered", "")
    assert row.sent_at and row.delivered_at


def test_a_failure_told_afterwards_wins_over_sent(sandbox, visit):
    sandbox.change(status_error_for={visit.patient.phone: 131026})
    tick()
    settle(sandbox)
    row = the_row(visit)
    assert (row.status, row.reason, row.error_code) == ("failed", "refused", "131026")
    assert tick() == 0


def test_a_number_that_cannot_be_dialled_ends_before_any_call(sandbox, visit):
    type(visit.patient).objects.update(phone="0412-5550000")
    tick()
    row = the_row(visit)
    assert (row.status, row.reason) == ("skipped", "no_contact")
    assert not DeliveryAttempt.objects.exists()


class TestAfterError:
    """The policy itself, as a table."""

    def after(self, error: ChannelError, **fields: object) -> dict[str, object]:
        row = make_delivery(**fields)
        self.now = clock.now()
        return after_error(row, error, self.now)

    def test_the_last_retry_ends_it(self, settings):
        changes = self.after(ChannelError("131016"), retry_count=settings.REMINDER_MAX_ATTEMPTS - 1)
        assert (changes["status"], changes["reason"]) == ("failed", "attempts_exhausted")

    def test_a_code_may_allow_fewer_tries_than_usual(self):
        assert self.after(ChannelError("1", tries=3), retry_count=1)["status"] == "pending"
        assert self.after(ChannelError("1", tries=3), retry_count=2)["status"] == "failed"

    def test_retries_end_half_an_hour_after_the_first_call(self, settings):
        """Case D6: the last try at the end of the window, and then the next channel."""
        settings.REMINDER_MAX_ATTEMPTS = 50
        row = make_delivery(called_at=clock.now())
        first_call, now, tries = row.called_at, row.called_at, []
        while (changes := after_error(row, ChannelError("131016"), now))["status"] == "pending":
            row.retry_count, now = changes["retry_count"], changes["next_attempt_at"]
            tries.append(now - first_call)
        assert changes["reason"] == "attempts_exhausted"
        assert tries[-1] == timedelta(minutes=30)

    def test_a_provider_that_asks_for_longer_than_we_can_wait_is_not_waited_for(self):
        changes = self.after(ChannelError("131016", retry_after=timedelta(hours=1)))
        assert (changes["status"], changes["reason"]) == ("failed", "attempts_exhausted")

    def test_a_provider_that_names_its_wait_is_heard(self):
        wait = timedelta(minutes=5)
        changes = self.after(Throttled("130429", retry_after=wait))
        assert changes["next_attempt_at"] == self.now + wait

    def test_a_rate_limit_costs_no_attempt_but_not_for_ever(self):
        """The next channel must have its chance while it is of use."""
        first_call = clock.now() - timedelta(minutes=31)
        assert self.after(Throttled("130429"), retry_count=3)["retry_count"] == 3
        assert self.after(Throttled("130429"), called_at=first_call)["reason"] == "attempts_exhausted"

    def test_a_lost_answer_waits_for_a_receipt(self, settings):
        changes = self.after(AnswerLost("answer_lost"))
        wait = timedelta(seconds=settings.REMINDER_UNKNOWN_WAIT_SECONDS)
        assert (changes["status"], changes["next_attempt_at"]) == ("unknown", self.now + wait)

    def test_what_can_never_succeed_ends_at_once(self):
        assert self.after(Undeliverable("131026"))["reason"] == "refused"
