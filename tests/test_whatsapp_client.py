"""The list of templates, and new ones: one call, one answer."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import requests
from pytest_django.fixtures import Settings

from tests.whatsapp_meta import Meta, answer, hang_up, payload, running_meta
from whatsapp.answers import AnswerLost, GraphError
from whatsapp.client import Client
from whatsapp.errors import Next


@pytest.fixture
def meta(settings: Settings) -> Iterator[Meta]:
    with running_meta() as meta:
        settings.WHATSAPP_API_URL = meta.url
        yield meta


def test_the_list_of_templates_is_read_page_after_page(meta: Meta) -> None:
    meta.will(answer(payload("api-20-templates-page-1")), answer(payload("api-21-templates-page-2")))
    listed = list(Client.from_settings().list_templates())
    assert [(item.name, item.language, item.status, item.category) for item in listed] == [
        ("recordatorio_cita", "es", "APPROVED", "UTILITY"),
        ("recordatorio_cita", "en_US", "REJECTED", "UTILITY"),
        ("aviso_cambio", "es", "PAUSED", "MARKETING"),
        ("plantilla_futura", "es", "SOMETHING_NEW", "NEW_CATEGORY"),
    ]
    assert (listed[0].quality, listed[0].ttl_seconds, len(listed[0].components)) == ("GREEN", 43200, 2)
    assert (listed[2].previous_category, listed[2].correct_category) == ("UTILITY", "MARKETING")
    assert listed[3].components == ()
    first, second = meta.calls
    assert first.path.startswith("/v26.0/100000000000001/message_templates?")
    assert "quality_score" in first.path
    assert "after" not in first.path
    assert "after=QVFJ" in second.path


def test_the_token_goes_to_no_address_that_a_page_names(meta: Meta) -> None:
    page = json.loads(payload("api-20-templates-page-1"))
    with running_meta() as elsewhere:
        elsewhere.will(answer("{}"))
        page["paging"]["next"] = f"{elsewhere.url}/next"
        meta.will(answer(json.dumps(page)), answer(payload("api-21-templates-page-2")))
        assert len(list(Client.from_settings().list_templates())) == 4
        assert elsewhere.calls == []


def test_a_list_that_names_the_same_page_again_ends(meta: Meta) -> None:
    meta.will(answer(payload("api-20-templates-page-1")))
    list(Client.from_settings().list_templates())
    assert len(meta.calls) == 2


@pytest.mark.parametrize("body", ['{"data": [1, null, {}, {"name": "x"}]}', '{"data": []}'])
def test_a_template_without_name_or_language_is_left_out(meta: Meta, body: str) -> None:
    meta.will(answer(body))
    assert list(Client.from_settings().list_templates()) == []


def test_a_list_that_cannot_be_read_is_an_error(meta: Meta) -> None:
    meta.will(answer("<html>"))
    with pytest.raises(AnswerLost):
        list(Client.from_settings().list_templates())
    meta.will(answer(payload("api-10-err-190-expired"), status=401))
    with pytest.raises(GraphError):
        list(Client.from_settings().list_templates())


def test_a_new_template_may_come_back_in_another_category(meta: Meta) -> None:
    meta.will(answer(payload("api-22-template-create-as-marketing")))
    created = Client.from_settings().create_template({"name": "x"})
    assert (created.template_id, created.status, created.category) == (
        "500000000000006",
        "APPROVED",
        "MARKETING",
    )
    assert (meta.calls[0].method, meta.calls[0].body) == ("POST", {"name": "x"})


def test_a_refused_template_says_why_in_words_for_people(meta: Meta) -> None:
    meta.will(answer(payload("api-23-template-create-err-2388299"), status=400))
    with pytest.raises(GraphError) as caught:
        Client.from_settings().create_template({"name": "x"})
    error = caught.value
    assert (error.code, error.subcode, error.verdict.next) == (100, 2388299, Next.TEMPLATE)
    assert error.user_message == "(texto inventado) hay una variable al principio o al final"


def test_what_the_caller_was_busy_with_does_not_change_the_answer(meta: Meta) -> None:
    meta.will(hang_up)
    try:
        raise requests.ConnectTimeout
    except requests.ConnectTimeout:
        with pytest.raises(AnswerLost):
            Client.from_settings().create_template({"name": "x"})
