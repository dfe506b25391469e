"""Options that change while a stand-in runs: by name, and from JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from amedi.sandbox.json_shapes import JsonObject


@dataclass(frozen=True, kw_only=True)
class ChangingOptions:
    """What every stand-in has. All options can change, except host and port."""

    more_readers: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}
    """Kind, as a field is annotated → how it is read from JSON, for kinds of one's own."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 takes a free one."""

    def changed(self, **changes: Any) -> Self:
        """A copy with other values. Raises ValueError for unknown names, host and port."""
        readers = self._readers()
        for name in changes:
            if name not in readers:
                raise ValueError(f"There is no option {name!r} that can change.")
        return replace(self, **changes)

    def changed_by_json(self, changes: JsonObject) -> Self:
        """The same from JSON: lists for collections, objects for mappings.

        Raises ValueError in one sentence.
        """
        readers = self._readers()
        read: dict[str, Any] = {}
        for name, value in changes.items():
            if name not in readers:
                raise ValueError(f"There is no option {name!r} that can change.")
            try:
                read[name] = readers[name](value)
            except (TypeError, ValueError, AttributeError):
                raise ValueError(f"The value of {name} is of the wrong kind.") from None
        return self.changed(**read)

    @classmethod
    def _readers(cls) -> dict[str, Callable[[Any], Any]]:
        by_kind = {**_READ_BY_KIND, **cls.more_readers}
        return {
            option.name: by_kind[str(option.type)]
            for option in fields(cls)
            if option.name not in ("host", "port")
        }


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError
    return tuple(_text(item) for item in value)


def _codes(value: Any) -> dict[str, int]:
    return {name: _count(code) for name, code in value.items()}


def _words(value: Any) -> dict[str, str]:
    return {name: _text(word) for name, word in value.items()}


_READ_BY_KIND: dict[str, Callable[[Any], Any]] = {
    "str": _text,
    "bool": _switch,
    "float": _number,
    "int": _count,
    "tuple[str, ...]": _texts,
    "Collection[str]": _texts,
    "Mapping[str, int]": _codes,
    "Mapping[str, str]": _words,
}
