"""What the free text of an event says: after its labels, in its title, and by its numbers."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator

from django.utils.translation import gettext as _

from appointments import names, phones
from appointments.agenda_cells import BadCell, cleaned
from appointments.agenda_words import (
    BEFORE_A_NAME,
    COLUMNS,
    NEVER_ENDS_A_NAME,
    NEVER_IN_A_NAME,
    NO_VISIT,
    VISIT,
)

# «Lugar: Zoom» names no office for sure; «Reserva: 4711» is a number.
LABELS = {
    **{column: COLUMNS[column] for column in ("patient", "surname", "phone", "email", "doctor", "specialty",
                                              "accepts whatsapp")},
    "office": ["consultorio", "sede", "office"],
    "location": ["lugar", "location"],
    "booked at": ["reservada", "reservada el", "fecha de reserva", "booked at"],
}  # fmt: skip
COLUMN_OF = {word: column for column, words in LABELS.items() for word in words}
_WORDS = [word.replace(" ", r"[\s\-_.(]+") for word in sorted(COLUMN_OF, key=lambda word: -len(word))]
LABEL = re.compile(
    r"(?:^|[\n,;|•·(]|\s[-–—]\s)[\s*_•·\-–—]{0,8}"
    rf"(?P<label>{'|'.join(_WORDS)})\)?\.?(?:\s*\([^)\n]*\))?[*_\s]*[:=][*_]*"
)
PHONE = re.compile(r"(?:\+|\(|\d)[\d ().\-\u00a0]{7,20}\d")
EMAIL = re.compile(r"(?<![\w.+'-])[\w.+'-]+@[\w-]+(?:\.[\w-]+)+")
TAG = re.compile(r"</?[a-z][a-z0-9]*(?:\s[^<>]*)?/?>", re.IGNORECASE)
LINE_TAG = re.compile(r"<(?:br|/?p|/?div|/?li|/?tr|/?h\d)\b[^<>]*>", re.IGNORECASE)
AFTER_A_NAME = re.compile(
    r"\s*(?:[(\[{<|;•·/\d\n]|\s[-–—]\s|\b[ve]-?(?=\d)"
    r"|\b(?:c\.?\s?i|ci|cedula|edad|tel|telf|tlf|telefono|cel|celular|correo|email)\b).*",
    re.DOTALL,
)


def plain(text: str) -> str:
    """Without the HTML in which some calendars wrap a description."""
    if not TAG.search(text):
        return text
    return html.unescape(TAG.sub("", LINE_TAG.sub("\n", text)))


def labelled(text: str) -> dict[str, str]:
    """What stands after each known label, by the name of its column; phones all, of others the first.

    A value ends with its line, or before the next label; a label alone speaks of the line below it.
    """
    lines = (line.strip() for line in unicodedata.normalize("NFC", text).splitlines())
    text = "\n".join(filter(None, lines))
    found = list(LABEL.finditer(_shadow(text)))
    said: dict[str, str] = {}
    ends = [following.start() for following in found[1:]] + [len(text)]
    for label, end in zip(found, ends, strict=False):
        value = _first_line(text[label.end() : end])
        column = COLUMN_OF[names.fold(label["label"])]
        if value and column == "phone" and column in said:
            said[column] += f" / {value}"
        elif value:
            said.setdefault(column, value)
    return said


def person(value: str) -> str:
    """The name at the beginning of a value. Raises BadCell."""
    cut = AFTER_A_NAME.search(_shadow(value))
    name = value[: cut.start()] if cut else value
    if not any(character.isalpha() for character in name):
        raise BadCell(_("«%s» no es el nombre de un paciente.") % value[:40])
    return cleaned(name).strip(" .,:-–—*_")


def speaks_of_a_visit(title: str) -> bool | None:
    """None: neither of a visit nor of something else."""
    words = set(names.fold(title).split())
    return True if words & VISIT else False if words & NO_VISIT else None


def person_in_title(title: str) -> str:
    """The one name in a title, or nothing. Raises BadCell where it could be either of two."""
    bare = PHONE.sub(" ", EMAIL.sub(" ", title))
    found = []
    for part in re.split(r"\s[-–—]\s|[|:;/•()\[\]]", bare):
        words = part.split()
        while words and names.fold(words[0]) in VISIT | BEFORE_A_NAME | {""}:
            del words[0]
        if _is_name(words):
            found.append(cleaned(" ".join(words)).strip(" .,"))
    if len(found) > 1:
        # «Ana Paz - dolor de cabeza»
        found = [name for name in found if _is_capitalised(name)] or found
    if len(found) > 1:
        raise BadCell(
            _("El título puede nombrar a «%(one)s» o a «%(other)s»: escriba en la descripción «Paciente: …».")
            % {"one": found[0], "other": found[1]}
        )
    return found[0] if found else ""


def phones_in(text: str) -> Iterator[tuple[str, phones.Phone]]:
    """Each number that can be dialled, as typed and as read."""
    for typed in PHONE.findall(text):
        try:
            yield typed.strip(), phones.normalise(typed)
        except phones.NotAPhone:
            continue


def _shadow(text: str) -> str:
    """Letter by letter the same text without accents or case: places in one are places in the other."""
    return "".join((unicodedata.normalize("NFKD", letter)[0].lower() or letter)[0] for letter in text)


def _first_line(text: str) -> str:
    """The first that says something, of the label's own and the one below."""
    own, _newline, rest = text.partition("\n")
    below = rest.partition("\n")[0]
    is_next_label = re.match(r"[^:\n]{1,40}:\s", below)
    # «0412-0000001, C.I.: 123»: a label that nobody knows ends the value too.
    own = re.split(r"[,;|]\s*[^\W\d][^:,;|\n]{0,30}[:=]", own, maxsplit=1)[0]
    said = cleaned(own).lstrip(" *_·•").rstrip(" ,;|-–—*_·•(")
    return said or ("" if is_next_label else cleaned(below))


def _is_name(words: list[str]) -> bool:
    folded = [names.fold(word) for word in words]
    return (
        2 <= len(words) <= 6
        and folded[0] not in names.TITLES
        and all(re.fullmatch(r"[^\W\d_]+[^\W\d_.'’,-]*(?:['’-][^\W\d_]+)*[.,]?", word) for word in words)
        and not any(word in NEVER_IN_A_NAME or word.endswith(NEVER_ENDS_A_NAME) for word in folded)
    )


def _is_capitalised(name: str) -> bool:
    return all(word[0].isupper() or names.fold(word) in names.PARTICLES for word in name.split())
