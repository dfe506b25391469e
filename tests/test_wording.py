"""Messages in words that cannot embarrass: variables, days and hours as they are said."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import translation
from hypothesis import given, settings
from hypothesis import strategies as st

from reminders import wording
from reminders.timeline import ReminderType
from tests.timeline_values import ZONES, at

KNOWN = ", ".join(f"{{{name}}}" for name in wording.VARIABLES)
EXAMPLES = {variable.name: variable.example for variable in wording.VARIABLES.values()}


def values(start: str = "2026-09-17T10:00", now: str = "2026-09-16T10:00", **words: Any) -> wording.Words:
    place = start.partition(" ")[2] or "Caracas"
    people: dict[str, Any] = {
        "patient_name": "Ana Pérez",
        "doctor": "Dra. Carmen Ruiz",
        "office": "Torre",
        "address": "Av. 5",
    }
    facts = wording.Facts(**{**people, **words}, starts_at=at(start), zone=ZONES[place])
    return wording.values(facts, now=at(now))


DAYS = [
    ("B1", "2026-09-18T22:00", "2026-09-18T07:00", "hoy, viernes 18 de septiembre"),
    ("B2", "2026-09-18T06:30", "2026-09-17T20:45", "mañana, viernes 18 de septiembre"),
    ("two days ahead", "2026-09-18T06:30", "2026-09-16T23:59", "el viernes 18 de septiembre"),
    ("F12", "2026-03-08T10:00 NewYork", "2026-03-07T10:00 NewYork", "mañana, domingo 8 de marzo"),
    ("F12, days ahead", "2026-03-08T10:00 NewYork", "2026-03-05T10:00 NewYork", "el domingo 8 de marzo"),
    ("sent from another day", "2026-09-17T20:30", "2026-09-18T05:00 Madrid", "hoy, jueves 17 de septiembre"),
    ("over midnight there", "2026-09-18T00:10", "2026-09-17T23:50", "mañana, viernes 18 de septiembre"),
    (
        "tomorrow is another year",
        "2027-01-01T10:00",
        "2026-12-31T10:00",
        "mañana, viernes 1 de enero de 2027",
    ),
    ("another year", "2027-02-28T10:00", "2026-09-01T10:00", "el domingo 28 de febrero de 2027"),
    ("past", "2026-09-16T10:00", "2026-09-17T10:00", "el miércoles 16 de septiembre"),
]


@pytest.mark.complaint(
    "The message tells the hour of a traveller, of the organiser or of the server.",
    about="clocks",
    source="calcom/cal.diy #29868, #18248; odoo/odoo PR#100733; SuiteCRM/SuiteCRM #822",
)
@pytest.mark.parametrize(
    ("start", "now", "said"), [case[1:] for case in DAYS], ids=[case[0] for case in DAYS]
)
def test_the_day_is_said_as_it_is_where_the_visit_is_when_the_message_leaves(start, now, said):
    assert values(start, now)["fecha"] == said


@pytest.mark.parametrize(
    ("clock", "said"),
    [
        ("10:00", "10:00 a. m."),
        ("12:00", "12:00 p. m."),
        ("00:30", "12:30 a. m."),
        ("13:05", "1:05 p. m."),
        ("23:59", "11:59 p. m."),
        ("09:00", "9:00 a. m."),
    ],
)
def test_the_hour_is_said_the_venezuelan_way_with_ordinary_spaces(clock, said):
    assert values(f"2026-09-17T{clock}")["hora"] == said


@pytest.mark.parametrize("year", [2006, 2010, 2020])
def test_g5_an_old_hour_is_the_one_of_its_time(year):
    start = datetime(year, 6, 1, 13, 30 if year == 2010 else 0, tzinfo=UTC)
    assert wording.when(start, ZoneInfo("America/Caracas"), start).endswith("a las 9:00 a. m.")


def test_when_says_day_and_hour_together():
    caracas, now = ZONES["Caracas"], at("2026-09-16T10:00")
    said = wording.when(at("2026-09-17T10:00"), caracas, now)
    assert said == "mañana, jueves 17 de septiembre, a las 10:00 a. m."
    said = wording.when(at("2026-09-17T13:00"), caracas, now)
    assert said == "mañana, jueves 17 de septiembre, a la 1:00 p. m."


def test_days_are_spanish_whatever_the_language_of_the_process():
    with translation.override("en"):
        assert values()["fecha"] == "mañana, jueves 17 de septiembre"
        assert values(patient_name="")["nombre"] == "paciente"


def test_h7_an_empty_value_has_neutral_words():
    empty = values(patient_name=" ", doctor="\u200b", office="", address="\n")
    assert (empty["nombre"], empty["doctor"], empty["consultorio"], empty["direccion"]) == (
        "paciente",
        "su médico",
        "el consultorio",
        "la dirección habitual",
    )
    assert (
        wording.render("Hola, {nombre}: le espera {doctor}.", empty) == "Hola, paciente: le espera su médico."
    )


def test_h7_an_empty_value_leaves_no_gap():
    gap = {**EXAMPLES, "doctor": ""}
    assert wording.render("Su cita con {doctor} es {hora}", gap) == "Su cita con es 10:00 a. m."
    assert wording.render("Le espera {doctor}, en la torre {doctor}.", gap) == "Le espera, en la torre."


def test_a_value_is_one_line_of_what_can_be_seen():
    dirty = values(
        patient_name="  Ana\n\tMaría\u00a0 \u200bPérez\u202e\x00\u2028 ", address="Av. 1\r\nPiso 2"
    )
    assert dirty["nombre"] == "Ana María Pérez"
    assert dirty["direccion"] == "Av. 1 Piso 2"


@settings(deadline=None)
@given(st.text())
def test_no_value_is_refused_by_meta(text):
    value = values(patient_name=text, address=text)["nombre"]
    assert value
    assert "  " not in value
    assert not set(value) & set("\n\r\t\x00\u200b\u202e")


def test_a_text_keeps_its_lines():
    assert (
        wording.render("Hola, {nombre}.\n\nHora: {hora}\n", EXAMPLES)
        == "Hola, Ana Pérez.\n\nHora: 10:00 a. m."
    )


def test_a_sentence_that_ends_in_a_shortened_word_has_one_stop():
    assert wording.render("Le esperamos a las {hora}.", EXAMPLES) == "Le esperamos a las 10:00 a. m."
    assert wording.render("Le esperamos...", EXAMPLES) == "Le esperamos..."


def test_words_that_come_in_by_a_value_are_never_a_template():
    hostile = values(patient_name="{doctor} {nombre.__class__} %s {{x}}", doctor="{hora}")
    assert wording.render("{nombre} y {doctor}", hostile) == "{doctor} {nombre.__class__} %s {{x}} y {hora}"


@pytest.mark.parametrize(
    "template",
    [
        *("{nombre.__class__}", "{nombre[0]}", "{nombre!r}", "{nombre:>99}", "{0}", "{}", "{ nombre }"),
        *(
            "{nombr}",
            "{Nombre}",
            "{dirección}",
            "{",
            "}",
            "{nombre",
            "nombre}",
            "{nombre}}",
            "{{nombre}",
            "{a{b}",
        ),
    ],
)
def test_a_text_that_cannot_be_filled_is_refused_on_saving_and_on_sending(template):
    with pytest.raises(wording.BadTemplate):
        wording.check(template)
    with pytest.raises(wording.BadTemplate):
        wording.render(template, EXAMPLES)


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("Hola, {nombr}", f"No existe la variable {{nombr}}. ¿Quiso decir {{nombre}}? Puede usar: {KNOWN}."),
        ("{ Doctor }", "No existe la variable { Doctor }. ¿Quiso decir {doctor}?"),
        ("En {dirección}", "No existe la variable {dirección}. ¿Quiso decir {direccion}?"),
        ("{%s}", f"No existe la variable {{%s}}. Puede usar: {KNOWN}."),
        ("Hola, {nombre", "Hay una llave sin pareja. Una variable se escribe así: {nombre}."),
        ("Hola, {{nombre}}", "Escriba {nombre} con una sola llave a cada lado."),
        (" \n\u200b", "El texto está vacío."),
    ],
)
def test_h6_the_refusal_says_what_to_write_instead(template, sentence):
    with pytest.raises(wording.BadTemplate) as refused:
        wording.check(template)
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("%s y %(nombre)s", "%s y %(nombre)s"),
        ("{{7*7}}", "{7*7}"),
        ("{{{hora}}}", "{10:00 a. m.}"),
        ("$hora", "$hora"),
    ],
)
def test_other_languages_of_templates_are_plain_text(template, text):
    wording.check(template)
    assert wording.render(template, EXAMPLES) == text


@settings(deadline=None)
@given(st.text(alphabet="{}nombrehora .%$\n"))
def test_a_text_that_is_saved_can_be_sent(template):
    try:
        wording.check(template)
    except wording.BadTemplate:
        return
    wording.render(template, EXAMPLES)


@pytest.mark.parametrize("kind", list(ReminderType))
@pytest.mark.parametrize("words", ["all there", "nothing there"])
def test_the_default_words_read_well_for_everybody(kind, words):
    nothing = {"patient_name": "", "doctor": "", "office": "", "address": ""}
    filling = values(**nothing if words == "nothing there" else {})
    for template in (wording.DEFAULT_SUBJECTS[kind], wording.DEFAULT_BODIES[kind]):
        wording.check(template)
        text = wording.render(template, filling)
        assert not set(text) & set("{}")
        assert not any(ugly in text for ugly in ("  ", " .", " ,", "..", "el el ", "en en "))


@pytest.mark.parametrize("kind", list(wording.VIRTUAL_BODIES))
@pytest.mark.parametrize("video_url", ["https://video.example/sala", ""])
def test_the_words_for_a_video_call_name_its_link_and_no_place(kind, video_url):
    filling = values(office="Torre Médica", address="Av. 5", is_virtual=True, video_url=video_url)
    text = wording.render(wording.VIRTUAL_BODIES[kind], filling)
    assert "videollamada" in text
    assert "Torre" not in text and "Av. 5" not in text and "llegue" not in text
    if "{enlace_video}" in wording.VIRTUAL_BODIES[kind]:
        assert (video_url or "el enlace que le enviará el consultorio") in text


def test_a_doctors_own_words_name_the_video_call_in_the_place_of_the_office():
    filling = values(office="Torre", is_virtual=True, video_url="https://video.example/sala")
    assert wording.render("En {consultorio} ({direccion}).", filling) == (
        "En videollamada (https://video.example/sala)."
    )


ABROAD = [
    ("Caracas", "10:00 a. m."),
    ("Madrid", "10:00 a. m. (hora de Caracas)"),
    ("NewYork", "10:00 a. m."),  # in September four hours behind, as Caracas
]


@pytest.mark.parametrize(("zone", "said"), ABROAD)
def test_the_hour_names_the_place_where_the_patients_own_clocks_show_another(zone, said):
    assert values(own_zone=ZONES[zone])["hora"] == said


def test_in_winter_new_york_is_another_hour():
    winter = values("2026-12-17T10:00", "2026-12-16T10:00", own_zone=ZONES["NewYork"])
    assert winter["hora"] == "10:00 a. m. (hora de Caracas)"


def test_the_link_is_made_only_for_a_text_that_names_it():
    made = []
    filling = values(link=lambda: made.append("x") or "https://citas.example/cita/x/")
    wording.render("Hola, {nombre}.", filling)
    assert not made
    assert wording.render("Vea {enlace}", filling) == "Vea https://citas.example/cita/x/"


@pytest.mark.parametrize("name", ["especialidad", "indicaciones"])
def test_a_subject_does_not_say_on_a_locked_screen_why_the_patient_comes(name):
    template = f"Su cita: {{{name}}}"
    wording.check(template)
    with pytest.raises(wording.BadTemplate, match="pantalla bloqueada"):
        wording.check(template, is_seen_by_others=True)


def test_the_words_that_ship_tell_nobody_why_the_patient_comes():
    clinical = {f"{{{variable.name}}}" for variable in wording.VARIABLES.values() if variable.is_clinical}
    shipped = [
        *wording.DEFAULT_SUBJECTS.values(),
        *wording.DEFAULT_BODIES.values(),
        *wording.VIRTUAL_BODIES.values(),
    ]
    assert not any(name in text for name in clinical for text in shipped)


def test_a_doctor_without_a_title_leaves_no_hole():
    assert wording.render("Con {titulo} Carmen Ruiz, {especialidad}.", values(title="")) == (
        "Con Carmen Ruiz, consulta."
    )


def test_every_variable_is_explained_to_the_doctor():
    for variable in wording.VARIABLES.values():
        assert str(variable.label)
        assert wording.render(f"{{{variable.name}}}", EXAMPLES) == variable.example
    assert set(values()) == set(wording.VARIABLES)


@pytest.mark.parametrize(
    ("hora", "words"), [("1:00 p. m.", "a la 1:00 p. m."), ("11:00 a. m.", "a las 11:00 a. m.")]
)
def test_one_oclock_is_one(hora, words):
    assert wording.render("Le esperamos a las {hora}", {"hora": hora}) == f"Le esperamos {words}"


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("Dónde: {consultorio}, {direccion}\nVenga.", "Dónde: Torre\nVenga."),
        ("En {consultorio}, {direccion}.", "En Torre."),
        ("Dónde: {direccion}, {consultorio}.", "Dónde: Torre."),
        ("En {consultorio} ({direccion}), a las {hora}.", "En Torre, a las 10:00 a. m."),
        ("En {consultorio} («{direccion}», {titulo}).", "En Torre."),
        ("En {consultorio} (piso 3, {direccion})", "En Torre (piso 3)"),
        ("Con {titulo} {direccion} Ruiz", "Con Ruiz"),
        ("{titulo}, {direccion}, {consultorio}", "Torre"),
        ("{titulo}\nHola.\n{direccion}\nAdiós.\n{titulo}", "Hola.\nAdiós."),
        ("Hola. {indicaciones}. Venga, {titulo}, pronto.", "Hola. Venga, pronto."),
        ("¿{titulo}, viene?", "¿viene?"),
        ("Señora:\nvenga ( ) , pronto,\n{titulo}{hora}", "Señora:\nvenga ( ), pronto,\n10:00 a. m."),
    ],
)  # fmt: skip
def test_h7_what_only_led_to_an_empty_value_goes_with_it(template, text):
    given = dict.fromkeys(wording.VARIABLES, "") | {"consultorio": "Torre", "hora": "10:00 a. m."}
    assert wording.render(template, given) == text


WORD = st.sampled_from(["Hola", "su cita", "piso 3", "señora Ruiz"])
PLACE = st.sampled_from([f"{{{name}}}" for name in wording.VARIABLES])
ITEM = st.one_of(
    WORD,
    PLACE,
    st.builds("{} ({})".format, WORD, PLACE),
    st.builds("({}, {})".format, WORD, PLACE),
    st.builds("«{}»".format, PLACE),
    st.builds("{} {}".format, PLACE, WORD),
)
LINE = st.builds(
    lambda items, comma, end: comma.join(items) + end,
    st.lists(ITEM, min_size=1, max_size=5),
    st.sampled_from([", ", " ", "; "]),
    st.sampled_from(["", ".", "?"]),
)
TEMPLATE = st.lists(LINE, min_size=1, max_size=4).map("\n".join)
VALUES = st.fixed_dictionaries(
    {name: st.sampled_from(["", variable.example]) for name, variable in wording.VARIABLES.items()}
)
UGLY = re.compile(r"  | [,;.?)\n]|\( |\(\)|«»|[,;][,;.?)»]|\([,;]|[,;]$|^[,; ]| $", re.MULTILINE)


@settings(deadline=None, max_examples=500)
@given(TEMPLATE, VALUES)
def test_h7_whatever_is_empty_nobody_can_see_where_it_stood(template, given):
    text = wording.render(template, given)
    assert not UGLY.search(text)
    for word in re.findall(r"\w+", re.sub(r"\{\w+\}", "", template)):
        assert word in text
    for name in re.findall(r"\{(\w+)\}", template):
        assert given[name] in text


@settings(deadline=None)
@given(st.text(), st.text())
def test_what_was_written_around_a_value_that_is_there_stays_as_it_was(before, after):
    literal = before.replace("{", "").replace("}", ""), after.replace("{", "").replace("}", "")
    text = wording.render(f"{literal[0]}{{nombre}}{literal[1]}", {"nombre": "Ana"})
    assert text == wording.tidy(f"{literal[0]}Ana{literal[1]}".replace("\0", "")) or "\0" in before + after


@settings(deadline=None)
@given(st.text(alphabet="abc./-_~%?=&1:,", max_size=80))
def test_a_link_comes_through_as_it_is(path):
    link = f"https://video.example/{path}#x"
    filling = values(is_virtual=True, video_url=link)
    assert link in wording.render("Para entrar: {enlace_video}.\n({enlace_video})", filling)


def test_a_visit_in_person_promises_no_link_of_a_video_call():
    filling = values(video_url="https://video.example/forgotten")
    said = wording.render("Videollamada: {enlace_video}", filling)
    assert said == "Videollamada: no hace falta: la cita es presencial"


@pytest.mark.parametrize("address", ["javascript:alert(1)", "ftp://video.example", "", " \u200b"])
def test_what_is_no_address_on_the_web_is_no_link(address):
    filling = values(is_virtual=True, video_url=address)
    assert filling["enlace_video"] == "el enlace que le enviará el consultorio"
    assert filling["direccion"] == "el enlace que le enviará el consultorio"


def test_an_hour_on_its_own_names_its_place_too():
    said = wording.when(
        at("2026-09-17T13:00"), ZONES["Caracas"], at("2026-09-17T10:00"), whose="hora de Caracas"
    )
    assert said == "hoy, jueves 17 de septiembre, a la 1:00 p. m. (hora de Caracas)"


def test_the_page_of_variables_in_the_docs_is_the_table():
    page = (Path(__file__).parent.parent / "docs" / "words.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `\{(\w+)\}` \|.*\| ([^|]*) \|$", page, re.MULTILINE))
    assert list(told) == list(wording.VARIABLES)
    for variable in wording.VARIABLES.values():
        assert told[variable.name] in (variable.if_empty, "never empty", "nothing")
