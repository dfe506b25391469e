"""What every stand-in for a provider is: a server, options that change, and webhooks on their way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from amedi.sandbox.changing import ChangingOptions
from amedi.sandbox.json_shapes import JsonObject
from amedi.sandbox.outbox import Outbox
from amedi.sandbox.server import SandboxServer

Options = TypeVar("Options", bound=ChangingOptions)


class StandIn(Generic[Options]):
    """``with stand_in`` serves it at ``stand_in.url`` until the block ends.

    Every method may be called from any thread. ``clock`` gives aware UTC times.
    """

    outbox: Outbox[Any]
    handler: type[BaseHTTPRequestHandler]

    def __init__(self, options: Options, *, clock: Callable[[], datetime]) -> None:
        self._options = options
        self._clock = clock
        self._lock = threading.RLock()
        self._port = options.port
        self._server: SandboxServer[StandIn[Options]] | None = None

    def start(self) -> None:
        """Listen, and post webhooks; after a stop again at the same port.

        Raises OSError when the port is taken.
        """
        self._server = SandboxServer(self, (self._options.host, self._port), self.handler)
        self._port = int(self._server.server_address[1])
        self._server.start()
        self.outbox.start()

    def stop(self) -> None:
        """Close every connection; new ones are refused, and no webhook is posted."""
        if self._server:
            self._server.stop()
            self._server = None
            self.outbox.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Stands for the provider's own address. Raises RuntimeError while it does not run."""
        if self._server is None:
            raise RuntimeError("The sandbox does not run.")
        return self._server.url

    @property
    def options(self) -> Options:
        """As they are now."""
        return self._options

    def change(self, **changes: Any) -> None:
        """Set options by name, from the next message on. Raises ValueError."""
        with self._lock:
            self._options = self._options.changed(**changes)

    def change_by_json(self, changes: JsonObject) -> None:
        """The same from JSON. Raises ValueError."""
        with self._lock:
            self._options = self._options.changed_by_json(changes)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until every webhook was answered 200.

        False when seconds ran out before, or one was dropped since the last flush.
        """
        return self.outbox.flush(timeout)
