"""Requests to the sandbox as a careful client would make them, for tests to spoil."""

from __future__ import annotations

import copy
from typing import Any

import requests

from amedi.sandbox import Sandbox, SandboxOptions, Template, template_from_json
from tests.factories import MARK, PHONE_MARK

NUMBER = f"+58{PHONE_MARK}0001"
OTHER_NUMBER = f"+58{PHONE_MARK}0002"
REFERENCE = "d:11111111-1111-4111-8111-111111111111:1"

NAMED_TEMPLATE: dict[str, Any] = {
    "name": "recordatorio",
    "language": "es",
    "category": "UTILITY",
    "parameter_format": "NAMED",
    "components": [
        {
            "type": "BODY",
            "text": "Hola, {{nombre}}. Le recordamos su cita a las {{hora}} con su doctora de siempre.",
        },
        {"type": "FOOTER", "text": "Consultorio Ejemplo"},
        {
            "type": "BUTTONS",
            "buttons": [
                {"type": "QUICK_REPLY", "text": "Confirmar"},
                {"type": "QUICK_REPLY", "text": "Cancelar"},
                {"type": "URL", "text": "Ver", "url": "https://example.org/c/{{1}}"},
            ],
        },
    ],
}
POSITIONAL_TEMPLATE: dict[str, Any] = {
    "name": "aviso",
    "language": "es",
    "components": [
        {"type": "HEADER", "format": "TEXT", "text": "Cita de {{1}}"},
        {"type": "BODY", "text": "Su cita cambió al {{1}} a las {{2}}. Gracias."},
    ],
}


def known_templates() -> tuple[Template, ...]:
    others = [
        {"name": f"plantilla_{status.lower()}", "language": "es", "status": status, "components": []}
        for status in ("PAUSED", "DISABLED", "PENDING")
    ]
    return tuple(template_from_json(body) for body in (NAMED_TEMPLATE, POSITIONAL_TEMPLATE, *others))


def options(**changes: Any) -> SandboxOptions:
    return SandboxOptions(**{"known_templates": known_templates(), **changes})


def text_parameter(text: str, name: str = "") -> dict[str, str]:
    parameter = {"type": "text", "text": text}
    return parameter | {"parameter_name": name} if name else parameter


def reminder(**changes: Any) -> dict[str, Any]:
    """A template message that Meta takes; the changes replace keys of the envelope."""
    return {
        "messaging_product": "whatsapp",
        "to": NUMBER,
        "type": "template",
        "biz_opaque_callback_data": REFERENCE,
        "template": {
            "name": "recordatorio",
            "language": {"code": "es"},
            "components": [
                {
                    "type": "body",
                    "parameters": [
                        text_parameter(f"Ana {MARK}", "nombre"),
                        text_parameter("9:30 a. m.", "hora"),
                    ],
                },
                {
                    "type": "button",
                    "sub_type": "quick_reply",
                    "index": "0",
                    "parameters": [{"type": "payload", "payload": "CONFIRM_1.0.sig"}],
                },
                {
                    "type": "button",
                    "sub_type": "url",
                    "index": "2",
                    "parameters": [{"type": "text", "text": "abc"}],
                },
            ],
        },
    } | changes


def positional_notice() -> dict[str, Any]:
    components = [
        {"type": "header", "parameters": [text_parameter("Ana")]},
        {"type": "body", "parameters": [text_parameter("4 de diciembre"), text_parameter("9:30")]},
    ]
    return reminder(template={"name": "aviso", "language": {"code": "es"}, "components": components})


def session_text(body: str = "Gracias.", **changes: Any) -> dict[str, Any]:
    return {"messaging_product": "whatsapp", "to": NUMBER, "type": "text", "text": {"body": body}} | changes


def session_buttons(titles: tuple[str, ...] = ("Confirmar", "Cancelar")) -> dict[str, Any]:
    buttons = [
        {"type": "reply", "reply": {"id": f"ID_{place}", "title": title}}
        for place, title in enumerate(titles)
    ]
    interactive = {
        "type": "button",
        "header": {"type": "text", "text": "Su cita"},
        "body": {"text": "¿Podrá asistir?"},
        "footer": {"text": "Consultorio Ejemplo"},
        "action": {"buttons": buttons},
    }
    return {"messaging_product": "whatsapp", "to": NUMBER, "type": "interactive", "interactive": interactive}


def session_list(rows: int = 2) -> dict[str, Any]:
    listed = [
        {"id": f"SLOT_{row}", "title": f"Vie 4 dic, {row + 1}:00", "description": "Consultorio 3"}
        for row in range(rows)
    ]
    interactive = {
        "type": "list",
        "body": {"text": "Elija una hora."},
        "action": {
            "button": "Ver horarios",
            "sections": [
                {"title": "Mañana", "rows": listed[: rows // 2]},
                {"title": "Tarde", "rows": listed[rows // 2 :]},
            ],
        },
    }
    return {"messaging_product": "whatsapp", "to": NUMBER, "type": "interactive", "interactive": interactive}


def spoilt(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with another value at ``a.b.0.c``; None takes the key away."""
    changed = copy.deepcopy(body)
    target: Any = changed
    *parents, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in parents:
        target = target[step]
    if value is None:
        del target[last]
    elif isinstance(target, list) and last == len(target):
        target.append(value)
    else:
        target[last] = value
    return changed


def send(sandbox: Sandbox, body: Any = None, **changes: Any) -> requests.Response:
    """POST a message; the keywords go to requests."""
    return requests.post(
        f"{sandbox.url}/v26.0/{sandbox.options.phone_number_id}/messages",
        **{"json": reminder() if body is None else body, "headers": authorized(sandbox), "timeout": 30}
        | changes,
    )


def authorized(sandbox: Sandbox) -> dict[str, str]:
    return {"Authorization": f"Bearer {sandbox.options.access_token}"}
