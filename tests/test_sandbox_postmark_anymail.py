"""Anymail, which was written against the real Postmark, understands the stand-in; and the other way round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from anymail.exceptions import AnymailRecipientsRefused, AnymailRequestsAPIError
from anymail.message import AnymailMessage
from anymail.signals import AnymailTrackingEvent
from anymail.webhooks.postmark import PostmarkTrackingWebhookView
from django.core.mail import get_connection
from django.test import RequestFactory

from amedi.sandbox.postmark import Postmark
from tests.factories import MARK
from tests.postmark_requests import ADDRESS, CALENDAR, METADATA, OTHER_ADDRESS, posting_to
from tests.webhook_receiver import Receiver, receiving

SECRET = "postmark:a-password"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as clinic:
        yield clinic


@pytest.fixture
def postmark(receiver: Receiver) -> Iterator[Postmark]:
    with posting_to(receiver, webhook_secret=SECRET) as running:
        yield running


def send(postmark: Postmark, to: str = ADDRESS, **changes: Any) -> AnymailMessage:
    connection = get_connection(
        "anymail.backends.postmark.EmailBackend",
        api_url=postmark.url,
        server_token=changes.pop("server_token", postmark.options.server_token),
    )
    message = AnymailMessage(
        subject=f"Su cita, Ana {MARK}",
        body="Le recordamos su cita.",
        from_email="Consultorio Ñandú <citas@consultorio.example>",
        to=[f'"{MARK}, Ana" <{to}>'],
        metadata=METADATA,
        track_opens=True,
        headers={"List-Unsubscribe": "<https://consultorio.example/x>"},
        connection=connection,
        **changes,
    )
    message.attach_alternative("<p>Le recordamos su cita.</p>", "text/html")
    message.attach("cita.ics", CALENDAR.decode(), "text/calendar")
    message.send()
    return message


def events(receiver: Receiver) -> list[AnymailTrackingEvent]:
    """What Anymail's view reads in the posts, after it has looked at the secret."""
    read = []
    for body, headers in zip(receiver.bodies, receiver.headers, strict=True):
        request = RequestFactory().post(
            "/", body, content_type="application/json", HTTP_AUTHORIZATION=headers["Authorization"]
        )
        view = PostmarkTrackingWebhookView(webhook_secret=SECRET)
        view.run_validators(request)
        read += view.parse_events(request)
    return read


def test_a_mail_comes_as_it_was_written(postmark: Postmark) -> None:
    message = send(postmark)
    (accepted,) = postmark.accepted
    assert message.anymail_status.message_id == accepted.message_id
    assert message.anymail_status.status == {"sent"}
    mail = accepted.mail
    assert (mail.sender.name, mail.to[0].name) == ("Consultorio Ñandú", f"{MARK}, Ana")
    assert (mail.text, mail.html) == ("Le recordamos su cita.", "<p>Le recordamos su cita.</p>")
    assert [(file.name, file.content) for file in mail.attachments] == [("cita.ics", CALENDAR)]
    assert mail.header("list-unsubscribe") == "<https://consultorio.example/x>"
    assert (accepted.metadata, mail.tracks_opens) == (METADATA, True)


@pytest.mark.parametrize(("code", "status"), [(406, "rejected"), (300, "invalid")])
def test_a_refused_recipient_is_recognised(postmark: Postmark, code: int, status: str) -> None:
    postmark.change(error_for={ADDRESS: code})
    with pytest.raises(AnymailRecipientsRefused) as refused:
        send(postmark)
    assert refused.value.email_message.anymail_status.recipients[ADDRESS].status == status


def test_a_recipient_left_out_is_recognised(postmark: Postmark) -> None:
    postmark.change(inactive={OTHER_ADDRESS})
    status = send(postmark, cc=[OTHER_ADDRESS]).anymail_status
    assert {address: one.status for address, one in status.recipients.items()} == {
        ADDRESS: "sent",
        OTHER_ADDRESS: "rejected",
    }


def test_other_refusals_are_errors(postmark: Postmark) -> None:
    for change in ({"error_for": {ADDRESS: 405}}, {"status_for": {ADDRESS: 503}}):
        postmark.change(**change)
        with pytest.raises(AnymailRequestsAPIError):
            send(postmark)
    with pytest.raises(AnymailRequestsAPIError):
        send(postmark, server_token="another")
    assert postmark.accepted == []


def test_its_webhooks_are_understood(postmark: Postmark, receiver: Receiver) -> None:
    delivered = send(postmark).anymail_status.message_id
    assert postmark.flush(10)
    postmark.open(ADDRESS, delivered)
    postmark.change(bounce_for={ADDRESS: "SoftBounce"}, complaint_for={OTHER_ADDRESS})
    bounced = send(postmark).anymail_status.message_id
    assert postmark.flush(10)
    complained = send(postmark, OTHER_ADDRESS).anymail_status.message_id
    assert postmark.flush(10)
    read = events(receiver)
    assert [(event.event_type, event.message_id) for event in read] == [
        ("delivered", delivered),
        ("opened", delivered),
        ("bounced", bounced),
        ("delivered", complained),
        ("complained", complained),
        ("complained", complained),
    ]
    assert [event.recipient for event in read] == [ADDRESS] * 3 + [OTHER_ADDRESS] * 3
    assert all(event.metadata == METADATA and event.timestamp for event in read)
