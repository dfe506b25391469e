"""What a send costs, by HTTP client: sends a second, and the CPU of each.

    .venv/bin/python -m bench.http_clients

Each client makes JSON of a real template message, writes it to bench.endpoint in
another process and reads the receipt: 100 at once, on connections that stay open.
pycurl takes part where it is installed. Figures: docs/decisions/0016-the-sending-client.md.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from io import BytesIO

import aiohttp
import orjson
import requests
import uvloop

from whatsapp.account import Account
from whatsapp.answers import Answer, read_accepted
from whatsapp.messages import template_message
from whatsapp.sender import Sender

IN_FLIGHT = 100
SENDS = 4000
ROUNDS = 3
BODY = template_message(
    to="+584120000001",
    name="appointment_reminder_24h",
    language="es",
    parameters={
        "nombre": "Ana",
        "doctor": "Dra. Carmen Ruiz",
        "fecha": "mañana, jueves 17 de septiembre",
        "hora": "10:00 a. m.",
        "consultorio": "Torre Médica, piso 3",
    },
    payloads=[f"{word}_0190a1b2-0000-7000-8000-000000000001_1:{'x' * 43}" for word in "ABC"],
    reference="d:0190a1b2-0000-7000-8000-000000000002:1",
)


def requests_in_threads(account: Account) -> None:
    """A thread and a Session for each call in the air."""
    own = threading.local()

    def send(_: int) -> None:
        if not hasattr(own, "session"):
            own.session = requests.Session()
            own.session.trust_env = False
        with own.session.post(
            f"{account.url}/{account.phone_number_id}/messages",
            data=orjson.dumps(BODY),
            headers={"Authorization": account.authorization, "Content-Type": "application/json"},
            timeout=(account.connect_timeout, account.read_timeout),
            allow_redirects=False,
        ) as response:
            read_accepted(Answer(status=response.status_code, body=response.content))

    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        for _ in pool.map(send, range(SENDS)):
            pass


async def on_aiohttp(account: Account) -> None:
    """A session on an event loop."""
    left = iter(range(SENDS))
    url = f"{account.url}/{account.phone_number_id}/messages"
    headers = {"Authorization": account.authorization, "Content-Type": "application/json"}

    async def keep_sending(session: aiohttp.ClientSession) -> None:
        for _ in left:
            async with session.post(url, data=orjson.dumps(BODY), allow_redirects=False) as response:
                read_accepted(Answer(status=response.status, body=await response.read()))

    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), headers=headers, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        await asyncio.gather(*(keep_sending(session) for _ in range(IN_FLIGHT)))


async def sender(account: Account) -> None:
    """The product's own, which is reqwest."""
    messages = Sender(account)
    left = iter(range(SENDS))

    async def keep_sending() -> None:
        for _ in left:
            await messages.send(BODY)

    await asyncio.gather(*(keep_sending() for _ in range(IN_FLIGHT)))
    await messages.close()


def pycurl_multi(account: Account) -> None:
    """One thread, which asks libcurl again and again what has ended."""
    import pycurl

    multi, left = pycurl.CurlMulti(), iter(range(SENDS))
    answers: dict[pycurl.Curl, BytesIO] = {}

    def send_next(handle: pycurl.Curl) -> None:
        if next(left, None) is None:
            answers.pop(handle, None)
            return
        answers[handle] = BytesIO()
        handle.setopt(pycurl.POSTFIELDS, orjson.dumps(BODY))
        handle.setopt(pycurl.WRITEDATA, answers[handle])
        multi.add_handle(handle)

    for _ in range(IN_FLIGHT):
        handle = pycurl.Curl()
        handle.setopt(pycurl.URL, f"{account.url}/{account.phone_number_id}/messages")
        headers = [f"Authorization: {account.authorization}", "Content-Type: application/json"]
        handle.setopt(pycurl.HTTPHEADER, headers)
        send_next(handle)
    while answers:
        multi.perform()
        _, done, failed = multi.info_read()
        assert not failed, failed
        for handle in done:
            multi.remove_handle(handle)
            status = handle.getinfo(pycurl.RESPONSE_CODE)
            read_accepted(Answer(status=status, body=answers[handle].getvalue()))
            send_next(handle)
        if not done:
            multi.select(1.0)


CLIENTS: dict[str, Callable[[Account], None]] = {
    "requests in threads": requests_in_threads,
    "aiohttp": lambda account: asyncio.run(on_aiohttp(account)),
    "aiohttp on uvloop": lambda account: uvloop.run(on_aiohttp(account)),
    "reqwest": lambda account: asyncio.run(sender(account)),
}
if find_spec("pycurl"):
    CLIENTS["pycurl multi"] = pycurl_multi


def measure(client: Callable[[Account], None], latency: float) -> tuple[float, float]:
    """Sends a second, and this process's CPU seconds for each."""
    with provider(latency) as url:
        account = Account(
            url=url,
            phone_number_id="200000000000002",
            business_account_id="",
            authorization="Bearer " + "x" * 200,
            connect_timeout=5,
            read_timeout=20,
        )
        start, cpu = time.perf_counter(), time.process_time()
        client(account)
        return SENDS / (time.perf_counter() - start), (time.process_time() - cpu) / SENDS


@contextmanager
def provider(latency: float) -> Iterator[str]:
    """The address of an endpoint that answers after so many seconds."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", "bench.endpoint", str(port), str(latency)])
    try:
        while not is_listening(port):
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/v26.0"
    finally:
        process.terminate()
        process.wait()


def is_listening(port: int) -> bool:
    """Whether somebody takes connections there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def main() -> None:
    """Print the best round of each client."""
    print(f"{'client':<22}{'answer after':>14}{'sends/s':>10}{'CPU µs each':>14}")
    for latency in (0.0, 0.1):
        for name, client in CLIENTS.items():
            rounds = [measure(client, latency) for _ in range(ROUNDS)]
            rate, cpu = max(rate for rate, _ in rounds), min(cpu for _, cpu in rounds)
            print(f"{name:<22}{latency * 1000:>11.0f} ms{rate:>10,.0f}{cpu * 1e6:>14.0f}", flush=True)


if __name__ == "__main__":
    main()
