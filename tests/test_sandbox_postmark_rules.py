"""Postmark's stand-in takes what Postmark takes, and refuses what Postmark refuses."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
import requests

from amedi.sandbox.postmark import Postmark
from tests.factories import MARK
from tests.postmark_requests import (
    ADDRESS,
    DELIVERY,
    METADATA,
    OTHER_ADDRESS,
    attachment,
    authorized,
    headers,
    mail,
    send,
)


@pytest.fixture
def postmark() -> Iterator[Postmark]:
    with Postmark() as running:
        yield running


def test_an_accepted_mail_is_answered_with_its_id(postmark: Postmark) -> None:
    answer = send(postmark)
    (accepted,) = postmark.accepted
    assert answer.status_code == 200
    content = answer.json()
    assert (content["ErrorCode"], content["Message"]) == (0, "OK")
    assert content["MessageID"] == accepted.message_id
    assert content["To"] == f'"Ana {MARK}" <{ADDRESS}>'
    assert datetime.fromisoformat(content["SubmittedAt"]) == accepted.at
    assert accepted.body == mail()
    assert (accepted.to, accepted.metadata) == (ADDRESS, METADATA)


def test_it_counts_what_it_accepted_by_the_clinics_own_id(postmark: Postmark) -> None:
    for attempt in ("1", "2"):
        send(postmark, mail(Metadata={"delivery": DELIVERY, "attempt": attempt}))
    send(postmark, mail(Metadata={"delivery": "d:2"}))
    assert postmark.accepted_per_delivery() == {DELIVERY: 2, "d:2": 1}
    assert [found.metadata["attempt"] for found in postmark.accepted_for(DELIVERY)] == ["1", "2"]


@pytest.mark.parametrize("body", [mail(HtmlBody=None), mail(TextBody=None), mail(Metadata=None)])
def test_what_may_be_missing_may_be_missing(postmark: Postmark, body: dict[str, Any]) -> None:
    assert send(postmark, body).status_code == 200


def test_a_wrong_token_comes_before_everything_else(postmark: Postmark) -> None:
    answer = send(
        postmark, "no JSON object", headers=authorized(postmark, **{"X-Postmark-Server-Token": "x"})
    )
    assert (answer.status_code, answer.json()["ErrorCode"]) == (401, 10)
    assert postmark.accepted == []


@pytest.mark.parametrize(
    "changes", [{"Accept": "*/*"}, {"Accept": "text/html"}, {"Content-Type": "text/plain; charset=utf-8"}]
)
def test_both_headers_must_say_json(postmark: Postmark, changes: dict[str, str]) -> None:
    answer = send(postmark, headers=authorized(postmark, **changes))
    assert (answer.status_code, answer.json()["ErrorCode"]) == (415, 409)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_code_402(postmark: Postmark, content: bytes) -> None:
    asked = authorized(postmark, **{"Content-Type": "application/json"})
    answer = send(postmark, json=None, data=content, headers=asked)
    assert (answer.status_code, answer.json()["ErrorCode"]) == (422, 402)


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ([], 403, "$"),
        (mail(Betreff="Cita"), 403, "$.Betreff"),
        (mail(Subject=7), 403, "$.Subject"),
        (mail(TrackOpens="yes"), 403, "$.TrackOpens"),
        (mail(TrackLinks="All"), 403, "$.TrackLinks"),
        (mail(Metadata={"delivery": 7}), 403, "$.Metadata"),
        (mail(Headers={"X-Key": "value"}), 403, "$.Headers"),
        (mail(Headers=[{"Name": "X-Key"}]), 403, "$.Headers[0]"),
        (mail(Attachments=[attachment(Size="7")]), 403, "$.Attachments[0]"),
        (mail(MessageStream="broadcast"), 1235, "broadcast"),
        (mail(From=None), 300, "Invalid 'From' value."),
        (mail(From="a@b.example, c@d.example"), 300, "Invalid 'From' value."),
        (mail(From="citas@localhost"), 300, "Illegal email domain 'localhost'"),
        (mail(From=f"{'x' * 250} <a@b.example>"), 300, "Invalid 'From' value."),
        (mail(To=None), 300, "Zero recipients specified."),
        (mail(To="ana"), 300, "Error parsing 'To': Illegal email address 'ana'."),
        (mail(To="ana@-x.example"), 300, "Illegal email domain '-x.example' in address 'ana@-x.example'."),
        (mail(To="ñandú@correo.example"), 300, "Invalid 'To' address"),
        (mail(Cc="ana@correo"), 300, "Error parsing 'Cc'"),
        (mail(ReplyTo="ana"), 300, "Error parsing 'ReplyTo'"),
        (mail(Bcc=", ".join(f"a{place}@b.example" for place in range(50))), 300, "Too many recipients"),
        (mail(TextBody=" ", HtmlBody=None), 300, "Provide either email TextBody or HtmlBody or both."),
        (mail(TextBody="x" * (5 * 1024 * 1024 + 1)), 300, "TextBody is larger than 5 MB."),
        (mail(Subject="x" * 2001), 300, "Subject is longer"),
        (mail(Subject="Su cita\nBcc: x@y.example"), 300, "Subject must be one line."),
        (mail(Tag="x" * 1001), 300, "Tag is longer"),
        (mail(Headers=headers(X_Key="a\r\nBcc: x@y.example")), 300, "Invalid header"),
        (mail(Headers=[{"Name": "X Key", "Value": ""}]), 300, "Invalid header"),
        (mail(Headers=headers(Reply_To="x@y.example")), 300, "'Reply-To' is set by a field of its own."),
        (mail(Attachments=[attachment(Name="")]), 300, "needs a file's name"),
        (mail(Attachments=[attachment(Name="cita.EXE")]), 411, "cita.EXE"),
        (mail(Attachments=[attachment(ContentType="calendar")]), 300, "has no ContentType"),
        (mail(Attachments=[attachment(ContentType="text/plain; a\r\nSet-Cookie: b")]), 300, "no ContentType"),
        (mail(Attachments=[attachment(Content="BEGIN:VCALENDAR")]), 300, "is not base64"),
        (mail(Metadata={"k" * 21: "value"}), 300, f"The '{'k' * 21}' field in your metadata content exceeds"),
        (mail(Metadata={"key": "v" * 81}), 300, "The 'key' field in your metadata content exceeds"),
        (mail(Metadata={f"key{place}": "" for place in range(11)}), 300, "At most 10 fields"),
        (mail(Metadata={"key": "1", "Key": "2"}), 300, "differ by more than case"),
    ],
)
def test_a_mail_that_postmark_would_refuse_is_refused(
    postmark: Postmark, body: Any, code: int, words: str
) -> None:
    answer = send(postmark, body)
    assert (answer.status_code, answer.json()["ErrorCode"]) == (422, code)
    assert words in answer.json()["Message"]
    assert postmark.accepted == []


@pytest.mark.parametrize(
    "body",
    [
        mail(Metadata={"k" * 20: "v" * 80} | {f"key{place}": "" for place in range(9)}),
        mail(Subject="x" * 2000),
        mail(To='"Ruiz, Ana" <ana.ruiz+citas@sub.correo.example>'),
        mail(Bcc=", ".join(f"a{place}@b.example" for place in range(49))),
        mail(Headers=headers(List_Unsubscribe="<https://example.org/x>", Auto_Submitted="auto-generated")),
        mail(MessageStream="outbound"),
    ],
)
def test_what_is_just_within_the_rules_is_taken(postmark: Postmark, body: Any) -> None:
    assert send(postmark, body).json()["ErrorCode"] == 0


def test_a_request_beyond_ten_megabytes_is_answered_without_json(postmark: Postmark) -> None:
    large = attachment(Content="AAAA" * (10 * 1024 * 1024 // 4))
    answer = send(postmark, mail(Attachments=[large]))
    assert answer.status_code == 413
    assert "json" not in answer.headers["Content-Type"]
    assert send(postmark).status_code == 200


def test_a_batch_answers_for_each_mail(postmark: Postmark) -> None:
    answer = send(postmark, [mail(), mail(To="ana"), mail(To=OTHER_ADDRESS)], to="/email/batch")
    assert answer.status_code == 200
    assert [entry["ErrorCode"] for entry in answer.json()] == [0, 300, 0]
    assert [accepted.to for accepted in postmark.accepted] == [ADDRESS, OTHER_ADDRESS]
    assert [(refused.code, refused.to) for refused in postmark.refused] == [(300, "ana")]


@pytest.mark.parametrize(("body", "code"), [([mail()] * 501, 410), (mail(), 403), ([mail(), 7], 403)])
def test_a_batch_is_a_list_of_five_hundred_mails_at_most(postmark: Postmark, body: Any, code: int) -> None:
    answer = send(postmark, body, to="/email/batch")
    assert (answer.status_code, answer.json()["ErrorCode"]) == (422, code)
    assert postmark.accepted == []


@pytest.mark.parametrize("path", ["/email/withTemplate", "/emails", "/messages/inbound"])
def test_what_it_does_not_play_is_not_there(postmark: Postmark, path: str) -> None:
    assert send(postmark, to=path).status_code == 404


def test_the_books_are_open_over_http(postmark: Postmark) -> None:
    send(postmark)
    send(postmark, mail(To="ana"))
    books = requests.get(f"{postmark.url}/sandbox/accepted", timeout=10).json()
    assert [(mail["to"], mail["delivery"]) for mail in books["accepted"]] == [(ADDRESS, DELIVERY)]
    assert books["per_delivery"] == {DELIVERY: 1}
    assert [refused["code"] for refused in books["refused"]] == [300]
