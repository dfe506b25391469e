"""Phone numbers as people type them, and as they are dialled.

The numbering plan is phonenumbers' own; its metadata knows Venezuela's 0422
from release 9.0.42 on.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

import phonenumbers
from django.utils.translation import gettext as _
from phonenumbers import PhoneNumberType

REACHED_BY_MOBILE = {PhoneNumberType.MOBILE, PhoneNumberType.FIXED_LINE_OR_MOBILE}
VENEZUELAN_MOBILE = re.compile(r"\+584(?:1[246]|2[246])\d{7}")
"""The prefixes of Venezuela's three operators (CONATEL's numbering plan)."""

# Also two with only a space between them: seven digits, and then a trunk zero.
BETWEEN_NUMBERS = r"[/;,|\n]|\s[yo]\s|(?<=\d{7})\s+(?=\(?0[24])"


class NotAPhone(ValueError):
    """Nobody could dial what was typed; the message says why, in Spanish."""


@dataclass(frozen=True, kw_only=True)
class Phone:
    """A number that can be dialled."""

    e164: str
    is_mobile: bool
    """Whether it may be a mobile; where a country's plan does not tell, True."""
    notes: tuple[str, ...] = ()
    """What a person should know of how it was read, in Spanish."""


def normalise(typed: str, region: str = "VE") -> Phone:
    """The number that was meant; of several in one cell, the first mobile.

    ``region`` is where a number without a country's code belongs. Raises NotAPhone.
    """
    text = unicodedata.normalize("NFKC", typed)
    if re.search(r"\d[.,]?\d*e\+?\d+", text, re.IGNORECASE):
        problem = _("«%s» es un número que la hoja de cálculo acortó: dé a esa columna formato de texto.")
        raise NotAPhone(problem % typed.strip())
    parts = [part for part in re.split(BETWEEN_NUMBERS, text) if _digits(part)]
    found = [phone for part in parts if (phone := _parsed(part, region))]
    if not found:
        raise NotAPhone(_why_not(typed, parts))
    chosen = next((phone for phone in found if phone.is_mobile), found[0])
    notes = []
    if len(parts) > 1:
        notes.append(_("Hay varios teléfonos: se tomó %s.") % chosen.e164)
    if not chosen.is_mobile:
        notes.append(_("%s es un teléfono fijo: no recibirá WhatsApp.") % chosen.e164)
    return Phone(e164=chosen.e164, is_mobile=chosen.is_mobile, notes=tuple(notes))


def is_mobile(e164: str) -> bool:
    """Whether a number as we keep it may be a mobile; where a country's plan does not tell, True."""
    if VENEZUELAN_MOBILE.fullmatch(e164):
        return True  # nearly all of them, and a fiftieth of the work
    try:
        number = phonenumbers.parse(e164)
    except phonenumbers.NumberParseException:
        return False
    return phonenumbers.number_type(number) in REACHED_BY_MOBILE


def _parsed(part: str, region: str) -> Phone | None:
    try:
        number = phonenumbers.parse(_dialled(part), region)
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_valid_number(number):
        return None
    return Phone(
        e164=phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164),
        is_mobile=phonenumbers.number_type(number) in REACHED_BY_MOBILE,
    )


def _dialled(part: str) -> str:
    """Digits with at most a leading plus: dashes, dots, letters and invisible marks are only dress."""
    part = re.split(r"(?i)ext|#|x", part)[0]
    # A spreadsheet's number: 4120000001.0
    part = re.sub(r"^(\s*\d{9,15})\.0\s*$", r"\1", part)
    return ("+" if "+" in part else "") + _digits(part)


def _digits(text: str) -> str:
    return "".join(str(unicodedata.decimal(character)) for character in text if character.isdecimal())


def _why_not(typed: str, parts: list[str]) -> str:
    shown = typed.strip()[:40]
    if not parts:
        return _("«%s» no es un teléfono.") % shown if shown else _("Falta el teléfono.")
    if len(_digits(parts[0])) == 7:
        return _("A «%s» le falta el código de área; por ejemplo, 0412 o 0212.") % shown
    return (
        _(
            "«%s» no es un teléfono de Venezuela (once cifras, como 0412-0000001) "
            "ni uno de otro país con + delante."
        )
        % shown
    )
