"""Settings of the mail that cannot work, found at start and not at the first bounce."""

from __future__ import annotations

import re
from email.utils import parseaddr
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from reminders.models.labels import ChannelName

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def _is_on() -> bool:
    return ChannelName.EMAIL in settings.REMINDER_CHANNELS


@register
def mail_has_a_way_out(**_: Any) -> list[CheckMessage]:
    """With the channel on there is a Postmark account or a mail server."""
    if not _is_on() or settings.POSTMARK_SERVER_TOKEN or settings.HAS_MAIL_SERVER:
        return []
    return [
        Error(
            "REMINDER_CHANNELS names email, but neither POSTMARK_SERVER_TOKEN nor EMAIL_URL is set.",
            hint="Set one of them, or take email out of REMINDER_CHANNELS.",
            id="reminders.E021",
        )
    ]


@register
def mail_has_a_sender(**_: Any) -> list[CheckMessage]:
    """The sender is an address, and with the channel on one that belongs to somebody."""
    _name, address = parseaddr(settings.DEFAULT_FROM_EMAIL)
    problem = ""
    try:
        validate_email(address)
    except ValidationError:
        problem = f"DEFAULT_FROM_EMAIL is {settings.DEFAULT_FROM_EMAIL!r}, which is no address."
    else:
        if _is_on() and address.endswith("@localhost") and not _stays_here():
            problem = "REMINDER_CHANNELS names email, but DEFAULT_FROM_EMAIL is not set."
    if not problem:
        return []
    hint = "Set it to an address of your domain, such as Citas <citas@example.org>."
    return [Error(problem, hint=hint, id="reminders.E022")]


@register
def postmark_can_be_called_and_can_call(**_: Any) -> list[CheckMessage]:
    """The token fits into a header; receipts come with a secret."""
    problems: list[CheckMessage] = []
    token, secret = settings.POSTMARK_SERVER_TOKEN, settings.POSTMARK_WEBHOOK_SECRET
    if token and not re.fullmatch(r"[\x21-\x7e]+", token):
        problems.append(
            Error(
                "POSTMARK_SERVER_TOKEN is not one word of plain characters.",
                hint="Copy the server's token again, from its page API Tokens at Postmark.",
                id="reminders.E023",
            )
        )
    if secret and not re.fullmatch(r"[^:\s]+:\S+", secret):
        problems.append(
            Error(
                "POSTMARK_WEBHOOK_SECRET does not look like user:password.",
                hint="Write both, with a colon between them and no space.",
                id="reminders.E024",
            )
        )
    if token and not secret and _is_on():
        problems.append(
            Error(
                "POSTMARK_WEBHOOK_SECRET is not set, and without it no receipt of Postmark is believed.",
                hint="Invent a user:password, and put the same into the webhook's address at Postmark.",
                id="reminders.E025",
            )
        )
    return problems


@register
def links_can_be_clicked(**_: Any) -> list[CheckMessage]:
    """Mail programs unsubscribe with one click over https only (RFC 8058)."""
    parts = urlsplit(settings.CLIENT_URL)
    if not _is_on() or parts.scheme == "https" or parts.hostname in LOOPBACK:
        return []
    return [
        checks.Warning(
            "CLIENT_URL does not begin with https://, so that mail programs offer no one-click unsubscribe.",
            hint="Serve the patients' pages over https, and set CLIENT_URL to that address.",
            id="reminders.W021",
        )
    ]


def _stays_here() -> bool:
    """Whether mails go to a stand-in on this machine and to nobody else."""
    return bool(settings.POSTMARK_SERVER_TOKEN) and urlsplit(settings.POSTMARK_API_URL).hostname in LOOPBACK
