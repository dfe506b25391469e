"""The bodies of Meta's webhooks, in her shapes and her way of writing JSON."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import datetime

from amedi.sandbox.graph_errors import status_error
from amedi.sandbox.json_shapes import JsonObject
from amedi.sandbox.messages import Choice, Message, is_bsuid, wa_id
from amedi.sandbox.options import SandboxOptions

PROFILE_NAME = "Paciente de prueba"


def as_bytes(body: JsonObject) -> bytes:
    """Compact JSON with non-ASCII, ``/``, ``<`` and ``@`` escaped as Meta does it.

    Whoever parses and writes it again gets other bytes, and so another signature.
    """
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=True)
    return text.replace("/", r"\/").replace("<", r"\u003C").replace("@", r"\u0040").encode("ascii")


def signature(body: bytes, app_secret: str) -> str:
    """The value of ``X-Hub-Signature-256`` for exactly these bytes."""
    return "sha256=" + hmac.new(app_secret.encode(), body, hashlib.sha256).hexdigest()


def bsuid_of(recipient: str) -> str:
    """The business-scoped user id; for a phone an invented one, always the same."""
    if is_bsuid(recipient):
        return recipient
    return f"VE.{int(hashlib.sha256(recipient.encode()).hexdigest(), 16) % 10**18:018d}"


def status_body(
    options: SandboxOptions, *, wamid: str, message: Message, status: str, at: datetime
) -> dict[str, object]:
    """The webhook that says ``sent``, ``delivered`` or ``read``."""
    entry = _status_entry(wamid, message, status, at)
    entry["recipient_user_id"] = bsuid_of(message.to)
    if status != "read":
        entry["pricing"] = {
            "billable": message.kind == "template" and status == "sent",
            "pricing_model": "PMP",
            "type": "regular" if message.kind == "template" else "free_customer_service",
            "category": message.category,
        }
    return _envelope(options, {"contacts": [_contact(message.to)], "statuses": [entry]})


def failed_body(
    options: SandboxOptions, *, wamid: str, message: Message, code: int, at: datetime
) -> dict[str, object]:
    """The webhook that says ``failed``: Meta sends neither contacts nor recipient_user_id with it."""
    entry = _status_entry(wamid, message, "failed", at)
    entry["errors"] = [status_error(code)]
    return _envelope(options, {"statuses": [entry]})


def tap_body(
    options: SandboxOptions, *, sender: str, wamid: str, answers_to: str, choice: Choice, at: datetime
) -> dict[str, object]:
    """A tap: ``button`` on a template's quick reply, ``interactive`` on a session message."""
    content: dict[str, object]
    if choice.kind == "template":
        content = {"type": "button", "button": {"payload": choice.payload, "text": choice.title}}
    else:
        kind = "list_reply" if choice.kind == "row" else "button_reply"
        reply = {"id": choice.payload, "title": choice.title}
        if choice.description:
            reply["description"] = choice.description
        content = {"type": "interactive", "interactive": {"type": kind, kind: reply}}
    content["context"] = {"from": options.display_phone_number, "id": answers_to}
    return _inbound(options, sender, wamid, at, content)


def text_body(
    options: SandboxOptions, *, sender: str, wamid: str, text: str, at: datetime
) -> dict[str, object]:
    """Free text that the patient wrote."""
    return _inbound(options, sender, wamid, at, {"type": "text", "text": {"body": text}})


def _status_entry(wamid: str, message: Message, status: str, at: datetime) -> dict[str, object]:
    entry: dict[str, object] = {"id": wamid, "status": status, "timestamp": _timestamp(at)}
    if not is_bsuid(message.to):
        entry["recipient_id"] = wa_id(message.to)
    if message.reference:
        entry["biz_opaque_callback_data"] = message.reference
    return entry


def _inbound(
    options: SandboxOptions, sender: str, wamid: str, at: datetime, content: dict[str, object]
) -> dict[str, object]:
    message: dict[str, object] = {
        "from_user_id": bsuid_of(sender),
        "id": wamid,
        "timestamp": _timestamp(at),
    }
    if not is_bsuid(sender):
        message["from"] = wa_id(sender)
    return _envelope(options, {"contacts": [_contact(sender)], "messages": [message | content]})


def _contact(recipient: str) -> dict[str, object]:
    contact: dict[str, object] = {"profile": {"name": PROFILE_NAME}, "user_id": bsuid_of(recipient)}
    if not is_bsuid(recipient):
        contact["wa_id"] = wa_id(recipient)
    return contact


def _envelope(options: SandboxOptions, value: dict[str, object]) -> dict[str, object]:
    metadata = {
        "display_phone_number": options.display_phone_number,
        "phone_number_id": options.phone_number_id,
    }
    whole = {"messaging_product": "whatsapp", "metadata": metadata} | value
    return {
        "object": "whatsapp_business_account",
        "entry": [{"id": options.business_account_id, "changes": [{"value": whole, "field": "messages"}]}],
    }


def _timestamp(at: datetime) -> str:
    return str(int(at.timestamp()))
