"""Messages and sent mails for the tests of email."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from reminders import wording
from reminders.calendar_file import Entry
from reminders.channels.base import Message
from reminders.models import DeliveryAttempt, ReminderDelivery
from reminders.timeline import ReminderType
from tests.factories import CARACAS, MARK, caracas, make_appointment, make_delivery, make_patient, soon

ADDRESS = f"ana.{MARK}@example.com"
START = caracas("2026-09-17T10:00")


def make_values(*, now: datetime = START - timedelta(days=1), **fields: Any) -> dict[str, str]:
    said: dict[str, Any] = {
        "patient_name": f"Ana {MARK}",
        "doctor": "Dra. Carmen Ruiz",
        "office": "Torre Médica, piso 3",
        "address": "Av. Principal de Las Mercedes",
    }
    return wording.values(wording.Facts(**(said | fields), starts_at=START, zone=CARACAS), now=now)


def make_message(**fields: Any) -> Message:
    """A reminder of the day before, in the words that ship."""
    values = fields.pop("values", None) or make_values()
    kind = fields.setdefault("kind", ReminderType.CITA_PROXIMA)
    if kind in wording.DEFAULT_BODIES:
        fields.setdefault("subject", wording.render(wording.DEFAULT_SUBJECTS[kind], values))
        fields.setdefault("text", wording.render(wording.DEFAULT_BODIES[kind], values))
    fields.setdefault("to", ADDRESS)
    fields.setdefault("reference", f"d:{uuid4()}:1")
    fields.setdefault("asks_to_confirm", True)
    fields.setdefault("time_left", timedelta(days=1))
    fields.setdefault("visit_link", "https://citas.example.org/cita/visit-token/")
    fields.setdefault("preferences_link", "https://citas.example.org/preferencias/preferences-token/")
    return Message(values=values, **fields)


def make_entry(**fields: Any) -> Entry:
    """A visit as a calendar takes it."""
    return Entry(
        **{
            "uid": "visit@citas.example.org",
            "sequence": 2,
            "starts_at": START,
            "ends_at": START + timedelta(minutes=30),
            "zone": "America/Caracas",
            "summary": "Cita con Dra. Cármen Ruiz",
            "location": "Torre Médica, piso 3",
            "url": "https://citas.example.org/cita/visit-token/",
            "is_cancelled": False,
        }
        | fields
    )


def make_sent_mail(
    *, address: str = ADDRESS, message_id: str = "", status: str = "sent", **fields: Any
) -> DeliveryAttempt:
    """The attempt of a reminder that a provider took, to a patient with this address."""
    appointment = fields.pop("appointment", None) or make_appointment(
        at=soon(), patient=make_patient(email=address)
    )
    row = make_delivery(
        appointment=appointment,
        channel="email",
        status=status,
        attempt=1,
        address=address,
        message_id=message_id,
        called_at=appointment.created_at,
        **fields,
    )
    return attempt_of(row, message_id=message_id)


def attempt_of(row: ReminderDelivery, *, message_id: str = "") -> DeliveryAttempt:
    return DeliveryAttempt.objects.create(
        delivery=row,
        number=row.attempt,
        claimed_at=row.called_at,
        called_at=row.called_at,
        address=row.address,
        message_id=message_id,
    )
