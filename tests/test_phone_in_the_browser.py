"""The patient's phone in a real browser: what it shows, and that its tap confirms the visit."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from django.db import connections
from playwright.sync_api import Page, expect, sync_playwright

from tests.engine import due_visit, settle

pytestmark = pytest.mark.django_db(transaction=True)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOW = "no Chromium here: apt-get install chromium (or your system's package), and run the tests again"
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run"]  # fmt: skip


@pytest.fixture(params=[(1280, 800), (390, 844)], ids=["desk", "phone"])
def page(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    if CHROMIUM is None:
        # Where CI runs, a missing browser is a fault and no excuse.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(HOW)
    # Playwright's sync API keeps a loop running, in which Django refuses to work.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    width, height = request.param
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser.new_page(viewport={"width": width, "height": height}, locale="es-VE")
        browser.close()
        # Beside the running loop Django has opened a connection of its own.
        connections.close_all()


def test_a_patient_taps_confirmar_and_reads_that_it_is_done(sandbox, page):
    visit = due_visit()
    settle(sandbox)
    page.goto(f"{sandbox.url}/phone/{visit.patient.phone.removeprefix('+')}")
    messages = page.get_by_role("log", name="Mensajes")
    expect(messages.get_by_text("Falta poco para su cita")).to_be_visible()
    messages.get_by_role("button", name="Confirmar").click()
    expect(messages.get_by_text("Confirmar", exact=True).last).to_be_visible()
    settle(sandbox)
    expect(messages.get_by_text("quedó confirmada")).to_be_visible()
    visit.refresh_from_db()
    assert visit.status == "confirmed"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
