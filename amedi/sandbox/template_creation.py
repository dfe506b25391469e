"""Meta's rules for creating a template, which she approves here at once.

Source: developers.facebook.com, "Template components", "Template review", and the
subcodes 2388xxx of "Error codes". A refusal is code 100 with such a subcode.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from amedi.sandbox.graph_errors import GraphError
from amedi.sandbox.json_shapes import JsonObject, length
from amedi.sandbox.templates import VARIABLE, Template, TemplateButton, template_from_json, variables

TOO_LONG = 2388040
HEADER_FORMAT = 2388047
BODY_FORMAT = 2388072
FOOTER_FORMAT = 2388073
BUTTON_FORMAT = 2388060
MISSING_FIELD = 2388043
ALREADY_EXISTS = 2388024
TOO_MANY_VARIABLES = 2388293
VARIABLE_AT_THE_EDGE = 2388299

CATEGORIES = ("UTILITY", "MARKETING")
_COUNTRIES = ("AR", "CL", "CO", "CR", "DO", "EC", "ES", "HN", "MX", "PA", "PE", "UY")
SPANISH = {"es", *(f"es_{country}" for country in _COUNTRIES)}
"""There is no es_VE."""
BUTTON_KINDS: Mapping[str, int] = {"QUICK_REPLY": 10, "URL": 2, "PHONE_NUMBER": 1, "COPY_CODE": 1}
MOST_EMOJIS = 10
_NAME = re.compile(r"[a-z0-9_]{1,512}")
_VARIABLE_NAME = re.compile(r"[a-z][a-z0-9_]*")
_LANGUAGE = re.compile(r"[a-z]{2,3}(_[A-Z]{2})?")
_ADJACENT = re.compile(r"\}\}\s*\{\{")


def read_new_template(body: JsonObject, existing: Sequence[Template]) -> Template:
    """The template that the body describes, approved, or rejected as a copy of another one.

    Raises GraphError with the subcode of the rule that it breaks.
    """
    try:
        template = replace(template_from_json(body), status="APPROVED")
    except ValueError as error:
        raise GraphError(100, str(error)) from None
    _check_envelope(template, body.get("category"))
    if any((old.name, old.language) == (template.name, template.language) for old in existing):
        raise _refusal(ALREADY_EXISTS, "Ya hay contenido en este idioma para esta plantilla.")
    _check_components(template)
    _check_header(template)
    _check_body(template)
    _check_footer(template)
    _check_buttons(template.buttons)
    # Found in review rather than refused: same body and footer as another one.
    if any((old.body, old.footer) == (template.body, template.footer) for old in existing):
        return replace(template, status="REJECTED", rejected_reason="INVALID_FORMAT")
    return template


def _refusal(subcode: int, user_message: str) -> GraphError:
    return GraphError(100, subcode=subcode, user_message=user_message)


def _check_envelope(template: Template, category: object) -> None:
    if not _NAME.fullmatch(template.name):
        raise GraphError(100, "Param name must have only a-z, 0-9 and _, at most 512.")
    if not _LANGUAGE.fullmatch(template.language) or (
        template.language.startswith("es") and template.language not in SPANISH
    ):
        raise GraphError(100, "Param language is not a supported language.")
    if category is None or template.category not in CATEGORIES:
        raise GraphError(100, f"Param category must be one of {', '.join(CATEGORIES)}.")
    if template.parameter_format not in ("NAMED", "POSITIONAL"):
        raise GraphError(100, "Param parameter_format must be NAMED or POSITIONAL.")
    ttl = template.message_send_ttl_seconds
    if ttl is not None and ttl != -1 and not 30 <= ttl <= 43_200:
        raise GraphError(100, "Param message_send_ttl_seconds must be -1 or from 30 to 43200.")


def _check_components(template: Template) -> None:
    kinds = [str(component.get("type", "")).upper() for component in template.components]
    if set(kinds) - {"HEADER", "BODY", "FOOTER", "BUTTONS"} or len(set(kinds)) < len(kinds):
        raise GraphError(100, "Param components may have HEADER, BODY, FOOTER and BUTTONS, each once.")
    if "BODY" not in kinds:
        raise _refusal(MISSING_FIELD, "Falta el componente BODY.")


def _check_header(template: Template) -> None:
    component = template.component("HEADER")
    if not component:
        return
    if component.get("format") != "TEXT" or not template.header.strip():
        raise _refusal(HEADER_FORMAT, "El encabezado debe ser un texto.")
    _check_length(template.header, 60)
    if "\n" in template.header or _emojis(template.header):
        raise _refusal(HEADER_FORMAT, "El encabezado no admite saltos de línea ni emojis.")
    names = _check_variables(template, template.header, HEADER_FORMAT)
    if len(names) > 1:
        raise _refusal(HEADER_FORMAT, "El encabezado admite una sola variable.")
    _check_examples(template, component, names, "header_text")


def _check_body(template: Template) -> None:
    body = template.body
    if not body.strip():
        raise _refusal(MISSING_FIELD, "El cuerpo no tiene texto.")
    _check_length(body, 1024)
    if _emojis(body) > MOST_EMOJIS:
        raise _refusal(BODY_FORMAT, "El cuerpo admite como mucho diez emojis.")
    if re.search(r"\n{3,}|\t| {5,}", body):
        raise _refusal(BODY_FORMAT, "El cuerpo tiene demasiados espacios o saltos de línea.")
    names = _check_variables(template, body, BODY_FORMAT)
    # Punctuation does not count as text before or after a variable.
    bare = body.strip(" \n.,;:!?¡¿*_~")
    if names and (bare.startswith("{{") or bare.endswith("}}")):
        raise _refusal(VARIABLE_AT_THE_EDGE, "Hay una variable al principio o al final.")
    if _ADJACENT.search(body):
        raise _refusal(BODY_FORMAT, "Hay dos variables seguidas.")
    # Meta gives no number; Twilio's advice is 2x+1 words around x variables.
    words = re.findall(r"\w+", VARIABLE.sub(" ", body))
    if names and len(words) < 2 * len(VARIABLE.findall(body)) + 1:
        raise _refusal(TOO_MANY_VARIABLES, "Hay demasiadas variables para tan poco texto.")
    _check_examples(template, template.component("BODY"), names, "body_text")


def _check_footer(template: Template) -> None:
    if not template.component("FOOTER"):
        return
    _check_length(template.footer, 60)
    if not template.footer.strip() or "{{" in template.footer or "\n" in template.footer:
        raise _refusal(FOOTER_FORMAT, "El pie es un texto de una línea, sin variables.")


def _check_variables(template: Template, text: str, subcode: int) -> list[str]:
    names = variables(text)
    if VARIABLE.sub("", text).count("{{") or VARIABLE.sub("", text).count("}}"):
        raise _refusal(subcode, "Una variable está mal escrita.")
    if template.parameter_format == "NAMED":
        if not all(_VARIABLE_NAME.fullmatch(name) for name in names):
            raise _refusal(subcode, "Los nombres de variables van en minúsculas, con guion bajo.")
    elif names != [str(place) for place in range(1, len(names) + 1)]:
        raise _refusal(subcode, "Las variables se numeran desde 1, sin saltos.")
    return names


def _check_examples(template: Template, component: JsonObject, names: list[str], key: str) -> None:
    if not names:
        return
    example = component.get("example")
    given = (
        _example_names(example, key) if template.parameter_format == "NAMED" else _example_row(example, key)
    )
    if sorted(given) != sorted(names):
        raise _refusal(MISSING_FIELD, "Falta un ejemplo para cada variable.")


def _example_names(example: object, key: str) -> list[str]:
    rows = example.get(f"{key}_named_params") if isinstance(example, dict) else None
    if not isinstance(rows, list):
        return []
    return [
        str(row.get("param_name"))
        for row in rows
        if isinstance(row, dict) and str(row.get("example", "")).strip()
    ]


def _example_row(example: object, key: str) -> list[str]:
    row = example.get(key) if isinstance(example, dict) else None
    if key == "body_text":
        row = row[0] if isinstance(row, list) and row else None
    if not isinstance(row, list):
        return []
    return [
        str(place) for place, value in enumerate(row, start=1) if isinstance(value, str) and value.strip()
    ]


def _check_buttons(buttons: Sequence[TemplateButton]) -> None:
    kinds = [button.kind for button in buttons]
    if len(buttons) > 10 or any(kinds.count(kind) > BUTTON_KINDS.get(kind, 0) for kind in kinds):
        raise _refusal(BUTTON_FORMAT, "Hay un botón de un tipo desconocido, o demasiados de un tipo.")
    if [kind for kind, _ in groupby(kinds)].count("QUICK_REPLY") > 1:
        raise _refusal(BUTTON_FORMAT, "Las respuestas rápidas deben ir juntas.")
    labels = [button.text for button in buttons]
    if len(set(labels)) < len(labels) or not all(label.strip() for label in labels):
        raise _refusal(BUTTON_FORMAT, "Cada botón necesita un texto distinto.")
    for button in buttons:
        _check_length(button.text, 25)
        if "{{" in button.text or _emojis(button.text):
            raise _refusal(BUTTON_FORMAT, "El texto de un botón no admite variables ni emojis.")
        if button.kind == "URL":
            _check_url(button.url)


def _check_url(url: str) -> None:
    _check_length(url, 2000)
    ends_well = re.fullmatch(r"https?://[^\s{}]+(\{\{1\}\})?", url)
    if not ends_well:
        raise _refusal(BUTTON_FORMAT, "La dirección admite una sola variable, al final.")


def _check_length(text: str, most: int) -> None:
    if length(text) > most:
        raise _refusal(TOO_LONG, f"El texto pasa de {most} caracteres.")


def _emojis(text: str) -> int:
    return sum(unicodedata.category(character) == "So" for character in text)
