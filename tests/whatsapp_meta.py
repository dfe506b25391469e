"""A server on loopback that answers as told, and Meta's bodies from tests/payloads."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PAYLOADS = Path(__file__).parent / "payloads"
SECRET = "test-app-secret-not-real"
PHONE_NUMBER_ID = "200000000000002"
BUSINESS_ACCOUNT_ID = "100000000000001"


def payload(name: str) -> bytes:
    """The exact bytes of a file in tests/payloads, named without its ending."""
    return (PAYLOADS / f"{name}.json").read_bytes()


def posted(*changes: dict[str, Any], field: str = "messages") -> bytes:
    """A webhook body with these values, each as a change of our number."""
    metadata = {"display_phone_number": "582120000000", "phone_number_id": PHONE_NUMBER_ID}
    body = [{"field": field, "value": {"metadata": metadata, **value}} for value in changes]
    entry = {"id": BUSINESS_ACCOUNT_ID, "time": 1796126400, "changes": body}
    return json.dumps({"object": "whatsapp_business_account", "entry": [entry]}).encode()


@dataclass(frozen=True)
class Call:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


Respond = Callable[[BaseHTTPRequestHandler], None]


def answer(body: bytes | str, *, status: int = 200, **headers: str) -> Respond:
    """An ordinary answer."""
    content = body.encode() if isinstance(body, str) else body

    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return respond


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    """Take the message and say nothing."""
    handler.close_connection = True


def cut_short(handler: BaseHTTPRequestHandler) -> None:
    """Stop in the middle of the answer."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"messages": [')
    handler.close_connection = True


@dataclass
class Meta:
    """What came in, and what goes out next; the last answer is repeated."""

    url: str = ""
    answers: list[Respond] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def will(self, *answers: Respond) -> None:
        self.answers[:] = answers


@contextmanager
def running_meta() -> Iterator[Meta]:
    meta = Meta()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            content = self.rfile.read(length)
            body = json.loads(content) if content else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            meta.calls.append(Call(self.command, self.path, headers, body))
            respond = meta.answers.pop(0) if len(meta.answers) > 1 else meta.answers[0]
            respond(self)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_args: object) -> None:
            """The tests look at the calls themselves."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 100

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that has gone is what some tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    meta.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield meta
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
