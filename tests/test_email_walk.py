"""A mail from the tick that sends it to what its reader, or nobody, made of it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection, transaction

from reminders import look_up
from reminders.models import ContactOptOut, Heartbeat, Notification, RetiredContact
from reminders.tick import tick
from tests.factories import MARK, make_appointment, make_patient, make_user, only_rules, soon

pytestmark = pytest.mark.django_db(transaction=True)
ADDRESS = f"ana.{MARK}@example.com"


@pytest.fixture(autouse=True)
def email_is_on(settings):
    settings.REMINDER_CHANNELS = ["email", "in_app"]


def due_visit(*channels: str, **patient):
    """A visit whose reminder of two hours before has just fallen due."""
    with transaction.atomic(), connection.cursor() as cursor:
        # A rule acts on moments after it was made: this one stands since long ago.
        cursor.execute("SELECT set_config('amedi.now', '2026-01-01T00:00Z', true)")
        only_rules(-120, channels=list(channels))
    patient = make_patient(email=ADDRESS, phone="", **patient)
    return make_appointment(at=soon(2) - timedelta(minutes=1), patient=patient)


def row_of(visit, channel="email"):
    return visit.deliveries.get(channel=channel)


def settle(postmark) -> None:
    """Turn until nothing is left to send and every receipt has come."""
    while tick():
        assert postmark.flush()


def test_sent_delivered_and_read(postmark):
    visit = due_visit("email")
    assert tick() == 1
    row = row_of(visit)
    [accepted] = postmark.accepted
    assert dict(accepted.metadata) == {"delivery": str(row.pk), "attempt": "1"}
    assert row.message_id == accepted.message_id
    assert postmark.flush()
    assert row_of(visit).status == "delivered"
    postmark.open(ADDRESS, accepted.message_id)
    assert postmark.flush()
    assert row_of(visit).status == "read"
    assert accepted.mail.header("List-Unsubscribe").startswith("<http")
    assert [attachment.name for attachment in accepted.mail.attachments] == ["cita.ics"]


def test_receipts_that_come_twice_and_backwards_change_nothing_more(postmark):
    postmark.change(repeat_webhooks=2, reorder_webhooks=True)
    visit = due_visit("email")
    settle(postmark)
    postmark.open(ADDRESS, postmark.accepted[0].message_id)
    assert postmark.flush()
    assert row_of(visit).status == "read"
    assert len(postmark.accepted) == 1


def test_a_hard_bounce_passes_on_and_retires_the_address(postmark):
    postmark.change(bounce_for={ADDRESS.lower(): "HardBounce"})
    visit = due_visit("email", "in_app", user=make_user())
    secretary = make_user()
    visit.doctor.staff.add(secretary)
    settle(postmark)
    settle(postmark)
    assert (row_of(visit).status, row_of(visit).reason) == ("failed", "refused")
    assert RetiredContact.objects.get().address == ADDRESS.lower()
    assert secretary.notifications.get().about == visit.patient
    # The rule's next channel, and the patient's own inbox.
    assert row_of(visit, "in_app").status == "delivered"
    assert visit.patient.user.notifications.get().delivery == row_of(visit, "in_app")
    # The next visit does not even try.
    other = make_appointment(at=soon(2) - timedelta(minutes=1), patient=visit.patient)
    settle(postmark)
    assert (row_of(other).status, row_of(other).reason) == ("skipped", "no_contact")
    assert len(postmark.accepted) == 1


def test_a_complaint_is_the_last_mail(postmark):
    postmark.change(complaint_for=[ADDRESS.lower()])
    visit = due_visit("email")
    settle(postmark)
    assert row_of(visit).status == "delivered"
    assert ContactOptOut.objects.get().address == ADDRESS.lower()
    other = make_appointment(at=soon(2) - timedelta(minutes=1), patient=visit.patient)
    settle(postmark)
    assert row_of(other).reason == "opted_out"
    assert len(postmark.accepted) == 1


def test_one_click_in_the_mail_program_stops_the_next_mail(postmark, live_server, settings):
    settings.CLIENT_URL = live_server.url
    visit = due_visit("email")
    settle(postmark)
    [accepted] = postmark.accepted
    # Whoever scans mails asks for every link, and must change nothing.
    postmark.scan(ADDRESS, accepted.message_id)
    assert not ContactOptOut.objects.exists()
    assert postmark.unsubscribe(ADDRESS, accepted.message_id) == 200
    other = make_appointment(at=soon(2) - timedelta(minutes=1), patient=visit.patient)
    settle(postmark)
    assert row_of(other).reason == "opted_out"
    assert len(postmark.accepted) == 1


def test_an_inactive_address_passes_on_at_once(postmark):
    postmark.change(inactive=[ADDRESS.lower()])
    visit = due_visit("email", "in_app", user=make_user())
    visit.doctor.staff.add(make_user())
    settle(postmark)
    assert (row_of(visit).status, row_of(visit).error_code) == ("failed", "406")
    assert row_of(visit, "in_app").status == "delivered"
    assert RetiredContact.objects.get().why == "inactive"
    assert Notification.objects.filter(about=visit.patient).count() == 1


def test_a_lost_answer_is_settled_by_the_search_and_never_repeated(postmark):
    postmark.change(lose_answer_for=[ADDRESS.lower()], events=[])
    visit = due_visit("email")
    tick()
    assert row_of(visit).status == "unknown"
    # Half a minute later providers are asked again.
    Heartbeat.objects.filter(name=look_up.HEARTBEAT).delete()
    settle(postmark)
    row = row_of(visit)
    assert (row.status, row.message_id) == ("sent", postmark.accepted[0].message_id)
    assert len(postmark.accepted) == 1


def test_a_broken_account_is_tried_again(postmark, settings):
    settings.POSTMARK_SERVER_TOKEN = "revoked"
    visit = due_visit("email")
    tick()
    row = row_of(visit)
    assert (row.status, row.error_code, row.retry_count) == ("pending", "10", 1)
    assert not postmark.accepted


def test_the_ledger_holds_the_mail_that_left(postmark):
    visit = due_visit("email")
    tick()
    [attempt] = row_of(visit).attempts.all()
    [accepted] = postmark.accepted
    assert attempt.payload["html"] == accepted.mail.html
    assert attempt.payload["subject"] == accepted.mail.subject
    assert attempt.payload["calendar"]["text"].encode() == accepted.mail.attachments[0].content
