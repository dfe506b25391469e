"""A message as a mail: subject, text and HTML from ``templates/email/``, headers, calendar."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from email import encoders
from email.mime.base import MIMEBase
from typing import Any

from anymail.message import AnymailMessage
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.template.loader import render_to_string
from django.utils.text import get_text_list
from django.utils.translation import gettext as _
from django.utils.translation import override

from reminders import calendar_file, wording
from reminders.channels.base import Message
from reminders.timeline import ReminderType

LANGUAGE = "es"
"""What patients read, whatever the language of whoever sets a sending off."""


def write(message: Message) -> dict[str, Any]:
    """The mail in plain values, as the ledger keeps it.

    Raises ValueError for an address that no mail can go to.
    """
    _check_address(message.to)
    with override(LANGUAGE):
        words = _words(message)
        return {
            "from": settings.DEFAULT_FROM_EMAIL,
            "to": message.to,
            # A header is one line, whatever a name or a rule brings.
            "subject": wording.clean(render_to_string("email/subject.txt", words)),
            "text": render_to_string("email/message.txt", words).strip() + "\n",
            "html": render_to_string("email/message.html", words),
            "headers": _headers(message),
            "calendar": _calendar(message),
            # A file for each: of several entries in one, mail programs offer the first.
            **({"more_calendars": [_calendar(one) for one in message.also]} if message.also else {}),
        }


def mail_of(letter: Mapping[str, Any]) -> AnymailMessage:
    """What ``write`` made, as Django sends it."""
    mail = AnymailMessage(
        subject=letter["subject"],
        body=letter["text"],
        from_email=letter["from"],
        to=[letter["to"]],
        headers=dict(letter["headers"]),
    )
    mail.attach_alternative(letter["html"], "text/html")
    calendars = [letter["calendar"], *letter.get("more_calendars", [])]
    for place, calendar in enumerate(filter(None, calendars), start=1):
        mail.attach(_attachment(calendar, "cita.ics" if place == 1 else f"cita-{place}.ics"))
    return mail


def _check_address(address: str) -> None:
    try:
        validate_email(address)
    except ValidationError:
        raise ValueError("the address is none") from None


# --- What it says --------------------------------------------------------------------


def _words(message: Message) -> dict[str, Any]:
    """What the templates fill in."""
    visits = (message, *message.also)
    doctors = dict.fromkeys(one.values.get("doctor", wording.VARIABLES["doctor"].if_empty) for one in visits)
    return {
        "subject": _subject_of_all(message) if message.also else message.subject,
        "visits": [_of_one(one, is_alone=not message.also) for one in visits],
        "doctor": get_text_list(list(doctors), _("y")),
        "preferences_link": message.preferences_link,
    }


def _of_one(message: Message, *, is_alone: bool) -> dict[str, Any]:
    # After the visit there is nothing to look up and nothing to confirm.
    is_ahead = message.time_left > timedelta(0)
    return {
        "text": message.text,
        "card": _card(message) if is_ahead else [],
        "link": message.visit_link if is_ahead else "",
        # Two links of one name lead to two pages: the hour tells them apart.
        "link_says": _link_says(message) if is_alone else _link_of(message),
    }


def _link_of(message: Message) -> str:
    return _("%(link)s · %(hour)s") % {
        "link": _link_says(message),
        "hour": message.values.get("hora", ""),
    }


def _subject_of_all(message: Message) -> str:
    """``Sus citas del jueves 17 de septiembre``, and what befell them where something did."""
    told = re.sub(r"^(hoy, |mañana, |el )", "", message.values.get("fecha", ""))
    subjects = {
        ReminderType.RESERVA: _("Sus citas del %(day)s quedaron reservadas"),
        ReminderType.CAMBIO: _("Sus citas del %(day)s cambiaron"),
        ReminderType.CANCELACION: _("Sus citas del %(day)s fueron canceladas"),
    }
    kind = ReminderType(message.kind)
    return subjects.get(kind, _("Sus citas del %(day)s")) % {"day": told}


@dataclass(frozen=True, kw_only=True)
class _Line:
    """One line of the card."""

    name: str
    says: str
    link: str = ""
    """Where it leads; empty where it only says something."""


def _card(message: Message) -> list[_Line]:
    """The visit at a glance."""
    values = message.values
    lines = [
        _Line(name=_("Día"), says=_day(values.get("fecha", ""))),
        _Line(name=_("Hora"), says=values.get("hora", "")),
        _Line(name=_("Con"), says=values.get("doctor", "")),
        *(_way_in(message) if message.is_virtual else _place(values)),
    ]
    missing = {variable.if_empty for variable in wording.VARIABLES.values()} | {""}
    return [line for line in lines if line.says not in missing]


def _place(values: Mapping[str, str]) -> list[_Line]:
    return [
        _Line(name=_("Lugar"), says=values.get("consultorio", "")),
        _Line(name=_("Dirección"), says=values.get("direccion", "")),
    ]


def _way_in(message: Message) -> list[_Line]:
    if message.kind == ReminderType.CANCELACION:
        return [_Line(name=_("Lugar"), says=_("Por videollamada"))]
    link = wording.web(message.values.get("enlace_video", ""))
    return [_Line(name=_("Videollamada"), says=link or wording.LINK_TO_COME, link=link)]


def _day(told: str) -> str:
    """``Jueves 17 de septiembre``: a mail may be read a day later, when "mañana" is wrong."""
    plain = re.sub(r"^(hoy, |mañana, |el )", "", told)
    return plain[:1].upper() + plain[1:]


def _link_says(message: Message) -> str:
    return _("Ver o confirmar mi cita") if message.asks_to_confirm else _("Ver mi cita")


# --- What stands around it -----------------------------------------------------------


def _headers(message: Message) -> dict[str, str]:
    # No answering machine should write back (RFC 3834).
    headers = {"Auto-Submitted": "auto-generated"}
    if message.preferences_link:
        # One click, without a page (RFC 8058).
        headers["List-Unsubscribe"] = f"<{message.preferences_link}>"
        headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    return headers


def _calendar(message: Message) -> dict[str, str]:
    """The visit as a calendar takes it; empty where there is none ahead."""
    entry = message.entry
    if entry is None or not (entry.is_cancelled or message.time_left > timedelta(0)):
        return {}
    return {
        "method": "CANCEL" if entry.is_cancelled else "PUBLISH",
        "text": calendar_file.render(entry, now=entry.starts_at - message.time_left),
    }


def _attachment(calendar: Mapping[str, str], name: str) -> MIMEBase:
    # By hand: Django's own attachments cannot say the method, without which a
    # calendar does not know an update or a cancellation from a new entry.
    part = MIMEBase("text", "calendar", charset="utf-8", method=calendar["method"])
    part.set_payload(calendar["text"].encode())
    encoders.encode_base64(part)
    part.add_header("Content-Disposition", "attachment", filename=name)
    return part
