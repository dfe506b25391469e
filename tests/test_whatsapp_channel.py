"""WhatsApp as the queue meets it: which template, what an answer comes to, what Meta holds back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from reminders.channels.base import (
    AnswerLost,
    Button,
    ChannelError,
    Message,
    Receipt,
    Throttled,
    Undeliverable,
)
from reminders.channels.whatsapp import WhatsAppChannel
from reminders.timeline import Reason
from tests.whatsapp_meta import BUSINESS_ACCOUNT_ID, Meta, Respond, answer, hang_up, payload, running_meta
from whatsapp.models import Template

DAY, HOURS = timedelta(hours=24), timedelta(hours=2)
VALUES = {
    "nombre": "Ana",
    "doctor": "Dra. Carmen Ruiz",
    "fecha": "mañana, jueves 17 de septiembre",
    "hora": "10:00 a. m.",
    "consultorio": "Torre Médica, piso 3",
    "direccion": "Av. Principal",
}


def message(**fields: Any) -> Message:
    given: dict[str, Any] = {
        "to": "+584120000001",
        "reference": "d:1:1",
        "kind": "cita_proxima",
        "text": "Hola",
        "values": VALUES,
        "time_left": DAY,
        "asks_to_confirm": True,
    }
    return Message(**{**given, **fields})


# --- which template -------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "time_left", "asks", "name"),
    [
        ("cita_proxima", DAY, True, "appointment_reminder_24h"),
        ("cita_proxima", DAY, False, "appointment_reminder_24h_confirmed"),
        ("cita_proxima", timedelta(hours=12), True, "appointment_reminder_2h"),
        ("cita_proxima", HOURS, False, "appointment_reminder_2h_confirmed"),
        ("preparacion", DAY, False, "appointment_preparation"),
        ("llegada", HOURS, False, "appointment_arrival"),
        ("seguimiento", -DAY, False, "appointment_follow_up"),
        ("control", DAY, False, "appointment_check_up"),
    ],
)
def test_the_template_says_what_kind_it_is_when_and_whether_we_ask(
    kind: str, time_left: timedelta, asks: bool, name: str
) -> None:
    body = WhatsAppChannel().payload(message(kind=kind, time_left=time_left, asks_to_confirm=asks))
    assert body["template"]["name"] == name
    assert body["template"]["language"] == {"code": "es"}


def parameters(body: dict[str, Any]) -> dict[str, str]:
    return {item["parameter_name"]: item["text"] for item in body["template"]["components"][0]["parameters"]}


def test_of_a_video_call_the_template_names_the_link_in_the_place_of_the_office() -> None:
    link = "https://video.example/sala"
    values = VALUES | {"consultorio": "videollamada", "enlace_video": link}
    filled = parameters(WhatsAppChannel().payload(message(values=values, is_virtual=True)))
    assert filled["consultorio"] == f"videollamada: {link}"
    arrival = WhatsAppChannel().payload(message(kind="llegada", values=values, is_virtual=True))
    assert arrival["template"]["name"] == "appointment_arrival_virtual"
    assert parameters(arrival)["enlace_video"] == link


@pytest.mark.parametrize(
    ("length", "in_its_own_place", "after_a_word"),
    [(136, True, True), (137, True, False), (150, True, False), (151, False, False), (200, False, False)],
)
def test_a_link_that_would_be_cut_gives_way_to_that_of_the_visits_page(
    length: int, in_its_own_place: bool, after_a_word: bool
) -> None:
    page, link = "https://citas.example/cita/token/", "https://video.example/".ljust(length, "x")
    values = VALUES | {"enlace": page, "enlace_video": link}
    filled = parameters(WhatsAppChannel().payload(message(values=values, is_virtual=True)))
    assert filled["consultorio"] == f"videollamada: {link if after_a_word else page}"
    arrival = WhatsAppChannel().payload(message(kind="llegada", values=values, is_virtual=True))
    assert parameters(arrival)["enlace_video"] == (link if in_its_own_place else page)


def test_a_video_call_without_a_link_says_that_it_will_come() -> None:
    values = VALUES | {"enlace_video": "el enlace que le enviará el consultorio"}
    filled = parameters(WhatsAppChannel().payload(message(values=values, is_virtual=True)))
    assert filled["consultorio"] == "videollamada (el consultorio le enviará el enlace)"


@pytest.mark.parametrize("kind", ["seguimiento", "control"])
def test_after_a_video_call_nothing_leads_into_it(kind: str) -> None:
    values = VALUES | {"consultorio": "videollamada", "enlace_video": "https://video.example/sala"}
    body = WhatsAppChannel().payload(message(kind=kind, values=values, is_virtual=True, time_left=-DAY))
    assert parameters(body)["consultorio"] == "videollamada"


@pytest.mark.parametrize("kind", ["reserva", "cambio"])
def test_instructions_that_come_too_late_for_their_reminder_stand_whole_in_the_notice(kind: str) -> None:
    said = "Venga en ayunas.\n" + "Traiga sus exámenes. " * 20
    body = WhatsAppChannel().payload(message(kind=kind, preparation=said))
    assert body["template"]["name"].endswith("_preparation")
    assert parameters(body)["preparacion"] == " ".join(said.split())


def test_instructions_longer_than_meta_takes_are_cut() -> None:
    body = WhatsAppChannel().payload(message(kind="reserva", preparation="Traiga sus exámenes. " * 100))
    assert len("".join(parameters(body).values())) < 1_024


def test_the_body_fills_the_variables_in_the_templates_order_and_each_button() -> None:
    buttons = tuple(Button(title=word, payload=f"{word}_1") for word in ("A", "B", "C"))
    words, *taps = WhatsAppChannel().payload(message(buttons=buttons))["template"]["components"]
    named = [(item["parameter_name"], item["text"]) for item in words["parameters"]]
    assert named == [(name, VALUES[name]) for name in ("nombre", "doctor", "fecha", "hora", "consultorio")]
    assert [(tap["index"], tap["parameters"][0]["payload"]) for tap in taps] == [
        ("0", "A_1"),
        ("1", "B_1"),
        ("2", "C_1"),
    ]


def test_a_reply_goes_as_free_text_under_the_message_that_it_answers() -> None:
    body = WhatsAppChannel().payload(message(kind="reply", text="Listo.", in_answer_to="wamid.7"))
    assert (body["type"], body["text"]["body"]) == ("text", "Listo.")
    assert body["context"] == {"message_id": "wamid.7"}


def test_a_kind_for_which_there_is_no_template_is_refused() -> None:
    with pytest.raises(ValueError, match="birthday"):
        WhatsAppChannel().payload(message(kind="birthday"))


# --- what an answer comes to ------------------------------------------------------


@pytest.fixture
def meta(settings: Settings) -> Iterator[Meta]:
    with running_meta() as meta:
        settings.WHATSAPP_API_URL = meta.url
        yield meta


def send(times: int = 1) -> list[Receipt]:
    """Send one after the other over one channel, as a run of the dispatcher does."""

    async def run() -> list[Receipt]:
        channel, reminder = WhatsAppChannel(), message()
        try:
            return [await channel.send(reminder, channel.payload(reminder)) for _ in range(times)]
        finally:
            await channel.close()

    return asyncio.run(run())


def test_what_meta_takes_comes_back_as_a_receipt(meta: Meta) -> None:
    meta.will(answer(payload("api-01-send-ok")))
    assert (
        send(times=2)
        == [Receipt(message_id="wamid.TESTOUT000000000000000000001AA==", wa_id="584120000001")] * 2
    )
    assert meta.calls[0].body == WhatsAppChannel().payload(message())


@pytest.mark.parametrize(
    ("respond", "kind", "code", "tries"),
    [
        (hang_up, AnswerLost, "answer_lost", None),
        (answer("<html>", status=502), AnswerLost, "answer_lost", None),
        (answer(payload("api-12-err-130429-throughput"), status=429), Throttled, "130429", None),
        (answer("slow down", status=429), Throttled, "None", None),
        (answer('{"error": {"code": 131000}}', status=500), ChannelError, "131000", 4),
        (answer(payload("api-10-err-190-expired"), status=401), ChannelError, "190", None),
        (answer(payload("api-13-err-132001-template"), status=404), Undeliverable, "132001", None),
        (answer('{"error": {"code": 131026}}', status=400), Undeliverable, "131026", None),
    ],
)
def test_an_answer_is_told_by_what_comes_next(
    meta: Meta, respond: Respond, kind: type[ChannelError], code: str, tries: int | None
) -> None:
    meta.will(respond)
    with pytest.raises(ChannelError) as caught:
        send()
    assert (type(caught.value), caught.value.code, caught.value.tries) == (kind, code, tries)


def test_the_wait_that_meta_asks_for_reaches_the_queue(meta: Meta) -> None:
    meta.will(answer(payload("api-12-err-130429-throughput"), status=429, Retry_After="30"))
    with pytest.raises(Throttled) as caught:
        send()
    assert caught.value.retry_after == timedelta(seconds=30)


def test_a_connection_that_never_was_may_be_tried_again(settings: Settings) -> None:
    settings.WHATSAPP_API_URL = "http://nowhere.invalid"
    with pytest.raises(ChannelError) as caught:
        send()
    assert (type(caught.value), caught.value.code) == (ChannelError, "not_reached")


def test_without_a_token_nothing_leaves(meta: Meta, settings: Settings) -> None:
    settings.WHATSAPP_ACCESS_TOKEN = ""
    with pytest.raises(ChannelError) as caught:
        send()
    assert (type(caught.value), caught.value.code) == (ChannelError, "not_configured")
    assert meta.calls == []


# --- what Meta holds back ---------------------------------------------------------


@pytest.fixture
def synced(db: None) -> Callable[..., Template]:
    def make(**fields: Any) -> Template:
        given = {
            "business_account_id": BUSINESS_ACCOUNT_ID,
            "name": "appointment_reminder_24h",
            "language": "es",
            "status": "APPROVED",
            "category": "UTILITY",
            "known_at": timezone.now(),
        }
        return Template.objects.create(**{**given, **fields})

    return make


HELD = {"d:1:1": Reason.TEMPLATE_UNAVAILABLE}


@pytest.mark.parametrize(
    ("known", "held"),
    [
        ({"status": "PAUSED"}, HELD),
        ({"status": "DISABLED"}, HELD),
        ({"status": "REJECTED"}, HELD),
        ({"status": "PENDING"}, HELD),
        ({"status": "DELETED"}, HELD),
        ({"status": "SOMETHING_NEW"}, HELD),
        ({"category": "MARKETING"}, HELD),
        ({}, {}),
        ({"quality": "RED"}, {}),
        # A webhook told of its quality, and nobody has read the rest yet.
        ({"status": "", "category": ""}, {}),
        ({"status": "PAUSED", "business_account_id": "999"}, {}),
        ({"status": "PAUSED", "language": "en_US"}, {}),
        ({"status": "PAUSED", "name": "appointment_arrival"}, {}),
    ],
    ids=str,
)
def test_a_message_is_held_back_where_meta_holds_back_its_template(
    synced: Callable[..., Template], known: dict[str, str], held: dict[str, Reason]
) -> None:
    synced(**known)
    assert WhatsAppChannel().withheld([message()]) == held


@pytest.mark.django_db
def test_a_template_that_was_never_synced_is_taken_for_usable() -> None:
    assert WhatsAppChannel().withheld([message()]) == {}


def test_a_batch_asks_once_and_tells_each_message_by_its_reference(
    synced: Callable[..., Template], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    synced(name="appointment_arrival", status="PAUSED")
    synced(name="appointment_preparation", status="APPROVED")
    batch = [
        message(reference="d:1:1", kind="llegada"),
        message(reference="d:2:1", kind="preparacion"),
        message(reference="d:3:1", kind="llegada"),
        message(reference="d:4:1", kind="birthday"),
    ]
    with django_assert_num_queries(1):
        held = WhatsAppChannel().withheld(batch)
    assert held == dict.fromkeys(["d:1:1", "d:3:1"], Reason.TEMPLATE_UNAVAILABLE)


def test_a_reply_needs_no_template_and_is_never_held_back(
    synced: Callable[..., Template], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    synced(status="PAUSED")
    with django_assert_num_queries(0):
        assert WhatsAppChannel().withheld([message(kind="reply")]) == {}
