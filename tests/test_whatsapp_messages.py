"""What we say, as a body of Meta's API."""

import pytest

from tests.factories import MARK, make_phone
from whatsapp import clean
from whatsapp.messages import template_message, text_message


def template(**fields: object) -> dict:
    given = {"to": "+584120000001", "name": "t", "language": "es", "parameters": {}, "payloads": []}
    return template_message(**{**given, "reference": "d1.1", **fields})


def text(**fields: object) -> dict:
    return text_message(**{"to": "+584120000001", "text": "Hola", "reference": "r1.1", **fields})


def test_a_template_carries_its_variables_by_name_and_a_payload_for_each_button() -> None:
    body = template(
        name="appointment_reminder_24h",
        parameters={"nombre": "Ana", "hora": "10:00 a. m."},
        payloads=["CONFIRM_1", "CANCEL_1"],
        reference="d7.2",
    )
    assert body == {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": "+584120000001",
        "biz_opaque_callback_data": "d7.2",
        "type": "template",
        "template": {
            "name": "appointment_reminder_24h",
            "language": {"code": "es"},
            "components": [
                {
                    "type": "body",
                    "parameters": [
                        {"type": "text", "parameter_name": "nombre", "text": "Ana"},
                        {"type": "text", "parameter_name": "hora", "text": "10:00 a. m."},
                    ],
                },
                {
                    "type": "button",
                    "sub_type": "quick_reply",
                    "index": "0",
                    "parameters": [{"type": "payload", "payload": "CONFIRM_1"}],
                },
                {
                    "type": "button",
                    "sub_type": "quick_reply",
                    "index": "1",
                    "parameters": [{"type": "payload", "payload": "CANCEL_1"}],
                },
            ],
        },
    }


def test_a_user_without_a_number_is_addressed_by_their_id() -> None:
    body = template(to="VE.1234")
    assert body["recipient"] == "VE.1234"
    assert "to" not in body


@pytest.mark.parametrize(
    "to",
    [
        "",
        "584120000001",
        "+58 4120000001",
        "+0584120000001",
        "+58412",
        "ve.1234",
        "VE.",
        "+٥٨٤١٢٠٠٠٠٠٠١",
        "+584120000001\n",
    ],
)
def test_no_other_address_is_written_to(to: str) -> None:
    with pytest.raises(ValueError, match="address"):
        template(to=to)
    with pytest.raises(ValueError, match="address"):
        text(to=to)


def test_a_refused_address_is_not_repeated_in_the_error() -> None:
    phone = make_phone().removeprefix("+")
    with pytest.raises(ValueError) as caught:
        template(to=phone)
    assert phone not in str(caught.value)


@pytest.mark.parametrize("payload", ["", "x" * 129])
def test_a_payload_is_neither_empty_nor_longer_than_meta_takes(payload: str) -> None:
    with pytest.raises(ValueError, match="payload"):
        template(payloads=[payload])
    assert template(payloads=["x" * 128])


def test_a_reference_that_would_come_back_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="reference"):
        template(reference="x" * 513)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("Dra.\nRuiz", "Dra. Ruiz"),
        ("Dra.\tRuiz", "Dra. Ruiz"),
        ("  Dra.      Ruiz \r\n", "Dra. Ruiz"),
        ("Dra.\u00a0Ruiz\u2028", "Dra. Ruiz"),
        ("Du\u200bra\ufeffn", "Duran"),
        ("\u202eRuiz\u202c", "Ruiz"),
        ("Ru\x00iz", "Ruiz"),
        ("Ru\ud800iz", "Ruiz"),
        ("", "—"),
        (" \n\t ", "—"),
        ("\u200b\u200d", "—"),
        ("Núñez 👍", "Núñez 👍"),
        ("{{1}} %s $x", "{{1}} %s $x"),
    ],
)
def test_a_parameter_is_made_fit_for_a_template(given: str, sent: str) -> None:
    body = template(parameters={"doctor": given})
    assert body["template"]["components"][0]["parameters"][0]["text"] == sent


def test_an_empty_parameter_becomes_the_word_of_the_caller() -> None:
    assert clean.parameter(" ", fallback="su médico") == "su médico"


def test_a_long_parameter_is_cut_visibly() -> None:
    cut = clean.parameter("a" * 1000)
    assert len(cut) == clean.PARAMETER_LIMIT
    assert cut.endswith("a…")


def test_plain_text_is_sent_as_it_is_without_a_preview_of_links() -> None:
    body = text(text="Listo.\nGracias, nos vemos.", context="wamid.1")
    assert body["type"] == "text"
    assert body["text"] == {"body": "Listo.\nGracias, nos vemos.", "preview_url": False}
    assert body["context"] == {"message_id": "wamid.1"}
    assert body["biz_opaque_callback_data"] == "r1.1"


def test_text_that_answers_nothing_has_no_context() -> None:
    assert "context" not in text()


def test_text_with_buttons_is_an_interactive_message() -> None:
    body = text(buttons=[("CONFIRM_1", "Confirmar"), ("CANCEL_1", "Cancelar")])
    assert body["type"] == "interactive"
    assert body["interactive"] == {
        "type": "button",
        "body": {"text": "Hola"},
        "action": {
            "buttons": [
                {"type": "reply", "reply": {"id": "CONFIRM_1", "title": "Confirmar"}},
                {"type": "reply", "reply": {"id": "CANCEL_1", "title": "Cancelar"}},
            ]
        },
    }


def test_what_is_too_long_for_meta_is_cut() -> None:
    assert len(text(text="a" * 9000)["text"]["body"]) == 4096
    body = text(text="a" * 9000, buttons=[("A", "Confirmar la cita de mañana")])
    assert len(body["interactive"]["body"]["text"]) == 1024
    title = body["interactive"]["action"]["buttons"][0]["reply"]["title"]
    assert (len(title), title[-1]) == (20, "…")


@pytest.mark.parametrize(
    "buttons",
    [
        [("A", "1"), ("B", "2"), ("C", "3"), ("D", "4")],
        [("", "1")],
        [("x" * 257, "1")],
        [("A", " ")],
        [("A", "Sí"), ("B", "Sí")],
        [("A", "Confirmar la cita del lunes"), ("B", "Confirmar la cita del martes")],
    ],
)
def test_buttons_that_cannot_be_cut_are_refused(buttons: list[tuple[str, str]]) -> None:
    with pytest.raises(ValueError, match="button"):
        text(buttons=buttons)


@pytest.mark.parametrize("nothing", ["", "  \n", "\x00"])
def test_a_message_without_words_is_refused(nothing: str) -> None:
    with pytest.raises(ValueError, match="text"):
        text(text=nothing)


def test_text_loses_only_what_no_database_keeps() -> None:
    assert text(text=f"{MARK}\x00\ud800 👨‍👩‍👧")["text"]["body"] == f"{MARK} 👨‍👩‍👧"
