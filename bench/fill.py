"""Tables as they are after months of work, in seconds.

One visit is booked, planned and reminded by the product itself; the others are
copies of its rows, made in SQL with the triggers asleep. So a copy is what the
planner and the dispatcher write, whatever their columns are; only keys, names,
numbers and moments differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from appointments import booking, clock
from appointments.models import Appointment, AppointmentHistory, Doctor, Office, Patient
from bench.stage import query
from reminders import planner, receipts
from reminders.models import ConsentEvent, DeliveryAttempt, Mark, ReminderDelivery, ReminderRule
from reminders.tick import tick

VISITS_OF_A_DOCTOR = 40
APART = "interval '30 minutes'"
THREE_RULES = {-4_320: "days", -1_440: "hours", -120: "hours"}
"""Those that ship: minutes before the visit, and their unit."""

_PHONE = "'+58412' || lpad(b.n::text, 7, '0')"
_WA_ID = "'58412' || lpad(b.n::text, 7, '0')"
_NEW_PATIENT = {
    "id": "b.patient",
    "full_name": "'Paciente ' || b.n",
    "phone": _PHONE,
    "wa_id": f"CASE d.wa_id WHEN '' THEN '' ELSE {_WA_ID} END",
    "email": "CASE d.email WHEN '' THEN '' ELSE 'paciente-' || b.n || '@example.org' END",
}
_NEW_VISIT = {
    "id": "b.visit",
    "date": "((d.starts_at + b.shift) AT TIME ZONE b.zone)::date",
    "start_time": "((d.starts_at + b.shift) AT TIME ZONE b.zone)::time",
}
_OF_PATIENT = {"patient_id": "b.patient"}
_OF_DOCTOR = {"doctor_id": "b.doctor"}
_OF_VISIT = {"appointment_id": "b.visit"}
_MESSAGE = {
    "message_id": "CASE d.message_id WHEN '' THEN '' ELSE d.message_id || '.' || b.n END",
    "address": f"CASE d.address WHEN '' THEN '' ELSE {_PHONE} END",
}


def set_rules(rules: Mapping[int, str] = THREE_RULES, *, channels: Sequence[str] = ("whatsapp",)) -> None:
    """Make these the rules for everybody, in force since long ago."""
    with transaction.atomic():
        query("SELECT set_config('amedi.now', '2026-01-01T00:00Z', true)")
        ReminderRule.objects.all().delete()
        for minutes, unit in rules.items():
            ReminderRule.objects.create(
                reminder_type="cita_proxima",
                offset_minutes=minutes,
                offset_unit=unit,
                channels=list(channels),
            )
        Mark.objects.all().delete()


def imported_visit(*, ahead: timedelta) -> Appointment:
    """A visit so far ahead as the import of an agenda books it; its plan is not made yet."""
    office = Office.objects.create(
        name="Torre Médica, piso 3", address="Av. Principal de Las Mercedes", phone="+58 212-0000000"
    )
    doctor = Doctor.objects.create(title="Dra.", name="Carmen Ruiz")
    doctor.offices.add(office)
    patient = Patient.objects.create(full_name="Ana de Prueba", phone="+584120000000")
    patient.doctors.add(doctor)
    ConsentEvent.objects.create(
        patient=patient, channel="whatsapp", agrees=True, how="desk", evidence="papel"
    )
    now = clock.now()
    local = (now + ahead).astimezone(office.zone)
    return booking.book(
        doctor=doctor,
        patient=patient,
        office=office,
        date=local.date(),
        start_time=local.time().replace(second=0, microsecond=0),
        booked_at=now - timedelta(days=10),
        actor=booking.Actor(source=AppointmentHistory.Source.IMPORT),
    )


def model_visit(
    *, ahead: timedelta, receipts_of_it: Sequence[str] = ("sent", "delivered", "read")
) -> Appointment:
    """A visit so far ahead, booked and planned by the product; what is due of it is sent.

    The provider must be there to take it. ``receipts_of_it`` come back for it.
    """
    visit = imported_visit(ahead=ahead)
    planner.plan_marked(now=clock.now())
    tick()
    for attempt in DeliveryAttempt.objects.filter(delivery__appointment=visit):
        for status in receipts_of_it:
            receipts.advance(
                receipts.Receipt(
                    reference=attempt.row.reference,
                    message_id=attempt.message_id,
                    status=status,
                    at=clock.now(),
                    wa_id=visit.patient.phone.lstrip("+"),
                )
            )
    visit.refresh_from_db()
    return visit


def copy_visit(visit: Appointment, count: int, *, shift: timedelta) -> None:
    """Put ``count`` copies in the place of a visit and all that hangs on it.

    Each has a patient of its own. They are spread over the days of many doctors,
    the last ones at the visit's own moment plus ``shift``; every moment in their
    rows moves along.
    """
    with _triggers_asleep():
        query("DROP TABLE IF EXISTS bench_copy")
        query(
            f"""CREATE UNLOGGED TABLE bench_copy AS
                SELECT n, %s AS zone, gen_random_uuid() AS visit,
                       nextval(pg_get_serial_sequence('appointments_patient', 'id')) AS patient,
                       NULL::bigint AS doctor, NULL::uuid AS delivery,
                       %s::interval - (n - 1) %% {VISITS_OF_A_DOCTOR} * {APART} AS shift
                FROM generate_series(1, %s) n""",
            visit.office.time_zone,
            shift,
            count,
        )
        _copy_doctors(visit)
        _copy("appointments_patient", "id", visit.patient_id, _NEW_PATIENT)
        _copy("appointments_care", "patient_id", visit.patient_id, _OF_PATIENT | _OF_DOCTOR)
        _copy("reminders_consentevent", "patient_id", visit.patient_id, _OF_PATIENT)
        own = _NEW_VISIT | _OF_PATIENT | _OF_DOCTOR
        _copy("appointments_appointment", "id", visit.pk, own, moves=True)
        _copy("appointments_appointmenthistory", "appointment_id", visit.pk, _OF_VISIT, moves=True)
        deliveries = ReminderDelivery.objects.filter(appointment=visit).values_list("pk", flat=True)
        for delivery in deliveries:
            query("UPDATE bench_copy SET delivery = gen_random_uuid()")
            own = {"id": "b.delivery"} | _OF_VISIT | _OF_PATIENT | _MESSAGE
            _copy("reminders_reminderdelivery", "id", delivery, own, moves=True)
            own = {"delivery_id": "b.delivery"} | _MESSAGE
            _copy("reminders_deliveryattempt", "delivery_id", delivery, own, moves=True)
        _take_away(visit, deliveries)
        query("DROP TABLE bench_copy")


def fall_due(moment: datetime, *, offset_minutes: int) -> None:
    """Let all rows of one rule that wait fall due at once, as when quiet hours or an outage end."""
    ReminderDelivery.objects.filter(status="pending", offset_minutes=offset_minutes).update(
        scheduled_for=moment, next_attempt_at=moment
    )


def give_inboxes() -> int:
    """Give every second patient a user, and so an inbox in the application; how many there are then."""
    with _triggers_asleep():
        query(
            """WITH chosen AS (SELECT id FROM appointments_patient WHERE id % 2 = 0),
                    users AS (INSERT INTO auth_user (username, password, first_name, last_name, email,
                                  is_superuser, is_staff, is_active, date_joined)
                              SELECT 'paciente-' || id, '', '', '', '', false, false, true, now() FROM chosen
                              RETURNING id, username)
               UPDATE appointments_patient p SET user_id = u.id FROM users u
               WHERE u.username = 'paciente-' || p.id"""
        )
    [(count,)] = query("SELECT count(*) FROM appointments_patient WHERE user_id IS NOT NULL")
    return int(count)


def settle_down() -> None:
    """What autovacuum and the checkpointer do overnight."""
    query("VACUUM ANALYZE")
    query("CHECKPOINT")


def mark_all() -> None:
    """Leave a mark for each visit, as the triggers did while the agenda came in."""
    query(
        "INSERT INTO reminders_mark (subject, subject_id, changes_rules, at, tries)"
        " SELECT 'appointment', id::text, false, amedi_now(), 0 FROM appointments_appointment"
    )


def empty() -> None:
    """Take everything away but the rules."""
    with _triggers_asleep():
        query(
            "TRUNCATE appointments_appointment, appointments_appointmenthistory, appointments_patient,"
            " appointments_care, appointments_doctor_offices, reminders_reminderdelivery,"
            " reminders_deliveryattempt, reminders_reply, reminders_mark, reminders_consentevent,"
            " whatsapp_webhookpost, whatsapp_statusevent, django_q_ormq, django_q_task CASCADE"
        )
        query("DELETE FROM appointments_doctor")
        query("DELETE FROM appointments_office")


@contextmanager
def _triggers_asleep() -> Iterator[None]:
    query("SET session_replication_role = replica")
    try:
        yield
    finally:
        query("SET session_replication_role = origin")


def _copy_doctors(visit: Appointment) -> None:
    query(
        f"""CREATE TEMPORARY TABLE bench_doctor AS
            SELECT row_number() OVER () - 1 AS nth,
                   nextval(pg_get_serial_sequence('appointments_doctor', 'id')) AS id
            FROM generate_series(1, (SELECT count(*) + {VISITS_OF_A_DOCTOR} - 1 FROM bench_copy)
                                    / {VISITS_OF_A_DOCTOR})"""
    )
    query(
        "UPDATE bench_copy b SET doctor = d.id FROM bench_doctor d WHERE d.nth = (b.n - 1) / %s",
        VISITS_OF_A_DOCTOR,
    )
    query(
        "INSERT INTO appointments_doctor (id, title, name)"
        " SELECT id, 'Dra.', 'Carmen Ruiz ' || nth FROM bench_doctor"
    )
    query(
        "INSERT INTO appointments_doctor_offices (doctor_id, office_id) SELECT id, %s FROM bench_doctor",
        visit.office_id,
    )
    query("DROP TABLE bench_doctor")


def _copy(table: str, column: str, key: Any, own: Mapping[str, str], *, moves: bool = False) -> None:
    """Copy the rows of a table whose column has the key, for each row of bench_copy.

    ``own`` are the columns that differ, as SQL over the original ``d`` and ``b``.
    ``moves``: so does every moment.
    """
    types = dict(
        query("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s", table)
    )
    moments = [name for name, kind in types.items() if moves and kind == "timestamp with time zone"]
    differing = {name: f"d.{name} + b.shift" for name in moments}
    if types["id"] == "bigint":
        differing["id"] = f"nextval(pg_get_serial_sequence('{table}', 'id'))"
    pairs = ", ".join(f"'{name}', {value}" for name, value in (differing | dict(own)).items())
    query(
        f"INSERT INTO {table} SELECT r.* FROM {table} d, bench_copy b,"
        f" LATERAL jsonb_populate_record(d, jsonb_build_object({pairs})) r WHERE d.{column} = %s",
        key,
    )


def _take_away(visit: Appointment, deliveries: Sequence[Any]) -> None:
    for table, column, keys in (
        ("reminders_deliveryattempt", "delivery_id", list(deliveries)),
        ("reminders_reminderdelivery", "id", list(deliveries)),
        ("appointments_appointmenthistory", "appointment_id", [visit.pk]),
        ("appointments_appointment", "id", [visit.pk]),
        ("appointments_care", "patient_id", [visit.patient_id]),
        ("reminders_consentevent", "patient_id", [visit.patient_id]),
        ("appointments_patient", "id", [visit.patient_id]),
    ):
        query(f"DELETE FROM {table} WHERE {column} = ANY(%s)", keys)
    query("DELETE FROM reminders_mark")
