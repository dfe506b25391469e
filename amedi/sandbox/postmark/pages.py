"""What all pages of the inboxes have: the frame, the way back, addresses and times."""

from __future__ import annotations

from datetime import datetime
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import quote
from zoneinfo import ZoneInfo

from amedi.sandbox.postmark.addresses import Mailbox
from amedi.sandbox.postmark.inboxes import Letter

PAGE = Template(Path(__file__).with_name("inbox_page.html").read_text(encoding="utf-8"))
NO_SUBJECT = "(sin asunto)"
_ZONE = ZoneInfo("America/Caracas")


def page(title: str, content: str, *, is_live: bool = False) -> str:
    """A whole page; a live one looks for news by itself."""
    live = " data-live" if is_live else ""
    return PAGE.substitute(title=escape(title), main=f"<main{live}>{content}</main>")


def back(href: str, words: str) -> str:
    """The link to the page above."""
    return f'<p class="back"><a href="{href}"><span aria-hidden="true">‹ </span>{escape(words)}</a></p>'


def address_of(address: str, letter: Letter | None = None) -> str:
    """The page of an inbox, or of a mail in it."""
    inbox = f"/inbox/{quote(address, safe='@')}/"
    return f"{inbox}{letter.accepted.message_id}/" if letter else inbox


def time(at: datetime) -> str:
    """``17/9/2026, 10:00 a. m.`` in Venezuela."""
    local = at.astimezone(_ZONE)
    half = "a. m." if local.hour < 12 else "p. m."
    told = f"{local.day}/{local.month}/{local.year}, {local.hour % 12 or 12}:{local.minute:02d} {half}"
    return f'<time datetime="{at.isoformat()}">{told}</time>'


def short(box: Mailbox) -> str:
    """The name, or the address where there is none."""
    return box.name or box.address


def full(box: Mailbox) -> str:
    """Name and address, as a mail's header has them."""
    return f"{box.name} <{box.address}>" if box.name else box.address
