"""A server that answers with given bytes, for answers that no real provider's stand-in gives."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class RawServer(socketserver.ThreadingTCPServer):
    """Reads each request, and writes ``answer`` to it; with "" it keeps silent."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = b""
        self.drips = False
        """Whether the answer goes on for ever, a byte now and then."""
        self.gate = threading.Barrier(1)
        """How many requests must be there at once before any is answered."""
        self.requests = 0
        self.connections = 0
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(socketserver.StreamRequestHandler):
    server: RawServer

    def handle(self) -> None:
        self.server.connections += 1
        while self._read_request():
            self.server.requests += 1
            self.server.gate.wait(10)
            if not self.server.answer:
                self.server.over.wait(20)
                return
            self.wfile.write(self.server.answer)
            while self.server.drips and not self.server.over.wait(0.05):
                try:
                    self.wfile.write(b" ")
                except OSError:
                    return

    def _read_request(self) -> bool:
        length = 0
        line = self.rfile.readline()
        if not line:
            return False
        while (line := self.rfile.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        self.rfile.read(length)
        return True


def answer(body: str, *, status: str = "200 OK", more: str = "") -> bytes:
    """An HTTP answer with a JSON body; ``more`` are headers with their line ends."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body.encode())}\r\n"
    return f"{head}{more}\r\n{body}".encode()


@contextmanager
def raw_server() -> Iterator[RawServer]:
    with RawServer() as server:
        loop = threading.Thread(target=server.serve_forever, args=[0.02], daemon=True)
        loop.start()
        yield server
        server.over.set()
        server.shutdown()
        loop.join()
