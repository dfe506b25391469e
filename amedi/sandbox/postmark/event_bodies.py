"""The bodies of Postmark's webhooks, in the shapes of postmarkapp.com/developer/webhooks."""

from __future__ import annotations

import json
import secrets
from datetime import datetime
from zoneinfo import ZoneInfo

from amedi.sandbox.json_shapes import JsonObject
from amedi.sandbox.postmark.bounces import BOUNCES
from amedi.sandbox.postmark.mails import AcceptedMail

SERVER_ID = 23
_EASTERN = ZoneInfo("America/New_York")


def as_bytes(body: JsonObject) -> bytes:
    """JSON as Postmark writes it: UTF-8, letters unescaped."""
    return json.dumps(body, ensure_ascii=False).encode()


def utc(at: datetime) -> str:
    """``2026-12-01T16:33:54.9070250Z``: seven digits after the point, as .NET writes them."""
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}0Z"


def eastern(at: datetime) -> str:
    """The same moment in the zone of Postmark's own clocks, as answers to requests have it."""
    text = at.astimezone(_EASTERN).isoformat(timespec="microseconds")
    return f"{text[:-6]}0{text[-6:]}"


def delivery_body(accepted: AcceptedMail, recipient: str, at: datetime) -> dict[str, object]:
    """The recipient's mail server took the mail."""
    return _about("Delivery", accepted) | {
        "ServerID": SERVER_ID,
        "Recipient": recipient,
        "DeliveredAt": utc(at),
        "Details": "smtp;250 2.0.0 OK",
    }


def bounce_body(accepted: AcceptedMail, recipient: str, at: datetime, *, kind: str) -> dict[str, object]:
    """The recipient's mail server refused it, now (``SoftBounce``) or for good (``HardBounce``)."""
    bounce = BOUNCES[kind]
    return _about("Bounce", accepted) | {
        "ID": secrets.randbelow(2**62),
        "Type": kind,
        "TypeCode": bounce.code,
        "Name": bounce.name,
        "ServerID": SERVER_ID,
        "Description": bounce.description,
        "Details": "smtp;550 5.1.1 The email account does not exist."
        if bounce.is_final
        else "smtp;452 4.2.2 Not now.",
        "Email": recipient,
        "From": accepted.mail.sender.address,
        "BouncedAt": utc(at),
        "DumpAvailable": False,
        "Inactive": bounce.is_final,
        "CanActivate": bounce.is_final,
        "Subject": accepted.mail.subject,
    }


def complaint_body(accepted: AcceptedMail, recipient: str, at: datetime) -> dict[str, object]:
    """The recipient marked it as spam."""
    return _about("SpamComplaint", accepted) | {
        "ID": secrets.randbelow(2**62),
        "Type": "SpamComplaint",
        "TypeCode": 512,
        "Name": "Spam complaint",
        "ServerID": SERVER_ID,
        "Description": "The subscriber explicitly marked this message as spam.",
        "Details": "",
        "Email": recipient,
        "From": accepted.mail.sender.address,
        "BouncedAt": utc(at),
        "DumpAvailable": False,
        "Inactive": True,
        "CanActivate": False,
        "Subject": accepted.mail.subject,
    }


def open_body(
    accepted: AcceptedMail, recipient: str, at: datetime, *, is_first: bool, user_agent: str
) -> dict[str, object]:
    """The recipient looked at it, with images on."""
    return _about("Open", accepted) | {
        "FirstOpen": is_first,
        "Client": {"Name": "Chrome", "Company": "Google", "Family": "Chrome"},
        "OS": {"Name": "Linux", "Company": "", "Family": "Linux"},
        "Platform": "WebMail",
        "UserAgent": user_agent,
        "Geo": {},
        "ReceivedAt": utc(at),
        "Recipient": recipient,
    }


def suppression_body(
    recipient: str, at: datetime, *, stream: str, reason: str, origin: str, cause: AcceptedMail | None
) -> dict[str, object]:
    """Nothing more will be sent to the recipient; ``cause`` is the mail that led to it."""
    return {
        "RecordType": "SubscriptionChange",
        "MessageID": cause.message_id if cause else None,
        "ServerID": SERVER_ID,
        "MessageStream": stream,
        "ChangedAt": utc(at),
        "Recipient": recipient,
        "Origin": origin,
        "SuppressSending": True,
        "SuppressionReason": reason,
        "Tag": cause.mail.tag if cause else None,
        "Metadata": dict(cause.metadata) if cause else {},
    }


def reactivation_body(recipient: str, at: datetime, *, stream: str) -> dict[str, object]:
    """The clinic's people lifted the suppression at Postmark."""
    return suppression_body(
        recipient, at, stream=stream, reason="ManualSuppression", origin="Customer", cause=None
    ) | {"SuppressSending": False}


def _about(record_type: str, accepted: AcceptedMail) -> dict[str, object]:
    return {
        "RecordType": record_type,
        "MessageStream": accepted.mail.stream,
        "MessageID": accepted.message_id,
        "Tag": accepted.mail.tag,
        "Metadata": dict(accepted.metadata),
    }
