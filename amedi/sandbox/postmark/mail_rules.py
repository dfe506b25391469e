"""Postmark's rules for ``POST /email``, at least as strict as theirs.

An independent second opinion: nothing here is shared with the client that it judges.
Source: postmarkapp.com/developer/user-guide/send-email-with-api, and the support articles
on metadata (1125), sizes (1056) and error 300 (1180).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import cast

from amedi.sandbox.json_shapes import JsonObject, length
from amedi.sandbox.postmark.addresses import MOST_RECIPIENTS, read_addresses, read_sender
from amedi.sandbox.postmark.errors import PostmarkError
from amedi.sandbox.postmark.mails import Attachment, Mail

MOST_BYTES_IN_BODY = 5 * 1024 * 1024
MOST_IN_SUBJECT = 2000
MOST_IN_TAG = 1000
MOST_METADATA = 10
MOST_IN_KEY = 20
MOST_IN_VALUE = 80
TRACKED_LINKS = ("None", "HtmlAndText", "HtmlOnly", "TextOnly")
_FORBIDDEN_FILE = re.compile(
    r"\.(vbs|exe|bin|bat|chm|com|cpl|crt|hlp|hta|inf|ins|isp|jse|lnk|mdb|pcd|pif|reg|scr|sct|shs|vbe|vba|wsf"
    r"|wsh|wsl|msc|msi|msp|mst)",
    re.IGNORECASE,
)
_KINDS: dict[str, type] = {
    "From": str,
    "To": str,
    "Cc": str,
    "Bcc": str,
    "ReplyTo": str,
    "Subject": str,
    "Tag": str,
    "HtmlBody": str,
    "TextBody": str,
    "Headers": list,
    "TrackOpens": bool,
    "TrackLinks": str,
    "Metadata": dict,
    "Attachments": list,
    "MessageStream": str,
}
_HEADER_NAME = re.compile(r"[!-9;-~]+")
_CONTENT_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+( *;[^\r\n]*)?", re.ASCII)
_FIELD_OF_ITS_OWN = re.compile(
    r"from|to|cc|bcc|subject|reply-to|content-type|content-transfer-encoding|mime-version|return-path"
    r"|dkim-signature|received",
    re.IGNORECASE,
)


def read_mail(body: JsonObject, streams: Sequence[str]) -> Mail:
    """The mail that the body asks for. Raises PostmarkError for whatever Postmark would refuse."""
    for name, value in body.items():
        if name not in _KINDS or not isinstance(value, _KINDS[name]):
            raise PostmarkError(403, f"Invalid request field(s): $.{name}")
    texts = {name: str(body.get(name, "")) for name, kind in _KINDS.items() if kind is str}
    stream = texts["MessageStream"] or streams[0]
    if stream not in streams:
        raise PostmarkError(1235, f"The stream provided: '{stream}' does not exist on this server.")
    mail = Mail(
        sender=read_sender(texts["From"]),
        to=read_addresses(texts["To"], "To"),
        cc=read_addresses(texts["Cc"], "Cc"),
        bcc=read_addresses(texts["Bcc"], "Bcc"),
        reply_to=texts["ReplyTo"],
        subject=_short(texts["Subject"], "Subject", MOST_IN_SUBJECT),
        tag=_short(texts["Tag"], "Tag", MOST_IN_TAG),
        text=texts["TextBody"],
        html=texts["HtmlBody"],
        stream=stream,
        headers=_read_headers(body),
        attachments=_read_attachments(body),
        metadata=_read_metadata(body),
        tracks_opens=bool(body.get("TrackOpens", False)) and bool(texts["HtmlBody"]),
        tracks_links=texts["TrackLinks"] or "None",
    )
    _check_whole(mail)
    return mail


def _check_whole(mail: Mail) -> None:
    read_addresses(mail.reply_to, "ReplyTo")
    if not mail.to:
        raise PostmarkError(300, "Zero recipients specified.")
    if len(mail.to) + len(mail.cc) + len(mail.bcc) > MOST_RECIPIENTS:
        raise PostmarkError(300, f"Too many recipients: at most {MOST_RECIPIENTS} in To, Cc and Bcc.")
    if not mail.text.strip() and not mail.html.strip():
        raise PostmarkError(300, "Provide either email TextBody or HtmlBody or both.")
    for name, content in (("TextBody", mail.text), ("HtmlBody", mail.html)):
        if len(content.encode("utf-8", "replace")) > MOST_BYTES_IN_BODY:
            raise PostmarkError(300, f"{name} is larger than 5 MB.")
    if mail.tracks_links not in TRACKED_LINKS:
        raise PostmarkError(403, "Invalid request field(s): $.TrackLinks")


def _short(text: str, name: str, most: int) -> str:
    if length(text) > most:
        raise PostmarkError(300, f"{name} is longer than {most} characters.")
    if name == "Subject" and re.search(r"[\r\n]", text):
        raise PostmarkError(300, "Subject must be one line.")
    return text


def _entries(body: JsonObject, name: str, *keys: str) -> list[dict[str, str]]:
    """The objects in a list, each with these keys; those with a question mark may be missing."""
    needed = {key for key in keys if not key.endswith("?")}
    known = {key.removesuffix("?") for key in keys}
    entries = cast("list[object]", body.get(name, []))
    for place, entry in enumerate(entries):
        if (
            not isinstance(entry, dict)
            or not needed <= set(entry) <= known
            or not all(isinstance(value, str) for value in entry.values())
        ):
            raise PostmarkError(403, f"Invalid request field(s): $.{name}[{place}]")
    return cast("list[dict[str, str]]", entries)


def _read_headers(body: JsonObject) -> tuple[tuple[str, str], ...]:
    read = tuple((entry["Name"], entry["Value"]) for entry in _entries(body, "Headers", "Name", "Value"))
    for name, value in read:
        if not _HEADER_NAME.fullmatch(name) or re.search(r"[\r\n]", value):
            raise PostmarkError(300, "Invalid header: a name has no spaces, a value is one line.")
        # Postmark drops or overrules these: whoever sends one expects what will not happen.
        if _FIELD_OF_ITS_OWN.fullmatch(name):
            raise PostmarkError(300, f"Invalid header: '{name}' is set by a field of its own.")
    return read


def _read_attachments(body: JsonObject) -> tuple[Attachment, ...]:
    entries = _entries(body, "Attachments", "Name", "Content", "ContentType", "ContentID?")
    return tuple(_read_attachment(entry) for entry in entries)


def _read_attachment(entry: dict[str, str]) -> Attachment:
    name, content_type = entry["Name"], entry["ContentType"]
    if not name or re.search(r"[\r\n/]", name):
        raise PostmarkError(300, "Invalid attachment: it needs a file's name.")
    if _FORBIDDEN_FILE.fullmatch(PurePath(name).suffix):
        raise PostmarkError(411, f"Forbidden attachment type: '{name}'.")
    if not _CONTENT_TYPE.fullmatch(content_type) or not content_type.isascii():
        raise PostmarkError(300, f"Invalid attachment: '{name}' has no ContentType such as text/plain.")
    try:
        content = base64.b64decode(entry["Content"], validate=True)
    except (binascii.Error, ValueError):
        raise PostmarkError(300, f"Invalid attachment: the Content of '{name}' is not base64.") from None
    return Attachment(name=name, content_type=content_type, content=content)


def _read_metadata(body: JsonObject) -> dict[str, str]:
    given = cast("dict[str, str]", body.get("Metadata", {}))
    if not all(isinstance(value, str) for value in given.values()):
        raise PostmarkError(403, "Invalid request field(s): $.Metadata")
    for key, value in given.items():
        if not key or length(key) > MOST_IN_KEY or length(value) > MOST_IN_VALUE:
            raise PostmarkError(
                300,
                f"Invalid metadata content. Field names are limited to {MOST_IN_KEY} characters and field "
                f"values are limited to {MOST_IN_VALUE} characters in length. The '{key}' field in your "
                "metadata content exceeds these limits.",
            )
    if len(given) > MOST_METADATA or len({key.lower() for key in given}) < len(given):
        raise PostmarkError(
            300,
            f"Invalid metadata content. At most {MOST_METADATA} fields are allowed, and their names differ "
            "by more than case.",
        )
    return given
