"""The sender's connections: kept for the next message, and trusted no further than is certain."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from tests.whatsapp_meta import Meta, Respond, answer, hang_up, running_meta
from whatsapp import messages
from whatsapp.account import Account
from whatsapp.answers import AnswerLost, NotReached
from whatsapp.sender import Sender

UNTRUSTED = Path(__file__).parent / "untrusted.pem"
HELLO = messages.text_message(to="+584120000001", text="Hola", reference="r1.1")


def taken(wamid: str) -> Respond:
    return answer(f'{{"messages": [{{"id": "{wamid}"}}]}}')


@pytest.fixture
def meta(settings: Settings) -> Iterator[Meta]:
    with running_meta() as meta:
        settings.WHATSAPP_API_URL = meta.url
        yield meta


@asynccontextmanager
async def sending(account: Account | None = None) -> AsyncIterator[Sender]:
    sender = Sender(account or Account.from_settings())
    try:
        yield sender
    finally:
        await sender.close()


def send(account: Account | None = None) -> str:
    """Send one message on a loop of its own; the wamid."""

    async def once() -> str:
        async with sending(account) as sender:
            return (await sender.send(HELLO)).wamid

    return asyncio.run(once())


# --- one connection, several messages ---------------------------------------------


def test_a_connection_is_kept_for_the_next_message(meta: Meta) -> None:
    callers = []

    def note(handler: BaseHTTPRequestHandler) -> None:
        callers.append(handler.client_address)
        taken("wamid.1")(handler)

    meta.will(note)

    async def three() -> None:
        async with sending() as sender:
            for _ in range(3):
                await sender.send(HELLO)

    asyncio.run(three())
    assert len(callers) == 3
    assert len(set(callers)) == 1


def test_each_run_has_connections_of_its_own(meta: Meta) -> None:
    meta.will(taken("wamid.1"))
    threads = [threading.Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert send() == "wamid.1"
    assert len(meta.calls) == 4


def test_a_connection_that_was_closed_meanwhile_is_not_used_again(meta: Meta) -> None:
    closed = threading.Event()

    def leave(handler: BaseHTTPRequestHandler) -> None:
        taken("wamid.1")(handler)
        handler.connection.shutdown(socket.SHUT_RDWR)
        handler.close_connection = True
        closed.set()

    meta.will(leave, taken("wamid.2"))

    async def two() -> list[str]:
        async with sending() as sender:
            first = await sender.send(HELLO)
            await asyncio.to_thread(closed.wait, 10)
            return [first.wamid, (await sender.send(HELLO)).wamid]

    assert asyncio.run(two()) == ["wamid.1", "wamid.2"]


def test_a_kept_connection_that_closes_under_a_message_loses_its_answer_and_repeats_nothing(
    meta: Meta,
) -> None:
    meta.will(taken("wamid.1"), hang_up)

    async def two() -> None:
        async with sending() as sender:
            await sender.send(HELLO)
            with pytest.raises(AnswerLost):
                await sender.send(HELLO)

    asyncio.run(two())
    assert len(meta.calls) == 2


def test_what_comes_unasked_is_not_taken_for_the_next_answer(meta: Meta) -> None:
    first_is_read, more_is_said = threading.Event(), threading.Event()

    def say_more(handler: BaseHTTPRequestHandler) -> None:
        taken("wamid.1")(handler)
        first_is_read.wait(10)
        taken("wamid.unasked")(handler)
        more_is_said.set()

    meta.will(say_more, taken("wamid.2"))

    async def two() -> list[str]:
        async with sending() as sender:
            first = await sender.send(HELLO)
            first_is_read.set()
            await asyncio.to_thread(more_is_said.wait, 10)
            return [first.wamid, (await sender.send(HELLO)).wamid]

    assert asyncio.run(two()) == ["wamid.1", "wamid.2"]


# --- answers that are no HTTP, or too much of it ---------------------------------


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 20",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 5_000 + b"\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nabc",
    ],
    ids=lambda said: repr(said[:60]),
)
def test_what_is_no_answer_at_all_is_lost(meta: Meta, said: bytes) -> None:
    def say(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(said)
        handler.close_connection = True

    meta.will(say)
    with pytest.raises(AnswerLost):
        send()
    assert len(meta.calls) == 1


def test_an_answer_is_measured_unpacked_and_lost_where_it_is_too_large(meta: Meta) -> None:
    receipt = b'{"messages": [{"id": "wamid.1"}]}'
    meta.will(answer(gzip.compress(receipt), Content_Encoding="gzip"))
    assert send() == "wamid.1"
    meta.will(answer(gzip.compress(receipt + b" " * 64 * 1024 * 1024), Content_Encoding="gzip"))
    with pytest.raises(AnswerLost):
        send()


@pytest.mark.parametrize(
    ("before", "drop"),
    [
        (b"", b""),
        (b"HTTP/1.1 200 OK\r\nX: ", b"y"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", b"y"),
    ],
    ids=["nothing", "headers", "body"],
)
def test_an_answer_is_waited_for_within_bounds_however_it_drips(
    meta: Meta, before: bytes, drop: bytes
) -> None:
    given_up = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        handler.wfile.write(before)
        # For much longer than the whole may take, and never silent for long.
        for _ in range(1000):
            if given_up.wait(0.01):
                return
            handler.wfile.write(drop)

    meta.will(drip)
    with pytest.raises(AnswerLost, match="Timeout"):
        send(replace(Account.from_settings(), connect_timeout=0.5, read_timeout=0.2))
    given_up.set()


# --- connections that never came to be ------------------------------------------


def test_a_certificate_that_nobody_vouches_for_stops_it_before_anything_is_sent() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(UNTRUSTED)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        heard: list[object] = []

        def serve() -> None:
            connection, _ = listening.accept()
            try:
                with context.wrap_socket(connection, server_side=True) as safe:
                    heard.append(safe.recv(100))
            except OSError as refused:
                heard.append(refused)

        server = threading.Thread(target=serve)
        server.start()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(NotReached, match="ConnectError"):
            send(replace(Account.from_settings(), url=url))
        server.join(10)
    # Either end may see the other's refusal first; a message is never among it.
    assert all(isinstance(item, OSError) or item == b"" for item in heard)


def test_a_server_that_speaks_no_tls_gets_nothing(meta: Meta) -> None:
    with pytest.raises(NotReached):
        send(replace(Account.from_settings(), url=meta.url.replace("http://", "https://")))
    assert meta.calls == []


def test_a_server_that_never_ends_its_greeting_gets_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(NotReached, match="Timeout"):
            send(replace(Account.from_settings(), url=url, connect_timeout=0.2))


@pytest.mark.parametrize("url", ["http://127.1", "ftp://127.0.0.1", "http://"])
def test_an_address_that_is_none_gets_nothing(url: str) -> None:
    with pytest.raises(NotReached):
        send(replace(Account.from_settings(), url=url))
