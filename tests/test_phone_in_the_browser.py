"""The patient's phone in a real browser: what it shows, and that its tap confirms the visit."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.engine import due_visit, settle

pytestmark = pytest.mark.django_db(transaction=True)


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
