"""Names as people write them: compared without accents or case, shown tidily."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

TITLES = {"dr", "dra", "doctor", "doctora", "lic", "prof"}
PARTICLES = {"de", "del", "la", "las", "los", "y", "da", "das", "do", "dos", "e"}


def fold(text: str) -> str:
    """The words alone, for comparing: no accents, case, punctuation or double spaces."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(character for character in plain if not unicodedata.combining(character))
    return " ".join(re.findall(r"\w+", letters.replace("_", " ")))


def fold_without_title(text: str) -> str:
    """As fold(), of a doctor's name: «Dra. Carmen Ruiz» and «RUIZ, Carmen» are one."""
    return " ".join(word for word in fold(_surname_last(text)).split() if word not in TITLES)


def tidy(text: str) -> str:
    """A person's name as it is said: «PÉREZ GONZÁLEZ, ANA» becomes «Ana Pérez González»."""
    name = " ".join(_surname_last(text).split())
    if not (name.isupper() or name.islower()):
        return name
    words = [
        word if index and word in PARTICLES else re.sub(r"[^\W\d_]+", lambda part: part[0].capitalize(), word)
        for index, word in enumerate(name.lower().split())
    ]
    return " ".join(words)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    by_folded = {fold_without_title(each): each for each in known}
    close = get_close_matches(fold_without_title(name), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def _surname_last(text: str) -> str:
    surname, comma, given = text.partition(",")
    return f"{given} {surname}" if comma and given.strip() else surname
