"""A real browser for the tests of screens: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from django.db import connections
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOW = "no Chromium here: apt-get install chromium (or your system's package), and run the tests again"
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run"]  # fmt: skip
DESK = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")


@contextmanager
def chromium(monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    """A browser of the test's own."""
    if CHROMIUM is None:
        # Where CI runs, a missing browser is a fault and no excuse.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(HOW)
    # Playwright's sync API keeps a loop running, in which Django refuses to work.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()
        # Beside the running loop Django has opened a connection of its own.
        connections.close_all()


def open_page(browser: Browser, size: dict[str, int], **options: Any) -> Page:
    """A page in a session of its own, in the patient's language."""
    return browser.new_context(viewport=size, locale="es-VE", **options).new_page()  # type: ignore[arg-type]


def serious_faults(page: Page) -> list[str]:
    """What axe finds wrong with the page for people who cannot see it, or use no mouse."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    return [
        f"{fault['id']}: {fault['nodes'][0]['html']}"
        for fault in found
        if fault["impact"] in ("serious", "critical")
    ]


def scrolls_sideways(page: Page) -> bool:
    """Whether something is wider than the screen."""
    return bool(page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))
