"""Listens for the clinic and for the stand-in's pages, and ends connections when it stops."""

from __future__ import annotations

import logging
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Generic, TypeVar

logger = logging.getLogger(__name__)
StandIn = TypeVar("StandIn")


class SandboxServer(ThreadingHTTPServer, Generic[StandIn]):
    """One thread per connection; stopping closes the open ones too."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, sandbox: StandIn, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]
    ) -> None:
        self.sandbox = sandbox
        self.stopping = threading.Event()
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._loop = threading.Thread(target=self._serve, name="sandbox-server", daemon=True)
        super().__init__(address, handler)

    @property
    def url(self) -> str:
        """Where it is reached, without a slash at the end."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}"

    def start(self) -> None:
        """Serve from a thread of its own."""
        self._loop.start()

    def stop(self) -> None:
        """Stop to listen, and end the connections that clients keep alive."""
        self.stopping.set()
        self.shutdown()
        self._loop.join()
        with self._lock:
            for connection in self._connections:
                _shut(connection)
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection until it ends."""
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget it."""
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, *_: Any) -> None:
        """A client that went away is nothing; the rest belongs into the log."""
        error = sys.exception()
        if not isinstance(error, OSError):
            logger.error("sandbox request outcome=error", exc_info=error)

    def _serve(self) -> None:
        self.serve_forever(poll_interval=0.02)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
