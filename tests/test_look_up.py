"""Providers are asked about lost answers beside the sending, which never waits for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from appointments import clock
from reminders import dispatch, look_up
from reminders.channels.base import BlockingChannel, ChannelError, Message, Receipt
from reminders.flight import QUESTIONS_AT_ONCE, Flight
from reminders.models import DeliveryAttempt, Heartbeat, ReminderDelivery
from reminders.tick import LAST_WORDS, housekeep, tick
from tests.engine import wait_for
from tests.factories import make_delivery
from tests.mail_values import make_sent_mail
from tests.raw_server import RawServer, raw_server

pytestmark = pytest.mark.django_db(transaction=True)
SOON = 5.0
"""Seconds, and far less than a search may hang."""


class OnPaper(BlockingChannel):
    """Its calls wait in threads, as those of a mail do."""

    def call(self, message: Message, payload: dict[str, object]) -> Receipt:
        return Receipt(message_id=f"paper.{message.reference}")


class Archive(OnPaper):
    """Can be asked, and tells of each message what the test says."""

    can_look_up = True
    knows: dict[str, str]

    async def look_up(self, reference: str) -> Receipt | None:
        if reference not in self.knows:
            raise ChannelError("not_now")
        message_id = self.knows[reference]
        return Receipt(message_id=message_id) if message_id else None


@pytest.fixture(autouse=True)
def channels(settings) -> None:
    settings.REMINDER_QUIET_HOURS = (settings.REMINDER_QUIET_HOURS[0],) * 2
    settings.REMINDER_CHANNELS = ["whatsapp", "email"]
    settings.CHANNEL_BACKENDS = settings.CHANNEL_BACKENDS | {
        "whatsapp": {"BACKEND": "tests.test_look_up.OnPaper"}
    }


@pytest.fixture
def silent(settings) -> Iterator[RawServer]:
    """A search that hangs."""
    settings.POSTMARK_SERVER_TOKEN = "test-server-token-not-real"
    with raw_server() as server:
        settings.POSTMARK_API_URL = server.url
        yield server


@pytest.fixture
def archive(settings) -> dict[str, str]:
    settings.CHANNEL_BACKENDS = settings.CHANNEL_BACKENDS | {
        "email": {"BACKEND": "tests.test_look_up.Archive"}
    }
    Archive.knows = {}
    return Archive.knows


def lost() -> ReminderDelivery:
    """A mail whose answer was lost."""
    attempt = make_sent_mail(status="unknown")
    DeliveryAttempt.objects.filter(pk=attempt.pk).update(outcome="lost")
    return attempt.delivery


def status_of(row: ReminderDelivery) -> str:
    row.refresh_from_db()
    return row.status


def test_a_search_that_hangs_costs_the_turn_no_time_and_no_seat(silent):
    for _ in range(3):
        lost()
    due = [make_delivery() for _ in range(3)]
    began = time.monotonic()
    with Flight(1) as flight:
        assert look_up.ask_providers(flight, now=clock.now()) == 0
        wait_for(lambda: silent.requests >= 3)
        assert dispatch.run(clock=clock.now, flight=flight) == 3
        assert len(flight.asked) == 3
    assert time.monotonic() - began < SOON
    assert [status_of(row) for row in due] == ["sent"] * 3


def test_more_questions_than_may_be_asked_at_once_are_dropped_with_the_flight(silent):
    for _ in range(QUESTIONS_AT_ONCE * 2):
        lost()
    began = time.monotonic()
    with Flight(1) as flight:
        look_up.ask_providers(flight, now=clock.now())
        wait_for(lambda: silent.requests >= QUESTIONS_AT_ONCE)
    assert time.monotonic() - began < SOON
    assert silent.requests == QUESTIONS_AT_ONCE


def test_who_is_still_being_asked_is_not_asked_again(silent):
    lost()
    now = clock.now()
    with Flight(1) as flight:
        look_up.ask_providers(flight, now=now)
        wait_for(lambda: silent.requests == 1)
        Heartbeat.objects.filter(name=look_up.HEARTBEAT).delete()
        look_up.ask_providers(flight, now=now + look_up.EVERY)
        assert not Heartbeat.objects.filter(name=look_up.HEARTBEAT).exists()


def test_what_has_waited_long_enough_is_asked_before_it_is_given_up(archive):
    row = lost()
    archive[row.reference] = "mail-one"
    assert row.next_attempt_at < clock.now()
    assert tick() == 0
    assert (status_of(row), row.message_id) == ("sent", "mail-one")


def test_a_turn_does_not_wait_for_a_search_that_hangs_and_gives_the_mail_up(silent):
    row = lost()
    began = time.monotonic()
    tick()
    assert time.monotonic() - began < SOON + LAST_WORDS
    assert silent.requests
    assert (status_of(row), row.reason) == ("failed", "no_answer")


def test_what_a_provider_tells_is_heard_by_a_later_housekeeping(archive):
    row = lost()
    archive[row.reference] = "mail-one"
    with Flight(1) as flight:
        wait_for(lambda: not housekeep(now=clock.now(), flight=flight) and status_of(row) == "sent")
        assert not flight.asked


def test_a_mail_that_bounced_since_the_question_is_not_lifted_by_the_answer(archive):
    row = lost()
    archive[row.reference] = "mail-one"
    with Flight(1) as flight:
        look_up.ask_providers(flight, now=clock.now())
        look_up.receipts.advance(
            look_up.Receipt(reference=row.reference, message_id="mail-one", status="failed", at=clock.now())
        )
        look_up.hear_providers(flight, now=clock.now(), seconds=SOON)
    assert (status_of(row), row.reason) == ("failed", "refused")


def test_what_one_question_brings_costs_the_others_nothing(archive):
    """Unknown, refused, an id that another mail has, one that cannot be kept: and the last one is settled."""
    first, unknown, _refused, same, odd, last = (lost() for _ in range(6))
    DeliveryAttempt.objects.filter(delivery=first).update(message_id="mail-one")
    ReminderDelivery.objects.filter(pk=first.pk).update(status="sent")
    archive[unknown.reference] = ""
    archive[same.reference] = "mail-one"
    archive[odd.reference] = "mail\x00"
    archive[last.reference] = "mail-six"
    with Flight(1) as flight:
        look_up.ask_providers(flight, now=clock.now())
        look_up.hear_providers(flight, now=clock.now(), seconds=SOON)
    assert [status_of(row) for row in (unknown, same, last)] == ["unknown", "unknown", "sent"]


def test_providers_are_asked_each_half_minute(archive):
    row, now = lost(), clock.now()
    with Flight(1) as flight:
        for seconds in (0, 29):
            look_up.ask_providers(flight, now=now + timedelta(seconds=seconds))
            look_up.hear_providers(flight, now=now, seconds=SOON)
            archive[row.reference] = "mail-one"
        assert status_of(row) == "unknown"
        look_up.ask_providers(flight, now=now + look_up.EVERY)
        look_up.hear_providers(flight, now=now, seconds=SOON)
    assert status_of(row) == "sent"
