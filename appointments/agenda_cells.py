"""What one cell of a clinic's export means. Each function raises BadCell with a sentence."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from datetime import date, datetime, time
from typing import TypeVar

from django.utils.translation import gettext as _

from appointments import names

T = TypeVar("T")
LONGEST_IDENTIFIER = 100
LEAST_MINUTES, MOST_MINUTES = 5, 480
YES = {"si", "s", "yes", "y", "x", "1", "true", "verdadero", "acepta"}
NO = {"no", "n", "0", "false", "falso", "no acepta"}


class BadCell(ValueError):
    """A cell that cannot be read; the message is one Spanish sentence."""


def cleaned(text: str) -> str:
    """Without what nobody sees: control characters, invisible marks, NUL, doubled spaces."""
    shown = (
        " " if character.isspace() else character
        for character in unicodedata.normalize("NFC", text)
        if character.isspace() or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co")
    )
    return " ".join("".join(shown).split())


def person(text: str) -> str:
    """A patient's name, said in its usual order."""
    name = names.tidy(text)
    if not any(character.isalpha() for character in name) or len(name) > 200:
        raise BadCell(_("«%s» no es el nombre de un paciente.") % name[:40])
    return name


def day(text: str) -> date:
    """``dd/mm/aaaa`` or ISO; a time of midnight, as spreadsheets add it, is ignored."""
    plain = re.sub(r"[ T]0?0:00(:00(\.0+)?)?$", "", text)
    if found := re.fullmatch(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})", plain):
        year, month, number = map(int, found.groups())
    elif found := re.fullmatch(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})", plain):
        number, month, year = map(int, found.groups())
    elif re.fullmatch(r"\d{1,2}[-/.]\d{1,2}[-/.]\d{2}", plain):
        raise BadCell(_("La fecha «%s» trae el año con dos cifras: escríbalo con cuatro.") % text)
    else:
        raise BadCell(_("«%s» no es una fecha; se espera dd/mm/aaaa.") % text)
    try:
        return date(year, month, number)
    except ValueError:
        raise BadCell(_("La fecha «%s» no existe; se espera dd/mm/aaaa.") % text) from None


def clock(text: str) -> time:
    """A time in 12 or 24 hours: 2:30 p. m., 02:30PM, 14:30, 14.30, 8 am, 12 m."""
    plain = re.sub(r"\s", "", text.casefold())
    found = re.fullmatch(
        r"(\d{1,2})(?:[:.h](\d{2}))?(?:[:.](\d{2})(?:\.0+)?)?(?:([ap]?)\.?m\.?|h|hs|hrs|horas)?", plain
    )
    if not found or plain.isdigit():
        raise BadCell(_("«%s» no es una hora; se espera, por ejemplo, 14:30 o 2:30 p. m.") % text)
    hour, minute, half = int(found[1]), int(found[2] or 0), found[4]
    if half == "p" and hour < 12:
        hour += 12
    elif half == "a" and hour == 12:
        hour = 0
    # "12 m." is noon; no other hour is said so. "14:30 a. m." contradicts itself.
    if hour > 23 or minute > 59 or (half == "" and hour != 12) or (half == "a" and hour > 12):
        raise BadCell(_("La hora «%s» no existe.") % text)
    return time(hour, minute)


def minutes(text: str) -> int | None:
    """A duration: 30, 30 min, 0:45, 1 h. None when nothing was said."""
    if not text:
        return None
    plain = re.sub(r"\s", "", text.casefold())
    if found := re.fullmatch(r"(\d{1,4})(?:[.,]0+)?(?:m|min|mins|minutos?|')?\.?", plain):
        length = int(found[1])
    elif found := re.fullmatch(r"(\d{1,2}):(\d{2})(?::00)?", plain):
        length = int(found[1]) * 60 + int(found[2])
    elif found := re.fullmatch(r"(\d)(?:h|hr|hrs|horas?)\.?", plain):
        length = int(found[1]) * 60
    else:
        raise BadCell(_("«%s» no es una duración; se esperan minutos, por ejemplo 30.") % text)
    return within_bounds(length, text)


def within_bounds(length: int, text: str) -> int:
    """The minutes, if a visit may last so long; ``text`` is how the file says it."""
    if not LEAST_MINUTES <= length <= MOST_MINUTES:
        raise BadCell(
            _("La duración «%(text)s» no está entre %(least)d y %(most)d minutos.")
            % {"text": text, "least": LEAST_MINUTES, "most": MOST_MINUTES}
        )
    return length


def identifier(text: str) -> str:
    """The clinic's own name of a visit."""
    if len(text) > LONGEST_IDENTIFIER:
        raise BadCell(_("El identificador pasa de %d letras.") % LONGEST_IDENTIFIER)
    return text


def moment(text: str) -> datetime | None:
    """A date with or without a time; naive is local to the office, and without a time its midnight."""
    if not text:
        return None
    if re.match(r"\d{4}-\d\d-\d\d[T ]\d", text):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass  # perhaps a 12-hour time
    date_part, _space, time_part = text.replace("T", " ").replace(",", " ").partition(" ")
    return datetime.combine(day(date_part), clock(time_part) if time_part.strip() else time())


def yes_or_no(text: str) -> bool | None:
    """None when nothing was said."""
    said = names.fold(text)
    if not said:
        return None
    if said not in YES | NO:
        raise BadCell(_("«%s» no es ni sí ni no.") % text)
    return said in YES


def or_nothing(read_cell: Callable[[str], T | None], text: str, name: str, notes: list[str]) -> T | None:
    """An optional cell: what cannot be read counts as not said, with a note."""
    try:
        return read_cell(text)
    except BadCell as problem:
        notes.append(f"{name}: {problem}")
        return None
