"""Doctors say over which channels a reminder goes, in which order, or that it does not go."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from django.test import Client
from django.urls import reverse

from reminders.models import ReminderRule
from tests.factories import make_doctor, make_rule, make_user

pytestmark = pytest.mark.django_db
ADD = "admin:reminders_reminderrule_add"
CHANGE = "admin:reminders_reminderrule_change"
SELECTS = ("first_channel", "second_channel", "third_channel", "fourth_channel")


class Form(HTMLParser):
    """What a browser would post of a page as it stands, and the labels of its fields."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self.choices: dict[str, list[str]] = {}
        self.labelled: set[str] = set()
        self._select = self._textarea = ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        match tag:
            case "label":
                self.labelled.add(given.get("for", ""))
            case "input" if given.get("type") not in ("checkbox", "submit") or "checked" in given:
                self.values[given.get("name", "")] = given.get("value") or ""
            case "select":
                self._select = given["name"]
                self.choices[self._select] = []
            case "option":
                self.choices[self._select].append(given["value"])
                if "selected" in given:
                    self.values[self._select] = given["value"]
            case "textarea":
                self._textarea = given["name"]
                self.values[self._textarea] = ""

    def handle_data(self, data):
        if self._textarea:
            self.values[self._textarea] += data.removeprefix("\n")

    def handle_endtag(self, tag):
        if tag == "textarea":
            self._textarea = ""

    @property
    def channels(self) -> list[str]:
        """What each select shows."""
        return [self.values.get(name, "") for name in SELECTS if name in self.choices]


@pytest.fixture(autouse=True)
def channels(settings):
    settings.REMINDER_CHANNELS = ["whatsapp", "email", "in_app"]


@pytest.fixture
def doctor():
    return make_doctor(user=make_user())


@pytest.fixture
def at_the_desk(doctor) -> Client:
    client = Client()
    client.force_login(doctor.user)
    return client


def form_of(client: Client, address: str) -> Form:
    response = client.get(address)
    assert response.status_code == 200
    return Form(response.content.decode())


def add(client: Client, doctor, **chosen: str):
    address = reverse(ADD)
    form = form_of(client, address)
    said = {"doctor": str(doctor.pk), "reminder_type": "cita_proxima", "offset_minutes": "-2880",
            "offset_unit": "hours"}  # fmt: skip
    return client.post(address, form.values | said | chosen)


def change(client: Client, rule: ReminderRule, **chosen: str):
    address = reverse(CHANGE, args=[rule.pk])
    return client.post(address, form_of(client, address).values | chosen)


def errors_of(response) -> dict[str, list[str]]:
    assert response.status_code == 200
    return dict(response.context["adminform"].form.errors)


@pytest.mark.parametrize(
    "chosen",
    [["email"], ["email", "whatsapp"], ["in_app", "whatsapp", "email"], ["whatsapp", "email", "in_app"]],
)
def test_the_order_that_is_chosen_is_stored_and_shown_and_stays_when_saved_again(at_the_desk, doctor, chosen):
    added = add(at_the_desk, doctor, **dict(zip(SELECTS, chosen, strict=False)))
    assert added.status_code == 302
    rule = ReminderRule.objects.get(doctor=doctor)
    assert rule.channels == chosen
    shown = form_of(at_the_desk, reverse(CHANGE, args=[rule.pk])).channels
    assert [name for name in shown if name] == chosen
    assert change(at_the_desk, rule, subject_template="Otro asunto").status_code == 302
    rule.refresh_from_db()
    assert (rule.channels, rule.subject_template) == (chosen, "Otro asunto")


def test_the_order_is_turned_round_by_two_selects(at_the_desk, doctor):
    rule = make_rule(doctor=doctor, channels=["whatsapp", "email"])
    assert change(at_the_desk, rule, first_channel="email", second_channel="whatsapp").status_code == 302
    rule.refresh_from_db()
    assert rule.channels == ["email", "whatsapp"]


def test_there_is_a_labelled_select_for_each_channel_that_the_project_has(at_the_desk, settings):
    settings.REMINDER_CHANNELS = ["email"]
    form = form_of(at_the_desk, reverse(ADD))
    assert form.choices["first_channel"] == ["", "whatsapp", "email", "in_app", "do_not_send"]
    assert form.choices["third_channel"] == ["", "whatsapp", "email", "in_app"]
    assert "fourth_channel" not in form.choices
    assert {"id_first_channel", "id_second_channel", "id_third_channel"} <= form.labelled


def test_a_place_that_is_left_empty_in_between_is_closed(at_the_desk, doctor):
    add(at_the_desk, doctor, first_channel="email", second_channel="", third_channel="in_app")
    assert ReminderRule.objects.get(doctor=doctor).channels == ["email", "in_app"]


def test_a_channel_chosen_twice_is_refused_at_the_second_place(at_the_desk, doctor):
    response = add(at_the_desk, doctor, first_channel="email", third_channel="email")
    assert errors_of(response) == {
        "third_channel": ["Correo ya está más arriba; elija otro canal o «ninguno»."]
    }
    assert not ReminderRule.objects.filter(doctor=doctor).exists()


def test_a_new_rule_says_where_it_goes_or_that_it_does_not(at_the_desk, doctor):
    response = add(at_the_desk, doctor)
    assert errors_of(response) == {
        "first_channel": ["Elija el primer canal, o «No enviar este recordatorio»."]
    }


def test_do_not_send_is_stored_as_no_channel_and_shown_as_that_sentence(at_the_desk, doctor):
    assert add(at_the_desk, doctor, first_channel="do_not_send").status_code == 302
    rule = ReminderRule.objects.get(doctor=doctor)
    assert rule.channels == []
    assert form_of(at_the_desk, reverse(CHANGE, args=[rule.pk])).channels == ["do_not_send", "", ""]
    assert change(at_the_desk, rule, is_enabled="").status_code == 302
    rule.refresh_from_db()
    assert rule.channels == []


def test_a_rule_with_channels_becomes_one_that_does_not_send(at_the_desk, doctor):
    rule = make_rule(doctor=doctor, channels=["whatsapp"])
    assert change(at_the_desk, rule, first_channel="do_not_send").status_code == 302
    rule.refresh_from_db()
    assert rule.channels == []


def test_do_not_send_and_a_channel_beneath_it_contradict_each_other(at_the_desk, doctor):
    rule = make_rule(doctor=doctor, channels=["whatsapp", "email"])
    response = change(at_the_desk, rule, first_channel="do_not_send")
    assert errors_of(response) == {
        "second_channel": ["Arriba dice «No enviar este recordatorio»: deje aquí «ninguno»."]
    }
    rule.refresh_from_db()
    assert rule.channels == ["whatsapp", "email"]


def test_a_channel_that_is_off_at_present_keeps_its_place(at_the_desk, doctor, settings):
    rule = make_rule(doctor=doctor, channels=["whatsapp", "email"])
    settings.REMINDER_CHANNELS = ["email", "in_app"]
    address = reverse(CHANGE, args=[rule.pk])
    assert "WhatsApp (apagado por ahora)" in at_the_desk.get(address).content.decode()
    assert form_of(at_the_desk, address).channels == ["whatsapp", "email", ""]
    assert change(at_the_desk, rule, third_channel="in_app").status_code == 302
    rule.refresh_from_db()
    assert rule.channels == ["whatsapp", "email", "in_app"]


def test_a_rule_made_in_a_pilot_without_whatsapp_takes_it_up_later(at_the_desk, doctor, settings):
    settings.REMINDER_CHANNELS = ["email"]
    add(at_the_desk, doctor, first_channel="whatsapp", second_channel="email")
    assert ReminderRule.objects.get(doctor=doctor).channels == ["whatsapp", "email"]


def test_a_channel_that_the_project_does_not_have_is_refused(at_the_desk, doctor):
    response = add(at_the_desk, doctor, first_channel="push")
    assert list(errors_of(response)) == ["first_channel"]


def test_without_any_channel_a_rule_can_still_say_do_not_send(at_the_desk, doctor, settings):
    settings.REMINDER_CHANNELS = []
    assert add(at_the_desk, doctor, first_channel="do_not_send").status_code == 302


def test_who_only_looks_sees_the_channels_in_their_order(at_the_desk):
    default = make_rule(-60, doctor=None, channels=["in_app", "whatsapp"])
    page = at_the_desk.get(reverse(CHANGE, args=[default.pk])).content.decode()
    assert "Bandeja de la aplicación, WhatsApp" in page
    assert "first_channel" not in page


def test_the_history_says_that_the_channels_changed(at_the_desk, doctor):
    rule = make_rule(doctor=doctor, channels=["whatsapp"])
    change(at_the_desk, rule, first_channel="email")
    history = at_the_desk.get(reverse("admin:reminders_reminderrule_history", args=[rule.pk]))
    assert "Primer canal" in history.content.decode()


def test_how_long_a_message_may_stay_unread_is_part_of_the_rule(at_the_desk, doctor):
    add(at_the_desk, doctor, first_channel="whatsapp", second_channel="email", fallback_after_minutes="240")
    assert ReminderRule.objects.get(doctor=doctor).fallback_after_minutes == 240
