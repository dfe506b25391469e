"""The patient of the demonstration who reads her reminder and taps «Confirmar» by herself."""

from __future__ import annotations

from typing import Any

import requests

PAUSE = 4.0
"""Seconds between seeing, reading and tapping, so that each can be watched."""
TITLE = "Confirmar"


class Patient:
    """Acts through her phone only: what she does reaches the product as the provider's webhook."""

    def __init__(self, *, sandbox_url: str, number: str) -> None:
        self.page = f"{sandbox_url}/phone/{number}"
        self._next = "read"
        self._not_before: float | None = None

    def act(self, *, now: float) -> None:
        """Do the next thing when its time has come. To be called again and again.

        ``now`` is in seconds of any steady clock. Raises requests.RequestException when the
        phone does not answer.
        """
        message = self._next and self._message()
        if not message:
            return
        if self._not_before is None:
            self._not_before = now + PAUSE
        if now < self._not_before:
            return
        if self._next == "read":
            self._post("read", {})
            self._next, self._not_before = "tap", None
        else:
            index = [choice["title"] for choice in message["choices"]].index(TITLE)
            self._post("tap", {"wamid": message["wamid"], "index": index})
            self._next = ""

    def _message(self) -> dict[str, Any] | None:
        """The first message on her phone that can be confirmed."""
        answer = requests.get(f"{self.page}/messages", timeout=10)
        answer.raise_for_status()
        for message in answer.json()["messages"]:
            if message["status"] in ("delivered", "read") and any(
                choice["title"] == TITLE for choice in message["choices"]
            ):
                return dict(message)
        return None

    def _post(self, verb: str, body: dict[str, Any]) -> None:
        requests.post(f"{self.page}/{verb}", json=body, timeout=10).raise_for_status()
