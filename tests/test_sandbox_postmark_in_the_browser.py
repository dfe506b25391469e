"""The patient's inbox in a real browser, at a desk and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from amedi.sandbox.postmark import Postmark, PostmarkOptions
from tests.browser import scrolls_sideways, serious_faults
from tests.links_server import Site, serving
from tests.postmark_requests import ADDRESS, CALENDAR, mail, one_click, send

LONG = "x" * 90


@pytest.fixture
def postmark() -> Iterator[Postmark]:
    with Postmark(PostmarkOptions(events=("Open",))) as running:
        yield running


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as running:
        yield running


def arrived(postmark: Postmark, site: Site) -> None:
    body = mail(
        Subject="Su cita del jueves",
        HtmlBody=f"""<!doctype html><html lang="es"><body style="background-color:#eef2f5"><script>
            document.body.textContent = "hacked"; top.document.title = "hacked"</script>
            <p style="height:900px">Le recordamos su cita.</p>
            <a href="{site.url}/cita/{LONG}/">Ver mi cita</a></body></html>""",
        TextBody=f"Ver {site.url}/cita/{LONG}/",
        Headers=one_click(f"{site.url}/preferencias/{LONG}/"),
    )
    assert send(postmark, body).status_code == 200


def is_fine(page: Page) -> None:
    assert serious_faults(page) == []
    assert not scrolls_sideways(page)


def test_mail_appears_by_itself_and_is_read(postmark: Postmark, site: Site, page: Page) -> None:
    page.goto(postmark.url)
    expect(page.get_by_text("Todavía no ha llegado ningún correo.")).to_be_visible()
    is_fine(page)
    arrived(postmark, site)
    page.get_by_role("link", name=ADDRESS).click()
    expect(page.get_by_role("heading", name=ADDRESS)).to_be_visible()
    is_fine(page)
    page.get_by_role("link", name="Su cita del jueves").click()
    expect(page.get_by_role("heading", name="Su cita del jueves")).to_be_visible()
    content = page.frame_locator("iframe[title='Contenido del correo']")
    expect(content.get_by_text("Le recordamos su cita.")).to_be_visible()
    # The frame is as high as the mail: nobody scrolls inside of it.
    assert page.locator("iframe").evaluate("frame => frame.offsetHeight") > 900
    assert "hacked" not in page.title()
    is_fine(page)
    content.get_by_role("link", name="Ver mi cita").click()
    expect(page).to_have_url(f"{site.url}/cita/{LONG}/")


def test_the_buttons_tell_what_came_of_them(
    postmark: Postmark, site: Site, page: Page, tmp_path: Path
) -> None:
    arrived(postmark, site)
    message_id = postmark.accepted[0].message_id
    page.goto(f"{postmark.url}/inbox/{ADDRESS}/{message_id}/")
    page.get_by_role("button", name="Escáner de correo").click()
    expect(page.get_by_role("row").filter(has_text="/cita/").get_by_text("200")).to_have_count(2)
    page.get_by_role("button", name="Cancelar suscripción").click()
    expect(page.get_by_text("Baja pedida: el servidor respondió 200 OK.")).to_be_visible()
    assert site.posted == [("application/x-www-form-urlencoded", "List-Unsubscribe=One-Click", "")]
    page.get_by_text("Versión de solo texto").click()
    page.get_by_text("Encabezados").click()
    expect(page.get_by_text("List-Unsubscribe=One-Click", exact=True)).to_be_visible()
    is_fine(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="cita.ics").click()
    download.value.save_as(tmp_path / "cita.ics")
    assert (tmp_path / "cita.ics").read_bytes() == CALENDAR


def test_what_is_not_there_is_a_page_with_a_way_back(postmark: Postmark, page: Page) -> None:
    page.goto(f"{postmark.url}/inbox/{ADDRESS}/00000000-0000-4000-8000-000000000000/")
    expect(page.get_by_role("heading", name="No está aquí")).to_be_visible()
    is_fine(page)
    page.get_by_role("link", name="Todos los buzones").click()
    expect(page).to_have_url(f"{postmark.url}/")
