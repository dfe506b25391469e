"""Meta's rules for sending a template: that it may be sent, and that the parameters fit it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from amedi.sandbox.graph_errors import GraphError
from amedi.sandbox.json_shapes import JsonObject, length, only_keys, read_object, read_objects, read_text
from amedi.sandbox.messages import Choice, Message
from amedi.sandbox.templates import Template, TemplateButton, fill, variables

BODY_LENGTH = 1024
HEADER_LENGTH = 60
PAYLOAD_LENGTH = 128
"""Sources say 128 and 256: whoever keeps to 128 is right with both."""
_BAD_SPACE = re.compile(r"[\n\r\t]| {5,}")


def read_template(
    content: JsonObject, templates: Sequence[Template], *, to: str, reference: str, answers_to: str
) -> Message:
    """The template's own text with the parameters filled in. Raises GraphError."""
    only_keys(content, "template", "name", "language", "components")
    template = _sendable(content, templates)
    components = (
        read_objects(content, "components", "template", least=0, most=12) if ("components" in content) else []
    )
    for component in components:
        only_keys(component, "component", "type", "sub_type", "index", "parameters")
        if component.get("type") not in ("header", "body", "button"):
            raise GraphError(131009, "Param component['type'] must be header, body or button.")
    return Message(
        to=to,
        reference=reference,
        answers_to=answers_to,
        kind="template",
        category=template.category.lower(),
        header=_filled(template, template.header, "header", components, most=HEADER_LENGTH),
        body=_filled(template, template.body, "body", components, most=BODY_LENGTH),
        footer=template.footer,
        choices=_choices(template, components),
    )


def _sendable(content: JsonObject, templates: Sequence[Template]) -> Template:
    name = read_text(content, "name", "template", most=512)
    language = read_object(content, "language", "template")
    only_keys(language, "language", "code", "policy")
    code = read_text(language, "code", "language", most=15)
    for template in templates:
        if (template.name, template.language) == (name, code):
            break
    else:
        raise GraphError(132001, "template name does not exist in this language")
    if template.status == "PAUSED":
        raise GraphError(132015, "template is paused because of its quality")
    if template.status == "DISABLED":
        raise GraphError(132016, "template is disabled because of its quality")
    if template.status != "APPROVED":
        raise GraphError(132001, "template is not approved")
    return template


def _filled(template: Template, text: str, part: str, components: Sequence[JsonObject], *, most: int) -> str:
    given = [component for component in components if component["type"] == part]
    if len(given) > 1:
        raise GraphError(131009, f"There can be only one {part} component.")
    parameters = (
        read_objects(given[0], "parameters", part, least=0, most=50)
        if given and "parameters" in given[0]
        else []
    )
    read = _named if template.parameter_format == "NAMED" else _positional
    values = read(parameters, variables(text), part)
    filled = fill(text, values)
    if length(filled) > most:
        raise GraphError(132005, f"Translated text of {part} is too long: at most {most} characters.")
    return filled


def _named(parameters: Sequence[JsonObject], wanted: list[str], part: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for parameter in parameters:
        name = parameter.get("parameter_name")
        if not isinstance(name, str) or not name:
            raise GraphError(100, "Parameter name is missing or empty")
        if name in values:
            raise GraphError(132000, f"{part}: a parameter was given twice")
        values[name] = _parameter_text(parameter, part, "parameter_name")
    if set(values) != set(wanted):
        raise GraphError(
            132000, f"{part}: expected the parameters {sorted(wanted)}, got {len(values)} parameters"
        )
    return values


def _positional(parameters: Sequence[JsonObject], wanted: list[str], part: str) -> dict[str, str]:
    if any("parameter_name" in parameter for parameter in parameters):
        raise GraphError(132018, f"{part}: named parameters in a template with positional ones")
    if len(parameters) != len(wanted):
        raise GraphError(
            132000,
            f"{part}: number of localizable_params ({len(parameters)}) "
            f"does not match the expected number of params ({len(wanted)})",
        )
    return {
        str(place): _parameter_text(parameter, part) for place, parameter in enumerate(parameters, start=1)
    }


def _parameter_text(parameter: JsonObject, part: str, *allowed: str) -> str:
    only_keys(parameter, "parameter", "type", "text", *allowed)
    text = parameter.get("text")
    if parameter.get("type") != "text" or not isinstance(text, str):
        raise GraphError(132018, f"{part}: a parameter must be of type text")
    if not text.strip():
        raise GraphError(132018, f"{part}: a parameter must not be empty")
    if _BAD_SPACE.search(text):
        raise GraphError(
            132018,
            "Param text cannot have new-line/tab characters or more than 4 consecutive spaces",
        )
    return text


def _choices(template: Template, components: Sequence[JsonObject]) -> tuple[Choice, ...]:
    given: dict[int, JsonObject] = {}
    for component in components:
        if component["type"] != "button":
            continue
        index = _index(component, most=len(template.buttons))
        if index in given:
            raise GraphError(132018, "buttons: an index was given twice")
        given[index] = component
    return tuple(_choice(button, given.get(place)) for place, button in enumerate(template.buttons))


def _index(component: JsonObject, *, most: int) -> int:
    index = component.get("index")
    if not isinstance(index, str) or not re.fullmatch(r"\d", index):
        raise GraphError(131009, "buttons: index must be a string from 0 to 9")
    if int(index) >= most:
        raise GraphError(132018, "buttons: the template has no button at this index")
    return int(index)


def _choice(button: TemplateButton, component: JsonObject | None) -> Choice:
    if button.kind == "QUICK_REPLY":
        # Without a payload the button's label comes back.
        payload = button.text if component is None else _value(component, "quick_reply", "payload")
        if length(payload) > PAYLOAD_LENGTH:
            raise GraphError(131009, f"buttons: payload must be at most {PAYLOAD_LENGTH} characters")
        return Choice(kind="template", title=button.text, payload=payload)
    wants_suffix = button.kind == "URL" and bool(variables(button.url))
    if wants_suffix and component is None:
        raise GraphError(131008, "buttons: a button of type Url requires a parameter")
    if component is not None:
        if not wants_suffix:
            raise GraphError(132018, "buttons: this button takes no parameter")
        _value(component, "url", "text")
    return Choice(kind="link", title=button.text)


def _value(component: JsonObject, sub_type: str, key: str) -> str:
    if component.get("sub_type") != sub_type:
        raise GraphError(132018, f"buttons: sub_type of this button must be {sub_type}")
    parameters = read_objects(component, "parameters", "button", least=0, most=10)
    if len(parameters) != 1 or parameters[0].get("type") != key:
        raise GraphError(132018, f"buttons: {sub_type} takes one parameter of type {key}")
    only_keys(parameters[0], "parameter", "type", key)
    value = parameters[0].get(key)
    if not isinstance(value, str) or not value.strip():
        raise GraphError(132018, "buttons: a parameter must not be empty")
    return value
