"""The door for Postmark's posts: who may come in, and what is answered."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.mail_values import make_sent_mail
from tests.postmark_posts import MAIL, SECRET, URL, body, post

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def secret(settings):
    settings.POSTMARK_WEBHOOK_SECRET = SECRET


def test_a_post_with_the_secret_is_heard():
    attempt = make_sent_mail()
    assert post(body("delivery", attempt)) == 200
    attempt.delivery.refresh_from_db()
    assert attempt.delivery.status == "delivered"


@pytest.mark.parametrize("wrong", ["postmark:guess", "postmark:", ":", "", SECRET + " "])
def test_a_post_with_another_secret_changes_nothing(wrong):
    attempt = make_sent_mail()
    # Never 403, after which Postmark would not come back: the secret may be being changed.
    assert post(body("delivery", attempt), secret=wrong) == 400
    attempt.delivery.refresh_from_db()
    assert attempt.delivery.status == "sent"


def test_a_post_without_any_secret_changes_nothing():
    assert Client().post(URL, body("delivery"), content_type="application/json").status_code == 400


@pytest.mark.parametrize("tried", ["", ":", SECRET])
def test_without_a_secret_of_ours_nobody_is_believed(settings, tried):
    settings.POSTMARK_WEBHOOK_SECRET = ""
    attempt = make_sent_mail()
    assert post(body("delivery", attempt), secret=tried) == 400
    attempt.delivery.refresh_from_db()
    assert attempt.delivery.status == "sent"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'"text"',
        b"[" * 100_000,
        b'{"RecordType": "Delivery", "DeliveredAt": 5}',
        b'{"RecordType": "Delivery", "DeliveredAt": "2026-02-31T00:00:00Z"}',
        b'{"RecordType": "Bounce", "Type": ["HardBounce"]}',
        b'{"RecordType": ["Bounce"]}',
        b'{"RecordType": "Inbound"}',
        b'{"RecordType": "Delivery", "MessageID": {"a": 1}, "Metadata": []}',
        b'{"RecordType": "Delivery", "MessageID": "m\\u0000", "Metadata": {"delivery": "x", "attempt": []}}',
    ],
)
def test_a_body_that_cannot_be_read_is_answered_200_or_it_would_come_for_hours(content):
    assert post(content) == 200


@pytest.mark.parametrize("name", ["delivery", "open", "bounce", "complaint", "subscription-change"])
def test_news_of_a_mail_that_is_not_ours_is_answered_200(name):
    assert post(body(name)) == 200
    assert post(body(name, Metadata={"delivery": "someone-elses", "attempt": "1"})) == 200
    assert post(body(name, Metadata=None)) == 200


def test_nothing_of_a_post_stands_in_the_log(no_patient_in_the_logs):
    attempt = make_sent_mail()
    for name in ("delivery", "open", "bounce", "complaint"):
        post(body(name, attempt))
    post(b'{"RecordType": ["Delivery"], "Recipient": "ana.Zzyzx@example.com"}')
    lines = "\n".join(no_patient_in_the_logs.lines)
    assert "receipt=delivered" in lines
    assert "outcome=unreadable" in lines
    assert MAIL not in lines


@pytest.mark.parametrize("words", ["user\x00 unknown", "half an emoji \ud83d", "x" * 5000])
def test_a_bounce_in_words_that_cannot_be_stored_counts(words):
    attempt = make_sent_mail()
    assert post(body("bounce", attempt, Description=words)) == 200
    attempt.delivery.refresh_from_db()
    assert (attempt.delivery.status, attempt.delivery.error_code) == ("failed", "HardBounce")
    assert attempt.delivery.error_message[:4] == words[:4]


def test_a_post_that_can_never_be_kept_is_answered_200_or_it_would_come_for_hours():
    make_sent_mail(message_id=MAIL)
    other = make_sent_mail()
    assert post(body("delivery", other)) == 200
    other.delivery.refresh_from_db()
    assert other.delivery.status == "sent"


@pytest.mark.parametrize(
    "at",
    [
        5,
        None,
        "",
        "never",
        "2026-02-31T00:00:00Z",
        ["2026-02-28T00:00:00Z"],
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
    ],
)
@pytest.mark.parametrize(
    ("name", "field", "status", "stamp"),
    [
        ("delivery", "DeliveredAt", "delivered", "delivered_at"),
        ("open", "ReceivedAt", "read", "read_at"),
        ("bounce", "BouncedAt", "failed", ""),
        ("complaint", "BouncedAt", "delivered", "delivered_at"),
    ],
)
def test_news_without_a_time_that_can_be_read_is_of_the_time_at_which_it_came(
    set_clock, name, field, status, stamp, at
):
    attempt = make_sent_mail()
    now = set_clock("2026-09-16T10:00")
    assert post(body(name, attempt, **{field: at})) == 200
    attempt.delivery.refresh_from_db()
    assert attempt.delivery.status == status
    assert not stamp or getattr(attempt.delivery, stamp) == now


@pytest.mark.parametrize("metadata", ["text", 5, ["list"], None])
def test_news_with_odd_metadata_is_known_by_the_id_of_its_mail(metadata):
    attempt = make_sent_mail(message_id=MAIL)
    assert post(body("delivery", attempt, Metadata=metadata)) == 200
    attempt.delivery.refresh_from_db()
    assert attempt.delivery.status == "delivered"


def test_only_a_post_acts():
    assert Client().get(URL).status_code == 405
