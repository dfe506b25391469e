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
    post(b'{"RecordType": "Delivery", "Recipient": "ana.Zzyzx@example.com", "DeliveredAt": 5}')
    lines = "\n".join(no_patient_in_the_logs.lines)
    assert "receipt=delivered" in lines
    assert "outcome=unreadable" in lines
    assert MAIL not in lines


def test_only_a_post_acts():
    assert Client().get(URL).status_code == 405
