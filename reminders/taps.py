"""What a button carries: a word, the visit, its version, and a signature.

Ids can be copied and old messages stay on the phone, so a button names the
version for which it was made, and nobody else can make one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from django.core.signing import BadSignature

from appointments.models import Appointment
from reminders.signing import signer

LONGEST = 128
"""Sources disagree on Meta's limit for a payload; this is the lowest of them."""
_SALT = "reminders.taps"
_GRAMMAR = re.compile(r"(?P<word>[A-Z]+)_(?P<visit>[0-9a-f]{32})_(?P<sequence>\d{1,9})")


class Word(StrEnum):
    """What the patient asks for."""

    CONFIRM = "CONFIRM"
    RESCHEDULE = "RESCHEDULE"
    CANCEL = "CANCEL"
    ARRIVED = "ARRIVED"


# The same labels as in the approved templates.
TITLES = {
    Word.CONFIRM: "Confirmar",
    Word.RESCHEDULE: "Reagendar",
    Word.CANCEL: "Cancelar",
    Word.ARRIVED: "Ya llegué",
}


@dataclass(frozen=True, kw_only=True)
class Tap:
    """A button that we made, as it came back."""

    word: Word
    appointment_id: UUID
    sequence: int


def payload(word: Word, appointment: Appointment) -> str:
    """The signed text for a button about this version of the visit, at most 128 characters."""
    return signer(_SALT).sign(f"{word}_{appointment.pk.hex}_{appointment.sequence}")


def read(text: str) -> Tap | None:
    """The tap that a payload of ours stands for; None for anything else."""
    if len(text) > LONGEST:
        return None
    try:
        parts = _GRAMMAR.fullmatch(signer(_SALT).unsign(text))
    except BadSignature:
        return None
    if not parts or parts["word"] not in Word.__members__:
        return None
    return Tap(word=Word(parts["word"]), appointment_id=UUID(parts["visit"]), sequence=int(parts["sequence"]))
