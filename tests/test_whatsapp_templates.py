"""Our templates against Meta's rules, and what becomes of them at Meta."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from tests.whatsapp_meta import BUSINESS_ACCOUNT_ID, Meta, answer, payload, running_meta
from whatsapp import clean
from whatsapp.client import Client
from whatsapp.events import TemplateAspect, TemplateChanged
from whatsapp.models import Template
from whatsapp.templates import apply_change, standard_templates, submit, sync

FILES = sorted((Path(__file__).parent.parent / "templates" / "whatsapp").glob("*.json"))
BODIES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FILES}
NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)

VARIABLES = {"nombre", "doctor", "fecha", "hora", "consultorio", "direccion", "preparacion", "enlace_video"}
HOURS_BEFORE = 3600
DAY_BEFORE = 43200
PLAN = {
    "appointment_reminder_24h": (DAY_BEFORE, ["Confirmar", "Reagendar", "Cancelar"]),
    "appointment_reminder_24h_confirmed": (DAY_BEFORE, ["Reagendar", "Cancelar"]),
    "appointment_reminder_2h": (HOURS_BEFORE, ["Confirmar", "Reagendar", "Cancelar"]),
    "appointment_reminder_2h_confirmed": (HOURS_BEFORE, ["Reagendar", "Cancelar"]),
    "appointment_preparation": (DAY_BEFORE, ["Reagendar", "Cancelar"]),
    "appointment_arrival": (HOURS_BEFORE, ["Ya llegué"]),
    "appointment_arrival_virtual": (HOURS_BEFORE, []),
    "appointment_follow_up": (DAY_BEFORE, []),
    "appointment_check_up": (DAY_BEFORE, []),
    "appointment_booked": (DAY_BEFORE, ["Reagendar", "Cancelar"]),
    "appointment_booked_preparation": (DAY_BEFORE, ["Reagendar", "Cancelar"]),
    "appointment_changed": (DAY_BEFORE, ["Confirmar", "Reagendar", "Cancelar"]),
    "appointment_changed_preparation": (DAY_BEFORE, ["Confirmar", "Reagendar", "Cancelar"]),
    "appointment_cancelled": (DAY_BEFORE, []),
}


# --- the files ----------------------------------------------------------------


def part(body: dict[str, Any], kind: str) -> dict[str, Any]:
    return next((item for item in body["components"] if item["type"] == kind), {})


def text_of(name: str) -> str:
    return str(part(BODIES[name], "BODY")["text"])


def filled(name: str) -> str:
    examples = {item["param_name"]: item["example"] for item in examples_of(name)}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: examples[match[1]], text_of(name))


def examples_of(name: str) -> list[dict[str, str]]:
    examples: list[dict[str, str]] = part(BODIES[name], "BODY")["example"]["body_text_named_params"]
    return examples


every_template = pytest.mark.parametrize("name", BODIES)


def test_there_is_a_file_for_each_message_of_the_timeline() -> None:
    planned = {
        name: (
            body["message_send_ttl_seconds"],
            [b["text"] for b in part(body, "BUTTONS").get("buttons", [])],
        )
        for name, body in BODIES.items()
    }
    assert planned == PLAN


@every_template
def test_the_envelope_is_what_meta_takes(name: str) -> None:
    body = BODIES[name]
    assert set(body) == {
        "name",
        "language",
        "category",
        "parameter_format",
        "message_send_ttl_seconds",
        "components",
    }
    assert body["name"] == name
    assert re.fullmatch(r"[a-z0-9_]{1,512}", name)
    # There is no es_VE.
    assert body["language"] == "es"
    assert (body["category"], body["parameter_format"]) == ("UTILITY", "NAMED")
    assert 30 <= body["message_send_ttl_seconds"] <= 43_200


@every_template
def test_the_parts_are_a_body_and_quick_replies_once_each(name: str) -> None:
    kinds = [item["type"] for item in BODIES[name]["components"]]
    assert kinds in (["BODY"], ["BODY", "BUTTONS"])


@every_template
def test_the_text_is_within_metas_lengths_even_with_the_longest_variables(name: str) -> None:
    """The instructions take what room the others leave."""
    text = text_of(name).replace("{{preparacion}}", "")
    longest = re.sub(r"\{\{\w+\}\}", "x" * clean.PARAMETER_LIMIT, text)
    assert len(longest) <= 1024


@every_template
def test_the_variables_are_known_and_written_rightly(name: str) -> None:
    text = text_of(name)
    found = re.findall(r"\{\{(.*?)\}\}", text)
    assert set(found) <= VARIABLES
    assert len(set(found)) == len(found)
    assert not set("{}") & set(re.sub(r"\{\{[a-z_]+\}\}", "", text))


@every_template
def test_no_variable_stands_first_last_or_beside_another(name: str) -> None:
    pieces = re.split(r"\{\{\w+\}\}", text_of(name))
    # Punctuation alone does not part two variables, nor end the text, for Meta.
    assert all(re.search(r"\w", piece) for piece in pieces)


@every_template
def test_there_are_words_enough_around_the_variables(name: str) -> None:
    text = text_of(name)
    variables = len(re.findall(r"\{\{\w+\}\}", text))
    words = re.findall(r"\w+", re.sub(r"\{\{\w+\}\}", " ", text))
    assert len(words) >= 2 * variables + 1


@every_template
def test_each_variable_has_an_example_in_its_order(name: str) -> None:
    variables = re.findall(r"\{\{(\w+)\}\}", text_of(name))
    assert [item["param_name"] for item in examples_of(name)] == variables
    assert all(clean.parameter(item["example"]) == item["example"] for item in examples_of(name))


@every_template
def test_the_buttons_are_few_short_and_different(name: str) -> None:
    buttons = part(BODIES[name], "BUTTONS").get("buttons", [])
    assert len(buttons) <= 3
    assert all(set(button) == {"type", "text"} and button["type"] == "QUICK_REPLY" for button in buttons)
    titles = [button["text"] for button in buttons]
    # 25 in a template, 20 in the message that offers the same outside of one.
    assert all(0 < len(title) <= 20 for title in titles)
    assert len(set(titles)) == len(titles)


@every_template
def test_nothing_stands_in_it_that_meta_or_a_lock_screen_must_not_see(name: str) -> None:
    words = (text_of(name) + str(part(BODIES[name], "BUTTONS"))).lower()
    forbidden = (
        r"c[ée]dula|tarjeta|cuenta|oferta|promoci|descuento|gratis|http|www|diagn[óo]stic|tratamiento|examen"
    )
    assert not re.search(forbidden, words)


@every_template
def test_the_text_is_clean(name: str) -> None:
    text = text_of(name)
    assert text == unicodedata.normalize("NFC", text).strip()
    assert "    " not in text and "\t" not in text
    assert all(unicodedata.category(char) not in ("Cc", "Cf") for char in text)
    assert sum(unicodedata.category(char) == "So" for char in text) <= 10


@every_template
def test_the_filled_text_reads_well(name: str) -> None:
    text = filled(name)
    assert not re.search(r"\.\.|  | ,|\bel el\b|\bel mañana\b|\bel hoy\b|\ba el\b|\bde el\b", text)
    assert text.startswith("Hola, Ana. ")
    assert text[-1] in ".?"


def test_no_two_templates_say_the_same() -> None:
    assert len({text_of(name) for name in BODIES}) == len(BODIES)


@pytest.mark.parametrize("name", [name for name in PLAN if name.endswith("_confirmed")])
def test_a_confirmed_patient_is_not_asked_again(name: str) -> None:
    assert "?" not in text_of(name)
    assert "confirmada" in text_of(name)


def test_the_loader_gives_text_variables_and_buttons() -> None:
    template = standard_templates()["appointment_reminder_24h"]
    assert set(standard_templates()) == set(PLAN)
    assert (template.language, template.ttl_seconds) == ("es", 43200)
    assert template.text == text_of("appointment_reminder_24h")
    assert template.parameters == ("nombre", "doctor", "fecha", "hora", "consultorio")
    assert template.buttons == ("Confirmar", "Reagendar", "Cancelar")
    assert template.creation == BODIES["appointment_reminder_24h"]
    assert standard_templates()["appointment_follow_up"].buttons == ()


# --- at Meta ------------------------------------------------------------------


@pytest.fixture
def meta(settings: Settings) -> Iterator[Meta]:
    with running_meta() as meta:
        settings.WHATSAPP_API_URL = meta.url
        meta.will(answer('{"data": []}'))
        yield meta


def make_template(**fields: Any) -> Template:
    given = {"name": "recordatorio_cita", "language": "es", "status": "APPROVED", "category": "UTILITY"}
    return Template.objects.create(
        **{**given, "business_account_id": BUSINESS_ACCOUNT_ID, "known_at": NOW - timedelta(days=1), **fields}
    )


def two_pages(meta: Meta) -> None:
    meta.will(answer(payload("api-20-templates-page-1")), answer(payload("api-21-templates-page-2")))


@pytest.mark.django_db
def test_sync_keeps_every_template_of_every_page(meta: Meta) -> None:
    two_pages(meta)
    said = list(sync(Client.from_settings(), now=NOW))
    rows = {(row.name, row.language): row for row in Template.objects.all()}
    assert {key: row.is_usable for key, row in rows.items()} == {
        ("recordatorio_cita", "es"): True,
        ("recordatorio_cita", "en_US"): False,
        ("aviso_cambio", "es"): False,
        ("plantilla_futura", "es"): False,
    }
    first = rows["recordatorio_cita", "es"]
    assert (first.quality, first.ttl_seconds, len(first.components)) == ("GREEN", 43200, 2)
    assert first.synced_at == NOW
    assert rows["recordatorio_cita", "en_US"].reason == "INCORRECT_CATEGORY"
    assert rows["aviso_cambio", "es"].asked_category == "UTILITY"
    assert said[-1] == "Meta tiene 4 plantillas."
    assert any("aviso_cambio" in line and "MARKETING y no por UTILITY" in line for line in said)
    assert any("INCORRECT_CATEGORY" in line for line in said)


@pytest.mark.django_db
def test_a_second_sync_changes_nothing(meta: Meta) -> None:
    two_pages(meta)
    list(sync(Client.from_settings(), now=NOW))
    before = list(Template.objects.values())
    two_pages(meta)
    list(sync(Client.from_settings(), now=NOW))
    assert list(Template.objects.values()) == before


@pytest.mark.django_db
def test_a_template_that_meta_lost_is_not_used_any_more(meta: Meta) -> None:
    gone, foreign = make_template(), make_template(business_account_id="another")
    said = list(sync(Client.from_settings(), now=NOW))
    gone.refresh_from_db()
    foreign.refresh_from_db()
    assert (gone.status, foreign.status) == ("DELETED", "APPROVED")
    assert "recordatorio_cita (es): Meta ya no la tiene." in said


@pytest.mark.django_db
def test_submit_creates_what_meta_does_not_have(meta: Meta) -> None:
    known = [{"name": name, "language": "es"} for name in PLAN if name != "appointment_arrival"]
    created = '{"id": "5", "status": "PENDING", "category": "UTILITY"}'
    meta.will(answer(json.dumps({"data": known})), answer(created))
    said = list(submit(Client.from_settings(), now=NOW))
    assert [call.body for call in meta.calls if call.method == "POST"] == [BODIES["appointment_arrival"]]
    row = Template.objects.get()
    assert (row.name, row.status, row.asked_category, row.is_usable) == (
        "appointment_arrival",
        "PENDING",
        "UTILITY",
        False,
    )
    assert "appointment_arrival: enviada a Meta; estado PENDING, categoría UTILITY." in said
    assert "appointment_check_up: Meta ya la tiene." in said


@pytest.mark.django_db
def test_a_template_that_came_back_as_marketing_is_told_and_not_used(
    meta: Meta, caplog: pytest.LogCaptureFixture
) -> None:
    meta.will(answer('{"data": []}'), answer(payload("api-22-template-create-as-marketing")))
    said = list(submit(Client.from_settings(), now=NOW))
    assert sum("MARKETING y no por UTILITY" in line for line in said) == len(PLAN)
    assert not Template.objects.usable().exists()
    assert "outcome=marketing" in caplog.text


@pytest.mark.django_db
def test_a_refused_template_is_told_in_metas_words_and_the_others_go_on(meta: Meta) -> None:
    refusal = answer(payload("api-23-template-create-err-2388299"), status=400)
    created = answer('{"id": "5", "status": "PENDING", "category": "UTILITY"}')
    meta.will(answer('{"data": []}'), refusal, answer("<html>", status=502), created)
    said = list(submit(Client.from_settings(), now=NOW))
    assert said[0] == (
        "appointment_arrival: Meta la rechazó (código 2388299). "
        "(texto inventado) hay una variable al principio o al final"
    )
    assert said[1].startswith("appointment_arrival_virtual: no llegó la respuesta de Meta.")
    assert Template.objects.count() == len(PLAN) - 2


def run(action: str) -> str:
    out = StringIO()
    call_command("whatsapp_templates", action, stdout=out)
    return out.getvalue()


@pytest.mark.django_db
def test_the_command_lists_syncs_and_submits(meta: Meta) -> None:
    assert "appointment_arrival (es): Meta aún no la tiene" in run("list")
    assert "Meta tiene 0 plantillas." in run("sync")
    meta.will(answer('{"data": []}'), answer('{"id": "5", "status": "PENDING", "category": "UTILITY"}'))
    assert "appointment_arrival: enviada a Meta" in run("submit")
    assert "appointment_arrival (es): PENDING, UTILITY" in run("list")


@pytest.mark.django_db
@pytest.mark.parametrize("action", ["sync", "submit"])
def test_the_command_says_in_a_sentence_what_went_wrong(meta: Meta, settings: Settings, action: str) -> None:
    meta.will(answer(payload("api-10-err-190-expired"), status=401))
    with pytest.raises(CommandError, match="código 190"):
        run(action)
    meta.will(answer("<html>", status=502))
    with pytest.raises(CommandError, match="Meta no responde"):
        run(action)
    settings.WHATSAPP_ACCESS_TOKEN = ""
    with pytest.raises(CommandError, match="WHATSAPP_ACCESS_TOKEN"):
        run(action)
    settings.WHATSAPP_ACCESS_TOKEN = "x"
    settings.WHATSAPP_BUSINESS_ACCOUNT_ID = ""
    with pytest.raises(CommandError, match="WHATSAPP_BUSINESS_ACCOUNT_ID"):
        run(action)


# --- what Meta tells by webhook -------------------------------------------------


def change(**fields: Any) -> TemplateChanged:
    given: dict[str, Any] = {"aspect": TemplateAspect.STATUS, "at": NOW, "name": "recordatorio_cita"}
    return TemplateChanged(
        **{**given, "language": "es", "business_account_id": BUSINESS_ACCOUNT_ID, **fields}
    )


@pytest.mark.django_db
def test_a_decision_changes_what_it_names_and_nothing_else() -> None:
    make_template(quality="GREEN")
    row = apply_change(change(status="PAUSED"), now=NOW)
    assert (row.status, row.category, row.quality) == ("PAUSED", "UTILITY", "GREEN")
    row = apply_change(change(aspect=TemplateAspect.QUALITY, quality="RED"), now=NOW)
    assert (row.status, row.quality) == ("PAUSED", "RED")
    assert Template.objects.count() == 1


@pytest.mark.django_db
def test_a_late_decision_does_not_undo_a_later_one() -> None:
    make_template()
    apply_change(change(status="REJECTED"), now=NOW)
    row = apply_change(change(status="APPROVED", at=NOW - timedelta(seconds=1)), now=NOW)
    assert row.status == "REJECTED"


@pytest.mark.django_db
def test_a_decision_on_a_template_that_we_never_read_is_kept() -> None:
    row = apply_change(change(status="REJECTED", name="appointment_arrival"), now=NOW)
    assert (row.status, row.asked_category, row.is_usable) == ("REJECTED", "UTILITY", False)


@pytest.mark.django_db
def test_an_approval_in_the_second_of_the_submission_counts(meta: Meta) -> None:
    meta.will(answer('{"data": []}'), answer('{"id": "5", "status": "PENDING", "category": "UTILITY"}'))
    list(submit(Client.from_settings(), now=NOW + timedelta(milliseconds=900)))
    apply_change(change(name="appointment_arrival", status="APPROVED"), now=NOW)
    assert Template.objects.get(name="appointment_arrival").is_usable


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"status": "APPROVED", "category": "MARKETING"}, True),
        ({"aspect": TemplateAspect.CATEGORY, "category": "UTILITY", "coming_category": "MARKETING"}, True),
        ({"status": "REJECTED"}, True),
        ({"status": "DISABLED"}, True),
        ({"status": "SOMETHING_NEW"}, True),
        ({"aspect": TemplateAspect.QUALITY, "quality": "RED"}, True),
        ({"aspect": TemplateAspect.QUALITY, "quality": "GREEN"}, False),
        ({"status": "APPROVED", "category": "UTILITY"}, False),
        ({"status": "PENDING"}, False),
    ],
)
def test_somebody_is_told_when_a_template_cannot_be_used(
    fields: dict[str, Any], told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    apply_change(change(**fields), now=NOW)
    assert told is any(record.levelname == "ERROR" for record in caplog.records)


@pytest.mark.parametrize(
    ("status", "category", "usable"),
    [
        ("APPROVED", "UTILITY", True),
        ("APPROVED", "MARKETING", False),
        ("APPROVED", "", False),
        ("PENDING", "UTILITY", False),
        ("", "UTILITY", False),
        ("SOMETHING_NEW", "UTILITY", False),
    ],
)
def test_only_an_approved_utility_template_is_usable(status: str, category: str, usable: bool) -> None:
    assert Template(status=status, category=category).is_usable is usable
