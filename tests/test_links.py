"""The tokens in the links that patients get: who can make one, and what it opens."""

from __future__ import annotations

import re
from types import SimpleNamespace
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from django.urls import reverse

from reminders import links

VISIT = SimpleNamespace(pk=UUID(int=2**127 + 12345), sequence=3, patient_id=42)
DELIVERY = SimpleNamespace(pk=UUID(int=2**126 + 678))


@pytest.fixture(autouse=True)
def client_url(settings):
    settings.CLIENT_URL = "https://citas.example.org"


def token_of(url: str) -> str:
    return urlsplit(url).path.split("/")[2]


def test_the_link_of_a_visit_names_visit_version_and_patient():
    link = links.read_visit(token_of(links.visit_url(VISIT)))
    assert link == links.VisitLink(appointment_id=VISIT.pk, sequence=3, patient_id=42)


def test_the_link_of_preferences_names_the_message():
    assert links.read_preferences(token_of(links.preferences_url(DELIVERY))) == DELIVERY.pk


def test_links_are_short_stand_in_a_url_as_they_are_and_lead_to_our_pages():
    for url, page in (
        (links.visit_url(VISIT), "patient:visit"),
        (links.preferences_url(DELIVERY), "patient:preferences"),
    ):
        assert len(token_of(url)) < 80
        assert re.fullmatch(r"[A-Za-z0-9_.-]+", token_of(url))
        assert url == f"https://citas.example.org{reverse(page, args=[token_of(url)])}"


def test_the_token_of_one_purpose_opens_nothing_of_another():
    assert links.read_preferences(token_of(links.visit_url(VISIT))) is None
    assert links.read_visit(token_of(links.preferences_url(DELIVERY))) is None


def test_no_single_changed_character_leaves_a_token_valid():
    token = links.visit_token(VISIT)
    for place, old in enumerate(token):
        for new in "A1_.":
            changed = token[:place] + new + token[place + 1 :]
            assert new == old or links.read_visit(changed) is None


@pytest.mark.parametrize(
    "token",
    ["", ".", "a.b.c", "null", "%00", "ñandú", "🙂", "A" * 22, "A" * 22 + ".0.1", "A" * 100_000, "\x00"],
)
def test_anything_else_names_nothing(token):
    assert links.read_visit(token) is None
    assert links.read_preferences(token) is None


def test_another_key_signs_nothing_for_us(settings):
    token = links.visit_token(VISIT)
    settings.SECRET_KEY = "another"
    assert links.read_visit(token) is None


def test_links_in_old_messages_survive_a_change_of_the_key(settings):
    token = links.visit_token(VISIT)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "new"
    assert links.read_visit(token).appointment_id == VISIT.pk
    assert links.visit_token(VISIT) != token
