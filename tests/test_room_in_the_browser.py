"""The room in real browsers: it changes by itself, keeps what one looks at, and says when it is not live."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from playwright.sync_api import Page, expect
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from amedi.sandbox import Sandbox
from appointments import booking, clock
from appointments.models import Appointment, Doctor
from tests.browser import DESK, PHONE, open_page, scrolls_sideways, serious_faults
from tests.engine import due_visit, settle, wait_for
from tests.factories import make_delivery, make_doctor, make_patient, make_user
from tests.room import (
    RoomServer,
    cut_the_listeners,
    log_in,
    make_desk,
    morning_office,
    serving,
    today,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def stream(
    tmp_path_factory: pytest.TempPathFactory,
    live_server: LiveServer,
    django_db_setup: None,
    django_db_blocker: Any,
) -> Iterator[RoomServer]:
    folder = tmp_path_factory.mktemp("room")
    with django_db_blocker.unblock(), serving(folder, site_url=live_server.url) as server:
        yield server


@pytest.fixture
def site(live_server: LiveServer, stream: RoomServer, settings: Settings) -> str:
    """The address of the site, with the stream beside it as in production: same host, another port."""
    settings.SITE_URL, settings.ROOM_STREAM_URL = live_server.url, stream.url
    return live_server.url


@pytest.fixture
def doctor() -> Doctor:
    return make_doctor(office=morning_office())


@pytest.fixture
def desk(doctor: Doctor) -> User:
    return make_desk(doctor)


def enter(page: Page, site: str, user: User, path: str = "/sala/") -> Page:
    """Open the room, and wait until it is live; then mark the page, which a reload would forget."""
    log_in(page, site, user)
    page.goto(f"{site}{path}")
    expect(page.get_by_text("En vivo", exact=True)).to_be_visible()
    page.evaluate("window.isTheSame = true")
    return page


def is_the_same(page: Page) -> bool:
    return bool(page.evaluate("window.isTheSame === true"))


def card(page: Page, visit: Appointment):
    return page.locator(f"#cita-{visit.pk}")


def section(page: Page, name: str):
    return page.locator(f"#{name}")


def test_two_browsers_follow_a_change_that_neither_made(browser, site, doctor, desk):
    visit = today(doctor=doctor)
    pages = [enter(open_page(browser, size), site, desk) for size in (DESK, PHONE)]
    for page in pages:
        expect(card(page, visit).get_by_text("Sin confirmar")).to_be_visible()
    booking.confirm(visit, actor=booking.Actor(source="whatsapp"))
    for page in pages:
        expect(card(page, visit).get_by_text("Confirmó por WhatsApp")).to_be_visible()
    booking.check_in(visit, actor=booking.SYSTEM)
    for page in pages:
        expect(section(page, "en-sala").get_by_text("Turno 1")).to_be_visible()
        assert is_the_same(page)


def test_a_tap_on_the_patients_phone_shows_in_both_browsers(sandbox: Sandbox, browser, site, doctor, desk):
    visit = due_visit(doctor=doctor)
    pages = [enter(open_page(browser, size), site, desk) for size in (DESK, PHONE)]
    settle(sandbox)
    for page in pages:
        expect(card(page, visit).get_by_text("Entregado")).to_be_visible()
    phone = open_page(browser, PHONE)
    phone.goto(f"{sandbox.url}/phone/{visit.patient.phone.removeprefix('+')}")
    phone.get_by_role("log", name="Mensajes").get_by_role("button", name="Confirmar").click()

    def is_confirmed() -> bool:
        # The tap may still be on its way to the sandbox.
        settle(sandbox)
        visit.refresh_from_db()
        return bool(visit.status == "confirmed")

    wait_for(is_confirmed)
    settle(sandbox)
    for page in pages:
        expect(card(page, visit).get_by_text("Confirmó por WhatsApp")).to_be_visible()
        assert is_the_same(page)


def test_one_tap_moves_the_card_here_and_in_the_other_browser(browser, site, doctor, desk):
    visit = today(doctor=doctor)
    here, there = (enter(open_page(browser, size), site, desk) for size in (PHONE, DESK))
    card(here, visit).get_by_role("button", name="Llegó").click()
    expect(here.get_by_text("quedó en «En sala de espera»")).to_be_visible()
    for page in (here, there):
        expect(section(page, "en-sala").locator(f"#cita-{visit.pk}")).to_be_visible()
        assert is_the_same(page)
    visit.refresh_from_db()
    assert visit.status == "checked_in"


def test_the_menu_of_a_card_offers_the_rest(page, site, doctor, desk):
    visit = today(doctor=doctor)
    enter(page, site, desk)
    card(page, visit).get_by_text("Más").click()
    card(page, visit).get_by_role("button", name="Confirmó por teléfono").click()
    expect(card(page, visit).get_by_text("Confirmada")).to_be_visible()
    expect(card(page, visit).get_by_role("button", name="No asistió")).to_be_hidden()


TAP_WHEN_IT_HAS_LEFT = """([left, tapped]) => {
    const room = document.getElementById("en-sala");
    const look = () => room.contains(document.getElementById(`cita-${left}`))
        ? document.getElementById(`next-${tapped}`).click() : requestAnimationFrame(look);
    look();
}"""


def status_of(visit: Appointment) -> str:
    return Appointment.objects.get(pk=visit.pk).status


def test_a_double_click_is_one_tap(browser, site, doctor, desk):
    first, second = today(60, doctor=doctor), today(120, doctor=doctor)
    page = enter(open_page(browser, DESK), site, desk)
    card(page, first).get_by_role("button", name="Llegó").dblclick()
    expect(section(page, "en-sala").locator(f"#cita-{first.pk}")).to_be_visible()
    assert (status_of(first), status_of(second)) == ("checked_in", "scheduled")


def test_a_tap_on_a_card_that_slid_under_the_finger_is_asked_for_again(browser, site, doctor, desk):
    first, second = today(60, doctor=doctor), today(120, doctor=doctor)
    page = enter(open_page(browser, DESK), site, desk)
    page.evaluate(TAP_WHEN_IT_HAS_LEFT, [str(first.pk), str(second.pk)])
    booking.check_in(first, actor=booking.SYSTEM)
    expect(page.get_by_text("acaba de moverse")).to_be_visible()
    assert status_of(second) == "scheduled"


def test_what_does_not_change_is_not_touched_and_scroll_focus_and_menus_stay(page, site, doctor, desk):
    visits = [today(minutes, doctor=doctor) for minutes in range(30, 390, 30)]
    enter(page, site, desk)
    page.evaluate("for (const card of document.querySelectorAll('.card')) card.isTheSame = true")
    held = card(page, visits[9])
    held.scroll_into_view_if_needed()
    held.get_by_text("Más").click()
    place = held.bounding_box()
    assert page.evaluate("scrollY") > 0
    # One leaves above, one changes in place.
    booking.check_in(visits[0], actor=booking.SYSTEM)
    booking.confirm(visits[1], actor=booking.SYSTEM)
    expect(section(page, "en-sala").locator(f"#cita-{visits[0].pk}")).to_be_attached()
    expect(card(page, visits[1]).get_by_text("Confirmada")).to_be_attached()
    # Less than a line of text: a card that left above would move it by a hundred.
    assert held.bounding_box() == pytest.approx(place, abs=8)
    expect(held.get_by_role("button", name="No asistió")).to_be_visible()
    assert held.evaluate("card => card.contains(document.activeElement)")
    assert page.evaluate("[...document.querySelectorAll('.card')].every(card => card.isTheSame)")


def test_the_keyboard_keeps_its_place_on_the_card_that_it_moved(browser, site, doctor, desk):
    visit = today(doctor=doctor)
    page = enter(open_page(browser, DESK), site, desk)
    card(page, visit).get_by_role("button", name="Llegó").focus()
    page.keyboard.press("Enter")
    expect(section(page, "en-sala").locator(f"#cita-{visit.pk}")).to_be_visible()
    expect(card(page, visit).get_by_role("button", name="Pasó a consulta")).to_be_focused()


def test_without_the_stream_the_room_says_so_moves_nothing_and_reads_by_itself_until_it_is_back(
    browser, tmp_path, site, settings, doctor, desk
):
    visit = today(doctor=doctor)
    with serving(tmp_path, site_url=site) as own:
        settings.ROOM_STREAM_URL = own.url
        page = enter(open_page(browser, PHONE), site, desk)
        place = card(page, visit).bounding_box()
    trouble = page.get_by_text(
        re.compile(r"Sin conexión en vivo desde las 1?\d:\d\d [ap]\. m\.; se reintenta\.")
    )
    expect(trouble).to_be_visible(timeout=15_000)
    expect(page.get_by_text("No está en vivo")).to_be_visible()
    assert card(page, visit).bounding_box() == place
    booking.confirm(visit, actor=booking.SYSTEM)
    expect(card(page, visit).get_by_text("Confirmada")).to_be_visible(timeout=15_000)
    with serving(tmp_path, site_url=site, port=own.port):
        expect(trouble).to_be_hidden(timeout=20_000)
        expect(page.get_by_text("En vivo", exact=True)).to_be_visible()
        booking.check_in(visit, actor=booking.SYSTEM)
        expect(section(page, "en-sala").locator(f"#cita-{visit.pk}")).to_be_visible()
        assert is_the_same(page)


def test_after_the_database_was_away_the_room_is_live_again_by_itself(browser, site, doctor, desk):
    visit = today(doctor=doctor)
    page = enter(open_page(browser, DESK), site, desk)
    cut_the_listeners()
    booking.confirm(visit, actor=booking.SYSTEM)
    expect(card(page, visit).get_by_text("Confirmada")).to_be_visible()
    booking.check_in(visit, actor=booking.SYSTEM)
    expect(section(page, "en-sala").locator(f"#cita-{visit.pk}")).to_be_visible()
    assert is_the_same(page)


def test_a_room_whose_login_ended_goes_to_the_login(browser, site, doctor, desk):
    visit = today(doctor=doctor)
    page = enter(open_page(browser, DESK), site, desk)
    Session.objects.all().delete()
    booking.confirm(visit, actor=booking.SYSTEM)
    page.wait_for_url(f"{site}/admin/login/?next=/sala/")


def test_the_screen_of_the_waiting_room_follows_and_names_nobody(page, site, doctor, desk):
    visit = today(doctor=doctor, patient=make_patient(doctor=doctor, full_name="Berta Zzyzx"))
    enter(page, site, desk, "/sala/espera/")
    booking.check_in(visit, actor=booking.SYSTEM)
    expect(page.get_by_role("listitem").get_by_text("B. Z.")).to_be_visible()
    booking.start(visit, actor=booking.SYSTEM)
    expect(page.locator(".inside").get_by_text("B. Z.")).to_be_visible()
    assert "Berta" not in page.content()
    assert is_the_same(page)


def test_without_javascript_the_room_is_a_page_with_buttons(browser, site, doctor, desk):
    visit = today(doctor=doctor)
    page = open_page(browser, PHONE, java_script_enabled=False)
    log_in(page, site, desk)
    page.goto(f"{site}/sala/")
    card(page, visit).get_by_role("button", name="Llegó").click()
    expect(page.get_by_text("quedó en «En sala de espera»")).to_be_visible()
    expect(section(page, "en-sala").locator(f"#cita-{visit.pk}")).to_be_visible()


def make_busy_day(doctor: Doctor, desk: User) -> None:
    """A card of every kind, for two doctors at two places."""
    other = make_doctor(office=doctor.offices.get())
    other.staff.add(desk)
    for number, status in enumerate(Appointment.Status.values):
        visit = today(30 * number + 30, doctor=doctor)
        Appointment.objects.filter(pk=visit.pk).update(status=status)
    today(-20, doctor=other, is_overbooked=True)
    to_call = today(30, doctor=other, modality="virtual", patient=make_patient(
        doctor=other, full_name="Rafael Ignacio Bermúdez-Landaeta Castellanos Zzyzx"))  # fmt: skip
    for delivery in (make_delivery(appointment=to_call), make_delivery(appointment=to_call, channel="email")):
        to_call.deliveries.filter(pk=delivery.pk).update(
            status="failed", reason="refused", called_at=clock.now()
        )


@pytest.mark.parametrize("path", ["/sala/", "/sala/espera/", "/sala/espera/?ver=turnos"])
def test_every_screen_is_fit_for_everybody(path, page, site, doctor, desk):
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    make_busy_day(doctor, desk)
    enter(page, site, desk, path)
    if path == "/sala/":
        section(page, "cerradas").locator("summary").first.click()
        page.locator(".card").first.get_by_text("Más").click()
    assert serious_faults(page) == []
    assert not scrolls_sideways(page)
    assert faults == []


def test_an_empty_day_and_nobodys_room_are_fit_for_everybody(page, site, desk):
    enter(page, site, desk)
    expect(page.get_by_role("heading", name="Hoy no hay citas")).to_be_visible()
    assert serious_faults(page) == []
    log_in(page, site, make_user())
    page.goto(f"{site}/sala/")
    expect(page.get_by_role("heading", name="Su usuario no trabaja para ningún médico")).to_be_visible()
    assert serious_faults(page) == []
    assert not scrolls_sideways(page)
