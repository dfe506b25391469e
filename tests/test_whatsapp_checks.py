"""What is missing is said before anything is sent."""

from __future__ import annotations

import pytest
from django.core.checks import ERROR, WARNING
from pytest_django.fixtures import Settings

from whatsapp.checks import check_credentials


def test_nothing_is_missing_in_a_complete_environment() -> None:
    assert check_credentials() == []


@pytest.mark.parametrize(
    ("name", "code", "level"),
    [
        ("WHATSAPP_ACCESS_TOKEN", "whatsapp.E001", ERROR),
        ("WHATSAPP_PHONE_NUMBER_ID", "whatsapp.E002", ERROR),
        ("WHATSAPP_APP_SECRETS", "whatsapp.E003", ERROR),
        ("WHATSAPP_VERIFY_TOKEN", "whatsapp.W001", WARNING),
        ("WHATSAPP_BUSINESS_ACCOUNT_ID", "whatsapp.W002", WARNING),
    ],
)
def test_what_is_missing_is_named_with_a_hint(settings: Settings, name: str, code: str, level: int) -> None:
    setattr(settings, name, "")
    (message,) = check_credentials()
    assert (message.id, message.level) == (code, level)
    assert name in message.msg
    assert message.hint


def test_nothing_is_needed_while_the_channel_is_off(settings: Settings) -> None:
    settings.WHATSAPP_ACCESS_TOKEN = ""
    settings.REMINDER_CHANNELS = ["email"]
    assert check_credentials() == []


def test_a_developers_machine_may_start_without_credentials(settings: Settings) -> None:
    settings.WHATSAPP_ACCESS_TOKEN = ""
    settings.IS_LOCAL = True
    assert [message.level for message in check_credentials()] == [WARNING]
