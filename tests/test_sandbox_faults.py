"""The sandbox fails on purpose, and its books say what really happened."""

from __future__ import annotations

import pytest
import requests

from amedi.sandbox import Sandbox, SandboxOptions
from tests.sandbox_requests import NUMBER, OTHER_NUMBER, authorized, options, reminder, send
from tests.webhook_receiver import receiving


@pytest.mark.parametrize("where", ["before_status_line", "in_status_line", "in_body"])
def test_a_lost_answer_is_a_message_that_was_accepted(where: str) -> None:
    with (
        receiving() as receiver,
        Sandbox(options(callback_url=receiver.url, lose_answer_for={NUMBER}, lose_answer=where)) as sandbox,
    ):
        with pytest.raises((requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
            send(sandbox)
        assert sandbox.flush(10)
        assert len(sandbox.accepted) == 1
        assert send(sandbox, reminder(to=OTHER_NUMBER)).status_code == 200
    assert [status["status"] for status in receiver.statuses][:2] == ["sent", "delivered"]


def test_a_client_that_stops_waiting_leaves_an_accepted_message() -> None:
    with Sandbox(options(delay_seconds=3600)) as sandbox:
        with pytest.raises(requests.ReadTimeout):
            send(sandbox, timeout=0.2)
        assert len(sandbox.accepted) == 1


def test_stopping_ends_connections_that_clients_keep_open() -> None:
    with requests.Session() as session, Sandbox(options()) as sandbox:
        address = f"{sandbox.url}/phones"
        assert session.get(address, timeout=10).status_code == 200
        sandbox.stop()
        with pytest.raises(requests.ConnectionError):
            session.get(address, timeout=10)


@pytest.mark.parametrize(
    ("code", "http_status"),
    [(131026, 400), (130429, 429), (131016, 503), (190, 401), (368, 403), (132001, 404), (999999, 400)],
)
def test_a_chosen_number_gets_the_chosen_error(code: int, http_status: int) -> None:
    with Sandbox(options(error_for={NUMBER: code})) as sandbox:
        answer = send(sandbox)
        assert (answer.status_code, answer.json()["error"]["code"]) == (http_status, code)
        assert send(sandbox, reminder(to=OTHER_NUMBER)).status_code == 200
        assert [message.to for message in sandbox.accepted] == [OTHER_NUMBER]
        assert [(refused.code, refused.to) for refused in sandbox.refused] == [(code, NUMBER)]


def test_a_passing_error_says_that_it_passes() -> None:
    with Sandbox(options(error_for={NUMBER: 131016})) as sandbox:
        assert send(sandbox).json()["error"]["is_transient"] is True


def test_messages_are_counted_per_delivery() -> None:
    with Sandbox(options()) as sandbox:
        for reference in ("d:a:1", "d:a:2", "d:ab:1", "r:a:1"):
            send(sandbox, reminder(biz_opaque_callback_data=reference))
        assert sandbox.accepted_per_delivery() == {"d:a": 2, "d:ab": 1, "r:a": 1}
        assert [message.reference for message in sandbox.accepted_for("d:a")] == ["d:a:1", "d:a:2"]
        assert [message.reference for message in sandbox.accepted_for("d:a:2")] == ["d:a:2"]


def test_the_books_can_be_read_over_http() -> None:
    with Sandbox(options(error_for={OTHER_NUMBER: 131026})) as sandbox:
        wamid = send(sandbox, reminder(biz_opaque_callback_data="d:a:1")).json()["messages"][0]["id"]
        send(sandbox, reminder(to=OTHER_NUMBER, biz_opaque_callback_data="d:b:1"))
        books = requests.get(f"{sandbox.url}/sandbox/accepted", timeout=10).json()
    (accepted,) = books["accepted"]
    assert (accepted["wamid"], accepted["to"], accepted["reference"]) == (wamid, NUMBER, "d:a:1")
    assert books["per_delivery"] == {"d:a": 1}
    assert [(refused["code"], refused["reference"]) for refused in books["refused"]] == [(131026, "d:b:1")]


def patch(sandbox: Sandbox, changes: object) -> requests.Response:
    return requests.patch(f"{sandbox.url}/sandbox/options", json=changes, timeout=10)


def test_options_change_over_http() -> None:
    with Sandbox(options()) as sandbox:
        answer = patch(
            sandbox,
            {
                "error_for": {NUMBER: 131026},
                "lose_answer_for": [OTHER_NUMBER],
                "receipts": ["sent"],
                "repeat_webhooks": 2,
                "delay_seconds": 0.5,
                "reorder_webhooks": True,
                "known_templates": [{"name": "otra", "language": "es", "components": []}],
            },
        )
        assert answer.status_code == 200
        changed = sandbox.options
    assert changed.error_for == {NUMBER: 131026}
    assert list(changed.lose_answer_for) == [OTHER_NUMBER]
    assert changed.receipts == ("sent",)
    assert (changed.repeat_webhooks, changed.delay_seconds, changed.reorder_webhooks) == (2, 0.5, True)
    assert [template.name for template in changed.known_templates] == ["otra"]


@pytest.mark.parametrize(
    "changes",
    [
        {"nonsense": 1},
        {"port": 1},
        {"delay_seconds": "1"},
        {"delay_seconds": -1},
        {"repeat_webhooks": 1.5},
        {"receipts": ["seen"]},
        {"receipts": "sent"},
        {"error_for": [1]},
        {"error_for": {NUMBER: "131026"}},
        {"lose_answer": "somewhere"},
        {"known_templates": [{"name": "no language"}]},
        {"reorder_webhooks": 1},
        [],
    ],
)
def test_a_wrong_option_changes_nothing(changes: object) -> None:
    with Sandbox(options()) as sandbox:
        before = sandbox.options
        answer = patch(sandbox, changes)
        assert answer.status_code == 400
        assert answer.json()["error"]
        assert sandbox.options == before


def test_options_do_not_show_their_secrets() -> None:
    shown = repr(SandboxOptions(access_token="tttt", app_secret="ssss", verify_token="vvvv"))
    assert not any(secret in shown for secret in ("tttt", "ssss", "vvvv"))


def test_every_version_of_the_api_answers() -> None:
    with Sandbox(options()) as sandbox:
        for version in ("v23.0", "v26.0", "v31.0"):
            answer = requests.post(
                f"{sandbox.url}/{version}/{sandbox.options.phone_number_id}/messages",
                json=reminder(),
                headers=authorized(sandbox),
                timeout=10,
            )
            assert answer.status_code == 200


def test_an_unknown_address_of_the_api_is_a_graph_error() -> None:
    with Sandbox(options()) as sandbox:
        answer = requests.get(f"{sandbox.url}/v26.0/me", headers=authorized(sandbox), timeout=10)
    assert answer.json()["error"]["code"] == 2500
