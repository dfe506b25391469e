"""One HTTP request to a stand-in: how its body is read, and how an answer is written or broken off."""

from __future__ import annotations

import json
import socket
from abc import abstractmethod
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import ClassVar

from amedi.sandbox.json_shapes import JsonObject

JSON = "application/json; charset=UTF-8"
HTML = "text/html; charset=utf-8"
_PIECE = 64 * 1024


class BadRequestError(Exception):
    """A request to a page or to the switches that cannot be read; says why."""


class StandInHandler(BaseHTTPRequestHandler):
    """What the handlers of all stand-ins do alike."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout: ClassVar[float] = 60
    page_policy: ClassVar[str]
    """The Content-Security-Policy of every answer that brings none of its own."""
    body: bytes

    @abstractmethod
    def route(self, method: str) -> None:
        """Answer the request."""

    def do_GET(self) -> None:
        """Pages, lists and counts."""
        self.route("GET")

    def do_POST(self) -> None:
        """What the clinic sends, and what the patient does."""
        self.route("POST")

    def do_PATCH(self) -> None:
        """The switches."""
        self.route("PATCH")

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Addresses hold what is the patients': no access log."""

    def read_body(self, most: int) -> bool:
        """Read the body; False, with an empty one, where it has more than ``most`` bytes."""
        length = self.headers.get("Content-Length", "0")
        self.body = b""
        if length.isdigit() and int(length) <= most:
            self.body = self.rfile.read(int(length))
            return True
        self.close_connection = True
        # Whoever closes on unread bytes resets the connection, and the answer is lost.
        left = int(length) if length.isdigit() else 0
        while left > 0 and (piece := self.rfile.read(min(left, _PIECE))):
            left -= len(piece)
        return False

    def read_json(self) -> JsonObject:
        """The body as a JSON object. Raises BadRequestError."""
        # A page of another site cannot send this type without asking first.
        if self.headers.get_content_type() != "application/json":
            raise BadRequestError("The content type must be application/json.")
        try:
            body = json.loads(self.body)
        except ValueError:
            raise BadRequestError("The body is not JSON.") from None
        if not isinstance(body, dict):
            raise BadRequestError("The body must be a JSON object.")
        return body

    def answer(self, status: int, body: object) -> None:
        """Answer with JSON."""
        self.send(status, JSON, json.dumps(body).encode())

    def send(
        self, status: int, content_type: str, content: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer with these bytes; ``headers`` come on top of the usual ones, or in their place."""
        self.wfile.write(self._head(status, content_type, content, headers or {}) + content)

    def answer_in_part(self, where: str, body: object) -> None:
        """Begin to answer with JSON, and cut the connection; ``where`` is one of options.LOST_ANSWERS."""
        content = json.dumps(body).encode()
        head = self._head(200, JSON, content, {})
        part = {
            "before_status_line": b"",
            "in_status_line": head[:10],
            "in_body": head + content[: len(content) // 2],
        }[where]
        self.wfile.write(part)
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def _head(self, status: int, content_type: str, content: bytes, headers: Mapping[str, str]) -> bytes:
        fields = {
            "Content-Type": content_type,
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": self.page_policy,
            **headers,
        }
        if self.close_connection:
            fields["Connection"] = "close"
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
        lines += [f"{name}: {value}" for name, value in fields.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")
