"""What came in may be looked at, by ops only."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.factories import make_user
from tests.whatsapp_meta import payload
from whatsapp import inbox
from whatsapp.models import InboundMessage, QuarantinedItem, StatusEvent, Template, WebhookPost

NOW = datetime(2026, 12, 1, 12, 5, tzinfo=UTC)
MODELS = [WebhookPost, QuarantinedItem, InboundMessage, StatusEvent, Template]

every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)


def address(model: type, page: str, *args: Any) -> str:
    return reverse(f"admin:whatsapp_{model.__name__.lower()}_{page}", args=args)


def logged_in(**fields: Any) -> Client:
    client = Client()
    client.force_login(make_user(**fields))
    return client


def take(*names: str) -> None:
    for name in names:
        inbox.store(payload(name))
    inbox.work_off(now=NOW)


@pytest.fixture
def ops(db: None) -> Client:
    take("in-18-many-entries-mixed", "bad-01-truncated", "bad-13-hostile-payload-strings")
    return logged_in(is_superuser=True)


@every_model
def test_ops_look_at_every_list_and_page(ops: Client, model: type) -> None:
    row = model.objects.first()
    assert ops.get(address(model, "changelist")).status_code == 200
    page = ops.get(address(model, "change", row.pk))
    assert page.status_code == 200
    assert "_save" not in page.content.decode()


@every_model
def test_nothing_is_added_changed_or_deleted(ops: Client, model: type) -> None:
    row = model.objects.first()
    assert ops.get(address(model, "add")).status_code == 403
    assert ops.post(address(model, "change", row.pk), {}).status_code == 403
    assert ops.post(address(model, "delete", row.pk), {"post": "yes"}).status_code == 403
    assert model.objects.filter(pk=row.pk).exists()


@every_model
def test_nobody_else_sees_any_of_it_whatever_they_were_permitted(ops: Client, model: type) -> None:
    user = make_user()
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="whatsapp"))
    staff = Client()
    staff.force_login(user)
    assert staff.get(address(model, "changelist")).status_code == 403
    assert staff.get(address(model, "change", model.objects.first().pk)).status_code == 403


@every_model
def test_a_list_takes_as_many_queries_for_many_rows_as_for_few(ops: Client, model: type) -> None:
    with CaptureQueriesContext(connection) as few:
        ops.get(address(model, "changelist"))
    take("in-19-200-entries-one-poison", "bad-02-top-level-array", "acct-04-template-quality-two-field-names")
    with CaptureQueriesContext(connection) as many:
        ops.get(address(model, "changelist"))
    assert len(many) == len(few)


def test_the_list_of_posts_does_not_read_their_bodies(ops: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        ops.get(address(WebhookPost, "changelist"))
    assert not [query for query in queries.captured_queries if '"body"' in query["sql"]]


def test_a_body_is_shown_as_text_and_not_as_a_page(ops: Client) -> None:
    post = WebhookPost.objects.order_by("pk").last()
    assert post
    page = ops.get(address(WebhookPost, "change", post.pk)).content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>alert(1)" not in page


def test_a_long_body_is_shown_cut(ops: Client) -> None:
    take("in-19-200-entries-one-poison")
    post = WebhookPost.objects.latest("pk")
    page = ops.get(address(WebhookPost, "change", post.pk)).content.decode()
    assert "mensaje 0" in page
    assert len(page) < 80_000
    assert len(post.body) > 80_000


@pytest.mark.django_db
@pytest.mark.parametrize("raw", [b"\xff\xfe\x00", b""])
def test_a_body_that_is_no_text_can_be_looked_at_too(raw: bytes) -> None:
    post = inbox.store(raw)
    assert post
    assert logged_in(is_superuser=True).get(address(WebhookPost, "change", post.pk)).status_code == 200


def test_a_message_is_found_by_its_number(ops: Client) -> None:
    page = ops.get(address(InboundMessage, "changelist"), {"q": "584160000004"}).content.decode()
    assert "584160000004" in page
    assert "584240000002" not in page
