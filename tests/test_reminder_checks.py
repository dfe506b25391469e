"""Settings that cannot work are found at start, each with a hint."""

from __future__ import annotations

import pytest
from django.core.checks import run_checks


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("REMINDER_CHANNELS", [], "reminders.W001"),
        ("REMINDER_CHANNELS", ["pigeon"], "reminders.E001"),
        ("CHANNEL_BACKENDS", {"whatsapp": {"BACKEND": "reminders.channels.none.None"}}, "reminders.E002"),
        ("REMINDER_LEASE_SECONDS", 30, "reminders.E003"),
    ],
)
def test_a_setting_that_cannot_work_is_an_error_with_a_hint(settings, name, value, found):
    assert not [problem for problem in run_checks() if problem.id == found]
    setattr(settings, name, value)
    [problem] = [problem for problem in run_checks() if problem.id == found]
    assert problem.hint
