"""Every variable on every channel: what a real visit says, and what a screen that others see does not."""

from __future__ import annotations

import json
import re
from datetime import time, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command

from appointments import clock
from appointments.models import Appointment
from reminders import answers, dispatch, links, wording
from reminders.channels import locmem
from reminders.channels.base import Button, Message
from reminders.channels.whatsapp import WhatsAppChannel
from reminders.flight import Flight
from reminders.models import ReminderRule
from reminders.timeline import ReminderType
from reminders.visits import words_of
from tests.factories import (
    agree,
    make_appointment,
    make_delivery,
    make_doctor,
    make_office,
    make_patient,
    make_specialty,
    make_user,
    only_rules,
    soon,
)
from whatsapp.templates import standard_templates

pytestmark = pytest.mark.django_db

ON_ALL = {"BACKEND": "reminders.channels.locmem.LocmemChannel"}
ALL = "\n".join(f"{name}: {{{name}}}" for name in wording.VARIABLES)
CLINICAL = [variable.name for variable in wording.VARIABLES.values() if variable.is_clinical]
VISITS: dict[str, dict[str, Any]] = {
    "in person": {},
    "by video": {"modality": "virtual", "video_url": "https://video.example/sala"},
    "by video, with a long link": {"modality": "virtual", "video_url": f"https://video.example/{'x' * 170}"},
    "by video, without a link": {"modality": "virtual"},
}


@pytest.fixture
def outbox(settings):
    settings.CHANNEL_BACKENDS = dict.fromkeys(("whatsapp", "email", "in_app"), ON_ALL)
    settings.REMINDER_CHANNELS = ["whatsapp", "in_app"]
    settings.REMINDER_QUIET_HOURS = (time(0), time(0))
    locmem.outbox.clear()
    return locmem.outbox


def send() -> None:
    with Flight(8) as flight:
        dispatch.run(clock=clock.now, flight=flight)


def make_visit(**fields: Any) -> Appointment:
    return make_appointment(
        specialty=make_specialty(), instructions="Venga en ayunas.\n\tTraiga sus exámenes.", **fields
    )


def bare_visit() -> Appointment:
    """Nothing is known of it but when it is."""
    doctor = make_doctor(title="", name=" ", office=make_office(name=" ", address=""))
    return make_appointment(doctor=doctor, patient=make_patient(full_name="\u200b"))


def test_every_variable_tells_of_the_visit():
    visit = make_visit()
    said = words_of(visit, now=clock.now())
    assert said["titulo"] == "Dra."
    assert said["especialidad"] == "Cardiología"
    assert said["indicaciones"] == "Venga en ayunas. Traiga sus exámenes."
    assert said["enlace"] == links.visit_url(visit)
    assert list(said) == list(wording.VARIABLES)
    assert "enlace" in said
    assert dict(said)["enlace"] == said["enlace"]


def test_words_cost_no_query_where_the_visit_has_its_relations(django_assert_num_queries):
    related = Appointment.objects.select_related("doctor", "office", "patient", "specialty")
    visit = related.get(pk=make_visit().pk)
    now = clock.now()
    with django_assert_num_queries(0):
        wording.render(ALL, words_of(visit, now=now))


def test_words_work_where_the_visit_has_them_not():
    said = words_of(Appointment.objects.get(pk=make_visit().pk), now=clock.now())
    assert said["especialidad"] == "Cardiología"


def test_a_bare_visit_leaves_no_variable_but_the_title_empty():
    said = words_of(bare_visit(), now=clock.now())
    assert [name for name, value in said.items() if not value] == ["titulo"]
    text = wording.render(ALL, said)
    assert "titulo:\n" in text
    assert "  " not in text


@pytest.mark.parametrize("kind", list(ReminderType))
@pytest.mark.parametrize("how", list(VISITS))
def test_the_variables_of_each_template_are_taken_by_meta(kind, how):
    visit = make_visit(**VISITS[how])
    for time_left in (timedelta(hours=24), timedelta(hours=1), timedelta(hours=-1)):
        message = Message(
            to="+584120000001",
            reference="d:1:1",
            kind=kind,
            text="-",
            values=words_of(visit, now=clock.now()),
            is_virtual="modality" in VISITS[how],
            time_left=time_left,
            buttons=(Button(title="x", payload="x"),),
        )
        template = WhatsAppChannel().payload(message)["template"]
        filled = {part["parameter_name"]: part["text"] for part in template["components"][0]["parameters"]}
        for said in filled.values():
            assert said
            assert not re.search(r"[\n\t]| {4}", said)
            assert "…" not in said
        assert not set(filled) & {*CLINICAL}
        if message.is_virtual:
            said = json.dumps(template, ensure_ascii=False)
            assert "Torre" not in said
            assert "Mercedes" not in said


def test_no_template_for_whatsapp_says_why_the_patient_comes():
    for template in standard_templates().values():
        assert not set(template.parameters) & set(CLINICAL), template.name


@pytest.mark.parametrize("field", ["subject_template", "body_template"])
def test_h6_an_unknown_variable_is_refused_and_the_old_text_goes_out(field, outbox):
    [rule] = only_rules(-120, body_template="Hola, {nombre}.", subject_template="Hola")
    visit = make_appointment(at=soon())
    make_delivery(appointment=visit, rule=rule)
    setattr(rule, field, "Hola, {apellido}")
    with pytest.raises(ValidationError) as refused:
        rule.full_clean()
    [sentence] = refused.value.message_dict[field]
    assert sentence.startswith("No existe la variable {apellido}.")
    assert all(f"{{{name}}}" in sentence for name in wording.VARIABLES)
    send()
    assert outbox[0].text == f"Hola, {visit.patient.full_name}."


@pytest.mark.parametrize("name", CLINICAL)
def test_a_rule_whose_subject_says_why_the_patient_comes_is_refused(name):
    [rule] = only_rules(-120)
    rule.subject_template = f"Su cita: {{{name}}}"
    with pytest.raises(ValidationError) as refused:
        rule.full_clean()
    [sentence] = refused.value.message_dict["subject_template"]
    assert "pantalla bloqueada" in sentence
    assert f"{{{name}}}" in sentence
    rule.subject_template, rule.body_template = "Su cita", f"Su cita: {{{name}}}"
    rule.full_clean()


@pytest.mark.parametrize("rule_type", ["cita_proxima", "preparacion", "llegada"])
@pytest.mark.parametrize("own_words", ["", "Traiga: {indicaciones}"])
def test_the_inbox_says_why_the_patient_comes_only_where_the_rule_does(rule_type, own_words, outbox):
    visit = make_visit(at=soon(), patient=make_patient(user=make_user()))
    [rule] = only_rules(-120, reminder_type=rule_type, channels=["in_app"], body_template=own_words)
    make_delivery(appointment=visit, rule=rule, channel="in_app", reminder_type=rule_type)
    send()
    [message] = outbox
    assert "ayunas" not in message.subject
    assert ("ayunas" in message.text) is bool(own_words)
    assert "Cardiología" not in message.subject + message.text


def test_the_field_for_the_text_names_every_variable():
    help_text = str(ReminderRule._meta.get_field("body_template").help_text)
    assert re.findall(r"\{(\w+)\}", help_text) and {*re.findall(r"\{(\w+)\}", help_text)} == {
        *wording.VARIABLES
    }


# --- another clock -------------------------------------------------------------------


@pytest.mark.parametrize(("zone", "named"), [("Europe/Madrid", True), ("America/La_Paz", False), ("", False)])
def test_who_lives_by_another_clock_reads_whose_hour_it_is_in_every_message(zone, named, client, outbox):
    visit = make_appointment(at=soon(), patient=make_patient(time_zone=zone))
    [rule] = only_rules(-120, body_template="Venga a las {hora}.")
    make_delivery(appointment=visit, rule=rule)
    send()
    whose = "(hora de Caracas)"
    page = client.get(urlsplit(links.visit_url(visit)).path).content.decode()
    for said in (
        outbox[0].text,
        outbox[0].values["hora"],
        answers.text("confirmed", visit, now=clock.now()),
        page,
    ):
        assert (whose in said) is named


# --- a video call --------------------------------------------------------------------


def test_a_video_call_is_one_in_all_that_goes_out(outbox, set_clock):
    set_clock("2026-09-10T09:00")
    ReminderRule.objects.update(is_enabled=True)
    visit = make_appointment(modality="virtual", video_url="https://video.example/sala")
    agree(visit.patient)
    for moment in ("2026-09-10T09:05", "2026-09-14T10:00", "2026-09-15T10:00", "2026-09-16T10:00",
                   "2026-09-17T08:00", "2026-09-17T09:40"):  # fmt: skip
        set_clock(moment)
        call_command("dispatch_reminders", limit=5)
    kinds = {message.kind for message in outbox}
    assert kinds >= {"cita_proxima", "preparacion", "llegada"}
    for message in outbox:
        assert "videollamada" in message.text
        assert visit.office.name not in message.text
        assert visit.office.address not in message.text
        assert "Ya llegué" not in [button.title for button in message.buttons]
        assert ("https://video.example/sala" in message.text) is (message.kind != "preparacion")
