"""The page behind the unsubscribe link, and the one click of mail programs (RFC 8058)."""

from __future__ import annotations

import html
import re
import threading
from urllib.parse import urlencode, urlsplit

import pytest
from django.db import connection
from django.test import Client

from appointments import booking
from appointments.models import Appointment
from reminders import links, preferences, reach
from reminders.models import ConsentEvent, ContactOptOut, Mark, ReminderDelivery
from reminders.patient_pages.door import HEADERS
from tests.factories import MARK, PHONE_MARK, agree, make_appointment, make_delivery, make_patient, soon

ONE_CLICK = {"List-Unsubscribe": "One-Click"}
ADDRESS = f"Ana.{MARK}@example.com"


def page_of(delivery: ReminderDelivery) -> str:
    return urlsplit(links.preferences_url(delivery)).path


def mailed(**fields: object) -> ReminderDelivery:
    """A reminder that went out by email to an address in mixed case."""
    visit = make_appointment(at=soon(30), patient=make_patient(email=ADDRESS))
    return make_delivery(appointment=visit, **({"channel": "email", "address": ADDRESS} | fields))


def opted_out() -> set[tuple[str, str]]:
    return set(ContactOptOut.objects.values_list("channel", "address"))


def said(delivery: ReminderDelivery) -> list[tuple[str, bool, str]]:
    """What the patient said on the channel since the delivery was made, oldest first."""
    events = ConsentEvent.objects.filter(patient=delivery.patient, channel=delivery.channel, how="patient")
    return list(events.order_by("id").values_list("channel", "agrees", "how"))


def text(response) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", response.content.decode())).split())


@pytest.mark.django_db
class TestPage:
    @pytest.fixture
    def delivery(self) -> ReminderDelivery:
        return mailed()

    @pytest.fixture
    def client(self) -> Client:
        """As a mail program that keeps no cookie, and with the check that tests usually skip."""
        return Client(enforce_csrf_checks=True)

    def test_it_shows_as_much_of_the_address_as_its_owner_needs(self, client, delivery):
        shown = text(client.get(page_of(delivery)))
        assert "A•••@example.com" in shown
        assert MARK not in shown
        assert "tampoco a otra persona de su familia que la use" in shown

    def test_a_number_is_shown_by_its_last_digits(self, client):
        delivery = mailed(channel="whatsapp", address=f"+58{PHONE_MARK}9876")
        shown = text(client.get(page_of(delivery)))
        assert "•••76" in shown
        assert PHONE_MARK not in shown
        assert "No recibir más mensajes de WhatsApp" in shown

    def test_the_button_stops_the_address_and_shows_the_page_again(self, client, delivery):
        response = client.post(page_of(delivery), {"quiere": "baja"})
        assert (response.status_code, response["Location"]) == (302, page_of(delivery))
        shown = text(client.get(response["Location"]))
        assert "Ya no enviamos correos a A•••@example.com" in shown
        assert opted_out() == {("email", ADDRESS.lower())}
        assert said(delivery) == [("email", False, "patient")]

    def test_it_stops_every_patient_who_uses_the_address_and_nobody_else(self, client, delivery):
        child = make_patient(email=ADDRESS.upper())
        other = make_patient(email="eva@example.com")
        client.post(page_of(delivery), {"quiere": "baja"})
        reaches = reach.of([delivery.patient, child, other])
        assert {pk for pk, found in reaches.items() if "email" in found.opted_out} == {
            delivery.patient_id, child.pk,
        }  # fmt: skip

    def test_it_stops_one_channel_only(self, client, delivery):
        agree(delivery.patient)
        client.post(page_of(delivery), {"quiere": "baja"})
        assert reach.of([delivery.patient])[delivery.patient_id].opted_out == {"email"}
        assert "whatsapp" in reach.of([delivery.patient])[delivery.patient_id].agreed

    def test_twice_changes_nothing_more(self, client, delivery):
        for _ in range(2):
            client.post(page_of(delivery), {"quiere": "baja"})
        assert len(opted_out()) == 1
        assert len(said(delivery)) == 1

    def test_one_may_come_back_however_the_address_was_written(self, client, delivery):
        ContactOptOut.objects.create(address=ADDRESS.upper(), channel="email")
        ContactOptOut.objects.create(address=ADDRESS, channel="whatsapp")
        for _ in range(2):
            assert client.post(page_of(delivery), {"quiere": "volver"}).status_code == 302
        assert opted_out() == {("whatsapp", ADDRESS)}
        assert said(delivery) == [("email", True, "patient")]
        assert "No recibir más correos" in text(client.get(page_of(delivery)))

    def test_coming_back_to_whatsapp_is_a_new_consent(self, client):
        delivery = mailed(channel="whatsapp", address=f"+58{PHONE_MARK}9876")
        client.post(page_of(delivery), {"quiere": "baja"})
        assert "whatsapp" not in reach.of([delivery.patient])[delivery.patient_id].agreed
        client.post(page_of(delivery), {"quiere": "volver"})
        assert opted_out() == set()
        assert "whatsapp" in reach.of([delivery.patient])[delivery.patient_id].agreed

    def test_who_refused_whatsapp_at_the_desk_may_take_it_back_here(self, client):
        delivery = mailed(channel="whatsapp", address=f"+58{PHONE_MARK}9876")
        agree(delivery.patient, agrees=False)
        assert "Ya no escribimos por WhatsApp" in text(client.get(page_of(delivery)))
        client.post(page_of(delivery), {"quiere": "volver"})
        assert said(delivery) == [("whatsapp", True, "patient")]

    def test_the_evidence_says_by_what_and_names_nobody(self, client, delivery):
        client.post(page_of(delivery), {"quiere": "baja"})
        client.post(page_of(delivery), {"quiere": "volver"})
        client.post(page_of(delivery), ONE_CLICK)
        evidence = list(
            ConsentEvent.objects.filter(how="patient").order_by("id").values_list("evidence", flat=True)
        )
        through = f", por el enlace del envío {delivery.pk}"
        assert evidence == [
            f"Botón «No recibir más»{through}",
            f"Botón «Volver a recibirlos»{through}",
            f"Un clic en el programa de correo{through}",
        ]

    @pytest.mark.parametrize("kind", ["multipart/form-data", "application/x-www-form-urlencoded"])
    def test_one_click_needs_no_page_no_cookie_and_no_second_answer(self, kind, client, delivery):
        body = ONE_CLICK if kind.startswith("multipart") else urlencode(ONE_CLICK)
        form = {} if kind.startswith("multipart") else {"content_type": kind}
        for _ in range(2):
            response = client.post(page_of(delivery), body, **form)
            assert response.status_code == 200
            assert not response.cookies
        assert opted_out() == {("email", ADDRESS.lower())}
        assert said(delivery) == [("email", False, "patient")]

    @pytest.mark.parametrize(
        ("kind", "body"),
        [
            ("application/x-www-form-urlencoded", b""),
            ("application/x-www-form-urlencoded", b"List-Unsubscribe=Perhaps&quiere=todo"),
            ("application/x-www-form-urlencoded; charset=latin-1", b"List-Unsubscribe=One-Click"),
            ("application/x-www-form-urlencoded", b"&".join(b"a=1" for _ in range(2000))),
            ("multipart/form-data", b"\xff\x00"),
            ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: nonsense"),
            ("application/json", b'{"List-Unsubscribe": "One-Click"}'),
        ],
    )
    def test_a_form_that_says_nothing_clear_changes_nothing_and_shows_the_page(
        self, kind, body, client, delivery
    ):
        response = client.generic("POST", page_of(delivery), body, content_type=kind)
        assert (response.status_code, response["Location"]) == (302, page_of(delivery))
        assert {name: response.get(name) for name in HEADERS} == HEADERS
        assert not opted_out()

    def test_scanners_may_look_as_often_as_they_like(self, client, delivery):
        for _ in range(20):
            assert client.get(page_of(delivery), ONE_CLICK | {"quiere": "baja"}).status_code == 200
            assert client.head(page_of(delivery)).status_code == 200
        assert not opted_out()
        assert not said(delivery)

    def test_the_link_works_long_after_the_visit(self, client, delivery, set_clock):
        booking.cancel(delivery.appointment, actor=booking.SYSTEM)
        set_clock("2036-01-01T00:00")
        assert client.get(page_of(delivery)).status_code == 200
        client.post(page_of(delivery), ONE_CLICK)
        assert opted_out() == {("email", ADDRESS.lower())}

    def test_it_is_the_address_that_was_written_to_also_when_the_file_has_another_now(self, client, delivery):
        delivery.patient.email = "new@example.com"
        delivery.patient.save()
        client.post(page_of(delivery), ONE_CLICK)
        assert opted_out() == {("email", ADDRESS.lower())}

    def test_whatever_is_no_link_of_ours_gets_the_one_plain_page(
        self, client, delivery, no_patient_in_the_logs
    ):
        never_sent = make_delivery(address="")
        visit = Appointment(pk=delivery.pk, sequence=0, patient_id=1)
        addresses = [
            "/preferencias/nonsense/",
            f"{page_of(delivery)[:-2]}/",
            page_of(ReminderDelivery()),
            page_of(never_sent),
            f"/preferencias/{urlsplit(links.visit_url(visit)).path.split('/')[2]}/",
        ]
        plain = client.get("/cita/nonsense/").content
        for address in addresses:
            for answer in (client.get(address), client.post(address, ONE_CLICK)):
                assert (answer.status_code, answer.content) == (404, plain)
                assert {name: answer.get(name) for name in HEADERS} == HEADERS
            assert address.split("/")[2] not in "\n".join(no_patient_in_the_logs.lines)
        assert not opted_out()

    @pytest.mark.parametrize("method", ["get", "head", "post", "put", "options"])
    def test_every_answer_keeps_the_page_out_of_caches_indexes_and_referrers(self, method, client, delivery):
        answer = getattr(client, method)(page_of(delivery))
        assert {name: answer.get(name) for name in HEADERS} == HEADERS
        assert not answer.cookies
        assert "Cookie" not in answer.get("Vary", "")
        assert (answer.status_code == 405) is (method in ("put", "options"))

    def test_an_opt_out_leaves_a_mark_for_the_planner(self, client, delivery):
        Mark.objects.all().delete()
        client.post(page_of(delivery), ONE_CLICK)
        assert Mark.objects.filter(subject="address", subject_id=ADDRESS.lower()).exists()


@pytest.mark.django_db(transaction=True)
def test_two_clicks_at_once_are_one():
    delivery = mailed()
    barrier = threading.Barrier(4)
    news: list[bool] = []

    def click() -> None:
        try:
            barrier.wait(timeout=20)
            news.append(
                preferences.opt_out(
                    address=delivery.address, channel="email", patient=delivery.patient, evidence="clic"
                )
            )
        finally:
            connection.close()

    threads = [threading.Thread(target=click) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert sorted(news) == [False, False, False, True]
    assert len(opted_out()) == len(said(delivery)) == 1
