"""What every test gets: quick passwords, and a watch on what is logged."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from datetime import datetime, time
from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection
from playwright.sync_api import Browser, Page
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from amedi.log_lines import LineFormatter
from amedi.sandbox import Sandbox, SandboxOptions, template_from_json
from amedi.sandbox.postmark import Postmark, PostmarkOptions
from reminders.models import ReminderRule
from tests.browser import DESK, PHONE, chromium, open_page
from tests.factories import MARK, PHONE_MARK, caracas


@pytest.fixture(autouse=True)
def quick_passwords(settings: Settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def default_rules(request: pytest.FixtureRequest) -> None:
    """The rules that ship for every test, but for those that flush the database: they begin without any."""
    marker = request.node.get_closest_marker("django_db")
    flushes = "transactional_db" in request.fixturenames or bool(marker and marker.kwargs.get("transaction"))
    if flushes:
        # Gone after the first such test anyway, and no test may depend on being that one.
        request.getfixturevalue("transactional_db")
        ReminderRule.objects.all().delete()
        return
    if not (marker or "db" in request.fixturenames):
        return
    request.getfixturevalue("db")
    if not ReminderRule.objects.exists():
        for migration in ("0003_default_rules", "0012_default_notices"):
            import_module(f"reminders.migrations.{migration}").create(apps, None)


@pytest.fixture
def set_clock(db: None) -> Callable[[str], datetime]:
    """Put the product's clock at a Caracas time, for the rest of the test's transaction."""

    def set_to(text: str) -> datetime:
        moment = caracas(text)
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('amedi.now', %s, true)", [moment.isoformat()])
        return moment

    return set_to


class Lines(logging.Handler):
    """Keeps every line as the product's formatter writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(LineFormatter())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture(autouse=True)
def no_patient_in_the_logs() -> Iterator[Lines]:
    """Fail a test in which a marked name, phone or text reached any logger."""
    handler = Lines()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)
    leaked = [line for line in handler.lines if MARK in line or PHONE_MARK in line]
    assert not leaked, f"a patient's data stands in the log: {leaked}"


@pytest.fixture
def sandbox(live_server: LiveServer, settings: Settings) -> Iterator[Sandbox]:
    """Meta's stand-in, which knows our templates and posts its webhooks to the real server."""
    templates = [
        template_from_json(json.loads(path.read_text()))
        for path in settings.WHATSAPP_TEMPLATES_DIR.glob("*.json")
    ]
    options = SandboxOptions(
        callback_url=f"{live_server.url}/webhooks/whatsapp/",
        access_token=settings.WHATSAPP_ACCESS_TOKEN,
        app_secret=settings.WHATSAPP_APP_SECRETS[0],
        phone_number_id=settings.WHATSAPP_PHONE_NUMBER_ID,
        business_account_id=settings.WHATSAPP_BUSINESS_ACCOUNT_ID,
        known_templates=tuple(templates),
    )
    settings.REMINDER_QUIET_HOURS = (time(0), time(0))
    with Sandbox(options) as running:
        settings.WHATSAPP_API_URL = running.url
        yield running


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    """Debian's Chromium; skipped where it is missing, but never in CI."""
    with chromium(monkeypatch) as running:
        yield running


@pytest.fixture(params=[DESK, PHONE], ids=["desk", "phone"])
def page(request: pytest.FixtureRequest, browser: Browser) -> Page:
    """A page in the size of a desk's screen, and then of a phone's."""
    return open_page(browser, request.param)


@pytest.fixture
def postmark(live_server: LiveServer, settings: Settings) -> Iterator[Postmark]:
    """Postmark's stand-in, which posts its webhooks to the real server; the test switches email on."""
    settings.DEFAULT_FROM_EMAIL = "Consultorio Ejemplo <citas@consultorio.example>"
    settings.POSTMARK_SERVER_TOKEN = "test-server-token-not-real"
    settings.POSTMARK_WEBHOOK_SECRET = "postmark:test-password-not-real"
    options = PostmarkOptions(
        callback_url=f"{live_server.url}/webhooks/postmark/tracking/",
        server_token=settings.POSTMARK_SERVER_TOKEN,
        webhook_secret=settings.POSTMARK_WEBHOOK_SECRET,
    )
    settings.REMINDER_QUIET_HOURS = (time(0), time(0))
    with Postmark(options) as running:
        settings.POSTMARK_API_URL = running.url
        yield running
