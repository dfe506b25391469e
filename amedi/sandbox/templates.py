"""Approved templates: what they look like, and their text filled with parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from amedi.sandbox.json_shapes import JsonObject

VARIABLE = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")


@dataclass(frozen=True, kw_only=True)
class TemplateButton:
    """A button as the template declares it; its place among all buttons is its index."""

    kind: str
    """QUICK_REPLY, URL, PHONE_NUMBER or COPY_CODE."""
    text: str
    url: str = ""


@dataclass(frozen=True, kw_only=True)
class Template:
    """A template in one language. Name and language identify it."""

    name: str
    language: str
    category: str = "UTILITY"
    status: str = "APPROVED"
    parameter_format: str = "POSITIONAL"
    components: tuple[JsonObject, ...] = field(default=(), repr=False)
    message_send_ttl_seconds: int | None = None
    template_id: str = ""
    rejected_reason: str = "NONE"

    @property
    def header(self) -> str:
        """The header's text; "" without a header."""
        return self._text("HEADER")

    @property
    def body(self) -> str:
        """The body with its variables still in it."""
        return self._text("BODY")

    @property
    def footer(self) -> str:
        """The footer's text; "" without a footer."""
        return self._text("FOOTER")

    @property
    def buttons(self) -> tuple[TemplateButton, ...]:
        """All buttons in their order."""
        declared = self.component("BUTTONS").get("buttons", [])
        if not isinstance(declared, list):
            return ()
        return tuple(
            TemplateButton(
                kind=str(button.get("type", "")).upper(),
                text=str(button.get("text", "")),
                url=str(button.get("url", "")),
            )
            for button in declared
            if isinstance(button, dict)
        )

    def component(self, kind: str) -> JsonObject:
        """HEADER, BODY, FOOTER or BUTTONS as declared; empty where there is none."""
        return next((part for part in self.components if str(part.get("type", "")).upper() == kind), {})

    def as_json(self) -> dict[str, object]:
        """As the template list shows it, with every field."""
        shown: dict[str, object] = {
            "id": self.template_id,
            "name": self.name,
            "language": self.language,
            "status": self.status,
            "category": self.category,
            "parameter_format": self.parameter_format,
            "components": list(self.components),
            "quality_score": {"score": "UNKNOWN"},
            "rejected_reason": self.rejected_reason,
        }
        if self.message_send_ttl_seconds is not None:
            shown["message_send_ttl_seconds"] = self.message_send_ttl_seconds
        return shown

    def _text(self, kind: str) -> str:
        return str(self.component(kind).get("text", ""))


def template_from_json(body: JsonObject) -> Template:
    """Read a creation body, or an entry of the template list, without checking Meta's rules.

    Raises ValueError when name, language, components or the time to live cannot be read.
    """
    name, language, components = body.get("name"), body.get("language"), body.get("components", [])
    if not isinstance(name, str) or not isinstance(language, str) or not isinstance(components, list):
        raise ValueError("A template needs name, language and components.")
    ttl = body.get("message_send_ttl_seconds")
    if ttl is not None and not isinstance(ttl, int):
        raise ValueError("message_send_ttl_seconds must be a whole number.")
    return Template(
        name=name,
        language=language,
        category=str(body.get("category", "UTILITY")).upper(),
        status=str(body.get("status", "APPROVED")).upper(),
        parameter_format=str(body.get("parameter_format", "POSITIONAL")).upper(),
        components=tuple(part for part in components if isinstance(part, dict)),
        message_send_ttl_seconds=ttl,
        template_id=str(body.get("id", "")),
    )


def variables(text: str) -> list[str]:
    """The names (or numbers) in a text, each once, in their order."""
    return list(dict.fromkeys(VARIABLE.findall(text)))


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with each variable replaced; a value is never read as a variable again."""
    return VARIABLE.sub(lambda found: values[found[1]], text)
