"""One message, one answer: what each kind of answer of Meta's comes to."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from types import TracebackType

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django.fixtures import Settings

from tests.factories import MARK, make_phone
from tests.whatsapp_meta import Meta, Respond, answer, cut_short, hang_up, payload, running_meta
from whatsapp import messages
from whatsapp.account import Account
from whatsapp.answers import (
    Accepted,
    Answer,
    AnswerLost,
    ClientError,
    GraphError,
    NotReached,
    read_accepted,
    read_retry_after,
)
from whatsapp.errors import Next
from whatsapp.sender import Sender

TOKEN = "test-access-token-not-real"


@pytest.fixture
def meta(settings: Settings) -> Iterator[Meta]:
    with running_meta() as meta:
        settings.WHATSAPP_API_URL = meta.url
        yield meta


REMINDER = messages.template_message(
    to="+584120000001",
    name="appointment_reminder_24h",
    language="es",
    parameters={"nombre": "Ana"},
    payloads=["CONFIRM_1"],
    reference="d1.1",
)


def send(account: Account | None = None, *, body: messages.Body = REMINDER, times: int = 1) -> Accepted:
    """Send one after the other on a loop of their own; the last answer."""

    async def one_after_the_other() -> Accepted:
        sender = Sender(account or Account.from_settings())
        try:
            for _ in range(times - 1):
                await sender.send(body)
            return await sender.send(body)
        finally:
            await sender.close()

    return asyncio.run(one_after_the_other())


def refused(meta: Meta, *answers: Respond) -> GraphError:
    meta.will(*answers)
    with pytest.raises(GraphError) as caught:
        send()
    return caught.value


# --- what goes out ------------------------------------------------------------


def test_a_message_is_posted_to_our_number_with_our_token(meta: Meta) -> None:
    meta.will(answer(payload("api-01-send-ok")))
    send()
    (call,) = meta.calls
    assert (call.method, call.path) == ("POST", "/v26.0/200000000000002/messages")
    assert call.headers["authorization"] == f"Bearer {TOKEN}"
    assert call.headers["content-type"] == "application/json"
    assert call.body["to"] == "+584120000001"
    assert call.body["biz_opaque_callback_data"] == "d1.1"


def test_a_cookie_of_metas_is_not_kept(meta: Meta) -> None:
    meta.will(answer(payload("api-01-send-ok"), Set_Cookie="a=b"))
    send(times=2)
    assert "cookie" not in meta.calls[1].headers


def test_neither_a_netrc_nor_a_proxy_of_the_machine_comes_between(
    meta: Meta, tmp_path: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    meta.will(answer(payload("api-01-send-ok")))
    send()
    assert meta.calls[0].headers["authorization"] == f"Bearer {TOKEN}"


def test_many_are_in_the_air_at_once(meta: Meta) -> None:
    together = threading.Barrier(20)

    def wait_for_all(handler: BaseHTTPRequestHandler) -> None:
        together.wait(10)
        answer(payload("api-01-send-ok"))(handler)

    meta.will(wait_for_all)

    async def send_all() -> list[Accepted]:
        sender = Sender(Account.from_settings())
        try:
            return await asyncio.gather(*(sender.send(REMINDER) for _ in range(20)))
        finally:
            await sender.close()

    assert len(asyncio.run(send_all())) == len(meta.calls) == 20


# --- taken --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        (
            "api-01-send-ok",
            Accepted(
                wamid="wamid.TESTOUT000000000000000000001AA==",
                wa_id="584120000001",
                message_status="accepted",
            ),
        ),
        (
            "api-02-send-ok-held",
            Accepted(
                wamid="wamid.TESTOUT000000000000000000002AA==",
                wa_id="584240000002",
                message_status="held_for_quality_assessment",
            ),
        ),
        (
            "api-03-send-ok-bsuid",
            Accepted(wamid="wamid.TESTOUT000000000000000000006AA==", user_id="VE.100000000000000006"),
        ),
        (
            "api-05-send-ok-wa-id-differs",
            Accepted(
                wamid="wamid.TESTOUT000000000000000000024AA==",
                wa_id="541100000000",
                message_status="accepted",
            ),
        ),
    ],
)
def test_a_wamid_means_that_meta_took_it(meta: Meta, name: str, accepted: Accepted) -> None:
    meta.will(answer(payload(name)))
    assert send() == accepted


@pytest.mark.parametrize("contacts", ["", ', "contacts": []', ', "contacts": ["x"]', ', "contacts": null'])
def test_a_wamid_is_enough(meta: Meta, contacts: str) -> None:
    meta.will(answer(f'{{"messages": [{{"id": "wamid.1"}}]{contacts}}}'))
    assert send() == Accepted(wamid="wamid.1")


# --- refused ------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 429, 500, 503])
@pytest.mark.parametrize(
    ("name", "code", "following"),
    [
        ("api-10-err-190-expired", 190, Next.CHANNEL),
        ("api-11-err-131056-pair", 131056, Next.PACE),
        ("api-12-err-130429-throughput", 130429, Next.PACE),
        ("api-13-err-132001-template", 132001, Next.TEMPLATE),
        ("api-14-err-132018-params", 132018, Next.BUG),
        ("api-17-err-131016-transient", 131016, Next.RETRY),
    ],
)
def test_a_readable_code_is_a_refusal_whatever_the_http_status(
    meta: Meta, status: int, name: str, code: int, following: Next
) -> None:
    error = refused(meta, answer(payload(name), status=status))
    assert (error.code, error.verdict.next, error.http_status) == (code, following, status)


@pytest.mark.parametrize(
    ("body", "code", "details"),
    [
        ('{"error": {"code": "131026"}}', 131026, ""),
        ('{"error": {"code": 131009, "error_data": "only text"}}', 131009, "only text"),
        ('{"error": {"code": 131009, "error_data": {"details": "why"}}}', 131009, "why"),
        ('{"error": {"code": 131009, "error_data": [1]}}', 131009, ""),
        ('{"error": {"code": 0}}', 0, ""),
    ],
)
def test_a_refusal_may_be_written_in_several_ways(meta: Meta, body: str, code: int, details: str) -> None:
    error = refused(meta, answer(body, status=400))
    assert (error.code, error.details) == (code, details)


def test_a_number_abroad_is_judged_as_such(meta: Meta) -> None:
    meta.will(answer('{"error": {"code": 130497}}', status=400))
    with pytest.raises(GraphError) as caught:
        send(body=messages.text_message(to="+5491100000000", text="Hola", reference="r1.1"))
    assert caught.value.verdict.next is Next.NEVER
    assert refused(meta, answer('{"error": {"code": 130497}}', status=400)).verdict.next is Next.CHANNEL


def test_the_error_names_codes_and_never_what_was_sent(meta: Meta) -> None:
    phone = make_phone()
    body = {
        "code": 131026,
        "message": f"{MARK} {phone}",
        "error_data": {"details": phone},
        "fbtrace_id": "A1",
    }
    error = refused(meta, answer(json.dumps({"error": body}), status=400))
    assert str(error) == "code=131026 subcode=None http=400 trace=A1"
    assert error.details == phone


def test_too_many_requests_without_a_code_only_has_to_wait(meta: Meta) -> None:
    error = refused(meta, answer("slow down", status=429, Retry_After="7"))
    assert (error.code, error.verdict.next, error.retry_after) == (None, Next.PACE, timedelta(seconds=7))


def test_a_wait_that_meta_asks_for_is_carried(meta: Meta) -> None:
    error = refused(meta, answer(payload("api-12-err-130429-throughput"), status=429, Retry_After="30"))
    assert error.retry_after == timedelta(seconds=30)


@pytest.mark.parametrize(
    ("asked", "wait"),
    [
        ("0", timedelta(0)),
        ("12", timedelta(seconds=12)),
        ("315360000", timedelta(hours=1)),
        ("Tue, 01 Dec 2026 12:00:30 GMT", timedelta(seconds=30)),
        ("Tue, 01 Dec 2036 12:00:00 GMT", timedelta(hours=1)),
        ("Tue, 01 Dec 2026 11:00:00 GMT", timedelta(0)),
        ("", None),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("9" * 5000, None),
    ],
)
def test_a_wait_is_read_within_bounds(asked: str, wait: timedelta | None) -> None:
    headers = {"retry-after": asked, "date": "Tue, 01 Dec 2026 12:00:00 GMT"}
    assert read_retry_after(headers) == wait


def test_a_date_to_wait_for_needs_the_date_of_the_answer() -> None:
    assert read_retry_after({"retry-after": "Tue, 01 Dec 2026 12:00:30 GMT"}) is None
    assert read_retry_after({}) is None


# --- lost ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "respond",
    [
        answer("<html>Bad gateway</html>", status=502),
        answer("<html>Welcome</html>", status=200),
        answer("<html>Not here</html>", status=404),
        answer("", status=500),
        answer("", status=200),
        answer('{"error": {"message": "no code"}}', status=500),
        answer('{"error": "words"}', status=500),
        answer('{"error": {"code": true}}', status=500),
        answer('{"error": {"code": null}}', status=400),
        answer("{}", status=200),
        answer("[]", status=200),
        answer("null", status=200),
        answer('{"messages": []}', status=200),
        answer('{"messages": [{"id": null}]}', status=200),
        answer('{"messages": [{"id": ""}]}', status=200),
        answer('{"messages": [{"id": "wamid.1"}]}', status=500),
        answer(b"\xff\xfe\x00", status=200),
        answer("[" * 100_000, status=200),
        answer('{"messages": [{"id": "wamid.1"', status=200),
        answer("x" * (5 * 1024 * 1024), status=200),
        answer("not gzip", status=200, Content_Encoding="gzip"),
        hang_up,
        cut_short,
    ],
)
def test_an_answer_that_tells_nothing_is_lost_and_not_repeated(meta: Meta, respond: Respond) -> None:
    meta.will(respond)
    with pytest.raises(AnswerLost):
        send()
    assert len(meta.calls) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(meta: Meta, status: int) -> None:
    meta.will(answer("", status=status, Location=f"{meta.url}/elsewhere"))
    with pytest.raises(AnswerLost):
        send()
    assert len(meta.calls) == 1


# --- not reached --------------------------------------------------------------


def test_a_refused_connection_is_certain_not_to_have_sent() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(NotReached):
            send(replace(Account.from_settings(), url=url))


def test_an_unknown_host_is_certain_not_to_have_sent() -> None:
    with pytest.raises(NotReached):
        send(replace(Account.from_settings(), url="http://nowhere.invalid"))


def test_a_host_that_takes_no_connection_is_certain_not_to_have_sent() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        with socket.create_connection(address):
            account = replace(
                Account.from_settings(), url=f"http://127.0.0.1:{address[1]}", connect_timeout=0.05
            )
            with pytest.raises(NotReached):
                send(account)


# --- secrets ------------------------------------------------------------------


def shown_by(error: BaseException | None) -> Iterator[str]:
    """Whatever a crash report would print of an error: words, and the variables of its frames."""
    while error is not None:
        yield repr(error)
        frame: TracebackType | None = error.__traceback__
        while frame:
            if "/tests/" not in frame.tb_frame.f_code.co_filename:
                yield repr(frame.tb_frame.f_locals)
            frame = frame.tb_next
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    "respond", [hang_up, cut_short, answer("<html>"), answer(payload("api-10-err-190-expired"))]
)
def test_the_token_stands_in_no_error_and_in_no_variable_of_its_frames(meta: Meta, respond: Respond) -> None:
    meta.will(respond)
    with pytest.raises(ClientError) as caught:
        send()
    assert TOKEN not in "".join(shown_by(caught.value))


def test_the_account_does_not_show_its_token() -> None:
    account = Account.from_settings()
    assert TOKEN not in repr(account)
    assert TOKEN not in repr(vars(account))


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "ñandú"])
def test_a_token_that_cannot_be_sent_is_refused_without_showing_it(settings: Settings, token: str) -> None:
    settings.WHATSAPP_ACCESS_TOKEN = token
    with pytest.raises(ImproperlyConfigured, match="WHATSAPP_ACCESS_TOKEN") as caught:
        Account.from_settings()
    assert not token or token not in str(caught.value)


def test_an_answer_is_read_without_any_http_library() -> None:
    read = read_accepted(Answer(status=200, body=payload("api-01-send-ok")))
    assert read.wamid == "wamid.TESTOUT000000000000000000001AA=="
