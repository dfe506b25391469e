"""The webhooks come as Meta sends them: signed, in her shapes, and until they are taken."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
from typing import Any

import pytest

from amedi.sandbox import Sandbox
from amedi.sandbox.webhooks import gap_after
from tests.factories import MARK
from tests.sandbox_requests import (
    NUMBER,
    REFERENCE,
    options,
    reminder,
    send,
    session_buttons,
    session_list,
    session_text,
    spoilt,
)
from tests.webhook_receiver import Receiver, receiving

WA_ID = NUMBER.removeprefix("+")


def running(receiver: Receiver, **changes: Any) -> Sandbox:
    return Sandbox(options(callback_url=receiver.url, retry_gap_seconds=0.01, **changes))


def sent_statuses(receiver: Receiver) -> list[str]:
    return [status["status"] for status in receiver.statuses]


def test_each_webhook_is_signed_over_its_exact_bytes() -> None:
    with receiving() as receiver, running(receiver, app_secret="a-secret") as sandbox:
        sandbox.write(NUMBER, f"Sí, confirmo 👍 con el Dr. Núñez / 9:30 <a@b.example> {MARK}")
        assert sandbox.flush(10)
    (body,) = receiver.bodies
    expected = hmac.new(b"a-secret", body, hashlib.sha256).hexdigest()
    assert receiver.signatures == [f"sha256={expected}"]


def test_text_is_escaped_as_meta_does_it() -> None:
    with receiving() as receiver, running(receiver) as sandbox:
        sandbox.write(NUMBER, "Núñez 👍 / <a@b>")
        assert sandbox.flush(10)
    (body,) = receiver.bodies
    assert rb'"N\u00fa\u00f1ez \ud83d\udc4d \/ \u003Ca\u0040b>"' in body
    assert json.dumps(json.loads(body), separators=(",", ":")).encode() != body
    assert receiver.messages[0]["text"]["body"] == "Núñez 👍 / <a@b>"


def test_sent_delivered_and_read_come_with_our_reference() -> None:
    with receiving() as receiver, running(receiver, receipts=("sent", "delivered", "read")) as sandbox:
        wamid = send(sandbox).json()["messages"][0]["id"]
        assert sandbox.flush(10)
    assert sent_statuses(receiver) == ["sent", "delivered", "read"]
    for value in receiver.values:
        (status,) = value["statuses"]
        assert (status["id"], status["recipient_id"]) == (wamid, WA_ID)
        assert status["biz_opaque_callback_data"] == REFERENCE
        assert status["timestamp"].isdigit()
        assert value["contacts"][0]["wa_id"] == WA_ID
        assert value["metadata"]["phone_number_id"] == "200000000000002"
        assert value["contacts"][0]["user_id"] == status["recipient_user_id"]
    assert [status.get("pricing", {}).get("category") for status in receiver.statuses] == [
        "utility",
        "utility",
        None,
    ]


def test_the_envelope_names_the_business_account() -> None:
    with receiving() as receiver, running(receiver) as sandbox:
        sandbox.write(NUMBER, "Hola")
        assert sandbox.flush(10)
    envelope = json.loads(receiver.bodies[0])
    assert envelope["object"] == "whatsapp_business_account"
    assert envelope["entry"][0]["id"] == "100000000000001"
    assert envelope["entry"][0]["changes"][0]["field"] == "messages"


def test_a_failed_status_has_neither_contacts_nor_user_id() -> None:
    with receiving() as receiver, running(receiver, status_error_for={NUMBER: 131026}) as sandbox:
        assert send(sandbox).status_code == 200
        assert sandbox.flush(10)
    (value,) = receiver.values
    (status,) = value["statuses"]
    assert status["status"] == "failed"
    assert status["errors"][0]["code"] == 131026
    assert status["biz_opaque_callback_data"] == REFERENCE
    assert "contacts" not in value
    assert "recipient_user_id" not in status


def test_a_bsuid_has_no_phone_in_its_webhooks() -> None:
    body = spoilt({"recipient": "VE.100000000000000006"} | reminder(), "to", None)
    with receiving() as receiver, running(receiver, receipts=("sent",)) as sandbox:
        assert send(sandbox, body).status_code == 200
        sandbox.tap("VE.100000000000000006", title="Confirmar")
        assert sandbox.flush(10)
    assert "recipient_id" not in receiver.statuses[0]
    assert "from" not in receiver.messages[0]
    assert receiver.messages[0]["from_user_id"] == "VE.100000000000000006"
    assert all("wa_id" not in value["contacts"][0] for value in receiver.values)


def test_a_tap_on_a_template_is_of_type_button() -> None:
    with receiving() as receiver, running(receiver, receipts=()) as sandbox:
        asked = send(sandbox).json()["messages"][0]["id"]
        tap = sandbox.tap(NUMBER, title="Confirmar")
        assert sandbox.flush(10)
    (message,) = receiver.messages
    assert (message["id"], message["from"], message["type"]) == (tap, WA_ID, "button")
    assert message["button"] == {"payload": "CONFIRM_1.0.sig", "text": "Confirmar"}
    assert message["context"] == {"from": "582120000000", "id": asked}


def test_a_quick_reply_without_payload_sends_its_label() -> None:
    with receiving() as receiver, running(receiver, receipts=()) as sandbox:
        send(sandbox)
        sandbox.tap(NUMBER, title="Cancelar")
        assert sandbox.flush(10)
    assert receiver.messages[0]["button"] == {"payload": "Cancelar", "text": "Cancelar"}


def test_a_tap_on_a_session_button_is_interactive() -> None:
    with receiving() as receiver, running(receiver, receipts=()) as sandbox:
        sandbox.write(NUMBER, "Hola")
        asked = send(sandbox, session_buttons()).json()["messages"][0]["id"]
        sandbox.tap(NUMBER, title="Cancelar")
        assert sandbox.flush(10)
    tap = receiver.messages[-1]
    assert (tap["type"], tap["context"]["id"]) == ("interactive", asked)
    assert tap["interactive"] == {
        "type": "button_reply",
        "button_reply": {"id": "ID_1", "title": "Cancelar"},
    }


def test_a_row_of_a_list_comes_with_its_description() -> None:
    with receiving() as receiver, running(receiver, receipts=()) as sandbox:
        sandbox.write(NUMBER, "Hola")
        send(sandbox, session_list())
        sandbox.tap(NUMBER, payload="SLOT_1")
        assert sandbox.flush(10)
    assert receiver.messages[-1]["interactive"] == {
        "type": "list_reply",
        "list_reply": {"id": "SLOT_1", "title": "Vie 4 dic, 2:00", "description": "Consultorio 3"},
    }


def test_a_session_message_is_priced_as_service() -> None:
    with receiving() as receiver, running(receiver, receipts=("sent",)) as sandbox:
        sandbox.write(NUMBER, "Hola")
        send(sandbox, session_text())
        assert sandbox.flush(10)
    assert receiver.statuses[0]["pricing"]["category"] == "service"


def test_a_refused_webhook_comes_again_with_the_same_bytes() -> None:
    with receiving([500, 403]) as receiver, running(receiver) as sandbox:
        sandbox.write(NUMBER, "Hola")
        assert sandbox.flush(10)
    assert len(receiver.bodies) == 3
    assert len(set(receiver.bodies)) == 1


def test_a_redirect_is_not_followed() -> None:
    with receiving([301]) as receiver, running(receiver) as sandbox:
        sandbox.write(NUMBER, "Hola")
        assert sandbox.flush(10)
    assert len(receiver.bodies) == 2


def test_a_webhook_waits_for_a_server_that_is_down() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    address = f"http://127.0.0.1:{port}/webhooks/whatsapp/"
    with Sandbox(options(callback_url=address, retry_gap_seconds=0.01)) as sandbox:
        sandbox.write(NUMBER, "Hola")
        assert not sandbox.flush(0.1)
        with receiving(port=port) as receiver:
            assert sandbox.flush(10)
    assert len(receiver.messages) == 1


def test_the_gaps_between_tries_grow_up_to_a_minute() -> None:
    assert [gap_after(failures, 1) for failures in (1, 2, 3, 4, 7, 50)] == [1, 2, 4, 8, 60, 60]


def test_stopping_drops_what_nobody_takes() -> None:
    with receiving([500] * 1000) as receiver, running(receiver) as sandbox:
        sandbox.write(NUMBER, "Hola")
        sandbox.stop()
    assert not sandbox.flush(0)


def test_repeated_webhooks_are_the_same_bytes() -> None:
    with receiving() as receiver, running(receiver, repeat_webhooks=2, receipts=("sent",)) as sandbox:
        send(sandbox)
        assert sandbox.flush(10)
    assert len(receiver.bodies) == 3
    assert len(set(receiver.bodies)) == 1


def test_reordered_receipts_begin_with_the_last() -> None:
    receipts = ("sent", "delivered", "read")
    with receiving() as receiver, running(receiver, receipts=receipts, reorder_webhooks=True) as sandbox:
        send(sandbox)
        assert sandbox.flush(10)
        assert sandbox.conversation(NUMBER)[0]["status"] == "read"
    assert sent_statuses(receiver) == ["read", "delivered", "sent"]


def test_webhooks_can_come_before_the_answer() -> None:
    with receiving() as receiver, running(receiver, webhooks_before_answer=True) as sandbox:
        send(sandbox)
        assert sent_statuses(receiver) == ["sent", "delivered"]


def test_the_callback_must_pass_the_handshake_first() -> None:
    with (
        receiving(verify_token="right") as receiver,
        running(receiver, verify_token="wrong") as sandbox,
    ):
        sandbox.write(NUMBER, "Hola")
        assert not sandbox.flush(0.1)
        assert receiver.bodies == []
        sandbox.change(verify_token="right")
        assert sandbox.flush(10)
        sandbox.write(NUMBER, "Hola otra vez")
        assert sandbox.flush(10)
    assert len(receiver.messages) == 2
    assert receiver.handshakes[-1]["hub.mode"] == ["subscribe"]
    passed = [shake for shake in receiver.handshakes if shake["hub.verify_token"] == ["right"]]
    assert len(passed) == 1


def test_without_a_callback_nothing_is_posted_and_the_phone_still_shows_receipts() -> None:
    with Sandbox(options()) as sandbox:
        send(sandbox)
        assert sandbox.flush(10)
        assert sandbox.conversation(NUMBER)[0]["status"] == "delivered"


@pytest.mark.parametrize("receipts", [("sent",), ()])
def test_only_the_chosen_receipts_come(receipts: tuple[str, ...]) -> None:
    with receiving() as receiver, running(receiver, receipts=receipts) as sandbox:
        send(sandbox)
        assert sandbox.flush(10)
    assert tuple(sent_statuses(receiver)) == receipts
