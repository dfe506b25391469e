"""One mail as its reader sees it, and what can be tried with it. All that people wrote is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from http import HTTPStatus

from amedi.sandbox.postmark.inboxes import Letter
from amedi.sandbox.postmark.link_scan import LINK, VisitedLink
from amedi.sandbox.postmark.mails import Mail
from amedi.sandbox.postmark.one_click import NoOneClickError, one_click_address
from amedi.sandbox.postmark.pages import NO_SUBJECT, address_of, back, full, page, short, time

_FRAME = (
    "allow-same-origin allow-popups allow-popups-to-escape-sandbox allow-top-navigation-by-user-activation"
)
MAIL_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    f"frame-ancestors 'self'; sandbox {_FRAME}"
)
"""For the HTML of a mail: no script runs, nothing is fetched, and its links open in the whole window."""
_BEGINNING = re.compile(r"(\s*<!doctype[^>]*>)?(\s*<html(\s[^>]*)?>)?", re.IGNORECASE)


def one_letter(address: str, letter: Letter) -> str:
    """One mail, and what can be tried with it."""
    mail = letter.accepted.mail
    home = address_of(address, letter)
    subject = mail.subject or NO_SUBJECT
    return page(
        subject,
        f"{back(address_of(address), f'Buzón de {address}')}"
        f'<article class="mail"><h1>{escape(subject)}</h1>{_who(letter)}'
        f"{_content(mail, home)}{_attachments(mail, home)}</article>"
        f"{_one_click(letter, home)}{_scan(letter, home)}{_headers(mail)}",
    )


def html_part(letter: Letter) -> bytes:
    """The mail's own HTML, its links aimed at the whole window."""
    html = letter.accepted.mail.html
    place = _BEGINNING.match(html).end()  # type: ignore[union-attr]
    return f'{html[:place]}<base target="_top">{html[place:]}'.encode("utf-8", "replace")


def _who(letter: Letter) -> str:
    mail = letter.accepted.mail
    name = short(mail.sender)
    return (
        f'<div class="who"><span class="face" aria-hidden="true">{escape(name[0].upper())}</span>'
        f'<p><b>{escape(name)}</b> <span class="quiet">{escape(mail.sender.address)}</span><br>'
        f'<span class="quiet">Para {escape(", ".join(full(box) for box in mail.to))}</span></p>'
        f'<p class="quiet">{time(letter.accepted.at)}</p></div>'
    )


def _content(mail: Mail, home: str) -> str:
    text = f'<pre class="text">{_linked(mail.text)}</pre>'
    if not mail.html:
        return text
    frame = f'<iframe title="Contenido del correo" src="{home}html" sandbox="{_FRAME}"></iframe>'
    if not mail.text:
        return frame
    return f"{frame}<details><summary>Versión de solo texto</summary>{text}</details>"


def _attachments(mail: Mail, home: str) -> str:
    if not mail.attachments:
        return ""
    files = "".join(
        f'<li><a href="{home}attachments/{place}" download="{escape(file.name)}">'
        f"<b>{escape(file.name)}</b> "
        f'<span class="quiet">{escape(file.content_type)}, {_size(len(file.content))}</span></a></li>'
        for place, file in enumerate(mail.attachments)
    )
    return f'<h2>Adjuntos</h2><ul class="files">{files}</ul>'


def _one_click(letter: Letter, home: str) -> str:
    try:
        target = one_click_address(letter.accepted.mail)
    except NoOneClickError as error:
        action = (
            f"<p>{escape(str(error))} Por eso un proveedor de correo no muestra aquí su botón de baja.</p>"
        )
    else:
        action = (
            "<p>Un proveedor de correo muestra este botón junto al remitente. Manda un POST de un solo toque "
            f"(RFC 8058), sin abrir ninguna página, a <code>{escape(target)}</code></p>"
            f'<form method="post" action="{home}unsubscribe"><button>Cancelar suscripción</button></form>'
        )
    result = _one_click_result(letter.one_click_status)
    return f'<section id="baja"><h2>Cancelar la suscripción</h2>{action}{result}</section>'


def _one_click_result(status: int | None) -> str:
    if status is None:
        return ""
    if 200 <= status < 300:
        return _result("good", f"Baja pedida: el servidor respondió {_status(status)}.")
    if 300 <= status < 400:
        return _result(
            "bad",
            f"La baja no se hizo: el servidor respondió {_status(status)}, y los proveedores de correo no "
            "siguen redirecciones.",
        )
    return _result("bad", f"La baja no se hizo: {_status(status)}.")


def _scan(letter: Letter, home: str) -> str:
    return (
        '<section id="escaner"><h2>Enlaces</h2>'
        "<p>Muchos servidores de correo abren todos los enlaces antes que el paciente. Este botón hace lo "
        "mismo: pide cada enlace con HEAD y con GET. Nada debe cambiar por eso.</p>"
        f'<form method="post" action="{home}scan"><button>Escáner de correo</button></form>'
        f"{_scan_result(letter.visited_links)}</section>"
    )


def _scan_result(visited: Sequence[VisitedLink] | None) -> str:
    if visited is None:
        return ""
    if not visited:
        return _result("quiet", "Este correo no trae ningún enlace.")
    rows = "".join(
        f'<tr><th scope="row">{escape(link.link)}</th>'
        f"<td>{_verdict(link.head)}</td><td>{_verdict(link.get)}</td></tr>"
        for link in visited
    )
    return (
        f"{_result('quiet', f'Enlaces visitados: {len(visited)}.')}"
        '<table><thead><tr><th scope="col">Enlace</th><th scope="col">HEAD</th><th scope="col">GET</th></tr>'
        f"</thead><tbody>{rows}</tbody></table>"
    )


def _result(kind: str, words: str) -> str:
    return f'<p class="result {kind}" role="status">{words}</p>'


def _headers(mail: Mail) -> str:
    fields = [
        ("De", full(mail.sender)),
        ("Para", ", ".join(full(box) for box in mail.to)),
        ("Copia", ", ".join(full(box) for box in mail.cc)),
        ("Responder a", mail.reply_to),
        *mail.headers,
        ("Etiqueta (Tag)", mail.tag),
        ("Canal (MessageStream)", mail.stream),
        *((f"Metadata: {key}", value) for key, value in mail.metadata.items()),
    ]
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in fields if value
    )
    return f"<section><details><summary>Encabezados</summary><dl>{rows}</dl></details></section>"


def _linked(text: str) -> str:
    pieces = LINK.split(text)
    links = LINK.findall(text)
    linked = [f'<a href="{escape(link)}">{escape(link)}</a>' for link in links]
    return "".join(escape(piece) + link for piece, link in zip(pieces, [*linked, ""], strict=True))


def _size(count: int) -> str:
    return f"{count} bytes" if count < 1024 else f"{count // 1024} kB"


def _status(status: int) -> str:
    """``404 Not Found``; servers may answer numbers that have no name."""
    if not status:
        return "no hubo respuesta"
    return f"{status} {HTTPStatus(status).phrase}" if status in set(HTTPStatus) else str(status)


def _verdict(status: int) -> str:
    kind = "good" if 200 <= status < 400 else "bad"
    return f'<span class="{kind}">{status or "sin respuesta"}</span>'
