"""The sandbox creates and lists templates by Meta's rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from amedi.sandbox import Sandbox, SandboxOptions
from tests.sandbox_requests import authorized, options, send, spoilt

GOOD: dict[str, Any] = {
    "name": "recordatorio_cita",
    "language": "es",
    "category": "UTILITY",
    "parameter_format": "NAMED",
    "message_send_ttl_seconds": 43200,
    "components": [
        {
            "type": "BODY",
            "text": "Hola {{paciente}}, su cita con {{medico}} es pronto. Elija una opción, por favor.",
            "example": {
                "body_text_named_params": [
                    {"param_name": "paciente", "example": "Ana"},
                    {"param_name": "medico", "example": "Dra. Ruiz"},
                ]
            },
        },
        {"type": "FOOTER", "text": "Consultorio Ejemplo"},
        {
            "type": "BUTTONS",
            "buttons": [
                {"type": "QUICK_REPLY", "text": "Confirmar"},
                {"type": "QUICK_REPLY", "text": "Reprogramar"},
            ],
        },
        {"type": "HEADER", "format": "TEXT", "text": "Recordatorio"},
    ],
}
NUMBERED: dict[str, Any] = {
    "name": "aviso",
    "language": "es_CO",
    "category": "UTILITY",
    "components": [
        {
            "type": "BODY",
            "text": "Su cita cambió al {{1}} a las {{2}}. Gracias.",
            "example": {"body_text": [["4 de diciembre", "9:30"]]},
        }
    ],
}
QUICK = {"type": "QUICK_REPLY", "text": "Otra"}
URL = {"type": "URL", "text": "Ver", "url": "https://example.org/{{1}}"}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxOptions()) as running:
        yield running


def address(sandbox: Sandbox) -> str:
    return f"{sandbox.url}/v26.0/{sandbox.options.business_account_id}/message_templates"


def create(sandbox: Sandbox, body: Any) -> requests.Response:
    return requests.post(address(sandbox), json=body, headers=authorized(sandbox), timeout=10)


def listed(sandbox: Sandbox, **query: Any) -> dict[str, Any]:
    answer = requests.get(address(sandbox), params=query, headers=authorized(sandbox), timeout=10)
    return answer.json()


BUTTON = "components.2.buttons"


@pytest.mark.parametrize(
    ("path", "value", "subcode"),
    [
        ("name", "Recordatorio", None),
        ("name", "r" * 513, None),
        ("name", None, None),
        ("language", "es_VE", None),
        ("language", "español", None),
        ("category", None, None),
        ("category", "REMINDER", None),
        ("parameter_format", "LOOSE", None),
        ("message_send_ttl_seconds", 43_201, None),
        ("message_send_ttl_seconds", "43200", None),
        ("components", [], 2388043),
        ("components.4", {"type": "BODY", "text": "Otro"}, None),
        ("components.4", {"type": "CAROUSEL"}, None),
        ("parameter_format", None, 2388072),
        ("components.0.text", "", 2388043),
        ("components.0.text", "a" * 1025, 2388040),
        ("components.0.text", "{{paciente}}, su cita con {{medico}} es pronto, elija por favor.", 2388299),
        ("components.0.text", "Hola {{paciente}}, elija una opción pronto para {{medico}}.", 2388299),
        ("components.0.text", "Hola {{paciente}} {{medico}} elija una opción por favor ya.", 2388072),
        ("components.0.text", "Hola {{paciente}} y {{medico}} ya.", 2388293),
        ("components.0.text", "Hola {{Paciente}}, su cita con {{medico}} es pronto, por favor.", 2388072),
        ("components.0.text", "Hola {{paci#ente}}, su cita con {{medico}} es pronto, por favor.", 2388072),
        ("components.0.text", "Hola {{paciente}, su cita con {{medico}} es pronto, por favor.", 2388072),
        (
            "components.0.text",
            "Hola {{paciente}}, su cita con {{medico}} es pronto " + "👍" * 11 + " ya",
            2388072,
        ),
        ("components.0.example", None, 2388043),
        ("components.0.example.body_text_named_params.1", None, 2388043),
        ("components.0.example.body_text_named_params.1.example", "", 2388043),
        ("components.0.example.body_text_named_params.1.param_name", "otro", 2388043),
        ("components.1.text", "a" * 61, 2388040),
        ("components.1.text", "De {{medico}} para usted", 2388073),
        ("components.3.text", "a" * 61, 2388040),
        ("components.3.text", "Recordatorio 👍", 2388047),
        ("components.3.format", "IMAGE", 2388047),
        ("components.3.text", "Hola {{paciente}}", 2388043),
        ("components.3.text", "Hola {{paciente}} de {{medico}} aquí", 2388047),
        (f"{BUTTON}.0.text", "a" * 26, 2388040),
        (f"{BUTTON}.0.text", "Reprogramar", 2388060),
        (f"{BUTTON}.0.text", "", 2388060),
        (f"{BUTTON}.0.type", "DANCE", 2388060),
        (BUTTON, [QUICK, URL, {"type": "QUICK_REPLY", "text": "Más"}], 2388060),
        (BUTTON, [{"type": "QUICK_REPLY", "text": f"Botón {n}"} for n in range(11)], 2388060),
        (BUTTON, [URL | {"text": f"Ver {n}"} for n in range(3)], 2388060),
        (BUTTON, [URL | {"url": "https://example.org/{{1}}/x"}], 2388060),
        (BUTTON, [URL | {"url": "https://example.org/" + "a" * 2000}], 2388040),
    ],
)
def test_one_broken_rule_is_refused(sandbox: Sandbox, path: str, value: Any, subcode: int | None) -> None:
    answer = create(sandbox, spoilt(GOOD, path, value))
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error.get("error_subcode")) == (400, 100, subcode)
    assert ("error_user_msg" in error) == (subcode is not None)
    assert listed(sandbox)["data"] == []


@pytest.mark.parametrize("body", [GOOD, NUMBERED, spoilt(GOOD, BUTTON, [QUICK, URL])])
def test_a_good_template_is_approved_at_once(sandbox: Sandbox, body: dict[str, Any]) -> None:
    answer = create(sandbox, body)
    assert answer.status_code == 200, answer.text
    created = answer.json()
    assert created == {"id": created["id"], "status": "APPROVED", "category": "UTILITY"}
    (template,) = listed(sandbox)["data"]
    assert (template["id"], template["name"], template["components"]) == (
        created["id"],
        body["name"],
        body["components"],
    )


def test_numbered_variables_have_no_gap(sandbox: Sandbox) -> None:
    body = spoilt(NUMBERED, "components.0.text", "Su cita cambió al {{1}} a las {{3}}. Gracias.")
    assert create(sandbox, body).json()["error"]["error_subcode"] == 2388072


def test_a_created_template_can_be_sent(sandbox: Sandbox) -> None:
    create(sandbox, GOOD)
    body = {
        "messaging_product": "whatsapp",
        "to": "+584125550001",
        "type": "template",
        "template": {
            "name": "recordatorio_cita",
            "language": {"code": "es"},
            "components": [
                {
                    "type": "body",
                    "parameters": [
                        {"type": "text", "parameter_name": "paciente", "text": "Ana"},
                        {"type": "text", "parameter_name": "medico", "text": "Dra. Ruiz"},
                    ],
                }
            ],
        },
    }
    assert send(sandbox, body).status_code == 200


def test_the_same_name_and_language_is_refused(sandbox: Sandbox) -> None:
    create(sandbox, GOOD)
    assert create(sandbox, GOOD).json()["error"]["error_subcode"] == 2388024
    other = spoilt(GOOD, "components.0.text", GOOD["components"][0]["text"] + " Gracias.")
    assert create(sandbox, spoilt(other, "language", "es_CO")).json()["status"] == "APPROVED"


def test_a_copy_under_another_name_is_rejected_in_review(sandbox: Sandbox) -> None:
    create(sandbox, GOOD)
    assert create(sandbox, spoilt(GOOD, "name", "copia")).json()["status"] == "REJECTED"


def test_the_list_comes_page_by_page() -> None:
    with Sandbox(options()) as sandbox:
        names, after = [], {}
        for _ in range(3):
            page = listed(sandbox, limit=2, **after)
            names.append([template["name"] for template in page["data"]])
            after = {"after": page["paging"]["cursors"]["after"]}
    assert [len(part) for part in names] == [2, 2, 1]
    assert len({name for part in names for name in part}) == 5
    assert "next" not in page["paging"]


def test_the_address_of_the_next_page_works() -> None:
    with Sandbox(options()) as sandbox:
        first = listed(sandbox, limit=3)
        second = requests.get(first["paging"]["next"], headers=authorized(sandbox), timeout=10).json()
    assert len(second["data"]) == 2


def test_reason_and_score_come_only_when_asked_for() -> None:
    with Sandbox(options()) as sandbox:
        assert "rejected_reason" not in listed(sandbox)["data"][0]
        asked = listed(sandbox, fields="name,rejected_reason,quality_score")["data"][0]
    assert set(asked) == {"id", "name", "rejected_reason", "quality_score"}


@pytest.mark.parametrize("query", [{"limit": "0"}, {"limit": "x"}, {"after": "x"}, {"after": "%%"}])
def test_an_unreadable_page_is_refused(sandbox: Sandbox, query: dict[str, str]) -> None:
    assert listed(sandbox, **query)["error"]["code"] == 100


def test_templates_need_the_token_and_the_account(sandbox: Sandbox) -> None:
    assert requests.get(address(sandbox), timeout=10).json()["error"]["code"] == 190
    other = address(sandbox).replace("100000000000001", "1")
    error = requests.get(other, headers=authorized(sandbox), timeout=10).json()["error"]
    assert (error["code"], error["error_subcode"]) == (100, 33)
