"""What Postmark tells of a mail moves its delivery, and draws its conclusions for the address."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reminders.models import ConsentEvent, ContactOptOut, Notification, RetiredContact
from tests.factories import make_user
from tests.mail_values import ADDRESS, make_sent_mail
from tests.postmark_posts import MAIL, SECRET, body, post

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def secret(settings):
    settings.POSTMARK_WEBHOOK_SECRET = SECRET


def told(attempt, name, **fields):
    """The delivery after a post."""
    assert post(body(name, attempt, **fields)) == 200
    attempt.delivery.refresh_from_db()
    return attempt.delivery


def test_delivered():
    row = told(make_sent_mail(), "delivery")
    assert (row.status, row.message_id) == ("delivered", MAIL)
    assert row.delivered_at == datetime(2026, 9, 16, 14, 0, 7, 123456, tzinfo=UTC)


def test_opened_is_read():
    row = told(make_sent_mail(status="delivered"), "open")
    assert row.status == "read"
    assert row.read_at == datetime(2026, 9, 16, 14, 20, tzinfo=UTC)


def test_opened_before_it_was_told_delivered_stays_read():
    attempt = make_sent_mail()
    told(attempt, "open")
    assert told(attempt, "delivery").status == "read"


def test_a_receipt_settles_a_lost_answer():
    row = told(make_sent_mail(status="unknown"), "delivery")
    assert (row.status, row.message_id) == ("delivered", MAIL)


def test_a_mail_is_known_by_its_id_where_no_metadata_come():
    attempt = make_sent_mail(message_id=MAIL)
    assert told(attempt, "delivery", Metadata={}).status == "delivered"


def test_a_hard_bounce_fails_it_and_retires_the_address():
    attempt = make_sent_mail()
    secretary, stranger = make_user(), make_user()
    attempt.delivery.appointment.doctor.staff.add(secretary)
    row = told(attempt, "bounce")
    assert (row.status, row.reason, row.error_code) == ("failed", "refused", "HardBounce")
    assert "unknown user" in row.error_message
    [retired] = RetiredContact.objects.all()
    assert (retired.address, retired.channel, retired.why) == (ADDRESS.lower(), "email", "bounced")
    [news] = Notification.objects.all()
    assert (news.user, news.about) == (secretary, attempt.delivery.patient)
    assert ADDRESS in news.body
    assert not stranger.notifications.exists()


def test_a_hard_bounce_that_comes_twice_is_told_once():
    attempt = make_sent_mail()
    attempt.delivery.appointment.doctor.staff.add(make_user())
    told(attempt, "bounce")
    told(attempt, "bounce")
    told(attempt, "subscription-change")
    assert RetiredContact.objects.count() == 1
    assert Notification.objects.count() == 1


@pytest.mark.parametrize("kind", ["BadEmailAddress", "ManuallyDeactivated"])
def test_other_ends_of_an_address_retire_it_too(kind):
    told(make_sent_mail(), "bounce", Type=kind)
    assert RetiredContact.objects.count() == 1


@pytest.mark.parametrize("kind", ["SoftBounce", "Blocked", "SpamNotification", "DMARCPolicy"])
def test_a_mail_that_postmark_gave_up_fails_and_the_address_stays(kind):
    row = told(make_sent_mail(), "bounce", Type=kind, Inactive=False)
    assert (row.status, row.error_code) == ("failed", kind)
    assert not RetiredContact.objects.exists()


@pytest.mark.parametrize("kind", ["Transient", "DnsError", "AutoResponder", "Unknown", "Something new"])
def test_a_delay_changes_nothing(kind):
    assert told(make_sent_mail(), "bounce", Type=kind, Inactive=False).status == "sent"
    assert not RetiredContact.objects.exists()


def test_a_delay_after_which_postmark_writes_no_more_is_an_end():
    assert told(make_sent_mail(), "bounce", Type="Transient", Inactive=True).status == "failed"
    assert RetiredContact.objects.count() == 1


def test_a_bounce_after_the_delivery_retires_the_address_and_leaves_the_row():
    row = told(make_sent_mail(status="delivered"), "bounce")
    assert row.status == "delivered"
    assert RetiredContact.objects.count() == 1


def test_a_complaint_means_never_again_on_this_channel():
    attempt = make_sent_mail()
    assert told(attempt, "complaint").status == "delivered"
    [opt_out] = ContactOptOut.objects.all()
    assert (opt_out.address, opt_out.channel) == (ADDRESS.lower(), "email")
    word = ConsentEvent.objects.get(channel="email")
    assert (word.patient, word.agrees, word.how) == (attempt.delivery.patient, False, "patient")
    assert not RetiredContact.objects.exists()


def test_a_complaint_that_comes_twice_is_kept_once():
    attempt = make_sent_mail()
    told(attempt, "complaint")
    told(attempt, "complaint")
    told(attempt, "subscription-change", SuppressionReason="SpamComplaint")
    assert ContactOptOut.objects.count() == 1
    assert ConsentEvent.objects.filter(channel="email").count() == 1


def test_who_stops_us_at_postmark_has_said_no():
    told(make_sent_mail(), "subscription-change", SuppressionReason="ManualSuppression")
    assert ContactOptOut.objects.filter(address=ADDRESS.lower(), channel="email").exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"Origin": "Customer", "SuppressionReason": "ManualSuppression", "MessageID": None},
        {"Origin": "Customer", "SuppressionReason": "ManualSuppression"},
        {"SuppressSending": False},
    ],
)
def test_what_our_own_people_change_at_postmark_is_no_word_of_the_patient(fields):
    assert told(make_sent_mail(), "subscription-change", **fields).status == "sent"
    assert not ContactOptOut.objects.exists()
    assert not RetiredContact.objects.exists()


def test_the_address_that_counts_is_the_one_that_we_wrote_to():
    told(make_sent_mail(), "bounce", Email="somebody.else@example.com")
    assert [retired.address for retired in RetiredContact.objects.all()] == [ADDRESS.lower()]
