"""The sandbox refuses what Meta refuses, in her own words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests

from amedi.sandbox import Sandbox
from tests.sandbox_requests import (
    NUMBER,
    authorized,
    options,
    positional_notice,
    reminder,
    send,
    session_buttons,
    session_list,
    session_text,
    spoilt,
    text_parameter,
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(options()) as running:
        running.write(NUMBER, "Hola")
        yield running


BODY = "template.components.0.parameters"
BUTTON = "template.components.1"
URL_BUTTON = "template.components.2"
BUTTONS = "interactive.action.buttons"
SECTIONS = "interactive.action.sections"
PAYLOAD = {"type": "payload", "payload": "CONFIRM"}

ENVELOPE: list[tuple[str, Any, int]] = [
    ("messaging_product", None, 100),
    ("messaging_product", "telegram", 100),
    ("recipient_type", "group", 100),
    ("to", None, 131008),
    ("to", "584125550001", 131009),
    ("to", "0412-5550001", 131009),
    ("to", "+582120000000", 131021),
    ("type", None, 131008),
    ("type", "image", 131051),
    ("template", None, 131008),
    ("template", [], 131009),
    ("text", {"body": "and a second kind"}, 100),
    ("unheard_of", "x", 100),
    ("biz_opaque_callback_data", "d" * 513, 131009),
    ("biz_opaque_callback_data", 7, 131009),
    ("context", {}, 131008),
]
TEMPLATE: list[tuple[str, Any, int]] = [
    ("template.name", "nadie", 132001),
    ("template.name", None, 131008),
    ("template.language.code", "es_VE", 132001),
    ("template.language.code", "en", 132001),
    ("template.name", "plantilla_paused", 132015),
    ("template.name", "plantilla_disabled", 132016),
    ("template.name", "plantilla_pending", 132001),
    ("template.components.0.type", "footer", 131009),
    ("template.components.3", {"type": "body", "parameters": []}, 131009),
    (f"{BODY}.1", None, 132000),
    (f"{BODY}.2", text_parameter("x", "extra"), 132000),
    (f"{BODY}.1.parameter_name", "otro", 132000),
    (f"{BODY}.1.parameter_name", "nombre", 132000),
    (f"{BODY}.1.parameter_name", None, 100),
    (f"{BODY}.1.parameter_name", "", 100),
    (f"{BODY}.0.text", "Ana\nMaría", 132018),
    (f"{BODY}.0.text", "Ana\tMaría", 132018),
    (f"{BODY}.0.text", "Ana     María", 132018),
    (f"{BODY}.0.text", "", 132018),
    (f"{BODY}.0.text", "   ", 132018),
    (f"{BODY}.0.text", 7, 132018),
    (f"{BODY}.0.type", "currency", 132018),
    (f"{BODY}.0.text", "A" * 1000, 132005),
    (f"{BUTTON}.index", 0, 131009),
    (f"{BUTTON}.index", "uno", 131009),
    (f"{BUTTON}.index", "3", 132018),
    (f"{BUTTON}.sub_type", "url", 132018),
    (f"{BUTTON}.parameters", [{"type": "text", "text": "CONFIRM"}], 132018),
    (f"{BUTTON}.parameters", [], 132018),
    (f"{BUTTON}.parameters", [PAYLOAD, PAYLOAD], 132018),
    (f"{BUTTON}.parameters.0.payload", "", 132018),
    (f"{BUTTON}.parameters.0.payload", "C" * 129, 131009),
    (f"{BUTTON}.index", "2", 132018),
    (URL_BUTTON, None, 131008),
    (f"{URL_BUTTON}.parameters", [PAYLOAD], 132018),
]
INTERACTIVE_BUTTONS: list[tuple[str, Any, int]] = [
    ("interactive.type", "carousel", 131009),
    ("interactive.body", None, 131008),
    ("interactive.body.text", "", 131009),
    ("interactive.body.text", "a" * 1025, 131009),
    ("interactive.header.text", "a" * 61, 131009),
    ("interactive.header.type", "image", 131009),
    ("interactive.footer.text", "a" * 61, 131009),
    (BUTTONS, [], 131009),
    (f"{BUTTONS}.0.type", "url", 131009),
    (f"{BUTTONS}.0.reply.title", "a" * 21, 131009),
    (f"{BUTTONS}.0.reply.title", "👍" * 11, 131009),
    (f"{BUTTONS}.0.reply.title", "", 131009),
    (f"{BUTTONS}.0.reply.title", "Cancelar", 131009),
    (f"{BUTTONS}.0.reply.id", "ID_1", 131009),
    (f"{BUTTONS}.0.reply.id", "a" * 257, 131009),
    (f"{BUTTONS}.0.reply.id", None, 131008),
]
INTERACTIVE_LIST: list[tuple[str, Any, int]] = [
    ("interactive.action.button", "a" * 21, 131009),
    ("interactive.action.button", None, 131008),
    (SECTIONS, [], 131009),
    (f"{SECTIONS}.0.title", None, 131008),
    (f"{SECTIONS}.0.title", "a" * 25, 131009),
    (f"{SECTIONS}.0.rows", [], 131009),
    (f"{SECTIONS}.0.rows.0.id", "SLOT_1", 131009),
    (f"{SECTIONS}.0.rows.0.id", "a" * 201, 131009),
    (f"{SECTIONS}.0.rows.0.title", "a" * 25, 131009),
    (f"{SECTIONS}.0.rows.0.title", None, 131008),
    (f"{SECTIONS}.0.rows.0.description", "a" * 73, 131009),
    (f"{SECTIONS}.0.rows.0.image", "x", 100),
]
TEXT: list[tuple[str, Any, int]] = [
    ("text.body", "", 131009),
    ("text.body", "a" * 4097, 131009),
    ("text.body", None, 131008),
    ("text.preview_url", "yes", 131009),
]


@pytest.mark.parametrize(
    ("body", "path", "value", "code"),
    [
        *((reminder(), *case) for case in ENVELOPE + TEMPLATE),
        *((session_buttons(), *case) for case in INTERACTIVE_BUTTONS),
        *((session_list(), *case) for case in INTERACTIVE_LIST),
        *((session_text(), *case) for case in TEXT),
    ],
)
def test_one_broken_rule_is_refused_with_its_code(
    sandbox: Sandbox, body: dict[str, Any], path: str, value: Any, code: int
) -> None:
    accepted = len(sandbox.accepted)
    answer = send(sandbox, spoilt(body, path, value))
    assert answer.json()["error"]["code"] == code
    assert answer.status_code == (404 if code == 132001 else 400)
    assert sandbox.refused[-1].code == code
    assert len(sandbox.accepted) == accepted


@pytest.mark.parametrize(
    "body",
    [
        reminder(),
        positional_notice(),
        spoilt(reminder(), "template.components.1", None),
        spoilt(reminder(), "template.language.policy", "deterministic"),
        spoilt(reminder(), f"{BODY}.0.text", "María    José"),
        spoilt(reminder(), f"{BUTTON}.parameters.0.payload", "C" * 128),
        reminder(biz_opaque_callback_data="d" * 512, context={"message_id": "wamid.x"}),
        session_text("a" * 4096),
        session_buttons(),
        session_buttons(("Sí", "No", "Quizás más tarde")),
        session_list(10),
    ],
)
def test_a_message_within_the_rules_is_accepted(sandbox: Sandbox, body: dict[str, Any]) -> None:
    answer = send(sandbox, body)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "messaging_product": "whatsapp",
        "contacts": [{"input": NUMBER, "wa_id": NUMBER.removeprefix("+")}],
        "messages": [{"id": sandbox.accepted[-1].wamid, "message_status": "accepted"}],
    }
    assert sandbox.accepted[-1].body == body


@pytest.mark.parametrize("body", [session_list(11), session_buttons(("1", "2", "3", "4"))])
def test_too_many_choices_are_refused(sandbox: Sandbox, body: dict[str, Any]) -> None:
    assert send(sandbox, body).json()["error"]["code"] == 131009


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        (f"{BODY}", [], 132000),
        ("template.components.1.parameters.1", None, 132000),
        ("template.components.1.parameters.0.parameter_name", "dia", 132018),
        ("template.components.0.parameters.0.text", "A" * 60, 132005),
    ],
)
def test_positional_parameters_are_counted(sandbox: Sandbox, path: str, value: Any, code: int) -> None:
    assert send(sandbox, spoilt(positional_notice(), path, value)).json()["error"]["code"] == code


def test_an_error_has_the_shape_of_metas(sandbox: Sandbox) -> None:
    error = send(sandbox, reminder(to="584125550001")).json()["error"]
    assert set(error) == {"message", "type", "code", "error_data", "fbtrace_id"}
    assert error["message"].startswith("(#131009) ")
    assert error["type"] == "OAuthException"
    assert set(error["error_data"]) == {"messaging_product", "details"}


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer other"}, {"Authorization": "other"}])
def test_a_wrong_token_is_refused(sandbox: Sandbox, headers: dict[str, str]) -> None:
    answer = send(sandbox, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, 190)


def test_another_phone_number_id_is_refused(sandbox: Sandbox) -> None:
    answer = requests.post(
        f"{sandbox.url}/v26.0/999/messages", json=reminder(), headers=authorized(sandbox), timeout=10
    )
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["error_subcode"]) == (400, 100, 33)


@pytest.mark.parametrize("content", [b"", b"not json", b"[]", b'{"to":'])
def test_a_body_that_is_not_a_json_object_is_refused(sandbox: Sandbox, content: bytes) -> None:
    headers = authorized(sandbox) | {"Content-Type": "application/json"}
    answer = send(sandbox, json=None, data=content, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, 100)


def test_a_form_is_refused(sandbox: Sandbox) -> None:
    answer = send(sandbox, json=None, data={"to": NUMBER})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, 100)


def test_a_bsuid_is_a_recipient_too(sandbox: Sandbox) -> None:
    body = spoilt(reminder(recipient="VE.100000000000000006"), "to", None)
    answer = send(sandbox, body)
    assert answer.json()["contacts"] == [
        {"input": "VE.100000000000000006", "user_id": "VE.100000000000000006"}
    ]


def test_something_else_is_no_bsuid(sandbox: Sandbox) -> None:
    assert send(sandbox, spoilt(reminder(recipient="584125550001"), "to", None)).status_code == 400


@pytest.mark.parametrize("body", [session_text(), session_buttons(), session_list()])
def test_session_messages_wait_until_the_patient_has_spoken(body: dict[str, Any]) -> None:
    with Sandbox(options()) as sandbox:
        assert send(sandbox, body).json()["error"]["code"] == 131047
        send(sandbox)
        assert send(sandbox, body).json()["error"]["code"] == 131047
        sandbox.tap(NUMBER, title="Confirmar")
        assert send(sandbox, body).status_code == 200


def test_the_window_of_one_number_is_not_that_of_another(sandbox: Sandbox) -> None:
    assert send(sandbox, session_text(to="+584125559999")).json()["error"]["code"] == 131047


def test_the_window_closes_after_24_hours() -> None:
    now = [datetime(2026, 12, 1, 12, tzinfo=UTC)]
    with Sandbox(options(), clock=lambda: now[0]) as sandbox:
        sandbox.write(NUMBER, "Hola")
        now[0] += timedelta(hours=23, minutes=59)
        assert send(sandbox, session_text()).status_code == 200
        now[0] += timedelta(minutes=1)
        assert send(sandbox, session_text()).json()["error"]["code"] == 131047
