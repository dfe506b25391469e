"""Addresses of the patient's pages, each with a signed token.

Whoever holds a token may do what its page offers, and nothing else: it names
one purpose, one thing and, for a visit, the version and the patient for whom it
was made. It holds ids only, and no date: it ends when what it names ends.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from django.conf import settings
from django.core.signing import BadSignature, Signer

from reminders.signing import signer

if TYPE_CHECKING:
    from appointments.models import Appointment
    from reminders.models import ReminderDelivery

LONGEST = 200
"""Far above any token of ours: what is longer is not looked at."""
_VISIT = re.compile(r"(?P<id>[A-Za-z0-9_-]{22})\.(?P<sequence>\d{1,9})\.(?P<patient>\d{1,18})")
_DELIVERY = re.compile(r"(?P<id>[A-Za-z0-9_-]{22})")


@dataclass(frozen=True, kw_only=True)
class VisitLink:
    """What the token of a visit's page names."""

    appointment_id: UUID
    sequence: int
    patient_id: int


def visit_token(appointment: Appointment) -> str:
    """The token for this version of the visit, in the hands of the patient whom it now has."""
    return _visit_signer().sign(f"{_short(appointment.pk)}.{appointment.sequence}.{appointment.patient_id}")


def visit_url(appointment: Appointment) -> str:
    """The address of the patient's page of this version of the visit."""
    return f"{settings.CLIENT_URL}/cita/{visit_token(appointment)}/"


def preferences_url(delivery: ReminderDelivery) -> str:
    """The address where whoever got this message stops such messages."""
    return f"{settings.CLIENT_URL}/preferencias/{_preferences_signer().sign(_short(delivery.pk))}/"


def read_visit(token: str) -> VisitLink | None:
    """What a token of ours for a visit names; None for anything else."""
    parts = _read(token, _visit_signer(), _VISIT)
    return parts and VisitLink(
        appointment_id=_long(parts["id"]),
        sequence=int(parts["sequence"]),
        patient_id=int(parts["patient"]),
    )


def read_preferences(token: str) -> UUID | None:
    """The id of the delivery that a token of ours for preferences names; None for anything else."""
    parts = _read(token, _preferences_signer(), _DELIVERY)
    return parts and _long(parts["id"])


def _read(token: str, signing: Signer, grammar: re.Pattern[str]) -> re.Match[str] | None:
    if len(token) > LONGEST:
        return None
    try:
        return grammar.fullmatch(signing.unsign(token))
    except BadSignature:
        return None


# A salt for each purpose: the token of one page opens no other.
def _visit_signer() -> Signer:
    return signer("reminders.links.visit", sep=".")


def _preferences_signer() -> Signer:
    return signer("reminders.links.preferences", sep=".")


def _short(pk: UUID) -> str:
    return urlsafe_b64encode(pk.bytes).rstrip(b"=").decode()


def _long(text: str) -> UUID:
    return UUID(bytes=urlsafe_b64decode(f"{text}=="))
