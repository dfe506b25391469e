"""The patient's inbox: what it shows, and what its buttons do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
import requests

from amedi.sandbox.postmark import NoOneClickError, NoSuchMailError, Postmark, PostmarkOptions
from tests.factories import MARK
from tests.links_server import Site, serving
from tests.postmark_requests import (
    ADDRESS,
    CALENDAR,
    OTHER_ADDRESS,
    attachment,
    headers,
    mail,
    one_click,
    send,
)


@pytest.fixture
def postmark() -> Iterator[Postmark]:
    start = datetime(2026, 9, 17, 14, tzinfo=UTC)
    minutes = iter(range(10_000))
    with Postmark(PostmarkOptions(), clock=lambda: start + timedelta(minutes=next(minutes))) as running:
        yield running


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as running:
        yield running


def got(postmark: Postmark, path: str = "/", **options: Any) -> requests.Response:
    return requests.get(f"{postmark.url}{path}", timeout=10, **options)


def home(message_id: str, address: str = ADDRESS) -> str:
    return f"/inbox/{address}/{message_id}/"


def arrived(postmark: Postmark, **changes: Any) -> str:
    """The id of a mail that has come."""
    return str(send(postmark, mail(**changes)).json()["MessageID"])


def press(postmark: Postmark, message_id: str, button: str, **options: Any) -> requests.Response:
    return requests.post(f"{postmark.url}{home(message_id)}{button}", timeout=10, **options)


# --- Lists --------------------------------------------------------------------


def test_without_mail_the_first_page_says_so(postmark: Postmark) -> None:
    assert "Todavía no ha llegado ningún correo." in got(postmark).text


def test_the_first_page_lists_who_has_mail_the_latest_first(postmark: Postmark) -> None:
    arrived(postmark)
    arrived(postmark, To=OTHER_ADDRESS)
    page = got(postmark).text
    assert page.index(OTHER_ADDRESS) < page.index(ADDRESS)
    assert f'href="/inbox/{ADDRESS}/"' in page


def test_an_inbox_lists_its_mails_the_newest_first(postmark: Postmark) -> None:
    first, second = arrived(postmark, Subject="La primera"), arrived(postmark, Subject="La segunda")
    page = got(postmark, f"/inbox/{ADDRESS.upper()}/").text
    assert page.index("La segunda") < page.index("La primera")
    assert "Consultorio Ejemplo" in page
    assert "17/9/2026, 10:00 a. m." in page
    assert "Le recordamos su cita." in page
    assert quote(ADDRESS.upper(), safe="@") + f"/{first}/" in page
    assert second in page


def test_an_empty_inbox_says_so(postmark: Postmark) -> None:
    answer = got(postmark, f"/inbox/{OTHER_ADDRESS}/")
    assert answer.status_code == 200
    assert "A este buzón no ha llegado ningún correo." in answer.text


def test_a_mail_is_unread_until_it_is_opened(postmark: Postmark) -> None:
    message_id = arrived(postmark)
    assert "Sin leer" in got(postmark, f"/inbox/{ADDRESS}/").text
    got(postmark, home(message_id))
    assert "Sin leer" not in got(postmark, f"/inbox/{ADDRESS}/").text


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        f"/inbox/{ADDRESS}/00000000-0000-4000-8000-000000000000/",
        "/inbox/a@b.example/00000000-0000-4000-8000-000000000000/html",
        "/inbox/",
    ],
)
def test_what_is_not_there_is_told_in_a_sentence(postmark: Postmark, path: str) -> None:
    arrived(postmark)
    answer = got(postmark, path)
    assert answer.status_code == 404
    assert "Este correo no existe." in answer.text


def test_another_persons_inbox_does_not_have_the_mail(postmark: Postmark) -> None:
    message_id = arrived(postmark)
    assert got(postmark, home(message_id, OTHER_ADDRESS)).status_code == 404
    with pytest.raises(NoSuchMailError):
        postmark.letter(OTHER_ADDRESS, message_id)


def test_what_people_wrote_is_never_html(postmark: Postmark) -> None:
    evil = "<script>alert(1)</script>"
    message_id = arrived(
        postmark,
        From=f'"{evil}" <citas@consultorio.example>',
        Subject=evil,
        TextBody=evil,
        HtmlBody=None,
        Tag=evil,
        Headers=headers(X_Evil=evil),
        Metadata={"delivery": evil},
        Attachments=[attachment(Name='"><b>.ics')],
    )
    for path in ("/", f"/inbox/{ADDRESS}/", home(message_id), f"/inbox/{quote(evil, safe='')}/"):
        page = got(postmark, path).text
        assert evil not in page
        assert "><b>.ics" not in page
    assert "script-src 'self'" in got(postmark).headers["Content-Security-Policy"]


# --- One mail -----------------------------------------------------------------


def test_a_mail_shows_its_headers_and_its_text(postmark: Postmark) -> None:
    message_id = arrived(postmark, ReplyTo="recepcion@consultorio.example", Headers=headers(X_Key="value"))
    page = got(postmark, home(message_id)).text
    for shown in (f"Su cita, Ana {MARK}", f"Ana {MARK} &lt;{ADDRESS}&gt;", "recepcion@consultorio.example",
                  "X-Key", "Le recordamos su cita."):  # fmt: skip
        assert shown in page


def test_the_html_stands_in_a_frame_that_runs_nothing(postmark: Postmark) -> None:
    html = '<!doctype html>\n<html lang="es"><head><title>Ñ</title></head><body>Ñ</body></html>'
    message_id = arrived(postmark, HtmlBody=html)
    page = got(postmark, home(message_id)).text
    assert f'src="{home(message_id)}html" sandbox="' in page
    assert "allow-scripts" not in page
    part = got(postmark, f"{home(message_id)}html")
    assert part.text == html.replace('<html lang="es">', '<html lang="es"><base target="_top">')
    policy = part.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "sandbox" in policy
    assert "script" not in policy


def test_an_attachment_is_downloaded_with_its_own_type(postmark: Postmark) -> None:
    message_id = arrived(postmark, Attachments=[attachment(Name="mi cita ñ.ics")])
    file = got(postmark, f"{home(message_id)}attachments/0")
    assert file.content == CALENDAR
    assert file.headers["Content-Type"] == "text/calendar; method=PUBLISH"
    assert file.headers["Content-Disposition"] == "attachment; filename*=UTF-8''mi%20cita%20%C3%B1.ics"
    assert got(postmark, f"{home(message_id)}attachments/1").status_code == 404


def test_opening_the_page_is_opening_the_mail(postmark: Postmark) -> None:
    message_id = arrived(postmark)
    got(postmark, f"{home(message_id)}html")
    assert postmark.letter(ADDRESS, message_id).times_opened == 0
    got(postmark, home(message_id))
    assert postmark.letter(ADDRESS, message_id).times_opened == 1


# --- The one-click unsubscription of RFC 8058 ---------------------------------


def test_one_click_posts_as_a_provider_does(postmark: Postmark, site: Site) -> None:
    message_id = arrived(postmark, Headers=one_click(f"{site.url}/preferencias/x/"))
    answer = press(postmark, message_id, "unsubscribe")
    assert "Baja pedida: el servidor respondió 200 OK." in answer.text
    assert site.asked == [("POST", "/preferencias/x/")]
    assert site.posted == [("application/x-www-form-urlencoded", "List-Unsubscribe=One-Click", "")]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/404/x", "La baja no se hizo: 404 Not Found."),
        ("/500/x", "La baja no se hizo: 500 Internal Server Error."),
        ("/302/x", "los proveedores de correo no siguen redirecciones"),
    ],
)
def test_one_click_that_fails_is_told(postmark: Postmark, site: Site, path: str, words: str) -> None:
    message_id = arrived(postmark, Headers=one_click(f"{site.url}{path}"))
    assert words in press(postmark, message_id, "unsubscribe").text
    assert site.asked == [("POST", path)]


def test_one_click_without_an_answer_is_told(postmark: Postmark) -> None:
    with serving() as gone:
        message_id = arrived(postmark, Headers=one_click(f"{gone.url}/x"))
    assert postmark.unsubscribe(ADDRESS, message_id) == 0
    assert "La baja no se hizo: no hubo respuesta." in got(postmark, home(message_id)).text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([], "no trae el encabezado List-Unsubscribe."),
        (headers(List_Unsubscribe="<https://example.org/x>"), "le falta el encabezado List-Unsubscribe-Post"),
        (one_click("mailto:baja@consultorio.example"), "no trae ninguna dirección https."),
        (one_click("http://example.org/x"), "no trae ninguna dirección https."),
        (
            headers(
                List_Unsubscribe="https://example.org/x", List_Unsubscribe_Post="List-Unsubscribe=One-Click"
            ),
            "no trae ninguna dirección https.",
        ),
    ],
)
def test_a_mail_without_one_click_has_no_button_but_the_reason(
    postmark: Postmark, fields: list[dict[str, str]], words: str
) -> None:
    message_id = arrived(postmark, Headers=fields)
    page = got(postmark, home(message_id)).text
    assert words in page
    assert "/unsubscribe" not in page
    with pytest.raises(NoOneClickError):
        postmark.unsubscribe(ADDRESS, message_id)
    assert press(postmark, message_id, "unsubscribe").status_code == 404


# --- The security scanner -----------------------------------------------------


def test_the_scanner_asks_for_every_link_twice(postmark: Postmark, site: Site) -> None:
    message_id = arrived(
        postmark,
        HtmlBody=f'<a href="{site.url}/cita/x/?a=1&amp;b=2">Ver</a> <a href="mailto:a@b.example">O</a>',
        TextBody=f"Ver ({site.url}/404/x). O {site.url}/302/x, o {site.url}/cita/x/?a=1&b=2",
        Headers=one_click(f"{site.url}/preferencias/x/"),
    )
    page = press(postmark, message_id, "scan").text
    paths = ["/cita/x/?a=1&b=2", "/404/x", "/302/x", "/preferencias/x/"]
    assert [path for method, path in site.asked if method == "HEAD" and path != "/"] == paths
    assert [path for method, path in site.asked if method == "GET" and path != "/"] == paths
    assert site.posted == []
    assert "Enlaces visitados: 4." in page
    assert page.count('<span class="bad">404</span>') == 2
    visited = postmark.scan(ADDRESS, message_id)
    assert [(link.head, link.get) for link in visited] == [(200, 200), (404, 404), (200, 200), (200, 200)]


def test_a_mail_without_links_says_so(postmark: Postmark) -> None:
    message_id = arrived(postmark)
    assert "Este correo no trae ningún enlace." in press(postmark, message_id, "scan").text


def test_a_link_that_nobody_answers_is_told(postmark: Postmark) -> None:
    with serving() as gone:
        message_id = arrived(postmark, TextBody=f"Ver {gone.url}/x")
    assert press(postmark, message_id, "scan").text.count('<span class="bad">sin respuesta</span>') == 2


@pytest.mark.parametrize("button", ["scan", "unsubscribe"])
def test_another_site_cannot_press_the_buttons(postmark: Postmark, site: Site, button: str) -> None:
    message_id = arrived(postmark, Headers=one_click(f"{site.url}/x"))
    for origin in ("https://evil.example", "null"):
        assert press(postmark, message_id, button, headers={"Origin": origin}).status_code == 400
    assert press(postmark, message_id, button, headers={"Origin": postmark.url}).status_code == 200
    assert press(postmark, message_id, "html").status_code == 405
