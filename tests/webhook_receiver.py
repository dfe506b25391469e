"""A clinic's web server as the providers see it: it keeps what comes, and answers as told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class Receiver:
    """Answers each POST with the next of ``answers``, and with 200 when they are used up."""

    def __init__(self, answers: Iterable[int] = (), *, verify_token: str = "") -> None:
        self.answers = list(answers)
        self.verify_token = verify_token
        self.bodies: list[bytes] = []
        self.headers: list[Mapping[str, str]] = []
        self.handshakes: list[dict[str, list[str]]] = []
        self.url = ""
        self._lock = threading.Lock()

    def take(self, body: bytes, headers: Mapping[str, str]) -> int:
        with self._lock:
            self.bodies.append(body)
            self.headers.append(headers)
            return self.answers.pop(0) if self.answers else 200

    @property
    def signatures(self) -> list[str]:
        """Meta's, one of each post."""
        with self._lock:
            return [headers.get("X-Hub-Signature-256", "") for headers in self.headers]

    @property
    def events(self) -> list[dict[str, Any]]:
        """Postmark's: each post is one."""
        with self._lock:
            return [json.loads(body) for body in self.bodies]

    @property
    def values(self) -> list[dict[str, Any]]:
        """What each post said, without its envelope."""
        with self._lock:
            return [json.loads(body)["entry"][0]["changes"][0]["value"] for body in self.bodies]

    @property
    def statuses(self) -> list[dict[str, Any]]:
        return [status for value in self.values for status in value.get("statuses", [])]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [message for value in self.values for message in value.get("messages", [])]


@contextmanager
def receiving(answers: Iterable[int] = (), *, verify_token: str = "", port: int = 0) -> Iterator[Receiver]:
    receiver = Receiver(answers, verify_token=verify_token)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.finish_with(receiver.take(body, self.headers))

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            receiver.handshakes.append(query)
            if query["hub.verify_token"] == [receiver.verify_token]:
                self.finish_with(200, query["hub.challenge"][0].encode())
            else:
                self.finish_with(403)

        def finish_with(self, status: int, content: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/webhooks/whatsapp/"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
