"""Meta's rules for reply buttons and lists, which live only inside the 24 hours."""

from __future__ import annotations

from amedi.sandbox.graph_errors import GraphError
from amedi.sandbox.json_shapes import (
    JsonObject,
    only_keys,
    read_object,
    read_objects,
    read_optional_text,
    read_text,
)
from amedi.sandbox.messages import Choice, Message

MOST_BUTTONS = 3
MOST_ROWS = 10
"""In all sections together."""


def read_interactive(content: JsonObject, *, to: str, reference: str, answers_to: str) -> Message:
    """A message with reply buttons or a list. Raises GraphError."""
    only_keys(content, "interactive", "type", "header", "body", "footer", "action")
    kind = content.get("type")
    if kind not in ("button", "list"):
        raise GraphError(131009, "Param interactive['type'] must be button or list.")
    body = read_object(content, "body", "interactive")
    only_keys(body, "body", "text")
    action = read_object(content, "action", "interactive")
    return Message(
        to=to,
        reference=reference,
        answers_to=answers_to,
        kind="interactive",
        header=_header(content),
        body=read_text(body, "text", "body", most=1024),
        footer=_footer(content),
        choices=_buttons(action) if kind == "button" else _rows(action),
        list_label=read_text(action, "button", "action", most=20) if kind == "list" else "",
    )


def _header(content: JsonObject) -> str:
    if "header" not in content:
        return ""
    header = read_object(content, "header", "interactive")
    only_keys(header, "header", "type", "text")
    if header.get("type") != "text":
        raise GraphError(131009, "Param header['type'] must be text.")
    return read_text(header, "text", "header", most=60)


def _footer(content: JsonObject) -> str:
    if "footer" not in content:
        return ""
    footer = read_object(content, "footer", "interactive")
    only_keys(footer, "footer", "text")
    return read_text(footer, "text", "footer", most=60)


def _buttons(action: JsonObject) -> tuple[Choice, ...]:
    only_keys(action, "action", "buttons")
    choices = []
    for button in read_objects(action, "buttons", "action", least=1, most=MOST_BUTTONS):
        only_keys(button, "button", "type", "reply")
        if button.get("type") != "reply":
            raise GraphError(131009, "Param button['type'] must be reply.")
        reply = read_object(button, "reply", "button")
        only_keys(reply, "reply", "id", "title")
        choices.append(
            Choice(
                kind="button",
                payload=read_text(reply, "id", "reply", most=256),
                title=read_text(reply, "title", "reply", most=20),
            )
        )
    _refuse_repeated([choice.payload for choice in choices], "button id")
    _refuse_repeated([choice.title for choice in choices], "button title")
    return tuple(choices)


def _rows(action: JsonObject) -> tuple[Choice, ...]:
    only_keys(action, "action", "button", "sections")
    sections = read_objects(action, "sections", "action", least=1, most=10)
    choices = [choice for section in sections for choice in _section(section, alone=len(sections) == 1)]
    if len(choices) > MOST_ROWS:
        raise GraphError(131009, f"Total row count exceed max allowed count: {MOST_ROWS}.")
    _refuse_repeated([choice.payload for choice in choices], "row id")
    return tuple(choices)


def _section(section: JsonObject, *, alone: bool) -> list[Choice]:
    only_keys(section, "section", "title", "rows")
    read_title = read_optional_text if alone else read_text
    title = read_title(section, "title", "section", most=24)
    rows = read_objects(section, "rows", "section", least=1, most=MOST_ROWS)
    for row in rows:
        only_keys(row, "row", "id", "title", "description")
    return [
        Choice(
            kind="row",
            section=title,
            payload=read_text(row, "id", "row", most=200),
            title=read_text(row, "title", "row", most=24),
            description=read_optional_text(row, "description", "row", most=72),
        )
        for row in rows
    ]


def _refuse_repeated(values: list[str], what: str) -> None:
    if len(set(values)) < len(values):
        raise GraphError(131009, f"Each {what} must be unique.")
