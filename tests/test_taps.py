"""What a button carries, and that nobody else can make one."""

from __future__ import annotations

import pytest

from reminders import taps
from reminders.taps import Word
from tests.factories import make_appointment

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("word", list(Word))
def test_a_button_comes_back_as_what_it_was_made_for(word):
    visit = make_appointment()
    text = taps.payload(word, visit)
    assert len(text) <= 128
    assert text.startswith(f"{word}_{visit.pk.hex}_{visit.sequence}")
    tap = taps.read(text)
    assert tap is not None
    assert (tap.word, tap.appointment_id, tap.sequence) == (word, visit.pk, visit.sequence)


def test_every_word_has_the_label_of_the_templates():
    assert set(taps.TITLES) == set(Word)


def test_a_key_that_was_rotated_out_is_still_read_while_it_is_a_fallback(settings):
    text = taps.payload(Word.CONFIRM, make_appointment())
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-key-for-tests-9876543210-abcdefghijklmnopqrstuvw"
    assert taps.read(text) is not None
    settings.SECRET_KEY_FALLBACKS = []
    assert taps.read(text) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-1],
        lambda text: text[:-1] + ("A" if text[-1] != "A" else "B"),
        lambda text: text.replace("CONFIRM", "CANCEL"),
        lambda text: text.replace("_0:", "_1:"),
        lambda text: text.lower(),
        lambda text: text + " ",
        lambda text: text + "\r\nX-Injected: 1",
        lambda text: text * 40,
        lambda text: "",
        lambda text: "CONFIRM",
        lambda text: "CONFIRM_'; DROP TABLE x;--_0:AAAA",
        lambda text: "\x00",
    ],
)
def test_anything_else_is_nothing(change):
    assert taps.read(change(taps.payload(Word.CONFIRM, make_appointment()))) is None
