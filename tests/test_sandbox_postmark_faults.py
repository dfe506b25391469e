"""Postmark's stand-in fails on purpose, and its books say what really happened."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
import requests

from amedi.sandbox.postmark import Postmark, PostmarkOptions
from tests.postmark_requests import ADDRESS, OTHER_ADDRESS, mail, posting_to, search, send
from tests.webhook_receiver import receiving


def standing_in(**changes: Any) -> Postmark:
    return Postmark(PostmarkOptions(**changes))


@pytest.mark.parametrize(
    ("code", "http_status"),
    [(10, 401), (100, 503), (300, 422), (405, 422), (406, 422), (429, 429), (500, 500)],
)
def test_a_chosen_address_gets_the_chosen_error(code: int, http_status: int) -> None:
    with standing_in(error_for={ADDRESS: code}) as postmark:
        answer = send(postmark)
        assert (answer.status_code, answer.json()["ErrorCode"]) == (http_status, code)
        assert send(postmark, mail(To=OTHER_ADDRESS)).status_code == 200
        assert [accepted.to for accepted in postmark.accepted] == [OTHER_ADDRESS]
        assert [refused.code for refused in postmark.refused] == [code]


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_an_answer_can_come_without_json(status: int) -> None:
    with standing_in(status_for={ADDRESS: status}) as postmark:
        answer = send(postmark)
        assert answer.status_code == status
        assert "json" not in answer.headers["Content-Type"]
        batch = send(postmark, [mail(To=OTHER_ADDRESS), mail()], to="/email/batch")
        assert batch.status_code == status
        assert postmark.accepted == []
        assert send(postmark, mail(To=OTHER_ADDRESS)).status_code == 200


def test_an_inactive_address_is_named_in_lower_case() -> None:
    with standing_in(inactive={ADDRESS}) as postmark:
        answer = send(postmark, mail(To=ADDRESS.upper()))
        assert (answer.status_code, answer.json()["ErrorCode"]) == (422, 406)
        assert f"Found inactive addresses: {ADDRESS}. Inactive recipients" in answer.json()["Message"]


def test_a_mail_that_only_some_will_get_is_accepted_for_them() -> None:
    with standing_in(inactive={ADDRESS}) as postmark:
        answer = send(postmark, mail(Cc=OTHER_ADDRESS)).json()
        assert answer["ErrorCode"] == 0
        assert f"will not deliver to these inactive addresses: {ADDRESS}. Inactive" in answer["Message"]
        assert postmark.letters(ADDRESS) == []
        assert len(postmark.letters(OTHER_ADDRESS)) == 1


@pytest.mark.parametrize("where", ["before_status_line", "in_status_line", "in_body"])
def test_a_lost_answer_is_a_mail_that_was_accepted(where: str) -> None:
    with (
        receiving() as receiver,
        posting_to(receiver, lose_answer_for={ADDRESS}, lose_answer=where) as postmark,
    ):
        with pytest.raises((requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
            send(postmark)
        assert postmark.flush(10)
        assert len(postmark.accepted) == 1
        assert send(postmark, mail(To=OTHER_ADDRESS)).status_code == 200
    assert receiver.events[0]["RecordType"] == "Delivery"


def test_a_server_error_may_hide_a_mail_that_was_accepted() -> None:
    with receiving() as receiver, posting_to(receiver) as postmark:
        postmark.change(lose_answer_for={ADDRESS}, lose_answer="server_error")
        answer = send(postmark)
        assert answer.status_code == 500
        assert "json" not in answer.headers["Content-Type"]
        assert len(postmark.accepted) == 1
        assert search(postmark).json()["TotalCount"] == 1
        assert postmark.flush(10)
    assert len(receiver.events) == 1


def test_a_client_that_stops_waiting_leaves_an_accepted_mail() -> None:
    with standing_in(delay_seconds=3600) as postmark:
        with pytest.raises(requests.ReadTimeout):
            send(postmark, timeout=0.2)
        assert len(postmark.accepted) == 1


def test_refusals_are_as_slow_as_acceptances() -> None:
    with standing_in(
        delay_seconds=0.2, error_for={ADDRESS: 406}, status_for={OTHER_ADDRESS: 503}
    ) as postmark:
        for address in (ADDRESS, OTHER_ADDRESS, "third@correo.example"):
            before = time.monotonic()
            send(postmark, mail(To=address))
            assert time.monotonic() - before >= 0.2


def test_stopping_refuses_connections_and_ends_those_that_are_kept() -> None:
    with requests.Session() as session, standing_in() as postmark:
        address = postmark.url
        assert session.get(address, timeout=10).status_code == 200
        postmark.stop()
        with pytest.raises(requests.ConnectionError):
            session.get(address, timeout=10)


def test_after_an_outage_it_is_back_at_the_same_address() -> None:
    with receiving() as receiver, posting_to(receiver, event_delay_seconds=0.3) as postmark:
        send(postmark)
        address = postmark.url
        postmark.stop()
        with pytest.raises(requests.ConnectionError):
            requests.get(address, timeout=10)
        postmark.start()
        assert postmark.url == address
        assert send(postmark).status_code == 200
        assert postmark.flush(10)
    assert len(receiver.events) == 2


def test_many_threads_at_once_lose_nothing() -> None:
    with standing_in() as postmark:
        senders = [threading.Thread(target=send, args=(postmark,)) for _ in range(20)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert len({accepted.message_id for accepted in postmark.accepted}) == 20


@pytest.mark.parametrize(
    "changes",
    [
        {"events": ("Click",)},
        {"lose_answer": "never"},
        {"bounce_for": {ADDRESS: "Rubber"}},
        {"error_for": {ADDRESS: 1}},
        {"status_for": {ADDRESS: 999}},
        {"inactive": {ADDRESS.upper()}},
        {"message_streams": ()},
        {"webhook_secret": "no-colon"},
        {"delay_seconds": -1},
        {"port": 1},
        {"unheard_of": 1},
    ],
)
def test_an_option_that_means_nothing_is_refused(changes: dict[str, Any]) -> None:
    with standing_in() as postmark:
        before = postmark.options
        with pytest.raises(ValueError, match=r"\.$"):
            postmark.change(**changes)
        assert postmark.options == before


def test_options_change_over_http() -> None:
    with standing_in() as postmark:
        address = f"{postmark.url}/sandbox/options"
        changes = {"error_for": {ADDRESS: 429}, "bounce_for": {OTHER_ADDRESS: "SoftBounce"}}
        assert requests.patch(address, json=changes, timeout=10).status_code == 200
        assert send(postmark).status_code == 429
        assert postmark.options.bounce_for == {OTHER_ADDRESS: "SoftBounce"}
        for wrong in ({"error_for": {ADDRESS: "429"}}, {"bounce_for": {ADDRESS: 1}}, {"port": 1}):
            assert requests.patch(address, json=wrong, timeout=10).status_code == 400
        assert requests.patch(address, data=b"{}", timeout=10).status_code == 400
