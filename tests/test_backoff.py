"""When a definite refusal is tried again."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reminders import backoff

attempts = st.integers(1, 100_000)
jitters = st.floats(0, 1)


@pytest.mark.parametrize(
    ("attempt", "seconds"), [(1, 30), (2, 60), (3, 120), (4, 240), (5, 480), (6, 600), (7, 600), (1_000, 600)]
)
def test_the_wait_doubles_up_to_ten_minutes(attempt, seconds):
    assert backoff.delay(attempt, jitter=0) == timedelta(seconds=seconds)


@settings(deadline=None)
@given(attempts, jitters)
def test_at_most_a_tenth_is_added(attempt, jitter):
    plain = backoff.delay(attempt, jitter=0)
    assert plain <= backoff.delay(attempt, jitter=jitter) <= plain * 1.1
    assert plain <= backoff.delay(attempt) <= plain * 1.1


@settings(deadline=None)
@given(attempts)
def test_a_later_attempt_never_waits_less(attempt):
    assert backoff.delay(attempt, jitter=0) <= backoff.delay(attempt + 1, jitter=0)


def test_what_was_refused_together_does_not_come_back_together():
    assert len({backoff.delay(1) for _ in range(20)}) > 1
