"""Reads JSON that somebody else wrote, and refuses what is missing, odd or too long.

Every function raises GraphError: 131008 for what is missing, 131009 for a wrong
kind or length, 100 for keys that Meta does not know. No details repeat a value.
"""

from __future__ import annotations

from collections.abc import Mapping

from amedi.sandbox.graph_errors import GraphError

JsonObject = Mapping[str, object]


def length(text: str) -> int:
    """As the strictest reader counts: an emoji beyond the basic plane is two."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def only_keys(source: JsonObject, where: str, *allowed: str) -> None:
    """Meta refuses keys that it does not know."""
    for key in source:
        if key not in allowed:
            raise GraphError(100, f'Unexpected key "{key}" on param "{where}".')


def read_object(source: JsonObject, key: str, where: str) -> JsonObject:
    """The object under a key that must be there."""
    value = _required(source, key, where)
    if not isinstance(value, dict):
        raise GraphError(131009, f"Param {where}['{key}'] must be a JSON object.")
    return value


def read_objects(source: JsonObject, key: str, where: str, *, least: int, most: int) -> list[JsonObject]:
    """The list of objects under a key that must be there."""
    values = _required(source, key, where)
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise GraphError(131009, f"Param {where}['{key}'] must be an array of JSON objects.")
    if not least <= len(values) <= most:
        raise GraphError(131009, f"Param {where}['{key}'] must have {least} to {most} entries.")
    return values


def read_text(source: JsonObject, key: str, where: str, *, most: int) -> str:
    """The text under a key that must be there, with at least one visible character."""
    value = _required(source, key, where)
    if not isinstance(value, str):
        raise GraphError(131009, f"Param {where}['{key}'] must be a string.")
    if not value.strip():
        raise GraphError(131009, f"Param {where}['{key}'] must not be empty.")
    if length(value) > most:
        raise GraphError(131009, f"Param {where}['{key}'] must be at most {most} characters long.")
    return value


def read_optional_text(source: JsonObject, key: str, where: str, *, most: int) -> str:
    """The same, or "" where the key is not there."""
    return read_text(source, key, where, most=most) if key in source else ""


def _required(source: JsonObject, key: str, where: str) -> object:
    if source.get(key) is None:
        raise GraphError(131008, f"Param {where}['{key}'] is required.")
    return source[key]
