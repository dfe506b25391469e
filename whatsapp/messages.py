"""Our messages as bodies of Meta's ``POST /{phone_number_id}/messages``. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from whatsapp.clean import PARAMETER_LIMIT, parameter, shorten, storable

Body = dict[str, Any]

PHONE = re.compile(r"\+[1-9][0-9]{6,14}")
BSUID = re.compile(r"[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,128}")

TEXT_LIMIT = 4096
TEXT_WITH_BUTTONS_LIMIT = 1024
BUTTON_TITLE_LIMIT = 20
BUTTON_ID_LIMIT = 256
MOST_BUTTONS = 3
# Sources disagree between 128 and 256.
PAYLOAD_LIMIT = 128
REFERENCE_LIMIT = 512


def template_message(
    *,
    to: str,
    name: str,
    language: str,
    parameters: Mapping[str, str],
    payloads: Sequence[str],
    reference: str,
    limits: Mapping[str, int] | None = None,
) -> Body:
    """A template with its variables by name and a payload for each quick reply, in their order.

    ``limits`` are the lengths of variables that may be longer than usual.
    Raises ValueError for an address, payload or reference that Meta would refuse.
    """
    components: list[Body] = []
    if parameters:
        named = [
            {
                "type": "text",
                "parameter_name": key,
                "text": parameter(value, limit=(limits or {}).get(key, PARAMETER_LIMIT)),
            }
            for key, value in parameters.items()
        ]
        components.append({"type": "body", "parameters": named})
    components += [_quick_reply(index, payload) for index, payload in enumerate(payloads)]
    template = {"name": name, "language": {"code": language}, "components": components}
    return {**_envelope(to, reference), "type": "template", "template": template}


def text_message(
    *,
    to: str,
    text: str,
    buttons: Sequence[tuple[str, str]] = (),
    reference: str,
    context: str = "",
) -> Body:
    """Free text, with up to three buttons as (id, title). Only inside the 24 hours' window.

    What is too long is cut; ``context`` is the wamid that it answers. Raises
    ValueError for what cannot be cut: an address, an id, a fourth button.
    """
    words = storable(text, TEXT_LIMIT * 2).strip()
    if not words:
        raise ValueError("A message needs a text.")
    body = _envelope(to, reference)
    if context:
        body["context"] = {"message_id": context}
    if not buttons:
        plain = {"body": shorten(words, TEXT_LIMIT), "preview_url": False}
        return {**body, "type": "text", "text": plain}
    interactive = {
        "type": "button",
        "body": {"text": shorten(words, TEXT_WITH_BUTTONS_LIMIT)},
        "action": {"buttons": _reply_buttons(buttons)},
    }
    return {**body, "type": "interactive", "interactive": interactive}


def _envelope(to: str, reference: str) -> Body:
    if len(reference) > REFERENCE_LIMIT:
        raise ValueError(f"A reference has at most {REFERENCE_LIMIT} characters.")
    return {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        **_address(to),
        "biz_opaque_callback_data": reference,
    }


def _address(to: str) -> Body:
    if PHONE.fullmatch(to):
        return {"to": to}
    if BSUID.fullmatch(to):
        return {"recipient": to}
    # Without the plus Meta may put our own country before it and write to somebody else.
    raise ValueError("An address is a number with + and country, or a user id such as VE.1234.")


def _quick_reply(index: int, payload: str) -> Body:
    if not 0 < len(payload) <= PAYLOAD_LIMIT:
        raise ValueError(f"A payload has 1 to {PAYLOAD_LIMIT} characters.")
    return {
        "type": "button",
        "sub_type": "quick_reply",
        "index": str(index),
        "parameters": [{"type": "payload", "payload": payload}],
    }


def _reply_buttons(buttons: Sequence[tuple[str, str]]) -> list[Body]:
    if len(buttons) > MOST_BUTTONS:
        raise ValueError(f"A message has at most {MOST_BUTTONS} buttons.")
    if any(not 0 < len(key) <= BUTTON_ID_LIMIT for key, _title in buttons):
        raise ValueError(f"The id of a button has 1 to {BUTTON_ID_LIMIT} characters.")
    titles = [shorten(parameter(title, fallback=""), BUTTON_TITLE_LIMIT) for _key, title in buttons]
    if not all(titles) or len(set(titles)) < len(titles):
        raise ValueError("The titles of buttons must differ, and none may be empty.")
    return [
        {"type": "reply", "reply": {"id": key, "title": title}}
        for (key, _title), title in zip(buttons, titles, strict=True)
    ]
