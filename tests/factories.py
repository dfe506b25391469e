"""Rows already in the state that a test is about. Name only what the test is about.

Every name, phone and text made here carries a mark: a test fails when one of
them stands in a log line (see conftest).
"""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib.auth.models import User
from django.db import connection

from appointments import booking, clock
from appointments.models import Appointment, Doctor, Office, Patient, Specialty
from reminders.models import ConsentEvent, Mark, ReminderDelivery, ReminderRule

CARACAS = ZoneInfo("America/Caracas")
MARK = "Zzyzx"
"""Stands in every name and text of a patient that the factories make."""
PHONE_MARK = "412555"
"""Stands in every phone number that the factories make."""
_count = itertools.count(1)


def caracas(text: str) -> datetime:
    """``2026-09-17T10:00`` in Caracas."""
    return datetime.fromisoformat(text).replace(tzinfo=CARACAS)


def make_user(**fields: Any) -> User:
    fields.setdefault("username", f"user-{next(_count)}")
    return User.objects.create_user(password="secret-for-tests", is_staff=True, **fields)


def make_office(**fields: Any) -> Office:
    fields.setdefault("name", "Torre Médica, piso 3")
    fields.setdefault("address", "Av. Principal de Las Mercedes")
    fields.setdefault("phone", "+58 212-0000000")
    return Office.objects.create(**fields)


def make_doctor(*, office: Office | None = None, **fields: Any) -> Doctor:
    fields.setdefault("title", "Dra.")
    fields.setdefault("name", f"Carmen Ruiz {next(_count)}")
    doctor = Doctor.objects.create(**fields)
    doctor.offices.add(office or make_office())
    return doctor


def make_phone() -> str:
    return f"+58{PHONE_MARK}{next(_count):04d}"


def make_patient(*, doctor: Doctor | None = None, **fields: Any) -> Patient:
    fields.setdefault("full_name", f"Ana {MARK} {next(_count)}")
    fields.setdefault("phone", make_phone())
    patient = Patient.objects.create(**fields)
    if doctor:
        patient.doctors.add(doctor)
    return patient


def make_specialty(name: str = "Cardiología") -> Specialty:
    return Specialty.objects.get_or_create(name=name)[0]


def make_appointment(
    *,
    at: datetime | str = "2026-09-17T10:00",
    doctor: Doctor | None = None,
    patient: Patient | None = None,
    office: Office | None = None,
    booked_at: datetime | str | None = "2026-09-10T09:00",
    **fields: Any,
) -> Appointment:
    """A booked visit; ``at`` is local to the office, text for ``booked_at`` is Caracas."""
    local = datetime.fromisoformat(at) if isinstance(at, str) else at
    doctor = doctor or make_doctor(office=office)
    office = office or doctor.offices.first()
    assert office
    if local.tzinfo:
        local = local.astimezone(office.zone)
    return booking.book(
        doctor=doctor,
        patient=patient or make_patient(doctor=doctor),
        office=office,
        date=local.date(),
        start_time=local.time(),
        booked_at=caracas(booked_at) if isinstance(booked_at, str) else booked_at,
        actor=booking.SYSTEM,
        **fields,
    )


def make_rule(offset_minutes: int = -1440, **fields: Any) -> ReminderRule:
    """A default rule, 24 hours before over WhatsApp unless said otherwise."""
    fields.setdefault("reminder_type", "cita_proxima")
    fields.setdefault("offset_unit", "hours")
    fields.setdefault("channels", ["whatsapp"])
    fields.setdefault("body_template", "Hola {nombre}: su cita es {fecha} a las {hora}.")
    return ReminderRule.objects.create(offset_minutes=offset_minutes, **fields)


def only_rules(*offsets: int, **fields: Any) -> list[ReminderRule]:
    """Put these default rules in the place of those that ship."""
    ReminderRule.objects.all().delete()
    # Also those of the migrations, which ran in the test's future where its clock is set back.
    Mark.objects.all().delete()
    return [make_rule(offset, **fields) for offset in offsets]


def agree(patient: Patient, *, agrees: bool = True) -> None:
    """The patient has said yes (or no) to WhatsApp."""
    ConsentEvent.objects.create(
        patient=patient, channel="whatsapp", agrees=agrees, how="desk", evidence="formulario"
    )


def make_delivery(
    *, appointment: Appointment | None = None, rule: ReminderRule | None = None, **fields: Any
) -> ReminderDelivery:
    """A planned row, due long ago and useful for long, of a visit that is ahead."""
    appointment = appointment or make_appointment(at=soon())
    rule = rule or ReminderRule.objects.filter(offset_minutes=-120).first() or make_rule(-120)
    if not ConsentEvent.objects.filter(patient=appointment.patient).exists():
        agree(appointment.patient)
    now = clock.now()
    planned: dict[str, Any] = {
        "channel": "whatsapp",
        "patient": appointment.patient,
        "sequence": appointment.sequence,
        "rule_name": str(rule),
        "reminder_type": rule.reminder_type,
        "offset_minutes": rule.offset_minutes,
        "offset_unit": rule.offset_unit,
        "scheduled_for": now - timedelta(minutes=1),
        "next_attempt_at": now - timedelta(minutes=1),
        "useful_until": appointment.starts_at,
    }
    # Where the booking was committed, the planner has already been here.
    appointment.deliveries.filter(rule=rule, called_at=None).delete()
    return ReminderDelivery.objects.create(appointment=appointment, rule=rule, **(planned | fields))


def break_office(visit: Appointment) -> None:
    """Give the visit's office a zone that does not exist, past every trigger and form."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(
            "UPDATE appointments_office SET time_zone = 'Nowhere/X' WHERE id = %s", [visit.office_id]
        )
        cursor.execute("SET LOCAL session_replication_role = origin")


def soon(hours: float = 3) -> datetime:
    """A start on a whole minute, hours from the machine's present."""
    return (datetime.now(CARACAS) + timedelta(hours=hours)).replace(second=0, microsecond=0)
