"""Our signatures are Django's: what is in old messages on the phones goes on working."""

from __future__ import annotations

import pytest
from django.core.signing import BadSignature, Signer

from reminders.signing import signer

KEYS = ["a-key", "ñandú 🙂", "long " * 50, b"bytes \xff"]
TEXTS = ["CONFIRM_0190a1b200007000800000000000000a_3", "", "a:b.c", "ñandú 🙂", "x" * 5_000]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("sep", [":", "."])
def test_what_is_signed_is_to_the_letter_what_django_signs(settings, key, sep):
    settings.SECRET_KEY = key
    for text in TEXTS:
        signed = Signer(key=key, salt="tests.one", sep=sep).sign(text)
        assert signer("tests.one", sep=sep).sign(text) == signed
        assert signer("tests.one", sep=sep).unsign(signed) == text


def test_what_an_old_key_signed_is_read_as_long_as_it_is_a_fallback(settings):
    signed = Signer(key="old", salt="tests.one").sign("text")
    settings.SECRET_KEY = "new"
    settings.SECRET_KEY_FALLBACKS = ["older", "old"]
    assert signer("tests.one").unsign(signed) == "text"
    settings.SECRET_KEY_FALLBACKS = ["older"]
    with pytest.raises(BadSignature):
        signer("tests.one").unsign(signed)


def test_each_salt_and_each_key_signs_otherwise_and_the_same_text_always_alike(settings):
    settings.SECRET_KEY = "one"
    first = signer("tests.one").sign("text")
    assert signer("tests.one").sign("text") == first
    assert signer("tests.two").sign("text") != first
    settings.SECRET_KEY = "two"
    assert signer("tests.one").sign("text") != first
