"""The webhooks come as Postmark sends them: with basic authentication, in its shapes, and repeated."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from amedi.sandbox.postmark import Postmark, PostmarkOptions
from tests.factories import MARK
from tests.postmark_requests import ADDRESS, METADATA, OTHER_ADDRESS, mail, posting_to, send
from tests.webhook_receiver import Receiver, receiving

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as clinic:
        yield clinic


def kinds(receiver: Receiver) -> list[str]:
    return [event["RecordType"] for event in receiver.events]


def told(receiver: Receiver, **changes: Any) -> tuple[str, list[dict[str, Any]]]:
    """The id of a mail, and all that was posted about it."""
    options = PostmarkOptions(callback_url=receiver.url, **changes)
    with Postmark(options, clock=lambda: NOON) as postmark:
        message_id = send(postmark, mail(Tag="cita")).json()["MessageID"]
        assert postmark.flush(10)
    return message_id, receiver.events


def test_a_mail_is_delivered_by_itself(receiver: Receiver) -> None:
    message_id, events = told(receiver)
    assert events == [
        {
            "RecordType": "Delivery",
            "MessageStream": "outbound",
            "MessageID": message_id,
            "Tag": "cita",
            "Metadata": METADATA,
            "ServerID": 23,
            "Recipient": ADDRESS,
            "DeliveredAt": "2026-12-01T12:00:00.0000000Z",
            "Details": "smtp;250 2.0.0 OK",
        }
    ]


@pytest.mark.parametrize(
    ("kind", "code", "name", "is_final"),
    [
        ("HardBounce", 1, "Hard bounce", True),
        ("SoftBounce", 4096, "Soft bounce", False),
        ("Transient", 2, "Message delayed", False),
        ("Blocked", 100006, "ISP block", False),
        ("BadEmailAddress", 100000, "Invalid email address", True),
    ],
)
def test_a_bounce_comes_in_place_of_the_delivery(
    receiver: Receiver, kind: str, code: int, name: str, is_final: bool
) -> None:
    message_id, events = told(receiver, bounce_for={ADDRESS: kind})
    bounce = events[0]
    assert (bounce["RecordType"], bounce["MessageID"], bounce["Metadata"]) == ("Bounce", message_id, METADATA)
    assert (bounce["Type"], bounce["TypeCode"], bounce["Name"]) == (kind, code, name)
    assert (bounce["Inactive"], bounce["CanActivate"]) == (is_final, is_final)
    assert (bounce["Email"], bounce["From"]) == (ADDRESS, "citas@consultorio.example")
    assert bounce["BouncedAt"] == "2026-12-01T12:00:00.0000000Z"
    assert bounce["Subject"] == f"Su cita, Ana {MARK}"
    assert isinstance(bounce["ID"], int)
    assert kinds(receiver) == (["Bounce", "SubscriptionChange"] if is_final else ["Bounce"])


def test_a_hard_bounce_suppresses_the_address(receiver: Receiver) -> None:
    with posting_to(receiver, bounce_for={ADDRESS: "HardBounce"}) as postmark:
        message_id = send(postmark).json()["MessageID"]
        assert send(postmark).json()["ErrorCode"] == 406
        assert postmark.flush(10)
        assert postmark.letters(ADDRESS) == []
    change = receiver.events[1]
    assert change.pop("ChangedAt").endswith("Z")
    assert change == {
        "RecordType": "SubscriptionChange",
        "MessageID": message_id,
        "ServerID": 23,
        "MessageStream": "outbound",
        "Recipient": ADDRESS,
        "Origin": "Recipient",
        "SuppressSending": True,
        "SuppressionReason": "HardBounce",
        "Tag": "",
        "Metadata": METADATA,
    }


def test_after_a_soft_bounce_mails_go_on(receiver: Receiver) -> None:
    with posting_to(receiver, bounce_for={ADDRESS: "SoftBounce"}) as postmark:
        send(postmark)
        postmark.change(bounce_for={})
        assert send(postmark).status_code == 200
        assert postmark.flush(10)
        assert len(postmark.letters(ADDRESS)) == 1
    assert kinds(receiver) == ["Bounce", "Delivery"]


def test_a_complaint_follows_the_delivery_and_suppresses_the_address(receiver: Receiver) -> None:
    message_id, events = told(receiver, complaint_for={ADDRESS})
    assert kinds(receiver) == ["Delivery", "SpamComplaint", "SubscriptionChange"]
    complaint = events[1]
    assert (complaint["Type"], complaint["TypeCode"], complaint["MessageID"]) == (
        "SpamComplaint",
        512,
        message_id,
    )
    assert (complaint["Email"], complaint["Metadata"], complaint["Inactive"]) == (ADDRESS, METADATA, True)
    assert events[2]["SuppressionReason"] == "SpamComplaint"


def test_an_address_can_be_suppressed_by_hand_and_come_back(receiver: Receiver) -> None:
    with posting_to(receiver) as postmark:
        postmark.suppress(ADDRESS)
        assert send(postmark).json()["ErrorCode"] == 406
        postmark.reactivate(ADDRESS)
        assert send(postmark).json()["ErrorCode"] == 0
        assert postmark.flush(10)
    changes = [event for event in receiver.events if event["RecordType"] == "SubscriptionChange"]
    assert [change["SuppressSending"] for change in changes] == [True, False]
    assert [change["SuppressionReason"] for change in changes] == ["ManualSuppression"] * 2
    assert [(change["MessageID"], change["Metadata"]) for change in changes] == [(None, {})] * 2


def test_each_look_at_a_tracked_mail_is_told(receiver: Receiver) -> None:
    with posting_to(receiver, events=("Open",)) as postmark:
        message_id = send(postmark).json()["MessageID"]
        postmark.open(ADDRESS, message_id, user_agent="Mail/1.0")
        postmark.open(ADDRESS, message_id, user_agent="Mail/1.0")
        assert postmark.flush(10)
    first, second = receiver.events
    assert (first["RecordType"], first["MessageID"], first["Recipient"]) == ("Open", message_id, ADDRESS)
    assert (first["Metadata"], first["UserAgent"], first["Platform"]) == (METADATA, "Mail/1.0", "WebMail")
    assert first["ReceivedAt"].endswith("Z")
    assert (first["FirstOpen"], second["FirstOpen"]) == (True, False)


@pytest.mark.parametrize("changes", [{"TrackOpens": False}, {"TrackOpens": None}, {"HtmlBody": None}])
def test_a_mail_that_is_not_tracked_is_opened_in_silence(receiver: Receiver, changes: dict[str, Any]) -> None:
    with posting_to(receiver) as postmark:
        message_id = send(postmark, mail(**changes)).json()["MessageID"]
        postmark.open(ADDRESS, message_id)
        assert postmark.flush(10)
    assert kinds(receiver) == ["Delivery"]


def test_everybody_who_gets_the_mail_has_events_of_their_own(receiver: Receiver) -> None:
    with posting_to(receiver, bounce_for={OTHER_ADDRESS: "SoftBounce"}) as postmark:
        send(postmark, mail(Cc=OTHER_ADDRESS.upper(), Bcc=ADDRESS))
        assert postmark.flush(10)
    assert kinds(receiver) == ["Delivery", "Bounce"]
    assert receiver.events[1]["Email"] == OTHER_ADDRESS.upper()


def test_the_secret_comes_as_basic_authentication(receiver: Receiver) -> None:
    told(receiver, webhook_secret="postmark:contraseña")
    expected = base64.b64encode("postmark:contraseña".encode()).decode()
    assert receiver.headers[0]["Authorization"] == f"Basic {expected}"
    assert receiver.headers[0]["Content-Type"] == "application/json"


def test_without_a_secret_there_is_no_authentication(receiver: Receiver) -> None:
    told(receiver)
    assert "Authorization" not in receiver.headers[0]


@pytest.mark.parametrize("answer", [500, 503, 408, 429])
def test_what_may_pass_brings_the_webhook_again(answer: int) -> None:
    with receiving([answer, answer]) as receiver, posting_to(receiver) as postmark:
        send(postmark)
        assert postmark.flush(10)
    assert len(receiver.bodies) == 3
    assert len(set(receiver.bodies)) == 1
    assert [headers.get("X-PM-Retries-Remaining") for headers in receiver.headers] == [None, "5", "4"]
    assert len({headers["X-PM-Webhook-Trace-Id"] for headers in receiver.headers}) == 1


@pytest.mark.parametrize("answer", [201, 301, 400, 401, 403, 404])
def test_any_other_answer_ends_it_at_once(answer: int) -> None:
    with receiving([answer]) as receiver, posting_to(receiver) as postmark:
        send(postmark)
        assert not postmark.flush(10)
        assert len(receiver.bodies) == 1
        send(postmark)
        assert postmark.flush(10)


def test_after_six_retries_postmark_gives_up() -> None:
    with receiving([500] * 100) as receiver, posting_to(receiver) as postmark:
        send(postmark)
        assert not postmark.flush(10)
    assert len(receiver.bodies) == 7


def test_a_webhook_waits_for_a_server_that_is_down() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    address = f"http://127.0.0.1:{port}/webhooks/postmark/tracking/"
    with Postmark(PostmarkOptions(callback_url=address, retry_minute_seconds=0.1)) as postmark:
        send(postmark)
        assert not postmark.flush(0.05)
        with receiving(port=port) as receiver:
            assert postmark.flush(10)
    assert kinds(receiver) == ["Delivery"]


def test_repeated_webhooks_are_the_same_bytes(receiver: Receiver) -> None:
    told(receiver, repeat_webhooks=2)
    assert len(receiver.bodies) == 3
    assert len(set(receiver.bodies)) == 1


def test_reordered_events_begin_with_the_last(receiver: Receiver) -> None:
    told(receiver, complaint_for={ADDRESS}, reorder_webhooks=True)
    assert kinds(receiver) == ["SubscriptionChange", "SpamComplaint", "Delivery"]


def test_webhooks_can_come_before_the_answer(receiver: Receiver) -> None:
    with posting_to(receiver, webhooks_before_answer=True) as postmark:
        send(postmark)
        assert kinds(receiver) == ["Delivery"]


def test_what_is_switched_off_does_not_come(receiver: Receiver) -> None:
    told(receiver, complaint_for={ADDRESS}, events=("SpamComplaint",))
    assert kinds(receiver) == ["SpamComplaint"]


def test_without_a_callback_nothing_is_posted() -> None:
    with Postmark() as postmark:
        send(postmark)
        assert postmark.flush(10)
        assert len(postmark.letters(ADDRESS)) == 1
