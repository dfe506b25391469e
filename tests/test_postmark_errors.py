"""The tables: what follows from Postmark's codes, statuses and bounces."""

from __future__ import annotations

import pytest

from amedi.sandbox.postmark import bounces
from amedi.sandbox.postmark import errors as theirs
from reminders.postmark.errors import BOUNCES, CODES, Fate, Next, after_code, after_status, fate


def test_every_code_of_a_refused_mail_is_known():
    of_other_calls = {700, 701}
    assert theirs.CODES - of_other_calls <= CODES.keys()
    assert after_code(99_999, "") == Next.UNKNOWN


@pytest.mark.parametrize(
    ("message", "means"),
    [
        ("Invalid 'To' address: 'x'.", Next.INVALID),
        ("Error parsing 'To': Illegal email domain 'x' in address 'x@x'.", Next.INVALID),
        ("Invalid 'From' address: 'x'.", Next.ACCOUNT),
        ("Invalid metadata content.", Next.NEVER),
    ],
)
def test_an_invalid_mail_is_the_fault_of_whoever_is_named(message, means):
    assert after_code(300, message) == means


@pytest.mark.parametrize("status", [200, 201, 408, 500, 502, 503, 504])
def test_a_status_that_tells_nothing_decides_nothing(status):
    assert after_status(status) is None


@pytest.mark.parametrize(
    ("status", "means"), [(302, Next.ACCOUNT), (401, Next.ACCOUNT), (413, Next.NEVER), (429, Next.PACE)]
)
def test_a_status_that_refuses_is_a_refusal(status, means):
    assert after_status(status) == means


def test_every_bounce_is_known_and_those_that_end_an_address_are_the_same():
    assert bounces.BOUNCES.keys() <= BOUNCES.keys()
    final = {kind for kind, bounce in bounces.BOUNCES.items() if bounce.is_final}
    assert {kind for kind in bounces.BOUNCES if fate(kind) == Fate.DEAD} == final


def test_an_address_that_postmark_gave_up_is_dead_whatever_the_bounce():
    assert fate("Transient") == Fate.NOTHING
    assert fate("Transient", is_inactive=True) == Fate.DEAD
    assert fate("Something new", is_inactive=True) == Fate.DEAD
    assert fate("Something new") == Fate.NOTHING
    # Who complained can be reached; they do not want to be.
    assert fate("SpamComplaint", is_inactive=True) == Fate.UNWANTED
