"""The endpoint as the measurements use it: started, asked, ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests

from bench import stage

URL = f"http://{stage.HOST}:{stage.PROVIDER_PORT}"
_session = requests.Session()


@contextmanager
def provider(latency: float = 0.0, *, deaf_to_each: int = 0) -> Iterator[None]:
    """A provider that takes messages until the block ends, and answers each after so many seconds.

    It hangs up on each one of ``deaf_to_each``.
    """
    options = [str(stage.PROVIDER_PORT), str(latency), str(deaf_to_each)]
    with stage.program("endpoint", ["-m", "bench.endpoint", *options]):
        for _ in range(200):
            try:
                ask("counts")
                break
            except requests.ConnectionError:
                time.sleep(0.1)
        yield


def ask(what: str) -> Any:
    """What the endpoint tells: ``counts``, ``total`` or ``accepted/N``."""
    return _session.get(f"{URL}/{what}", timeout=30).json()
