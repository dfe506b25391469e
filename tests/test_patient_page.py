"""The patient's page: what it shows for each state of the visit, and to whom it shows nothing."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from icalendar import Calendar

from appointments import booking
from appointments.models import Appointment, AppointmentHistory
from reminders import links
from reminders.models import ReminderDelivery
from tests.factories import (
    MARK,
    make_appointment,
    make_doctor,
    make_office,
    make_patient,
)

pytestmark = pytest.mark.django_db
NOT_OURS = "/cita/not-a-token/"
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
}


@pytest.fixture(autouse=True)
def a_day_before(set_clock):
    return set_clock("2026-09-16T09:00")


@pytest.fixture
def visit() -> Appointment:
    office = make_office(map_url="https://maps.example.org/?q=1,2&z=3", phone="0212-000.00.00, ext. 7")
    doctor = make_doctor(office=office)
    return make_appointment(doctor=doctor, patient=make_patient(doctor=doctor, full_name=f"Ana {MARK}"))


def page_of(visit: Appointment) -> str:
    return urlsplit(links.visit_url(visit)).path


def text(response) -> str:
    """What a person reads."""
    words = re.sub(r"<title>.*?</title>|<[^>]+>", " ", response.content.decode())
    return " ".join(html.unescape(words).split())


def test_it_says_what_when_and_where(client, visit):
    shown = text(client.get(page_of(visit)))
    assert "Hola, Ana." in shown
    assert f"Su cita con {visit.doctor}" in shown
    assert "Jueves 17 de septiembre, a las 10:00 a. m." in shown
    assert "Torre Médica, piso 3" in shown
    assert "Av. Principal de Las Mercedes" in shown
    assert "Falta su confirmación." in shown


def test_it_does_not_call_tomorrow_tomorrow(client, visit):
    """A page stays open, and is read again on another day."""
    assert "mañana" not in text(client.get(page_of(visit))).lower()


def test_it_names_the_patient_by_the_first_name_only(client, visit):
    response = client.get(page_of(visit))
    assert MARK not in response.content.decode()
    assert "Ana" not in re.search(r"<title>(.*)</title>", response.content.decode())[1]


@pytest.mark.parametrize(
    ("full_name", "hello"), [("PÉREZ, ANA", "Hola, Ana."), ("<b>Eva</b> X", "Hola, <b>Eva</b>.")]
)
def test_names_are_read_as_people_write_them_and_never_as_html(full_name, hello, client, visit):
    visit.patient.full_name = full_name
    visit.patient.save()
    response = client.get(page_of(visit))
    assert html.escape(hello) in response.content.decode()


def test_a_patient_without_a_name_is_not_greeted(client, visit):
    visit.patient.full_name = " \u200b"
    visit.patient.save()
    assert "Hola" not in text(client.get(page_of(visit)))


def test_the_map_the_phone_and_the_calendar_are_one_tap_away(client, visit):
    shown = client.get(page_of(visit)).content.decode()
    assert 'href="https://maps.example.org/?q=1,2&amp;z=3" rel="noreferrer noopener"' in shown
    assert 'href="tel:+582120000000"' in shown
    assert f'href="{page_of(visit)}cita.ics"' in shown


def test_what_is_not_known_of_the_place_is_left_out(client):
    visit = make_appointment(
        office=make_office(address="", phone="pregunte en la puerta", map_url="javascript:alert(1)")
    )
    shown = client.get(page_of(visit)).content.decode()
    assert "tel:" not in shown
    assert "mapa" not in shown
    assert "javascript" not in shown
    assert "pregunte en la puerta" in shown


def test_a_visit_by_video_shows_its_link_and_no_address(client, visit):
    Appointment.objects.filter(pk=visit.pk).update(
        modality="virtual", video_url="https://video.example.org/1"
    )
    visit.refresh_from_db()
    response = client.get(page_of(visit))
    assert "Por videollamada" in text(response)
    assert 'href="https://video.example.org/1" rel="noreferrer noopener"' in response.content.decode()
    assert "Mercedes" not in text(response)
    assert "Torre" not in text(response)
    assert "mapa" not in text(response)


def test_a_visit_by_video_without_a_link_says_that_it_will_come(client, visit):
    Appointment.objects.filter(pk=visit.pk).update(modality="virtual", video_url="")
    shown = text(client.get(page_of(visit)))
    assert "Por videollamada El consultorio le enviará el enlace." in shown
    Appointment.objects.filter(pk=visit.pk).update(status="cancelled")
    assert "le enviará" not in text(client.get(page_of(visit)))


def test_nobody_who_waits_for_a_video_call_is_sent_to_the_reception(client, visit):
    Appointment.objects.filter(pk=visit.pk).update(modality="virtual", status="checked_in")
    shown = text(client.get(page_of(visit)))
    assert "Le atenderán en cuanto le toque." in shown
    assert "recepción" not in shown


@pytest.mark.parametrize(
    ("place", "patient", "named"),
    [
        ("America/Caracas", "", False),
        ("America/Caracas", "America/Caracas", False),
        ("America/Caracas", "America/La_Paz", False),  # the same clock
        ("America/Caracas", "Europe/Madrid", True),
        ("America/Caracas", "Nowhere/X", False),
    ],
)
def test_the_zone_is_named_when_the_patient_lives_by_another_clock(place, patient, named, client):
    visit = make_appointment(office=make_office(time_zone=place), patient=make_patient(time_zone=patient))
    shown = text(client.get(page_of(visit)))
    assert "a las 10:00 a. m." in shown
    assert ("10:00 a. m. (hora de Caracas)" in shown) is named
    asked = text(client.get(f"{page_of(visit)}cancelar/"))
    assert ("10:00 a. m. (hora de Caracas)" in asked) is named


@pytest.mark.parametrize(
    ("status", "says", "confirms", "cancels"),
    [
        ("scheduled", "Falta su confirmación.", True, True),
        ("confirmed", "Su cita está confirmada.", False, True),
        ("checked_in", "Ya anotamos su llegada.", False, False),
        ("in_consultation", "Su cita ya está en curso.", False, False),
        ("cancelled", "Esta cita está cancelada.", False, False),
    ],
)
def test_each_state_says_what_it_is_and_offers_what_is_possible(
    status, says, confirms, cancels, client, visit
):
    Appointment.objects.filter(pk=visit.pk).update(status=status)
    response = client.get(page_of(visit))
    assert says in text(response)
    assert ("<form" in response.content.decode()) is confirms
    assert ("Cancelar mi cita" in text(response)) is cancels


def test_the_page_of_a_cancelled_visit_says_so_until_its_end_and_how_to_call(client, visit, set_clock):
    booking.cancel(visit, actor=booking.SYSTEM)
    set_clock("2026-09-17T10:29")
    shown = text(client.get(page_of(visit)))
    assert "Si desea otra, llame al consultorio al 0212-000.00.00, ext. 7." in shown
    set_clock("2026-09-17T10:30")
    assert client.get(page_of(visit)).status_code == 404


def test_once_it_has_begun_it_cannot_be_called_off_here_and_says_how(client, visit, set_clock):
    set_clock("2026-09-17T10:00")
    shown = text(client.get(page_of(visit)))
    assert "no podrá asistir, llame al consultorio al 0212-000.00.00, ext. 7." in shown
    assert "Cancelar mi cita" not in shown


def test_an_old_link_shows_where_the_visit_is_now_and_offers_to_confirm_that(client, visit):
    old = page_of(visit)
    booking.reschedule(
        visit, date=visit.date + timedelta(days=1), start_time=visit.start_time, actor=booking.SYSTEM
    )
    response = client.get(old)
    assert "Su cita cambió." in text(response)
    assert "Viernes 18 de septiembre, a las 10:00 a. m." in text(response)
    assert "17 de septiembre" not in text(response)
    assert "Confirmar esta cita" in text(response)
    assert f'action="{page_of(visit)}"' in response.content.decode()
    assert old not in response.content.decode()


def closed(visit: Appointment) -> dict[str, str]:
    """Addresses that open nothing, each for another reason."""
    good = page_of(visit)
    token = good.split("/")[2]
    other = make_appointment(at="2026-09-17T12:00", doctor=visit.doctor)
    Appointment.objects.filter(pk=other.pk).update(patient=make_patient(full_name=f"Eva {MARK}"))
    done = make_appointment(at="2026-09-17T13:00", doctor=visit.doctor)
    booking.complete(done, actor=booking.SYSTEM)
    missed = make_appointment(at="2026-09-17T14:00", doctor=visit.doctor)
    booking.mark_no_show(missed, actor=booking.SYSTEM)
    gone = Appointment(pk=UUID(int=1), sequence=0, patient_id=visit.patient_id)
    over = make_appointment(at="2026-09-16T08:00", doctor=visit.doctor)
    delivery = ReminderDelivery(pk=visit.pk)
    return {
        "garbage": NOT_OURS,
        "changed": good.replace(token, token[:-1] + ("A" if token[-1] != "A" else "B")),
        "cut": good.replace(token, token[:40]),
        "long": f"/cita/{'A' * 3000}/",
        "of another purpose": f"/cita/{urlsplit(links.preferences_url(delivery)).path.split('/')[2]}/",
        "of no visit": page_of(gone),
        "of another's visit": page_of(other),
        "over": page_of(over),
        "completed": page_of(done),
        "missed": page_of(missed),
    }


def test_whatever_is_not_a_living_link_gets_one_plain_page_that_tells_nothing(client, visit):
    links_of_nothing = closed(visit)
    answers = {name: client.get(address) for name, address in links_of_nothing.items()}
    assert {answer.status_code for answer in answers.values()} == {404}
    [body] = {answer.content for answer in answers.values()}
    assert "Este enlace no está disponible" in body.decode()
    for address in links_of_nothing.values():
        assert client.post(address).content == body
        assert client.get(f"{address}cancelar/").content == body
        assert client.post(f"{address}cancelar/").content == body
        assert client.get(f"{address}cita.ics").content == body


def test_a_link_tells_nothing_once_the_visit_is_another_patients(client, visit):
    old = page_of(visit)
    Appointment.objects.filter(pk=visit.pk).update(patient=make_patient(full_name=f"Eva {MARK}"))
    visit.refresh_from_db()
    assert client.get(old).status_code == 404
    assert client.post(old).status_code == 404
    assert "Hola, Eva." in text(client.get(page_of(visit)))
    visit.refresh_from_db()
    assert visit.status == "scheduled"


def test_the_log_tells_the_kind_of_a_closed_link_and_never_a_token(client, visit, no_patient_in_the_logs):
    addresses = closed(visit)
    for address in [*addresses.values(), page_of(visit)]:
        client.get(address)
        client.put(address)
    lines = "\n".join(no_patient_in_the_logs.lines)
    for kind in ("not_ours", "no_visit", "another_patient", "over"):
        assert f"closed kind={kind}" in lines
    assert "Not Found: /cita/…/" in lines
    for address in [*addresses.values(), page_of(visit)]:
        assert address.split("/")[2] not in lines


def answers_of(client, visit: Appointment, method: str) -> list:
    """One answer of each kind: page, question, file, and the plain page."""
    page = page_of(visit)
    return [
        getattr(client, method)(address)
        for address in (page, f"{page}cancelar/", f"{page}cita.ics", NOT_OURS, f"{NOT_OURS}cancelar/")
    ]


@pytest.mark.parametrize("method", ["get", "head", "post", "put", "delete", "options", "patch"])
def test_every_answer_keeps_the_page_out_of_caches_indexes_and_referrers(method, client, visit):
    for answer in answers_of(client, visit, method):
        assert {name: answer.get(name) for name in HEADERS} == HEADERS
        assert not answer.cookies
        assert "Cookie" not in answer.get("Vary", "")


@pytest.mark.parametrize("method", ["put", "delete", "options", "patch"])
def test_other_methods_are_refused(method, client, visit):
    page = page_of(visit)
    for address in (page, f"{page}cancelar/", f"{page}cita.ics"):
        assert getattr(client, method)(address).status_code == 405
    assert client.post(f"{page}cita.ics").status_code == 405


def test_scanners_may_look_as_often_as_they_like(client, visit):
    page = page_of(visit)
    before = Appointment.objects.values().get(pk=visit.pk)
    for _ in range(20):
        for address in (page, f"{page}cancelar/", f"{page}cita.ics", f"{page}?accion=confirmar"):
            assert client.get(address, HTTP_USER_AGENT="MailScanner").status_code == 200
            head = client.head(address)
            assert head.status_code == 200
            assert not head.content
    assert Appointment.objects.values().get(pk=visit.pk) == before
    assert AppointmentHistory.objects.filter(appointment=visit).count() == 1


def test_it_needs_no_script_and_loads_nothing_from_elsewhere(client, visit):
    shown = client.get(page_of(visit)).content.decode()
    assert "<script" not in shown
    assert "style=" not in shown
    assert re.findall(r'(?:src|rel="stylesheet" href)="([^"]+)"', shown) == ["/static/patient/page.css"]


def test_the_calendar_file_is_the_visit_as_it_is_now(client, visit):
    old = page_of(visit)
    booking.reschedule(
        visit, date=visit.date + timedelta(days=1), start_time=visit.start_time, actor=booking.SYSTEM
    )
    response = client.get(f"{old}cita.ics")
    assert response["Content-Type"] == "text/calendar; charset=utf-8"
    assert response["Content-Disposition"] == 'inline; filename="cita.ics"'
    [event] = Calendar.from_ical(response.content).events
    assert event["DTSTART"].dt == visit.starts_at
    assert event["URL"] == links.visit_url(visit)


def test_a_cancelled_visit_offers_to_take_it_out_of_the_calendar(client, visit):
    booking.cancel(visit, actor=booking.SYSTEM)
    assert "Quitarla de mi calendario" in text(client.get(page_of(visit)))
    assert Calendar.from_ical(client.get(f"{page_of(visit)}cita.ics").content)["METHOD"] == "CANCEL"
