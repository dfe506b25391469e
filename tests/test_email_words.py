"""A reminder as a mail: the words of the rule, a card, a button, and a way out."""

from __future__ import annotations

import re
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from django.core import mail as outbox
from django.utils.translation import override

from reminders import letter
from reminders.timeline import ReminderType
from tests.browser import scrolls_sideways, serious_faults
from tests.mail_values import ADDRESS, make_message, make_values


def test_subject_and_text_are_the_words_of_the_rule():
    message = make_message()
    written = letter.write(message)
    assert written["subject"] == message.subject
    assert written["text"].startswith(message.text + "\n")
    for paragraph in message.text.split("\n\n"):
        assert paragraph.split("\n")[0] in written["html"]


def test_the_card_tells_day_hour_doctor_and_place_in_both_parts():
    written = letter.write(make_message())
    lines = {
        "Día": "Jueves 17 de septiembre",
        "Hora": "10:00 a. m.",
        "Con": "Dra. Carmen Ruiz",
        "Lugar": "Torre Médica, piso 3",
        "Dirección": "Av. Principal de Las Mercedes",
    }
    for name, said in lines.items():
        assert f"{name}: {said}\n" in written["text"]
        assert re.search(rf">{name}</th>\s*<td [^>]*>{re.escape(said)}</td>", written["html"])


def test_the_card_leaves_out_what_is_not_known():
    written = letter.write(make_message(values=make_values(address="")))
    assert "Dirección" not in written["text"] + written["html"]
    assert "Lugar: Torre Médica, piso 3" in written["text"]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "Ver o confirmar mi cita"),
        ({"asks_to_confirm": False}, "Ver mi cita"),
        ({"kind": ReminderType.LLEGADA, "asks_to_confirm": False}, "Ver mi cita"),
    ],
)
def test_a_button_leads_to_the_patients_page(fields, says):
    written = letter.write(make_message(**fields))
    assert f"{says}:\nhttps://citas.example.org/cita/visit-token/\n" in written["text"]
    [button] = re.findall(
        r'<a href="https://citas.example.org/cita/visit-token/"[^>]*>([^<]*)<', written["html"]
    )
    assert button == says


def test_after_the_visit_there_is_neither_card_nor_button():
    written = letter.write(make_message(kind=ReminderType.SEGUIMIENTO, time_left=timedelta(days=-1)))
    assert "/cita/" not in written["text"] + written["html"]
    assert "Hora" not in written["text"] + written["html"]


def test_the_foot_says_why_it_came_and_how_to_stop_it():
    written = letter.write(make_message())
    for part in (written["text"], written["html"]):
        assert "Recibe este correo porque" in part
        assert "https://citas.example.org/preferencias/preferences-token/" in part


def test_one_click_stops_it_from_the_mail_program():
    headers = letter.write(make_message())["headers"]
    assert headers["List-Unsubscribe"] == "<https://citas.example.org/preferencias/preferences-token/>"
    assert headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"


def test_a_message_without_links_promises_none():
    written = letter.write(make_message(visit_link="", preferences_link=""))
    assert "http" not in written["text"]
    assert "<a " not in written["html"]
    assert "List-Unsubscribe" not in written["headers"]


def test_words_that_look_like_html_are_only_words():
    values = make_values(patient_name="<script>alert(1)</script> & Co", office='"><img src=x>')
    written = letter.write(make_message(values=values, subject="Cita de A & B <x>"))
    assert "<script" not in written["html"]
    assert "<img" not in written["html"]
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; Co" in written["html"]
    # In the text, and in the subject, nothing is escaped.
    assert "<script>alert(1)</script> & Co" in written["text"]
    assert written["subject"] == "Cita de A & B <x>"


def test_no_header_gets_a_second_line():
    written = letter.write(make_message(subject="Su cita\r\nBcc: todos@example.com\u2028x"))
    assert written["subject"] == "Su cita Bcc: todos@example.com x"


def test_a_rule_without_a_subject_gets_one_that_names_the_doctor():
    assert letter.write(make_message(subject=""))["subject"] == "Su cita con Dra. Carmen Ruiz"


@pytest.mark.parametrize(
    "address", ["", "ana", "ana@", "ana@example.com, otra@example.com", "ana@example.com\n"]
)
def test_an_address_that_is_none_cannot_be_written_to(address):
    with pytest.raises(ValueError, match="the address is none"):
        letter.write(make_message(to=address))


def test_patients_read_spanish_whatever_the_language_of_whoever_sends():

    with override("en"):
        assert "Recibe este correo porque" in letter.write(make_message())["text"]


def test_it_is_a_mail_of_two_parts():
    letter.mail_of(letter.write(make_message())).send()
    [sent] = outbox.outbox
    assert sent.to == [ADDRESS]
    mime = sent.message()
    assert [part.get_content_type() for part in mime.walk()] == [
        "multipart/alternative",
        "text/plain",
        "text/html",
    ]
    assert mime["Auto-Submitted"] == "auto-generated"


def test_it_reads_well_on_a_phone_and_at_a_desk(page):
    page.set_content(letter.write(make_message())["html"])
    assert page.get_by_role("link", name="Ver o confirmar mi cita").is_visible()
    assert not scrolls_sideways(page)
    assert serious_faults(page) == []


def test_a_video_call_has_a_link_and_no_street():
    values = make_values(is_virtual=True, video_url="https://video.example/sala")
    written = letter.write(make_message(values=values, is_virtual=True, text="Hola."))
    assert "Videollamada: https://video.example/sala\n" in written["text"]
    assert re.search(
        r'<a href="https://video.example/sala"[^>]*>Entrar a la videollamada</a>', written["html"]
    )
    for place in ("Torre", "Mercedes", "Lugar", "Dirección"):
        assert place not in written["text"] + written["html"]


@pytest.mark.parametrize("video_url", ["", "javascript:alert(1)", "ftp://video.example/sala"])
def test_a_video_call_without_a_link_says_that_it_will_come(video_url):
    values = make_values(is_virtual=True, video_url=video_url)
    written = letter.write(make_message(values=values, is_virtual=True))
    assert "Videollamada: el consultorio le enviará el enlace\n" in written["text"]
    assert "el consultorio le enviará el enlace</td>" in written["html"]
    assert "javascript" not in written["html"]
    assert "ftp:" not in written["html"]


def test_the_mail_of_a_cancelled_video_call_does_not_lead_into_it():
    values = make_values(is_virtual=True, video_url="https://video.example/sala")
    written = letter.write(make_message(kind=ReminderType.CANCELACION, values=values, is_virtual=True))
    assert "Lugar: Por videollamada\n" in written["text"]
    assert "video.example" not in written["text"] + written["html"]


def test_a_long_link_of_a_video_call_does_not_widen_the_page(page):
    values = make_values(is_virtual=True, video_url=f"https://video.example/{'x' * 178}")
    page.set_content(letter.write(make_message(values=values, is_virtual=True, text="Hola."))["html"])
    assert page.get_by_role("link", name="Entrar a la videollamada").is_visible()
    assert not scrolls_sideways(page)
    assert serious_faults(page) == []


def test_the_hour_of_another_clock_is_named_in_subject_text_and_card():
    values = make_values(own_zone=ZoneInfo("Europe/Madrid"))
    written = letter.write(make_message(values=values))
    assert "10:00 a. m. (hora de Caracas)" in written["subject"]
    assert "Hora: 10:00 a. m. (hora de Caracas)\n" in written["text"]
    assert written["html"].count("10:00 a. m. (hora de Caracas)") == written["html"].count("10:00 a. m.")
