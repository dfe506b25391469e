"""Meta's rules for ``POST /{phone_number_id}/messages``, at least as strict as hers.

An independent second opinion: nothing here is shared with the client that it judges.
Source: developers.facebook.com, WhatsApp Cloud API, "Send messages" and "Error codes".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from amedi.sandbox.graph_errors import GraphError
from amedi.sandbox.interactive_rules import read_interactive
from amedi.sandbox.json_shapes import JsonObject, only_keys, read_object, read_optional_text, read_text
from amedi.sandbox.messages import Message
from amedi.sandbox.template_rules import read_template
from amedi.sandbox.templates import Template

PHONE = re.compile(r"\+[1-9]\d{7,14}")
BSUID = re.compile(r"[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,128}")
REFERENCE_LENGTH = 512
TEXT_LENGTH = 4096
_ENVELOPE = (
    "messaging_product",
    "recipient_type",
    "to",
    "recipient",
    "type",
    "context",
    "biz_opaque_callback_data",
    "recipient_identity_key_hash",
    "messaging_account_id",
)


def read_message(body: JsonObject, templates: Sequence[Template], *, own_number: str) -> Message:
    """The message that the body asks for.

    Raises GraphError with Meta's code for whatever she would refuse.
    """
    kind = body.get("type")
    if body.get("messaging_product") != "whatsapp":
        raise GraphError(100, "The parameter messaging_product is required and must be whatsapp.")
    if body.get("recipient_type", "individual") != "individual":
        raise GraphError(100, "Param recipient_type must be individual.")
    if kind is None:
        raise GraphError(131008, "Param ['type'] is required.")
    if kind not in ("template", "text", "interactive"):
        raise GraphError(131051, "Param ['type'] is not supported here.")
    only_keys(body, "message", *_ENVELOPE, str(kind))
    envelope = {
        "to": _recipient(body, own_number),
        "reference": read_optional_text(body, "biz_opaque_callback_data", "message", most=REFERENCE_LENGTH),
        "answers_to": _answers_to(body),
    }
    content = read_object(body, str(kind), "message")
    if kind == "template":
        return read_template(content, templates, **envelope)
    if kind == "interactive":
        return read_interactive(content, **envelope)
    return _read_text_message(content, **envelope)


def _recipient(body: JsonObject, own_number: str) -> str:
    if "to" not in body:
        bsuid = body.get("recipient")
        if bsuid is None:
            raise GraphError(131008, "The parameter to is required.")
        if not isinstance(bsuid, str) or not BSUID.fullmatch(bsuid):
            raise GraphError(131009, "Param recipient is not a valid recipient identifier.")
        return bsuid
    to = body["to"]
    # Meta takes a number without + and may put the business's own country before
    # it: somebody else gets the message. Here that is an error.
    if not isinstance(to, str) or not PHONE.fullmatch(to):
        raise GraphError(131009, "Recipient phone number is not valid: it needs + and its country code.")
    if to.removeprefix("+") == own_number:
        raise GraphError(131021, "Sender and recipient are the same number.")
    return to


def _answers_to(body: JsonObject) -> str:
    if "context" not in body:
        return ""
    context = read_object(body, "context", "message")
    only_keys(context, "context", "message_id")
    return read_text(context, "message_id", "context", most=512)


def _read_text_message(content: JsonObject, *, to: str, reference: str, answers_to: str) -> Message:
    only_keys(content, "text", "body", "preview_url")
    if not isinstance(content.get("preview_url", False), bool):
        raise GraphError(131009, "Param text['preview_url'] must be a boolean.")
    body = read_text(content, "body", "text", most=TEXT_LENGTH)
    return Message(to=to, reference=reference, answers_to=answers_to, kind="text", body=body)
