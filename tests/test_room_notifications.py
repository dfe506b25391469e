"""Every path of change rings at the rooms that show it, once; what no room shows rings at none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg
import pytest
from django.db import connection, transaction

from appointments import booking, clock
from appointments.models import Appointment, Office
from reminders.models import ReminderDelivery
from reminders.room.stream import CHANNEL
from tests.engine import database_url
from tests.factories import make_appointment, make_delivery, make_doctor, soon
from tests.room import today

pytestmark = pytest.mark.django_db(transaction=True)

Heard = Callable[[], list[str]]


@pytest.fixture
def heard() -> Iterator[Heard]:
    """What was notified since it was last asked."""
    with psycopg.connect(database_url(), autocommit=True) as listener:
        listener.execute(f"LISTEN {CHANNEL}")

        def since() -> list[str]:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_notify(%s, 'end')", [CHANNEL])
            payloads = []
            for note in listener.notifies(timeout=20):
                if note.payload == "end":
                    return payloads
                payloads.append(note.payload)
            pytest.fail("the end was not notified")

        yield since


def confirm_by_verb(visit: Appointment) -> None:
    booking.confirm(visit, actor=booking.SYSTEM)


def cancel_by_deletion(visit: Appointment) -> None:
    visit.delete()


def move_by_verb(visit: Appointment) -> None:
    booking.reschedule(
        visit,
        date=visit.date,
        start_time=visit.start_time.replace(minute=(visit.start_time.minute + 1) % 60),
        actor=booking.SYSTEM,
    )


def move_far_away(visit: Appointment) -> None:
    booking.reschedule(
        visit, date=visit.date + timedelta(days=40), start_time=visit.start_time, actor=booking.SYSTEM
    )


def change_by_update(visit: Appointment) -> None:
    Appointment.objects.filter(pk=visit.pk).update(status="no_show")


def change_by_sql(visit: Appointment) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE appointments_appointment SET status = 'completed' WHERE id = %s", [visit.pk])


def rename_patient(visit: Appointment) -> None:
    visit.patient.full_name = "Otro nombre"
    visit.patient.save()


def rename_office(visit: Appointment) -> None:
    Office.objects.filter(pk=visit.office_id).update(name="Otro consultorio")


def rename_doctor(visit: Appointment) -> None:
    visit.doctor.name = "Otra"
    visit.doctor.save()


@pytest.mark.parametrize(
    "change",
    [
        confirm_by_verb, cancel_by_deletion, move_by_verb, move_far_away, change_by_update, change_by_sql,
        rename_patient, rename_office, rename_doctor,
    ],
)  # fmt: skip
def test_a_change_of_todays_visit_names_its_doctor_once(change, heard):
    visit = today()
    heard()
    change(visit)
    assert heard() == [str(visit.doctor_id)]


def test_a_booking_for_today_rings_and_one_for_next_month_does_not(heard):
    visit = today()
    assert set(heard()) == {str(visit.doctor_id)}
    make_appointment(at=soon(24 * 30), doctor=visit.doctor)
    assert heard() == []


def test_a_visit_that_changes_its_doctor_rings_at_both(heard):
    visit, other = today(), make_doctor()
    heard()
    Appointment.objects.filter(pk=visit.pk).update(doctor=other)
    assert sorted(heard()) == sorted([str(visit.doctor_id), str(other.pk)])


def test_a_change_that_no_card_shows_is_silent(heard):
    visit = today()
    heard()
    Appointment.objects.filter(pk=visit.pk).update(external_id="A-7")
    visit.patient.email = "otro@example.org"
    visit.patient.save()
    assert heard() == []


def test_the_days_of_another_month_are_silent(heard):
    visit = make_appointment(at=soon(24 * 30))
    row = make_delivery(appointment=visit, useful_until=visit.starts_at)
    heard()
    booking.confirm(visit, actor=booking.SYSTEM)
    ReminderDelivery.objects.filter(pk=row.pk).update(status="sent", sent_at=clock.now())
    rename_patient(visit)
    rename_office(visit)
    assert heard() == []


@pytest.mark.parametrize(
    "news",
    [
        {"status": "sent"},
        {"status": "delivered"},
        {"status": "read"},
        {"status": "unknown"},
        {"status": "failed", "reason": "refused"},
        {"given_up_at": "2026-09-17T10:00Z"},
        {"told_by_phone_at": "2026-09-17T10:00Z"},
    ],
)
def test_what_becomes_of_a_reminder_rings(news, heard):
    row = make_delivery(appointment=today())
    heard()
    ReminderDelivery.objects.filter(pk=row.pk).update(**news)
    assert heard() == [str(row.appointment.doctor_id)]


def test_a_claim_changes_nothing_to_see(heard):
    row = make_delivery(appointment=today())
    heard()
    ReminderDelivery.objects.filter(pk=row.pk).update(status="sending", attempt=1)
    ReminderDelivery.objects.filter(pk=row.pk).update(status="pending", retry_count=1)
    assert heard() == []


def test_a_reminder_after_the_visit_is_silent(heard):
    row = make_delivery(appointment=today(), offset_minutes=1440, reminder_type="seguimiento")
    heard()
    ReminderDelivery.objects.filter(pk=row.pk).update(status="sent")
    assert heard() == []


def test_a_thousand_rows_at_once_ring_once_for_each_doctor(heard):
    doctors = [today().doctor for _ in range(2)]
    rows = [make_delivery(appointment=doctor.appointment_set.get()) for doctor in doctors]
    for row in rows:
        ReminderDelivery.objects.bulk_create(
            [
                ReminderDelivery(
                    appointment=row.appointment, patient=row.patient, channel="email", sequence=number,
                    rule_name="x", reminder_type="cita_proxima", offset_minutes=-120, offset_unit="hours",
                    scheduled_for=row.scheduled_for, next_attempt_at=row.next_attempt_at,
                    useful_until=row.useful_until,
                )
                for number in range(500)
            ]
        )  # fmt: skip
    heard()
    ReminderDelivery.objects.filter(channel="email").update(status="sent")
    assert sorted(heard()) == sorted(str(doctor.pk) for doctor in doctors)


def test_many_statements_of_one_transaction_ring_once(heard):
    visit = today()
    row = make_delivery(appointment=visit)
    heard()
    with transaction.atomic():
        booking.confirm(visit, actor=booking.SYSTEM)
        ReminderDelivery.objects.filter(pk=row.pk).update(status="sent")
        booking.check_in(visit, actor=booking.SYSTEM)
    assert heard() == [str(visit.doctor_id)]
