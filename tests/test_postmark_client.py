"""One mail over Postmark's API: what goes over the wire, and what each answer means."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings

from amedi.sandbox.postmark import Postmark, PostmarkOptions
from reminders.channels.base import AnswerLost, ChannelError, Throttled, Undeliverable
from reminders.channels.email import EmailChannel
from reminders.models import RetiredContact
from reminders.retired import DeadAddress
from tests.mail_values import ADDRESS, make_entry, make_message
from tests.raw_server import RawServer, answer, raw_server

TO = ADDRESS.lower()


@pytest.fixture
def api(settings: Settings) -> Iterator[Postmark]:
    """Postmark's stand-in, whose webhooks go nowhere."""
    settings.DEFAULT_FROM_EMAIL = "Consultorio Ejemplo <citas@consultorio.example>"
    settings.POSTMARK_SERVER_TOKEN = "test-server-token-not-real"
    with Postmark(PostmarkOptions(server_token=settings.POSTMARK_SERVER_TOKEN)) as running:
        settings.POSTMARK_API_URL = running.url
        yield running


@pytest.fixture
def raw(settings: Settings) -> Iterator[RawServer]:
    """A server in the place of Postmark that answers whatever a test wants."""
    settings.POSTMARK_SERVER_TOKEN = "test-server-token-not-real"
    with raw_server() as running:
        settings.POSTMARK_API_URL = running.url
        yield running


def send(message=None, *, channel=None):
    """Through the channel, as the dispatcher does it."""
    channel = channel or EmailChannel()
    message = message or make_message()
    try:
        return channel.call(message, channel.payload(message))
    finally:
        asyncio.run(channel.close())


def refusal(message=None) -> ChannelError:
    with pytest.raises(ChannelError) as caught:
        send(message)
    return caught.value


# --- What goes over the wire ----------------------------------------------------------


def test_what_the_ledger_holds_is_what_leaves(api):
    channel = EmailChannel()
    message = make_message()
    payload = channel.payload(message)
    receipt = channel.call(message, payload)
    [accepted] = api.accepted
    assert receipt.message_id == accepted.message_id
    assert not receipt.is_delivered
    mail = accepted.mail
    assert (mail.sender.name, mail.sender.address) == ("Consultorio Ejemplo", "citas@consultorio.example")
    assert mail.recipients == (ADDRESS,)
    assert (mail.subject, mail.text, mail.html) == (payload["subject"], payload["text"], payload["html"])
    assert dict(mail.headers) == payload["headers"]
    asyncio.run(channel.close())


def test_delivery_and_attempt_go_along_as_metadata(api):
    send(make_message(reference="d:0c9a5b1e-4c53-4c35-9d0c-111111111111:12"))
    send(make_message(reference="r:0c9a5b1e-4c53-4c35-9d0c-222222222222:1"))
    assert [dict(accepted.metadata) for accepted in api.accepted] == [
        {"delivery": "0c9a5b1e-4c53-4c35-9d0c-111111111111", "attempt": "12"},
        {"reply": "0c9a5b1e-4c53-4c35-9d0c-222222222222", "attempt": "1"},
    ]


def test_the_calendar_file_says_what_it_is_for(api):
    send(make_message(entry=make_entry()))
    [attachment] = api.accepted[0].mail.attachments
    assert attachment.name == "cita.ics"
    assert set(attachment.content_type.replace('"', "").split("; ")) == {
        "text/calendar",
        "charset=utf-8",
        "method=PUBLISH",
    }
    assert attachment.content.startswith(b"BEGIN:VCALENDAR\r\n")


def test_openings_are_told_and_links_are_left_alone(api):
    send()
    [accepted] = api.accepted
    assert accepted.body["TrackOpens"] is True
    assert accepted.body["TrackLinks"] == "None"
    assert "https://citas.example.org/cita/visit-token/" in accepted.mail.html


def test_a_connection_is_kept_for_the_next_mail(raw):
    raw.answer = answer('{"ErrorCode": 0, "Message": "OK", "MessageID": "m-1"}')
    channel = EmailChannel()
    for _ in range(3):
        message = make_message()
        assert channel.call(message, channel.payload(message)).message_id == "m-1"
    asyncio.run(channel.close())
    assert (raw.requests, raw.connections) == (3, 1)


def test_mails_leave_at_the_same_time(raw):
    raw.answer = answer('{"ErrorCode": 0, "Message": "OK", "MessageID": "m-1"}')
    # Nobody is answered before all five are there.
    raw.gate = threading.Barrier(5)
    channel = EmailChannel()
    messages = [make_message() for _ in range(5)]
    with ThreadPoolExecutor(5) as pool:
        receipts = list(pool.map(lambda message: channel.call(message, channel.payload(message)), messages))
    assert [receipt.message_id for receipt in receipts] == ["m-1"] * 5
    assert raw.connections == 5
    asyncio.run(channel.close())


# --- What an answer means -------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "means", "tries"),
    [
        (10, ChannelError, None),
        (100, ChannelError, None),
        (400, ChannelError, None),
        (405, ChannelError, None),
        (411, Undeliverable, None),
        (413, ChannelError, None),
        (429, Throttled, None),
        (500, ChannelError, None),
        (701, ChannelError, 2),
        (1235, ChannelError, None),
    ],
)
def test_a_code_says_what_comes_next(api, code, means, tries):
    api.change(error_for={TO: code})
    error = refusal()
    assert type(error) is means
    assert (error.code, error.tries) == (str(code), tries)
    assert not api.accepted


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("code", "why"), [(406, "inactive"), (300, "invalid")])
def test_an_address_that_postmark_does_not_write_to_is_retired(api, code, why):
    api.change(error_for={TO: code})
    error = refusal()
    assert isinstance(error, DeadAddress)
    [retired] = RetiredContact.objects.all()
    assert (retired.address, retired.channel, retired.why) == (TO, "email", why)


@pytest.mark.parametrize(
    ("status", "means"),
    [
        (401, ChannelError),
        (403, ChannelError),
        (404, ChannelError),
        (413, Undeliverable),
        (429, Throttled),
        (408, AnswerLost),
        (500, AnswerLost),
        (502, AnswerLost),
        (503, AnswerLost),
    ],
)
def test_a_page_in_place_of_an_answer_is_lost_unless_it_refuses(api, status, means):
    api.change(status_for={TO: status})
    assert type(refusal()) is means


@pytest.mark.parametrize("where", ["before_status_line", "in_status_line", "in_body", "server_error"])
def test_a_mail_that_was_taken_without_an_answer_is_lost_and_not_refused(api, where):
    api.change(lose_answer_for=[TO], lose_answer=where)
    assert isinstance(refusal(), AnswerLost)
    assert len(api.accepted) == 1


@pytest.mark.parametrize(("asked", "seconds"), [("7", 7), ("99999", 3600)])
def test_a_wait_is_heard_up_to_an_hour(raw, asked, seconds):
    body = '{"ErrorCode": 429, "Message": "Rate limit exceeded."}'
    raw.answer = answer(body, status="429 Too Many Requests", more=f"Retry-After: {asked}\r\n")
    assert refusal().retry_after == timedelta(seconds=seconds)


def test_nobody_listening_is_a_refusal(api, settings):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings.POSTMARK_API_URL = f"http://127.0.0.1:{port}"
    error = refusal()
    assert (type(error), error.code) == (ChannelError, "not_reached")


def test_a_silent_server_is_a_lost_answer(raw, settings):
    settings.EMAIL_READ_TIMEOUT_SECONDS = 0.2
    assert isinstance(refusal(), AnswerLost)
    assert raw.requests == 1


def test_an_answer_that_never_ends_is_lost(raw, settings):
    settings.EMAIL_READ_TIMEOUT_SECONDS = 0.3
    raw.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n"
    raw.drips = True
    assert isinstance(refusal(), AnswerLost)


@pytest.mark.parametrize(
    "body",
    [
        "not json",
        "[]",
        '"text"',
        "{}",
        '{"ErrorCode": 0, "Message": "OK"}',
        '{"ErrorCode": 0, "Message": "OK", "MessageID": ""}',
    ],
)
def test_a_success_that_names_no_mail_is_a_lost_answer(raw, body):
    raw.answer = answer(body)
    assert isinstance(refusal(), AnswerLost)


def test_a_redirect_is_not_followed(api, raw):
    raw.answer = answer("", status="302 Found", more=f"Location: {api.url}/email\r\n")
    error = refusal()
    assert (type(error), error.code) == (ChannelError, "http_302")
    assert raw.requests == 1
    assert not api.accepted


def test_no_proxy_of_the_machine_sees_the_token(raw, api, monkeypatch):
    monkeypatch.setenv("http_proxy", raw.url)
    send()
    assert raw.requests == 0


def test_a_token_that_is_no_header_is_a_refusal_and_is_repeated_nowhere(
    api, settings, no_patient_in_the_logs
):
    settings.POSTMARK_SERVER_TOKEN = "two\nlines"
    error = refusal()
    assert (type(error), error.code) == (ChannelError, "not_reached")
    assert "two" not in repr(error)
    assert error.__cause__ is None
    assert error.__context__ is None


# --- Asking about a lost answer -------------------------------------------------------


def look_up(reference: str):
    channel = EmailChannel()

    async def ask():
        try:
            return await channel.look_up(reference)
        finally:
            await channel.close()

    return asyncio.run(ask())


def test_a_mail_whose_answer_was_lost_is_found_by_its_reference(api):
    message = make_message()
    api.change(lose_answer_for=[TO])
    refusal(message)
    assert EmailChannel().can_look_up
    assert look_up(message.reference).message_id == api.accepted[0].message_id


def test_another_attempt_of_the_same_delivery_is_another_mail(api):
    row = "0c9a5b1e-4c53-4c35-9d0c-111111111111"
    send(make_message(reference=f"d:{row}:1"))
    assert look_up(f"d:{row}:1") is not None
    for other in (f"d:{row}:2", f"d:{row}:11", f"r:{row}:1"):
        assert look_up(other) is None


def test_a_mail_that_is_not_yet_in_the_index_is_not_known(api):
    api.change(indexing_delay_seconds=60)
    message = make_message()
    send(message)
    assert look_up(message.reference) is None


@pytest.mark.parametrize(
    "said",
    [answer("<html>", status="503 Unavailable"), answer("[]"), answer("{}"), answer('{"Messages": 1}')],
)
def test_a_search_that_fails_tells_nothing(raw, said):
    raw.answer = said
    with pytest.raises(ChannelError):
        look_up(make_message().reference)


def test_a_wrong_token_finds_nothing_out(api, settings):
    settings.POSTMARK_SERVER_TOKEN = "wrong"
    with pytest.raises(ChannelError, match="http_401"):
        look_up(make_message().reference)


def test_without_an_account_there_is_nobody_to_ask(settings):
    settings.POSTMARK_SERVER_TOKEN = ""
    assert not EmailChannel().can_look_up
    assert look_up(make_message().reference) is None
