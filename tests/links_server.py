"""A web site that a mail's links lead to: it keeps who asked for what, and answers by the address."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Site:
    """``/404/x`` answers 404; a redirect leads to ``/``."""

    url: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Method and path of each request."""
    posted: list[tuple[str, str, str]] = field(default_factory=list)
    """Content type, body and cookies of each POST."""


@contextmanager
def serving() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append((self.command, self.path))
            first = self.path.split("/")[1]
            status = int(first) if first.isdigit() else 200
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", "/")
            content = b"" if self.command == "HEAD" else b"<title>Consultorio</title>"
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Set-Cookie", "visitor=1")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            cookies = self.headers.get("Cookie", "")
            site.posted.append((self.headers["Content-Type"], body, cookies))
            self.do_GET()

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
