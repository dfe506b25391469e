"""The webhook's address: who may call it, what it keeps, what it answers."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from pytest_django.fixtures import Settings

from tests.whatsapp_meta import PAYLOADS, SECRET, payload, posted
from whatsapp import inbox, signals
from whatsapp.models import InboundMessage, QuarantinedItem, StatusEvent, Template, WebhookPost
from whatsapp.signature import sign

ADDRESS = "/webhooks/whatsapp/"
NOW = datetime(2026, 12, 1, 12, 5, tzinfo=UTC)
TOKEN = "test-verify-token-not-real"


def post(raw: bytes, *, signature: str | None = None, kind: str = "application/json", **headers: Any) -> int:
    """Post as Meta does; the status of the answer."""
    client = Client(enforce_csrf_checks=True)
    headers.setdefault("X-Hub-Signature-256", signature if signature is not None else sign(raw, SECRET))
    return client.post(ADDRESS, raw, content_type=kind, headers=headers).status_code


def sized(size: int) -> bytes:
    """A good body of this many bytes."""
    empty = posted({"messages": [], "more": ""})
    return empty.replace(b'"more": ""', b'"more": "' + b"x" * (size - len(empty)) + b'"')


# --- posts --------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "messages", "receipts", "templates", "aside"),
    [
        ("acct-01-template-approved-as-marketing", 0, 0, 1, 0),
        ("acct-02-template-rejected", 0, 0, 1, 0),
        ("acct-04-template-quality-two-field-names", 0, 0, 1, 0),
        ("acct-06-capability-and-phone-quality", 0, 0, 0, 0),
        ("acct-08-alert-and-security", 0, 0, 0, 0),
        ("acct-09-user-preferences", 0, 0, 0, 0),
        ("acct-10-unknown-field", 0, 0, 0, 0),
        ("bad-01-truncated", 0, 0, 0, 1),
        ("bad-02-top-level-array", 0, 0, 0, 1),
        ("bad-03-wrong-object", 0, 0, 0, 0),
        ("bad-05-numbers-as-strings", 0, 1, 1, 0),
        ("bad-06-huge-text", 1, 0, 0, 0),
        ("bad-07-unknown-type-and-extra-fields", 2, 0, 0, 0),
        ("bad-13-hostile-payload-strings", 6, 0, 0, 0),
        ("bad-14-invalid-utf8", 0, 0, 0, 1),
        ("in-01-text", 1, 0, 0, 0),
        ("in-02-text-escaped-bytes", 1, 0, 0, 0),
        ("in-03-button-template-tap", 1, 0, 0, 0),
        ("in-05-button-payload-is-label", 1, 0, 0, 0),
        ("in-06-interactive-button-reply", 1, 0, 0, 0),
        ("in-07-interactive-list-reply", 1, 0, 0, 0),
        ("in-10-reaction-add-remove", 2, 0, 0, 0),
        ("in-11-unsupported-edit-revoke", 3, 0, 0, 0),
        ("in-12-media", 3, 0, 0, 0),
        ("in-13-location-contacts-order", 3, 0, 0, 0),
        ("in-15-bsuid-only-button", 1, 0, 0, 0),
        ("in-16-contacts-incomplete", 2, 0, 0, 0),
        ("in-18-many-entries-mixed", 3, 3, 1, 0),
        ("in-19-200-entries-one-poison", 99, 100, 0, 1),
        ("in-21-other-phone-number-id", 0, 0, 0, 0),
        ("in-22-smb-message-echo", 0, 0, 0, 0),
        ("in-24-value-level-errors", 0, 0, 0, 0),
        ("st-01-sent-v23-conversation", 0, 1, 0, 0),
        ("st-02-sent-then-delivered-opaque", 0, 2, 0, 0),
        ("st-03-read-without-delivered", 0, 1, 0, 0),
        ("st-04-failed-131026", 0, 1, 0, 0),
        ("st-08-unknown-wamid", 0, 1, 0, 0),
        ("st-10-unknown-status-values", 0, 4, 0, 0),
    ],
)
def test_each_body_of_metas_is_kept_and_worked_off_once_though_it_comes_twice(
    name: str, messages: int, receipts: int, templates: int, aside: int
) -> None:
    for _time in range(2):
        assert post(payload(name)) == 200
        inbox.work_off(now=NOW)
        assert WebhookPost.objects.get().processed_at == NOW
        assert InboundMessage.objects.count() == messages
        assert StatusEvent.objects.count() == receipts
        assert Template.objects.count() == templates
        assert QuarantinedItem.objects.count() == aside


@pytest.mark.django_db
@pytest.mark.parametrize("path", sorted(PAYLOADS.glob("*.json")), ids=lambda path: path.stem)
def test_a_body_without_its_signature_leaves_nothing(path: Any) -> None:
    raw = path.read_bytes()
    assert post(raw, signature="") == 403
    assert post(raw, signature=sign(raw + b" ", SECRET)) == 403
    assert not WebhookPost.objects.exists()


@pytest.mark.django_db
def test_a_refused_body_is_one_warning_without_a_word_of_it(caplog: pytest.LogCaptureFixture) -> None:
    post(payload("in-01-text"), signature="")
    lines = [record for record in caplog.records if record.name.startswith("whatsapp")]
    assert [(line.levelname, line.getMessage()) for line in lines] == [
        ("WARNING", "webhook post outcome=not_authentic bytes=1079")
    ]


@pytest.mark.django_db
def test_without_a_secret_everything_is_refused(settings: Settings) -> None:
    settings.WHATSAPP_APP_SECRETS = []
    assert post(payload("in-01-text")) == 403
    assert post(payload("in-01-text"), signature=sign(payload("in-01-text"), "")) == 403


@pytest.mark.django_db
def test_both_secrets_pass_while_one_replaces_the_other(settings: Settings) -> None:
    settings.WHATSAPP_APP_SECRETS = ["next", SECRET]
    assert post(payload("in-01-text")) == 200
    assert (
        post(
            payload("in-03-button-template-tap"), signature=sign(payload("in-03-button-template-tap"), "next")
        )
        == 200
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    "kind", ["text/plain", "application/json; charset=utf-8", "multipart/form-data", "x"]
)
def test_the_content_type_does_not_matter(kind: str) -> None:
    assert post(payload("in-01-text"), kind=kind) == 200
    assert bytes(WebhookPost.objects.get().body) == payload("in-01-text")


@pytest.mark.django_db
@pytest.mark.parametrize("accept", ["*/*", "text/html", "image/png", "nonsense"])
def test_what_the_caller_wants_to_read_does_not_matter(accept: str) -> None:
    assert post(payload("in-01-text"), Accept=accept) == 200


@pytest.mark.django_db
def test_an_empty_body_that_is_signed_is_kept_and_put_aside() -> None:
    assert post(b"") == 200
    inbox.work_off(now=NOW)
    assert QuarantinedItem.objects.get().reason == "JSONDecodeError"


@pytest.mark.django_db
def test_a_body_of_almost_three_megabytes_is_kept() -> None:
    raw = sized(2_900_000)
    assert post(raw) == 200
    inbox.work_off(now=NOW)
    assert len(bytes(WebhookPost.objects.get(processed_at=NOW, error="").body)) == 2_900_000


@pytest.mark.django_db
@pytest.mark.parametrize("size", [3 * 1024 * 1024 + 1, 3_500_000, 5_000_000])
def test_a_larger_body_is_refused_even_when_it_is_signed(size: int) -> None:
    assert post(sized(size)) == 413
    assert not WebhookPost.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("length", ["", "abc", "-1", "9" * 30])
def test_a_length_that_is_none_is_no_fault_of_ours(length: str) -> None:
    raw = payload("in-01-text")
    headers = {"X-Hub-Signature-256": sign(raw, SECRET)}
    answer = Client().generic("POST", ADDRESS, raw, headers=headers, CONTENT_LENGTH=length)
    assert answer.status_code in (200, 403, 413)


@pytest.mark.django_db
def test_a_body_of_exactly_the_limit_is_kept() -> None:
    assert post(sized(3 * 1024 * 1024)) == 200


@pytest.mark.django_db
def test_a_thousand_receipts_in_one_body_are_all_handled() -> None:
    items = [
        {"id": f"wamid.{number}", "status": "delivered", "timestamp": "1796126400"} for number in range(1000)
    ]
    assert post(posted({"statuses": items})) == 200
    inbox.work_off(now=NOW)
    assert StatusEvent.objects.count() == 1000


@pytest.mark.django_db
def test_a_body_nested_without_end_is_kept_and_put_aside() -> None:
    assert post(b'{"entry":' + b"[" * 1_000_000) == 200
    inbox.work_off(now=NOW)
    assert QuarantinedItem.objects.get().reason in ("RecursionError", "JSONDecodeError")


@pytest.mark.django_db
def test_the_news_of_a_stored_post_go_out_once_and_a_faulty_listener_costs_nothing() -> None:
    heard: list[int] = []

    def stumble(*, post: WebhookPost, **_news: Any) -> None:
        heard.append(post.pk)
        raise ValueError

    signals.post_stored.connect(stumble)
    try:
        assert post(payload("in-01-text")) == 200
        assert post(payload("in-01-text")) == 200
    finally:
        signals.post_stored.disconnect(stumble)
    assert heard == [WebhookPost.objects.get().pk]


@pytest.mark.django_db
def test_nothing_is_handled_before_the_answer() -> None:
    post(payload("in-03-button-template-tap"))
    assert not InboundMessage.objects.exists()
    assert WebhookPost.objects.unprocessed().exists()


@pytest.mark.django_db
def test_a_body_that_could_not_be_kept_is_asked_for_again() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE whatsapp_webhookpost ADD CONSTRAINT full_up CHECK (length(body) < 10) NOT VALID"
        )
    assert post(payload("in-01-text")) == 503


@pytest.mark.django_db(transaction=True)
def test_the_same_body_fifty_times_at_once_is_one_post_and_fifty_times_good() -> None:
    count, raw = 50, payload("in-03-button-template-tap")
    barrier, answers = threading.Barrier(10), []

    def run() -> None:
        try:
            barrier.wait(20)
            answers.extend(post(raw) for _time in range(count // 10))
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * count
    inbox.work_off(now=NOW)
    assert WebhookPost.objects.count() == InboundMessage.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])
def test_nothing_but_get_and_post_is_answered(method: str) -> None:
    assert Client().generic(method, ADDRESS).status_code == 405


# --- handshake ----------------------------------------------------------------


def shake(**query: str) -> Any:
    given = {"hub.mode": "subscribe", "hub.challenge": "1158201444", "hub.verify_token": TOKEN}
    return Client().get(ADDRESS, {**given, **{f"hub.{name}": value for name, value in query.items()}})


def test_meta_gets_its_challenge_back_as_it_is() -> None:
    answer = shake()
    assert (answer.status_code, answer.content) == (200, b"1158201444")
    assert answer["Content-Type"] == "text/plain"


@pytest.mark.parametrize(
    "query",
    [
        {"verify_token": ""},
        {"verify_token": "wrong"},
        {"verify_token": f"{TOKEN} "},
        {"verify_token": "ñ"},
        {"mode": "unsubscribe"},
        {"mode": ""},
        {"challenge": ""},
        {"challenge": "<script>alert(1)</script>"},
        {"challenge": "1\n2"},
        {"challenge": "12\n"},
        {"challenge": "٣"},
        {"challenge": "9" * 201},
    ],
)
def test_nobody_else_gets_anything_back(query: dict[str, str]) -> None:
    answer = shake(**query)
    assert (answer.status_code, answer.content) == (403, b"")


def test_without_a_token_nobody_shakes_hands(settings: Settings) -> None:
    settings.WHATSAPP_VERIFY_TOKEN = ""
    assert shake(verify_token="").status_code == 403
    assert Client().get(ADDRESS, {"hub.mode": "subscribe", "hub.challenge": "1"}).status_code == 403


def test_the_challenge_is_not_put_into_quotes() -> None:
    assert json.loads(shake(challenge="42").content) == 42
