"""The patient's phone: what it shows, and what tapping and writing do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests

from amedi.sandbox import NothingToTapError, Sandbox
from tests.factories import MARK
from tests.sandbox_requests import (
    NUMBER,
    OTHER_NUMBER,
    options,
    positional_notice,
    reminder,
    send,
    session_buttons,
    session_list,
)
from tests.webhook_receiver import Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as clinic:
        yield clinic


@pytest.fixture
def sandbox(receiver: Receiver) -> Iterator[Sandbox]:
    noon = datetime(2026, 12, 1, 12, tzinfo=UTC)
    ticks = iter(range(10_000))
    with Sandbox(
        options(callback_url=receiver.url), clock=lambda: noon + timedelta(seconds=next(ticks))
    ) as running:
        yield running


def shown(sandbox: Sandbox, number: str = NUMBER) -> list[dict[str, Any]]:
    return requests.get(f"{sandbox.url}/phone/{number}/messages", timeout=10).json()["messages"]


def post(sandbox: Sandbox, verb: str, body: Any, number: str = NUMBER) -> requests.Response:
    return requests.post(f"{sandbox.url}/phone/{number}/{verb}", json=body, timeout=10)


def read_statuses(receiver: Receiver) -> list[str]:
    return [status["id"] for status in receiver.statuses if status["status"] == "read"]


def test_the_template_stands_there_with_its_parameters_filled_in(sandbox: Sandbox) -> None:
    send(sandbox)
    (bubble,) = shown(sandbox)
    assert bubble["body"] == (
        f"Hola, Ana {MARK}. Le recordamos su cita a las 9:30 a. m. con su doctora de siempre."
    )
    assert bubble["footer"] == "Consultorio Ejemplo"
    assert [choice["title"] for choice in bubble["choices"]] == ["Confirmar", "Cancelar", "Ver"]
    assert [choice["can_be_tapped"] for choice in bubble["choices"]] == [True, True, False]


def test_positional_parameters_fill_header_and_body(sandbox: Sandbox) -> None:
    send(sandbox, positional_notice())
    (bubble,) = shown(sandbox)
    assert bubble["header"] == "Cita de Ana"
    assert bubble["body"] == "Su cita cambió al 4 de diciembre a las 9:30. Gracias."


def test_a_parameter_that_looks_like_a_variable_stays_as_it_is(sandbox: Sandbox) -> None:
    body = reminder()
    body["template"]["components"][0]["parameters"][0]["text"] = "{{hora}}"
    send(sandbox, body)
    assert shown(sandbox)[0]["body"].startswith("Hola, {{hora}}. ")


def test_the_number_may_come_without_its_plus_sign(sandbox: Sandbox) -> None:
    send(sandbox)
    assert sandbox.flush(10)
    assert shown(sandbox, NUMBER.removeprefix("+")) == shown(sandbox)


def test_a_phone_without_messages_is_empty(sandbox: Sandbox) -> None:
    assert shown(sandbox) == []


@pytest.mark.parametrize("number", ["x", "12", "<script>", "+58412"])
def test_something_else_is_no_phone(sandbox: Sandbox, number: str) -> None:
    answer = requests.get(f"{sandbox.url}/phone/{requests.utils.quote(number)}/messages", timeout=10)
    assert answer.status_code == 400


def test_a_tap_by_its_place_reaches_the_clinic(sandbox: Sandbox, receiver: Receiver) -> None:
    send(sandbox)
    answer = post(sandbox, "tap", {"wamid": shown(sandbox)[0]["wamid"], "index": 1})
    assert sandbox.flush(10)
    (message,) = receiver.messages
    assert answer.json() == {"wamid": message["id"]}
    assert message["button"]["text"] == "Cancelar"
    assert shown(sandbox)[-1]["body"] == "Cancelar"
    assert shown(sandbox)[-1]["from_patient"] is True


def test_a_tap_by_its_payload_reaches_the_clinic(sandbox: Sandbox, receiver: Receiver) -> None:
    send(sandbox)
    post(sandbox, "tap", {"wamid": shown(sandbox)[0]["wamid"], "payload": "CONFIRM_1.0.sig"})
    assert sandbox.flush(10)
    assert receiver.messages[0]["button"]["payload"] == "CONFIRM_1.0.sig"


@pytest.mark.parametrize(
    ("tap", "status"),
    [
        ({"wamid": "wamid.unknown", "index": 0}, 404),
        ({"wamid": "", "index": 9}, 404),
        ({"wamid": "", "payload": "x"}, 404),
        ({"wamid": ""}, 400),
        ({"index": 0}, 400),
        ({"wamid": "", "index": 0, "payload": "x"}, 400),
        ({"wamid": "", "index": "0"}, 400),
        ([], 400),
    ],
)
def test_a_tap_on_nothing_is_an_error(sandbox: Sandbox, tap: Any, status: int) -> None:
    send(sandbox)
    if isinstance(tap, dict) and tap.get("wamid") == "":
        tap = tap | {"wamid": shown(sandbox)[0]["wamid"]}
    assert post(sandbox, "tap", tap).status_code == status
    assert len(shown(sandbox)) == 1


def test_a_tap_from_another_page_is_refused(sandbox: Sandbox) -> None:
    send(sandbox)
    content = json.dumps({"wamid": shown(sandbox)[0]["wamid"], "index": 0})
    answer = requests.post(
        f"{sandbox.url}/phone/{NUMBER}/tap", data=content, headers={"Content-Type": "text/plain"}, timeout=10
    )
    assert answer.status_code == 400


def test_tapping_by_title_takes_the_newest_message(sandbox: Sandbox, receiver: Receiver) -> None:
    send(sandbox)
    newest = send(sandbox).json()["messages"][0]["id"]
    sandbox.tap(NUMBER, title="Confirmar")
    assert sandbox.flush(10)
    assert receiver.messages[0]["context"]["id"] == newest


def test_an_older_message_can_be_tapped_by_its_wamid(sandbox: Sandbox, receiver: Receiver) -> None:
    oldest = send(sandbox).json()["messages"][0]["id"]
    send(sandbox)
    sandbox.tap(NUMBER, title="Confirmar", wamid=oldest)
    assert sandbox.flush(10)
    assert receiver.messages[0]["context"]["id"] == oldest


def test_a_button_can_be_tapped_twice(sandbox: Sandbox, receiver: Receiver) -> None:
    send(sandbox)
    taps = [sandbox.tap(NUMBER, title="Confirmar"), sandbox.tap(NUMBER, title="Confirmar")]
    assert sandbox.flush(10)
    assert [message["id"] for message in receiver.messages] == taps
    assert len(set(taps)) == 2


@pytest.mark.parametrize(
    ("number", "title"), [(NUMBER, "Nada"), (NUMBER, "Ver"), (OTHER_NUMBER, "Confirmar")]
)
def test_a_button_that_is_not_there_cannot_be_tapped(sandbox: Sandbox, number: str, title: str) -> None:
    send(sandbox)
    with pytest.raises(NothingToTapError):
        sandbox.tap(number, title=title)


def test_a_message_that_failed_cannot_be_tapped(sandbox: Sandbox) -> None:
    sandbox.change(status_error_for={NUMBER: 131026})
    send(sandbox)
    assert sandbox.flush(10)
    with pytest.raises(NothingToTapError):
        sandbox.tap(NUMBER, title="Confirmar")
    assert (shown(sandbox)[0]["status"], shown(sandbox)[0]["error_code"]) == ("failed", 131026)


def test_free_text_reaches_the_clinic(sandbox: Sandbox, receiver: Receiver) -> None:
    text = f"¿A qué hora? {MARK}"
    assert post(sandbox, "text", {"text": text}).status_code == 200
    assert sandbox.flush(10)
    assert receiver.messages[0]["text"] == {"body": text}


@pytest.mark.parametrize("body", [{}, {"text": ""}, {"text": "  "}, {"text": 7}])
def test_empty_text_is_not_sent(sandbox: Sandbox, body: Any) -> None:
    assert post(sandbox, "text", body).status_code == 400
    assert shown(sandbox) == []


def test_the_patients_words_show_when_the_clinic_has_them(sandbox: Sandbox) -> None:
    sandbox.write(NUMBER, "Hola")
    assert sandbox.flush(10)
    assert shown(sandbox)[0]["status"] == "delivered"


def test_opening_the_phone_reads_each_message_once(sandbox: Sandbox, receiver: Receiver) -> None:
    wamid = send(sandbox).json()["messages"][0]["id"]
    assert sandbox.flush(10)
    assert read_statuses(receiver) == []
    for _ in range(2):
        assert post(sandbox, "read", {}).status_code == 200
        assert sandbox.flush(10)
    assert read_statuses(receiver) == [wamid]
    assert shown(sandbox)[0]["status"] == "read"


def test_opening_reads_nothing_when_that_is_switched_off(sandbox: Sandbox, receiver: Receiver) -> None:
    sandbox.change(read_when_opened=False)
    send(sandbox)
    assert sandbox.flush(10)
    sandbox.open_phone(NUMBER)
    assert sandbox.flush(10)
    assert read_statuses(receiver) == []


def test_a_list_shows_its_label_and_rows(sandbox: Sandbox) -> None:
    sandbox.write(NUMBER, "Hola")
    send(sandbox, session_list())
    bubble = shown(sandbox)[-1]
    assert bubble["list_label"] == "Ver horarios"
    assert bubble["choices"][0] == {
        "title": "Vie 4 dic, 1:00",
        "description": "Consultorio 3",
        "section": "Mañana",
        "can_be_tapped": True,
    }


def test_session_buttons_stand_below_their_text(sandbox: Sandbox) -> None:
    sandbox.write(NUMBER, "Hola")
    send(sandbox, session_buttons())
    bubble = shown(sandbox)[-1]
    assert (bubble["header"], bubble["body"], bubble["list_label"]) == ("Su cita", "¿Podrá asistir?", "")


def test_the_list_of_phones_begins_with_the_latest(sandbox: Sandbox) -> None:
    send(sandbox)
    send(sandbox, reminder(to=OTHER_NUMBER))
    phones = requests.get(f"{sandbox.url}/phones", timeout=10).json()["phones"]
    assert [phone["number"] for phone in phones] == [OTHER_NUMBER, NUMBER]


@pytest.mark.parametrize("path", ["/", f"/phone/{NUMBER}"])
def test_the_page_is_spanish_and_lets_nothing_foreign_in(sandbox: Sandbox, path: str) -> None:
    answer = requests.get(sandbox.url + path, timeout=10)
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert '<html lang="es">' in answer.text
    assert "Todavía no ha llegado ningún mensaje a este teléfono" in answer.text
    assert "http://" not in answer.text.replace("http://www.w3.org", "")
