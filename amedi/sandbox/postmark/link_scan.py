"""Follows every link of a mail before the patient does, as security scanners do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

import requests

from amedi.sandbox.postmark.mails import Mail

TIMEOUT_SECONDS = (3, 5)
USER_AGENT = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) LinkScanner/1.0"
LINK = re.compile(r"https?://[^\s<>\"']*[^\s<>\"'.,;:!?)\]»]")
"""A web address within a text, without the punctuation after it."""


@dataclass(frozen=True, kw_only=True)
class VisitedLink:
    """A link, and the HTTP statuses of asking for it; 0 where no answer came."""

    link: str
    head: int
    get: int


def links_of(mail: Mail) -> list[str]:
    """Each web address of both bodies and of List-Unsubscribe, once, in the order of the mail."""
    collector = _Hrefs()
    collector.feed(mail.html)
    in_text = LINK.findall(mail.text)
    in_header = re.findall(r"<(https?://[^>]*)>", mail.header("List-Unsubscribe"))
    return list(dict.fromkeys([*collector.links, *in_text, *in_header]))


def scan(links: Sequence[str]) -> tuple[VisitedLink, ...]:
    """Ask for each link with HEAD and then with GET, following redirects, without cookies."""
    return tuple(VisitedLink(link=link, head=_ask("HEAD", link), get=_ask("GET", link)) for link in links)


class _Hrefs(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href") or ""
        if tag in ("a", "area") and href.startswith(("http://", "https://")):
            self.links.append(href)


def _ask(method: str, link: str) -> int:
    with requests.Session() as session:
        session.trust_env = False
        session.headers["User-Agent"] = USER_AGENT
        try:
            with session.request(
                method, link, timeout=TIMEOUT_SECONDS, allow_redirects=True, stream=True
            ) as answer:
                return answer.status_code
        except requests.RequestException:
            return 0
