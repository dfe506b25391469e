"""The patient's pages in a real browser, without JavaScript, on a phone and with large letters."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from appointments import booking
from appointments.models import Appointment
from reminders import links, preferences
from tests.browser import PHONE, open_page, scrolls_sideways, serious_faults
from tests.factories import make_appointment, make_delivery, make_doctor, make_office, make_patient, soon

pytestmark = pytest.mark.django_db(transaction=True)
LARGE_LETTERS = {"width": PHONE["width"] // 2, "height": PHONE["height"] // 2}
"""What is left of a phone's screen at 200 %."""
THUMB = 44
"""How high something must be for a thumb, in CSS pixels (WCAG 2.5.5)."""
LIGHT = 20_000


@pytest.fixture
def visit() -> Appointment:
    office = make_office(
        map_url="https://maps.example.org/", address="Av. Principal de Las Mercedes, frente a la plaza"
    )
    doctor = make_doctor(office=office)
    return make_appointment(
        at=soon(30), doctor=doctor, patient=make_patient(doctor=doctor, time_zone="Europe/Madrid")
    )


def every_page(visit: Appointment) -> dict[str, str]:
    """The path of each page in each of its states."""
    paths = {"closed": "/cita/nonsense/"}
    for number, (name, becomes) in enumerate(
        {
            "scheduled": lambda _: None,
            "confirmed": lambda other: booking.confirm(other, actor=booking.SYSTEM),
            "checked in": lambda other: booking.check_in(other, actor=booking.SYSTEM),
            "in consultation": lambda other: booking.start(other, actor=booking.SYSTEM),
            "cancelled": lambda other: booking.cancel(other, actor=booking.SYSTEM),
            "moved": lambda other: booking.reschedule(
                other, date=other.date + timedelta(days=90), start_time=other.start_time, actor=booking.SYSTEM
            ),
        }.items()
    ):
        other = make_appointment(at=soon(54 + 24 * number), doctor=visit.doctor, patient=visit.patient)
        paths[name] = urlsplit(links.visit_url(other)).path
        becomes(other)
    begun = make_appointment(at=soon(-0.1), doctor=visit.doctor, patient=visit.patient)
    paths["begun"] = urlsplit(links.visit_url(begun)).path
    paths["question"] = f"{urlsplit(links.visit_url(visit)).path}cancelar/"
    mail = make_delivery(appointment=visit, channel="email", address="a-rather-long-name@mail.example.org")
    paths["preferences"] = urlsplit(links.preferences_url(mail)).path
    number = make_delivery(appointment=other, channel="whatsapp", address=visit.patient.phone)
    preferences.opt_out(address=number.address, channel="whatsapp", patient=number.patient, evidence="clic")
    paths["out"] = urlsplit(links.preferences_url(number)).path
    return paths


def test_every_page_in_every_state_is_readable_light_and_clean(browser, page: Page, live_server, visit):
    complaints: list[str] = []
    page.on("console", lambda line: complaints.append(line.text))
    for name, path in every_page(visit).items():
        complaints.clear()
        with page.expect_request_finished(lambda request: request.url.endswith("page.css")):
            response = page.goto(live_server.url + path)
        assert response
        files = [
            page.request.get(f"{live_server.url}/static/patient/{file}") for file in ("page.css", "icon.svg")
        ]
        assert sum(len(part.body()) for part in (response, *files)) < LIGHT, name
        assert page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") != "none"
        assert not serious_faults(page), name
        assert not scrolls_sideways(page), name
        # The plain page is a 404, which Chromium tells as a failed load.
        assert [line for line in complaints if "404" not in line] == [], name
        for target in page.locator("button, a").all():
            box = target.bounding_box()
            assert box and box["height"] >= THUMB, f"{name}: {target.inner_text()}"


def test_with_letters_twice_as_large_nothing_is_cut_off(browser, live_server, visit):
    page = open_page(browser, LARGE_LETTERS, device_scale_factor=2)
    for name, path in every_page(visit).items():
        page.goto(live_server.url + path)
        assert not scrolls_sideways(page), name


def test_without_javascript_one_confirms_and_then_cancels(browser, live_server, visit):
    page = open_page(browser, PHONE, java_script_enabled=False)
    page.goto(live_server.url + urlsplit(links.visit_url(visit)).path)
    page.get_by_role("button", name="Confirmar mi cita").click()
    expect(page.get_by_text("Su cita está confirmada.")).to_be_visible()
    page.reload()  # asks for the page again, and not whether to send a form twice
    page.get_by_role("link", name="Cancelar mi cita").click()
    page.get_by_role("link", name="No, conservarla").click()
    expect(page.get_by_text("Su cita está confirmada.")).to_be_visible()
    page.get_by_role("link", name="Cancelar mi cita").click()
    page.get_by_role("button", name="Sí, cancelar mi cita").click()
    expect(page.get_by_text("Esta cita está cancelada.")).to_be_visible()
    assert page.context.cookies() == []
    assert list(visit.history.values_list("to_status", flat=True)) == ["scheduled", "confirmed", "cancelled"]


def test_by_keyboard_alone_one_confirms(browser, live_server, visit):
    page = open_page(browser, PHONE)
    page.goto(live_server.url + urlsplit(links.visit_url(visit)).path)
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.innerText") == "Confirmar mi cita":
            break
    page.keyboard.press("Enter")
    expect(page.get_by_text("Su cita está confirmada.")).to_be_visible()


def test_the_new_state_stands_where_the_eye_is_after_the_tap(browser, live_server, visit):
    """Also on a small cheap phone, without scrolling."""
    page = open_page(browser, {"width": 320, "height": 480})
    page.goto(live_server.url + urlsplit(links.visit_url(visit)).path)
    page.get_by_role("button", name="Confirmar mi cita").click()
    expect(page.get_by_text("Su cita está confirmada.")).to_be_in_viewport()


def test_without_javascript_one_stops_the_mails_and_comes_back(browser, live_server, visit):
    mail = make_delivery(appointment=visit, channel="email", address="ana@mail.example.org")
    page = open_page(browser, PHONE, java_script_enabled=False)
    page.goto(live_server.url + urlsplit(links.preferences_url(mail)).path)
    page.get_by_role("button", name="No recibir más correos").click()
    expect(page.get_by_text("Ya no enviamos correos a a•••@mail.example.org.")).to_be_visible()
    page.get_by_role("button", name="Volver a recibirlos").click()
    expect(page.get_by_text("Le avisamos de sus citas por correo")).to_be_visible()
    assert page.context.cookies() == []
