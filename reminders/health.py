"""How the engine is: every sign measured, and the one sentence that everybody must see."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import Error, InterfaceError, OperationalError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from appointments import clock
from reminders import questions, wording
from reminders.signs import DATABASE, SIGNS, TICK_STALE, UNSENT_LATE, Sign, Unit

logger = logging.getLogger(__name__)
_LAPSES = (
    (86_400, gettext_lazy("%d días")),
    (3_600, gettext_lazy("%d horas")),
    (60, gettext_lazy("%d minutos")),
    (1, gettext_lazy("%d segundos")),
)


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A sign at a time."""

    sign: Sign
    value: float | None
    """In the sign's unit; None when there is nothing to measure, or it could not be measured."""
    threshold: float
    fault: str = ""
    """Why it could not be measured: the kind of the error."""

    @property
    def name(self) -> str:
        return self.sign.name

    @property
    def is_bad(self) -> bool:
        """Beyond the threshold, or not to be measured."""
        return bool(self.fault) or (self.value is not None and self.value > self.threshold)

    @property
    def sentence(self) -> str:
        """What is the matter; "" while all is well."""
        if not self.is_bad:
            return ""
        if self.fault and self.sign is not DATABASE:
            return _("No se pudo medir (%(kind)s).") % {"kind": self.fault}
        return str(self.sign.sentence) % {"value": in_words(self.value, self.sign.unit)}

    @property
    def what_to_do(self) -> str:
        """The next step; "" while all is well."""
        if not self.is_bad:
            return ""
        if self.fault and self.sign is not DATABASE:
            return _(
                "Si acaba de actualizar, ejecute python manage.py migrate. Si no, la base de datos tardó "
                "demasiado o no tiene los permisos; su log dice más."
            )
        return str(self.sign.what_to_do)


@dataclass(frozen=True, kw_only=True)
class Health:
    """Every sign at a time."""

    measures: tuple[Measure, ...]
    at: datetime | None
    """None when there was no database to ask, not even for the time."""

    @property
    def is_well(self) -> bool:
        """Whether nothing asks for a person."""
        return not any(measure.is_bad for measure in self.measures)

    @property
    def is_ready(self) -> bool:
        """Whether messages go out and answers come in."""
        return not any(measure.is_bad and measure.sign.is_grave for measure in self.measures)

    def only(self, name: str) -> Health:
        """One measure alone; all that is known where there is no database."""
        of_it = tuple(measure for measure in self.measures if measure.name == name)
        return Health(measures=of_it, at=self.at) if self.at else self

    def as_json(self) -> dict[str, object]:
        """What machines read; ages in seconds."""
        return {
            "at": None if self.at is None else self.at.isoformat(timespec="seconds"),
            "ready": self.is_ready,
            "well": self.is_well,
            "measures": {
                measure.name: {
                    "ok": not measure.is_bad,
                    "value": None if measure.value is None else round(measure.value, 3),
                    "threshold": measure.threshold,
                    "unit": measure.sign.unit,
                    "grave": measure.sign.is_grave,
                    "sentence": measure.sentence,
                    "what_to_do": measure.what_to_do,
                }
                for measure in self.measures
            },
        }


def current() -> Health:
    """How it is at this moment, also when that is: without a database."""
    try:
        return measure(clock.now())
    except (OperationalError, InterfaceError) as error:
        return Health(measures=(_unmeasured(DATABASE, error),), at=None)


def measure(now: datetime) -> Health:
    """Every sign at a time. What cannot be measured is bad, and keeps none of the others from it."""
    return Health(measures=tuple(_measure(sign, now) for sign in SIGNS), at=now)


def _measure(sign: Sign, now: datetime) -> Measure:
    try:
        with questions.bounded():
            return Measure(sign=sign, value=sign.ask(now), threshold=sign.threshold())
    except Error as error:
        logger.warning("health measure=%s failed kind=%s", sign.name, type(error).__name__)
        return _unmeasured(sign, error)


def _unmeasured(sign: Sign, error: Exception) -> Measure:
    return Measure(sign=sign, value=None, threshold=sign.threshold(), fault=type(error).__name__)


def alarm(now: datetime) -> str:
    """The sentence for everybody when nothing ticks or the queue stands still; "" otherwise. One query.

    It stays the same while it lasts: pages that refresh themselves would read it out again.
    """
    ticked, unsent = questions.last_tick_and_oldest_unsent(now)
    if ticked is not None and ticked > TICK_STALE.total_seconds():
        return _(
            "Los recordatorios no están saliendo: ningún proceso los envía desde %(moment)s "
            "Avise a quien opera el sistema."
        ) % {"moment": _as_told(now - timedelta(seconds=ticked), now)}
    if unsent is not None and unsent > UNSENT_LATE.total_seconds():
        return _(
            "Los recordatorios no están saliendo a tiempo: el más atrasado espera desde %(moment)s "
            "Avise a quien opera el sistema."
        ) % {"moment": _as_told(now - timedelta(seconds=unsent), now)}
    return ""


def _as_told(moment: datetime, now: datetime) -> str:
    """``las 9:58 a. m.``, with the day when it is not today's; its last point ends a sentence too."""
    zone = ZoneInfo(settings.TIME_ZONE)
    at = wording.at(moment, zone)
    day = moment.astimezone(zone)
    if day.date() == now.astimezone(zone).date():
        return at.removeprefix("a ")
    return _("el %(day)s %(at)s") % {"day": f"{day:%d/%m/%Y}", "at": at}


def in_words(value: float | None, unit: Unit = Unit.SECONDS) -> str:
    """``12 segundos``, ``3 horas``; a dash for None. Never more than it is."""
    if value is None:
        return "—"
    if unit == Unit.ITEMS:
        return f"{value:.0f}"
    for seconds, words in _LAPSES:
        # One of the greater unit would say too little: 90 minutes are not an hour.
        if value >= 2 * seconds:
            return words % (value // seconds)
    return _("menos de 2 segundos")
