"""The patients of the demonstration who answer by themselves: one by WhatsApp, one by the link in a mail."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urljoin

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


class Reader:
    """Opens her mail, follows its link and confirms on the page: all of it over HTTP, as a person would."""

    def __init__(self, *, mail_url: str, address: str) -> None:
        self._mail_url = mail_url
        self._address = address
        self._page = ""
        self._not_before = 0.0
        self._is_done = False

    def act(self, *, now: float) -> None:
        """Do the next thing when its time has come. To be called again and again.

        ``now`` is in seconds of any steady clock. Raises requests.RequestException when the
        inbox or the page does not answer.
        """
        if self._is_done or now < self._not_before:
            return
        if not self._page:
            self._page = self._link_in_her_mail()
            self._not_before = now + PAUSE
            return
        shown = requests.get(self._page, timeout=10)
        shown.raise_for_status()
        if button := re.search(r'<form method="post" action="([^"]+)"', shown.text):
            requests.post(urljoin(self._page, button[1]), timeout=10).raise_for_status()
        self._is_done = True

    def _link_in_her_mail(self) -> str:
        """The address of her page in her first mail, which is then opened; "" while there is none."""
        answer = requests.get(f"{self._mail_url}/sandbox/accepted", timeout=10)
        answer.raise_for_status()
        for mail in answer.json()["accepted"]:
            if self._address in str(mail["to"]):
                opened = f"{self._mail_url}/inbox/{self._address}/{mail['message_id']}/"
                requests.get(opened, timeout=10).raise_for_status()
                link = re.search(r"https?://\S+/cita/\S+/", str(mail["body"]["TextBody"]))
                return link[0] if link else ""
        return ""
