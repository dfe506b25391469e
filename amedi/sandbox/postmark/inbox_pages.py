"""The lists: all inboxes, and the mails in one. All that people wrote is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from amedi.sandbox.postmark.inboxes import Inbox, Letter
from amedi.sandbox.postmark.mails import Mail
from amedi.sandbox.postmark.pages import NO_SUBJECT, address_of, back, page, short, time

_ENVELOPE = (
    '<svg width="56" height="56" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.2" '
    'aria-hidden="true"><rect x="2.5" y="5" width="19" height="14" rx="2.5"/>'
    '<path d="m3 7 9 6.5L21 7"/></svg>'
)


def all_inboxes(inboxes: Sequence[Inbox]) -> str:
    """The first page: every address that has mail."""
    rows = "".join(_inbox_row(inbox) for inbox in inboxes)
    listed = f'<ul class="rows">{rows}</ul>' if rows else _empty("Todavía no ha llegado ningún correo.")
    return page(
        "Buzones de prueba",
        "<h1>Buzones de prueba</h1>"
        '<p class="quiet">Aquí llegan los correos que en la vida real recibirían los pacientes.</p>' + listed,
        is_live=True,
    )


def one_inbox(address: str, letters: Sequence[Letter]) -> str:
    """The mails of one address, the newest first."""
    rows = "".join(_letter_row(address, letter) for letter in reversed(letters))
    listed = f'<ul class="rows">{rows}</ul>' if rows else _empty("A este buzón no ha llegado ningún correo.")
    return page(
        f"Buzón de {address}",
        f"{back('/', 'Todos los buzones')}<h1>{escape(address)}</h1>{listed}",
        is_live=True,
    )


def nothing_here() -> str:
    """For an address, or a mail, that does not exist."""
    return page(
        "No está aquí",
        f"{back('/', 'Todos los buzones')}<h1>No está aquí</h1>"
        "<p>Este correo no existe. El simulador olvida todos los correos cuando se apaga.</p>",
    )


def _inbox_row(inbox: Inbox) -> str:
    last = inbox.letters[-1].accepted
    unread = sum(not letter.times_opened for letter in inbox.letters)
    badge = f'<span class="badge">{unread}<span class="unseen"> sin leer</span></span>' if unread else ""
    return (
        f'<li><a href="{address_of(inbox.address)}"><span class="top"><b>{escape(inbox.address)}</b>'
        f"{time(last.at)}</span>"
        f'<span class="last">{escape(last.mail.subject or NO_SUBJECT)}</span>{badge}</a></li>'
    )


def _letter_row(address: str, letter: Letter) -> str:
    mail, at = letter.accepted.mail, letter.accepted.at
    unread = "" if letter.times_opened else '<span class="unseen">Sin leer: </span>'
    return (
        f'<li class="{"unread" if unread else "read"}"><a href="{address_of(address, letter)}">'
        f'<span class="top"><span>{unread}{escape(short(mail.sender))}</span>{time(at)}</span>'
        f'<span class="subject">{escape(mail.subject or NO_SUBJECT)}</span>'
        f'<span class="last">{escape(_beginning(mail))}</span></a></li>'
    )


def _empty(words: str) -> str:
    return f'<div class="empty">{_ENVELOPE}<p>{words}</p></div>'


def _beginning(mail: Mail) -> str:
    text = mail.text or re.sub(r"(?s)<(style|head)\b.*?</\1>|<[^>]*>", " ", mail.html)
    return " ".join(text.split())[:140]
