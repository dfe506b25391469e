"""The search in the outbound messages, by which a mail whose answer was lost is found again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests

from amedi.sandbox.postmark import Postmark, PostmarkOptions
from tests.factories import MARK
from tests.postmark_requests import ADDRESS, DELIVERY, METADATA, OTHER_ADDRESS, authorized, mail, search, send


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 12, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def postmark(clock: Clock) -> Iterator[Postmark]:
    with Postmark(PostmarkOptions(), clock=clock) as running:
        yield running


def found(postmark: Postmark, **query: Any) -> list[str]:
    return [message["MessageID"] for message in search(postmark, **query).json()["Messages"]]


def test_a_mail_is_found_by_its_metadata(postmark: Postmark) -> None:
    wanted = send(postmark).json()["MessageID"]
    send(postmark, mail(Metadata={"delivery": "d:2"}))
    send(postmark, mail(Metadata=None))
    assert found(postmark, metadata_delivery=DELIVERY) == [wanted]
    assert found(postmark, metadata_attempt="1") == [wanted]
    assert found(postmark, metadata_delivery="d:3") == []
    assert found(postmark, metadata_unknown="") == []


def test_the_answer_has_postmarks_shape(postmark: Postmark) -> None:
    message_id = send(postmark, mail(Tag="cita", Cc=OTHER_ADDRESS)).json()["MessageID"]
    assert search(postmark).json() == {
        "TotalCount": 1,
        "Messages": [
            {
                "Tag": "cita",
                "MessageID": message_id,
                "MessageStream": "outbound",
                "To": [{"Email": ADDRESS, "Name": f"Ana {MARK}"}],
                "Cc": [{"Email": OTHER_ADDRESS, "Name": None}],
                "Bcc": [],
                "Recipients": [ADDRESS, OTHER_ADDRESS],
                "ReceivedAt": "2026-12-01T07:00:00.0000000-05:00",
                "From": '"Consultorio Ejemplo" <citas@consultorio.example>',
                "Subject": f"Su cita, Ana {MARK}",
                "Attachments": ["cita.ics"],
                "Status": "Sent",
                "TrackOpens": True,
                "TrackLinks": "None",
                "Metadata": METADATA,
                "Sandboxed": False,
            }
        ],
    }


def test_it_pages_from_the_newest_on(postmark: Postmark) -> None:
    sent = [send(postmark).json()["MessageID"] for _ in range(3)]
    assert found(postmark, count=2) == sent[:0:-1]
    assert found(postmark, count=2, offset=2) == sent[:1]
    assert search(postmark, count=1).json()["TotalCount"] == 3


@pytest.mark.parametrize(
    "query",
    [
        {"recipient": OTHER_ADDRESS.upper()},
        {"tag": "cita"},
        {"subject": "Otra"},
        {"fromemail": "otra@consultorio.example"},
    ],
)
def test_it_filters_by_what_a_mail_says(postmark: Postmark, query: dict[str, str]) -> None:
    send(postmark)
    other = mail(To=OTHER_ADDRESS, Tag="cita", Subject="Otra", From="otra@consultorio.example")
    wanted = send(postmark, other).json()["MessageID"]
    assert found(postmark, **query, messagestream="outbound", status="sent") == [wanted]
    assert found(postmark, **query, status="queued") == []


def test_a_mail_is_found_only_once_it_is_indexed(postmark: Postmark, clock: Clock) -> None:
    postmark.change(indexing_delay_seconds=60)
    message_id = send(postmark).json()["MessageID"]
    clock.now += timedelta(seconds=59)
    assert found(postmark) == []
    clock.now += timedelta(seconds=1)
    assert found(postmark) == [message_id]


@pytest.mark.parametrize(
    "query",
    [
        {"count": ""},
        {"count": "0"},
        {"count": "501"},
        {"count": "-1"},
        {"offset": "x"},
        {"offset": "9951"},
        {"metadata_delivery": DELIVERY, "metadata_attempt": "1"},
        {"fromdate": "2026-12-01"},
        {"metadata.delivery": DELIVERY},
    ],
)
def test_a_question_that_postmark_does_not_take_is_refused(postmark: Postmark, query: dict[str, str]) -> None:
    answer = search(postmark, **query)
    assert (answer.status_code, answer.json()["ErrorCode"]) == (422, 700)


def test_count_and_offset_are_required(postmark: Postmark) -> None:
    for query in ({"count": 1}, {"offset": 0}):
        answer = requests.get(
            f"{postmark.url}/messages/outbound", params=query, headers=authorized(postmark), timeout=10
        )
        assert answer.json()["ErrorCode"] == 700


def test_the_search_needs_the_token(postmark: Postmark) -> None:
    answer = requests.get(
        f"{postmark.url}/messages/outbound",
        params={"count": 1, "offset": 0},
        headers={"Accept": "application/json"},
        timeout=10,
    )
    assert (answer.status_code, answer.json()["ErrorCode"]) == (401, 10)
