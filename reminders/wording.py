"""The words of a message, the same for all channels.

A template names its variables in braces, ``{nombre}``. What patients read is
Spanish whatever the language of whoever sets a sending off, so days, hours and
the words for what is missing stand here and not in a catalogue.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from reminders.timeline import ReminderType


@dataclass(frozen=True, kw_only=True)
class Variable:
    """A place in a template that each message fills with its own words."""

    name: str
    label: str | Promise
    example: str
    if_empty: str = ""
    """What a patient reads where the value is missing; empty where it never is, or nothing is best."""
    is_clinical: bool = False
    """Whether it tells why the patient comes: nothing for a screen that others see."""


VARIABLES = {
    variable.name: variable
    for variable in (
        Variable(
            name="nombre",
            label=gettext_lazy("nombre completo del paciente"),
            example="Ana Pérez",
            if_empty="paciente",
        ),
        Variable(
            name="doctor",
            label=gettext_lazy("médico, con su título"),
            example="Dra. Carmen Ruiz",
            if_empty="su médico",
        ),
        Variable(
            name="fecha",
            label=gettext_lazy("día de la cita, como se dice al enviar el mensaje"),
            example="mañana, jueves 17 de septiembre",
        ),
        Variable(name="hora", label=gettext_lazy("hora de la cita"), example="10:00 a. m."),
        Variable(
            name="consultorio",
            label=gettext_lazy("nombre del consultorio; si la cita es virtual, «videollamada»"),
            example="Torre Médica, piso 3",
            if_empty="el consultorio",
        ),
        Variable(
            name="direccion",
            label=gettext_lazy("dirección del consultorio; si la cita es virtual, el enlace para entrar"),
            example="Av. Principal de Las Mercedes",
            if_empty="la dirección habitual",
        ),
        Variable(
            name="titulo",
            label=gettext_lazy("título del médico, solo; nada si no tiene"),
            example="Dra.",
        ),
        Variable(
            name="especialidad",
            label=gettext_lazy("especialidad de la cita"),
            example="Cardiología",
            if_empty="consulta",
            is_clinical=True,
        ),
        Variable(
            name="indicaciones",
            label=gettext_lazy("indicaciones escritas en la cita"),
            example="Venga en ayunas",
            if_empty="las que le haya dado su médico",
            is_clinical=True,
        ),
        Variable(
            name="enlace",
            label=gettext_lazy("enlace a la página de la cita"),
            example="https://citas.example/cita/…/",
        ),
        Variable(
            name="enlace_video",
            label=gettext_lazy("enlace de la videollamada"),
            example="https://video.example/sala",
            if_empty="el enlace que le enviará el consultorio",
        ),
    )
}
VIDEO_CALL = "videollamada"
"""What stands for the place of a visit that has none."""
IN_PERSON = "no hace falta: la cita es presencial"
"""What stands for the link of a video call where the visit is none."""
LINK_TO_COME = "el consultorio le enviará el enlace"
"""What is said of a video call that has no link yet."""

DEFAULT_SUBJECTS: dict[ReminderType, str] = {
    ReminderType.PREPARACION: "Antes de su cita con {doctor}",
    ReminderType.CITA_PROXIMA: "Su cita con {doctor}: {fecha}, {hora}",
    ReminderType.LLEGADA: "Le esperamos {fecha}, {hora}",
    ReminderType.SEGUIMIENTO: "Gracias por su visita",
    ReminderType.CONTROL: "Su próximo control con {doctor}",
    ReminderType.RESERVA: "Su cita quedó reservada: {fecha}, {hora}",
    ReminderType.CAMBIO: "Su cita cambió: ahora es {fecha}, {hora}",
    ReminderType.CANCELACION: "Su cita con {doctor} fue cancelada",
}
DEFAULT_BODIES: dict[ReminderType, str] = {
    ReminderType.PREPARACION: (
        "Hola, {nombre}. Su cita con {doctor} es {fecha}, {hora}, en {consultorio}.\n\n"
        "Si le dieron indicaciones para prepararse, téngalas presentes desde ahora. "
        "Si tiene alguna duda, escríbanos o llámenos: con gusto le ayudamos."
    ),
    ReminderType.CITA_PROXIMA: (
        "Hola, {nombre}. Le recordamos su cita con {doctor}.\n\n"
        "Cuándo: {fecha}, {hora}\n"
        "Dónde: {consultorio}, {direccion}\n\n"
        "Si no puede venir, avísenos, por favor, y le ayudamos a buscar otro día."
    ),
    ReminderType.LLEGADA: (
        "Hola, {nombre}. Le esperamos {fecha}, {hora}, en {consultorio}, {direccion}.\n\n"
        "Cuando llegue, avísenos, por favor, para informar a {doctor}."
    ),
    ReminderType.SEGUIMIENTO: (
        "Hola, {nombre}. Gracias por su visita; esperamos que se encuentre bien.\n\n"
        "Si tiene alguna pregunta sobre las indicaciones que recibió, escríbanos o llámenos: "
        "con gusto le ayudamos."
    ),
    ReminderType.CONTROL: (
        "Hola, {nombre}. Se acerca el momento de su próximo control con {doctor}.\n\n"
        "Cuando guste, escríbanos o llámenos para acordar el día y la hora que más le convengan."
    ),
    ReminderType.RESERVA: (
        "Hola, {nombre}. Su cita con {doctor} quedó reservada.\n\n"
        "Cuándo: {fecha}, {hora}\n"
        "Dónde: {consultorio}, {direccion}\n\n"
        "Si no puede venir, avísenos, por favor, y le ayudamos a buscar otro día."
    ),
    ReminderType.CAMBIO: (
        "Hola, {nombre}. Su cita con {doctor} cambió. Ahora es así:\n\n"
        "Cuándo: {fecha}, {hora}\n"
        "Dónde: {consultorio}, {direccion}\n\n"
        "¿Podrá asistir? Si no, avísenos, por favor, y le ayudamos a buscar otro día."
    ),
    ReminderType.CANCELACION: (
        "Hola, {nombre}. Su cita con {doctor} que era {fecha}, {hora}, fue cancelada.\n\n"
        "Si desea otra, escríbanos o llámenos: con gusto le ayudamos."
    ),
}

# In the place of those above, where the visit is a video call and the rule has no words of its own.
VIRTUAL_BODIES: dict[ReminderType, str] = {
    ReminderType.PREPARACION: (
        "Hola, {nombre}. Su videollamada con {doctor} es {fecha}, {hora}.\n\n"
        "Si le dieron indicaciones para prepararse, téngalas presentes desde ahora. "
        "Si tiene alguna duda, escríbanos o llámenos: con gusto le ayudamos."
    ),
    ReminderType.CITA_PROXIMA: (
        "Hola, {nombre}. Le recordamos su cita con {doctor}, por videollamada.\n\n"
        "Cuándo: {fecha}, {hora}\n"
        "Para entrar: {enlace_video}\n\n"
        "Si no puede, avísenos, por favor, y le ayudamos a buscar otro día."
    ),
    ReminderType.LLEGADA: (
        "Hola, {nombre}. Su videollamada con {doctor} comienza {fecha}, {hora}.\n\n"
        "Para entrar: {enlace_video}\n\n"
        "Busque un lugar tranquilo y con buena señal, por favor."
    ),
    ReminderType.RESERVA: (
        "Hola, {nombre}. Su cita con {doctor}, por videollamada, quedó reservada.\n\n"
        "Cuándo: {fecha}, {hora}\n"
        "Para entrar: {enlace_video}\n\n"
        "Si no puede, avísenos, por favor, y le ayudamos a buscar otro día."
    ),
    ReminderType.CAMBIO: (
        "Hola, {nombre}. Su cita con {doctor} cambió. Ahora es por videollamada, así:\n\n"
        "Cuándo: {fecha}, {hora}\n"
        "Para entrar: {enlace_video}\n\n"
        "¿Podrá? Si no, avísenos, por favor, y le ayudamos a buscar otro día."
    ),
}

_WEEKDAYS = ("lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo")
_MONTHS = (
    *("enero", "febrero", "marzo", "abril", "mayo", "junio"),
    *("julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"),
)


class BadTemplate(ValueError):
    """The text cannot be filled. The message is for whoever wrote it."""


class UnknownVariable(BadTemplate):
    """The text names a variable that does not exist."""

    def __init__(self, name: str) -> None:
        nearest = _nearest(name)
        if nearest:
            sentence = _(
                "No existe la variable {%(name)s}. ¿Quiso decir {%(nearest)s}? Puede usar: %(known)s."
            )
        else:
            sentence = _("No existe la variable {%(name)s}. Puede usar: %(known)s.")
        known = ", ".join(f"{{{variable}}}" for variable in VARIABLES)
        super().__init__(sentence % {"name": name, "nearest": nearest, "known": known})


def check(template: str, *, is_seen_by_others: bool = False) -> None:
    """Raise BadTemplate unless the text can be filled for every patient.

    ``is_seen_by_others``: it shows on a locked screen, so it may not say why the patient comes.
    """
    if not clean(template):
        raise BadTemplate(_("El texto está vacío."))
    for _literal, name in _pieces(template):
        if is_seen_by_others and name and VARIABLES[name].is_clinical:
            raise BadTemplate(
                _(
                    "El asunto se ve en la pantalla bloqueada del teléfono: no puede llevar {%(name)s}. "
                    "Escríbala en el texto."
                )
                % {"name": name}
            )
    # Right as literal braces, but nobody wants a patient to read them.
    if doubled := re.search(r"(?<!\{)\{\{\s*(\w+)\s*\}\}(?!\})", template):
        name = _nearest(doubled[1])
        if name:
            raise BadTemplate(_("Escriba {%(name)s} con una sola llave a cada lado.") % {"name": name})


def render(template: str, values: Mapping[str, str]) -> str:
    """The text with its variables filled; ``{{`` and ``}}`` are literal braces.

    What only led to an empty variable goes with it: brackets, a comma, a line
    of its own. Raises BadTemplate for what ``check`` refuses; words that come in
    by a value are never read as a template.
    """
    filled = "".join(literal + (values[name] or _GAP if name else "") for literal, name in _read(template))
    return tidy(_closed(filled) if _GAP in filled else filled)


@lru_cache(maxsize=256)
def _read(template: str) -> tuple[tuple[str, str], ...]:
    """The pieces of a template, kept: a morning's reminders are filled into a few."""
    return tuple(_pieces(template))


def _pieces(template: str) -> Iterator[tuple[str, str]]:
    """Pairs of literal text and the variable after it (empty: none)."""
    end = 0
    for token in re.finditer(r"\{\{|\}\}|\{([^{}]*)\}|[{}]", template):
        literal = template[end : token.start()]
        end = token.end()
        if token[0] in ("{{", "}}"):
            yield literal + token[0][0], ""
        elif token[1] is None:
            raise BadTemplate(_("Hay una llave sin pareja. Una variable se escribe así: {nombre}."))
        elif token[1] not in VARIABLES:
            raise UnknownVariable(token[1])
        else:
            yield literal, token[1]
    yield template[end:], ""


_GAP = "\x00"
"""Stands for an empty variable until the text around it is mended. A text from a form never has it."""
_MENDING = [
    (re.compile(pattern, re.MULTILINE), mended)
    for pattern, mended in (
        (r"[(\[«“][ \t]*\0[ \t]*[)\]»”]", "\0"),
        # Of several in a row one is left.
        (r"\0[ \t]*[,;]?[ \t]*\0", "\0"),
        # A comma before it, with nothing to part any more.
        (r"[ \t]*[,;][ \t]*\0(?=[ \t]*(?:[,;.:!?)\]»”]|$))", "\0"),
        # A comma or a stop after it, with nothing before.
        (r"((?:^|[.:!?¿¡(\[«“])[ \t]*)\0[ \t]*[,;.:]", r"\1\0"),
    )
]
_CLOSING = [
    (re.compile(pattern, re.MULTILINE), mended)
    for pattern, mended in (
        (r"^[ \t]*\0[ \t]*\n", ""),
        (r"(^|[¿¡(\[«“])[ \t]*\0[ \t]*", r"\1"),
        (r"[ \t]*\0[ \t]*(?=[,;.:!?)\]»”]|$)", ""),
        (r"[ \t]+\0[ \t]*|\0[ \t]+", " "),
        (r"\0", ""),
    )
]


def _closed(text: str) -> str:
    """The text without its gaps, and without what stood there for their sake only."""
    before = ""
    while text != before:
        before = text
        for pattern, mended in _MENDING:
            text = pattern.sub(mended, text)
    for pattern, mended in _CLOSING:
        text = pattern.sub(mended, text)
    return text


def _nearest(name: str) -> str:
    """The known variable that was most probably meant; empty when none is near."""
    plain = unicodedata.normalize("NFKD", name.strip().casefold()).encode("ascii", "ignore").decode()
    return next(iter(difflib.get_close_matches(plain, VARIABLES, n=1)), "")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the words of a message tell of a visit."""

    patient_name: str
    doctor: str
    title: str = ""
    specialty: str = ""
    office: str = ""
    address: str = ""
    instructions: str = ""
    is_virtual: bool = False
    video_url: str = ""
    link: Callable[[], str] = str
    """Gives the address of the visit's page; asked only where a text names it, for it costs a signature."""
    starts_at: datetime
    zone: ZoneInfo
    """That of the place of care: day and hour are told as they are there."""
    own_zone: ZoneInfo | None = None
    """The patient's, where it is known."""


class Words(Mapping[str, str]):
    """What each variable says in a message. The link is made when somebody first reads it."""

    def __init__(self, known: dict[str, str], link: Callable[[], str]) -> None:
        self._known = known
        self._link = link

    def __getitem__(self, name: str) -> str:
        if name == "enlace" and name not in self._known:
            self._known[name] = self._link()
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(VARIABLES)

    def __len__(self) -> int:
        return len(VARIABLES)


def values(facts: Facts, *, now: datetime) -> Words:
    """What each variable says in a message that leaves now."""
    whose = other_clock(facts.starts_at, facts.zone, facts.own_zone)
    video_url = web(facts.video_url) if facts.is_virtual else ""
    raw = {
        "nombre": facts.patient_name,
        "doctor": facts.doctor,
        "fecha": _day(facts.starts_at, facts.zone, now),
        "hora": _of(_hour(facts.starts_at, facts.zone), whose),
        "consultorio": VIDEO_CALL if facts.is_virtual else facts.office,
        "direccion": video_url if facts.is_virtual else facts.address,
        "titulo": facts.title,
        "especialidad": facts.specialty,
        "indicaciones": facts.instructions,
        "enlace_video": video_url if facts.is_virtual else IN_PERSON,
    }
    known = {name: clean(value) or VARIABLES[name].if_empty for name, value in raw.items()}
    if facts.is_virtual:
        known["direccion"] = known["enlace_video"]
    return Words(known, facts.link)


def other_clock(starts_at: datetime, zone: ZoneInfo, own: ZoneInfo | None) -> str:
    """``hora de Caracas``, where the patient's own clocks show another time; else empty."""
    if own is None or own.key == zone.key:
        return ""
    if starts_at.astimezone(own).utcoffset() == starts_at.astimezone(zone).utcoffset():
        return ""
    return f"hora de {zone.key.rpartition('/')[2].replace('_', ' ')}"


def zone_named(name: str) -> ZoneInfo | None:
    """The zone of that name; None for no name, or one that no zone has."""
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError):
        return None


def when(starts_at: datetime, zone: ZoneInfo, now: datetime, *, whose: str = "") -> str:
    """``mañana, jueves 17 de septiembre, a las 10:00 a. m.``, as it is at ``now`` in the zone."""
    return f"{_day(starts_at, zone, now)}, {at(starts_at, zone, whose=whose)}"


def at(starts_at: datetime, zone: ZoneInfo, *, whose: str = "") -> str:
    """``a las 10:00 a. m.``, in the zone; ``whose`` as ``other_clock`` says it."""
    hour = _hour(starts_at, zone)
    return f"{'a la' if hour.startswith('1:') else 'a las'} {_of(hour, whose)}"


def _of(hour: str, whose: str) -> str:
    return f"{hour} ({whose})" if whose else hour


def day(starts_at: datetime, zone: ZoneInfo, now: datetime) -> str:
    """``jueves 17 de septiembre``, with the year where it is not that of ``now``.

    For what may be read on another day, when "mañana" would be wrong.
    """
    there, today = starts_at.astimezone(zone).date(), now.astimezone(zone).date()
    name = f"{_WEEKDAYS[there.weekday()]} {there.day} de {_MONTHS[there.month - 1]}"
    return name if there.year == today.year else f"{name} de {there.year}"


def _day(starts_at: datetime, zone: ZoneInfo, now: datetime) -> str:
    distance = starts_at.astimezone(zone).date() - now.astimezone(zone).date()
    return {0: "hoy, ", 1: "mañana, "}.get(distance.days, "el ") + day(starts_at, zone, now)


def _hour(starts_at: datetime, zone: ZoneInfo) -> str:
    local = starts_at.astimezone(zone)
    return f"{local.hour % 12 or 12}:{local:%M} {'a. m.' if local.hour < 12 else 'p. m.'}"


def web(address: str) -> str:
    """An address on the web; empty for what else a browser or a program might carry out."""
    address = clean(address)
    return address if address.startswith(("https://", "http://")) else ""


def clean(value: str) -> str:
    """A value on one line, without what cannot be seen.

    Meta refuses a parameter with a line break, a tab or many spaces.
    """
    if value.isprintable():
        return " ".join(value.split())
    # Zero-width and bidi marks are format characters (Cf); a lone surrogate (Cs)
    # or a NUL (Cc) would break the sending itself.
    seen = (
        character
        for character in value
        if character.isspace() or unicodedata.category(character) not in ("Cc", "Cf", "Cs")
    )
    return " ".join("".join(seen).split())


def tidy(text: str) -> str:
    """The text without the traces of filling: runs of spaces, a space before a stop, two stops, «las 1»."""
    # Nearly always there is nothing to do, and a look is cheaper than a pattern.
    if "as 1:" in text:
        text = re.sub(r"\b([Ll]a)s (?=1:\d\d)", r"\1 ", text)
    if "  " in text or "\t" in text or "\u00a0" in text:
        text = re.sub(r"[ \t\u00a0]+", " ", text)
    if " ," in text or " ." in text or " \n" in text:
        text = re.sub(r" +(?=[,.\n])", "", text)
    if ".." in text:
        # "a. m." at the end of a sentence; an ellipsis stays, and so does an address.
        text = re.sub(r"(?<!\.)\.\.(?=[\s)»”\"]|$)", ".", text)
    return text.strip()
