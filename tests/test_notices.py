"""What happens to a visit is told once to whom it concerns: booked, changed, called off."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, time, timedelta

import pytest
from django.db import connection
from django.db.models import Min

from appointments import booking, clock
from appointments.models import Appointment, AppointmentHistory
from reminders import dispatch, planner
from reminders.channels import locmem
from reminders.channels.base import Message
from reminders.flight import Flight
from reminders.models import ContactOptOut, ReminderDelivery, ReminderRule
from reminders.timeline import NOTICES
from tests.factories import (
    agree,
    caracas,
    make_appointment,
    make_doctor,
    make_office,
    make_patient,
    make_rule,
    only_rules,
)

pytestmark = pytest.mark.django_db

BACKEND = {"BACKEND": "reminders.channels.locmem.LocmemChannel"}
DESK = booking.Actor(source=AppointmentHistory.Source.ADMIN)
BY_TAP = booking.Actor(source=AppointmentHistory.Source.EMAIL)


@pytest.fixture
def told(settings, set_clock) -> Callable[[str], list[str]]:
    """Send minute by minute until a time, and say what went out: kind, day and hour of the visit."""
    settings.CHANNEL_BACKENDS = {"whatsapp": BACKEND, "email": BACKEND}
    settings.REMINDER_CHANNELS = ["whatsapp", "email"]
    settings.REMINDER_QUIET_HOURS = (time(21), time(7))
    locmem.outbox.clear()
    set_clock("2026-09-01T08:00")
    only_rules(-1440, -120)
    for kind in NOTICES:
        make_rule(
            0, reminder_type=kind, offset_unit="minutes", channels=["whatsapp", "email"], body_template=""
        )

    def until(text: str) -> list[str]:
        locmem.outbox.clear()
        now, end = clock.now(), caracas(text)
        while True:
            set_clock(f"{now.astimezone(end.tzinfo):%Y-%m-%dT%H:%M:%S}")
            planner.plan_marked(now=now)
            with Flight(4) as flight:
                dispatch.run(clock=clock.now, flight=flight)
            if now >= end:
                return [line(message) for message in locmem.outbox]
            ahead = ReminderDelivery.objects.filter(status="pending").aggregate(Min("next_attempt_at"))
            now = min(max(ahead["next_attempt_at__min"] or end, now + timedelta(minutes=1)), end)

    return until


def line(message: Message) -> str:
    day = message.values["fecha"].split(" de ")[0].split()[-1]
    return f"{message.kind} {day} {message.values['hora'].split(':')[0]}"


def booked(set_clock, on: str = "2026-09-10T09:00", **fields) -> Appointment:
    set_clock(on)
    patient = fields.pop("patient", None) or make_patient()
    agree(patient)
    return make_appointment(patient=patient, booked_at=on, **fields)


def move(visit: Appointment, to: str, actor: booking.Actor = DESK) -> None:
    moment = datetime.fromisoformat(to)
    assert booking.reschedule(visit, date=moment.date(), start_time=moment.time(), actor=actor)


def rows(visit: Appointment, kind: str) -> list[tuple[int, str, str]]:
    found = visit.deliveries.filter(reminder_type=kind).order_by("sequence", "created_at")
    return [(row.sequence, row.status, row.reason) for row in found]


def test_a_booking_is_told_at_once_and_once(told, set_clock):
    booked(set_clock)
    assert told("2026-09-10T09:01") == ["reserva 17 10"]
    assert told("2026-09-10T12:00") == []


def test_a_booking_at_night_is_told_at_once(told, set_clock):
    """Case A4 (c): the patient has just acted."""
    booked(set_clock, "2026-09-17T06:30")
    assert told("2026-09-17T07:30") == ["reserva 17 10"]
    assert told("2026-09-17T08:30") == ["cita_proxima 17 10"]


def test_a_late_booking_is_told_and_only_what_lies_ahead_is_reminded(told, set_clock):
    """Cases A3 and A5."""
    early, late = (
        booked(set_clock, "2026-09-17T07:00"),
        booked(set_clock, "2026-09-17T09:15", at="2026-09-17T11:00"),
    )
    assert told("2026-09-17T12:00").count("reserva 17 10") == 1
    assert {row.status for row in early.deliveries.filter(offset_minutes=-1440)} == {"skipped"}
    assert rows(late, "reserva") == [(0, "sent", "")]


def test_a_late_booking_carries_the_preparation_that_comes_too_late(told, set_clock):
    """Case A7."""
    make_rule(
        -3 * 1440,
        reminder_type="preparacion",
        body_template="Venga en ayunas, {nombre}: nada desde la medianoche.",
    )
    visit = booked(set_clock, "2026-09-15T10:00")
    told("2026-09-15T10:05")
    [message] = locmem.outbox
    assert "Venga en ayunas" in message.text and "Venga en ayunas" in message.preparation
    assert rows(visit, "preparacion") == [(0, "skipped", "booked_late")]


def test_a_booking_in_time_does_not_carry_the_preparation(told, set_clock):
    make_rule(-3 * 1440, reminder_type="preparacion", body_template="Venga en ayunas.")
    booked(set_clock)
    told("2026-09-10T09:05")
    assert "ayunas" not in locmem.outbox[0].text


def test_there_and_back_on_two_days_are_two_changes(told, set_clock):
    """Case C1."""
    visit = booked(set_clock)
    told("2026-09-12T09:00")
    move(visit, "2026-09-18T15:00")
    assert told("2026-09-13T09:00") == ["cambio 18 3"]
    move(visit, "2026-09-17T10:00")
    assert told("2026-09-18T20:00") == ["cambio 17 10", "cita_proxima 17 10", "cita_proxima 17 10"]
    assert {row.status for row in visit.deliveries.filter(sequence=1, reminder_type="cita_proxima")} == {
        "cancelled"
    }


def test_a_change_waits_three_minutes(told, set_clock):
    visit = booked(set_clock)
    told("2026-09-12T09:00")
    move(visit, "2026-09-18T15:00")
    assert told("2026-09-12T09:02") == []
    assert told("2026-09-12T09:03") == ["cambio 18 3"]


def test_a_change_and_its_undo_within_the_pause_are_not_told(told, set_clock):
    visit = booked(set_clock)
    told("2026-09-12T09:00")
    move(visit, "2026-09-18T15:00")
    told("2026-09-12T09:02")
    move(visit, "2026-09-17T10:00")
    assert told("2026-09-17T08:00") == ["cita_proxima 17 10", "cita_proxima 17 10"]
    assert rows(visit, "cambio") == [(1, "cancelled", "moved"), (2, "skipped", "undone")]


def test_a_reminder_that_went_out_is_not_repeated_after_an_undone_change(told, set_clock):
    visit = booked(set_clock)
    told("2026-09-16T10:30")
    move(visit, "2026-09-18T15:00")
    told("2026-09-16T10:31")
    move(visit, "2026-09-17T10:00")
    assert told("2026-09-17T09:00") == ["cita_proxima 17 10"]


def test_a_change_undone_after_a_quarter_of_an_hour_leaves_a_near_reminder_in_place(told, set_clock):
    """Nothing was said of the change, so nothing covers the reminder."""
    visit = booked(set_clock)
    told("2026-09-17T07:57")
    move(visit, "2026-09-17T10:05")
    told("2026-09-17T07:58")
    move(visit, "2026-09-17T10:00")
    assert told("2026-09-17T08:30") == ["cita_proxima 17 10"]


def test_a_row_less_than_half_an_hour_after_the_notice_is_covered_by_it(told, set_clock):
    """P11: the notice goes three minutes after the change."""
    visit = booked(set_clock)
    told("2026-09-17T07:30")
    move(visit, "2026-09-17T10:02")
    assert told("2026-09-17T09:00") == ["cambio 17 10"]
    reasons = visit.deliveries.filter(sequence=1, offset_minutes=-120).values_list("reason", flat=True)
    assert list(reasons) == ["covered_by_notice"]
    later = booked(set_clock, at="2026-09-18T10:00")
    told("2026-09-18T07:20")
    move(later, "2026-09-18T09:53")
    assert told("2026-09-18T09:00") == ["cambio 18 9", "cita_proxima 18 9"]


def test_a_move_after_the_reminder_is_told_and_reminded_of_again(told, set_clock):
    """Case C3."""
    visit = booked(set_clock)
    told("2026-09-16T11:00")
    move(visit, "2026-09-24T10:00")
    assert told("2026-09-24T10:00") == ["cambio 24 10", "cita_proxima 24 10", "cita_proxima 24 10"]


def test_a_cancellation_is_told_once_and_nothing_follows(told, set_clock):
    visit = booked(set_clock)
    told("2026-09-12T09:00")
    booking.cancel(visit, actor=DESK)
    booking.cancel(visit, actor=DESK)
    assert told("2026-09-18T09:00") == ["cancelacion 17 10"]


def test_whatever_cancels_it_the_patient_hears_of_it_once(told, set_clock):
    """Case C11."""
    visits = [booked(set_clock, at=f"2026-09-17T{hour}:00") for hour in (10, 11, 12, 13)]
    told("2026-09-12T09:00")
    booking.cancel(visits[0], actor=DESK)
    visits[1].delete()
    Appointment.objects.filter(pk=visits[2].pk).delete()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE appointments_appointment SET status = 'cancelled' WHERE id = %s", [visits[3].pk]
        )
    assert sorted(told("2026-09-18T09:00")) == [
        "cancelacion 17 1",
        "cancelacion 17 10",
        "cancelacion 17 11",
        "cancelacion 17 12",
    ]


def test_a_cancellation_taken_back_within_the_pause_is_not_told(told, set_clock):
    visit = booked(set_clock)
    told("2026-09-12T09:00")
    booking.cancel(visit, actor=DESK)
    told("2026-09-12T09:02")
    booking.reinstate(visit, actor=DESK)
    assert told("2026-09-17T09:00") == ["cita_proxima 17 10", "cita_proxima 17 10"]
    assert rows(visit, "cancelacion") == [(0, "cancelled", "undone")]


def test_a_reinstated_visit_is_told_as_a_booking_and_reminded_of_once(told, set_clock):
    """Case C10."""
    visit = booked(set_clock)
    told("2026-09-12T09:00")
    booking.cancel(visit, actor=DESK)
    told("2026-09-14T09:00")
    booking.reinstate(visit, actor=DESK)
    assert told("2026-09-17T10:00") == ["reserva 17 10", "cita_proxima 17 10", "cita_proxima 17 10"]


def test_who_cancels_by_their_own_tap_has_had_the_answer(told, set_clock):
    visit = booked(set_clock)
    told("2026-09-12T09:00")
    booking.cancel(visit, actor=BY_TAP)
    assert told("2026-09-18T09:00") == []
    assert rows(visit, "cancelacion") == [(0, "skipped", "told_directly")]


def test_who_cancels_by_their_own_tap_is_not_called_either(told, set_clock):
    """Although no channel could have told them."""
    visit = booked(set_clock, patient=make_patient(phone="", email=""))
    told("2026-09-12T09:00")
    booking.cancel(visit, actor=BY_TAP)
    told("2026-09-12T10:00")
    assert rows(visit, "cancelacion") == [(0, "skipped", "told_directly")]


def test_a_new_doctor_or_place_is_a_change(told, set_clock):
    visit = booked(set_clock)
    told("2026-09-12T09:00")
    Appointment.objects.filter(pk=visit.pk).update(office=make_office())
    assert told("2026-09-12T10:00") == ["cambio 17 10"]
    Appointment.objects.filter(pk=visit.pk).update(doctor=make_doctor())
    assert told("2026-09-12T11:00") == ["cambio 17 10"]


def test_a_new_patient_is_told_of_the_booking_and_the_former_one_that_it_is_off(told, set_clock):
    visit = booked(set_clock)
    told("2026-09-12T09:00")
    other = make_patient(doctor=visit.doctor)
    agree(other)
    Appointment.objects.filter(pk=visit.pk).update(patient=other)
    assert sorted(told("2026-09-12T10:00")) == ["cancelacion 17 10", "reserva 17 10"]
    assert {message.kind: message.to for message in locmem.outbox} == {
        "reserva": other.phone,
        "cancelacion": visit.patient.phone,
    }
    booking.cancel(Appointment.objects.get(pk=visit.pk), actor=DESK)
    assert told("2026-09-12T11:00") == ["cancelacion 17 10"]
    assert locmem.outbox[0].to == other.phone


class Pages(locmem.LocmemChannel):
    shows_pages = True


def test_the_former_patient_learns_nothing_of_the_new_one(told, set_clock, settings):
    settings.CHANNEL_BACKENDS = {"whatsapp": {"BACKEND": "tests.test_notices.Pages"}}
    visit = booked(set_clock)
    told("2026-09-12T09:00")
    other = make_patient(doctor=visit.doctor)
    agree(other)
    Appointment.objects.filter(pk=visit.pk).update(patient=other)
    told("2026-09-12T10:00")
    [off] = [message for message in locmem.outbox if message.kind == "cancelacion"]
    assert visit.patient.full_name in off.text and other.full_name not in str(off)
    assert off.visit_link == ""
    assert off.entry and off.entry.is_cancelled


def test_the_cancellation_names_the_time_that_the_patient_knew(told, set_clock):
    visit = booked(set_clock)
    told("2026-09-12T09:00")
    move(visit, "2026-09-18T15:00")
    told("2026-09-12T09:02")
    booking.cancel(visit, actor=DESK)
    assert told("2026-09-12T10:00") == ["cancelacion 17 10"]


def test_a_change_at_night_waits_for_the_morning(told, set_clock):
    visit = booked(set_clock)
    told("2026-09-15T22:00")
    move(visit, "2026-09-18T15:00")
    assert told("2026-09-16T06:59") == []
    assert told("2026-09-16T07:00") == ["cambio 18 3"]


def test_a_change_that_cannot_be_told_before_the_old_start_is_for_the_call_list(told, set_clock):
    visit = booked(set_clock, at="2026-09-17T07:15")
    told("2026-09-16T22:00")
    booking.cancel(visit, actor=DESK)
    assert told("2026-09-17T12:00") == []
    assert rows(visit, "cancelacion") == [(0, "skipped", "quiet_hours")]


def test_with_less_than_the_pause_left_it_goes_at_once(told, set_clock):
    visit = booked(set_clock)
    told("2026-09-17T09:58")
    booking.cancel(visit, actor=DESK)
    assert told("2026-09-17T09:59") == ["cancelacion 17 10"]


def test_what_is_past_is_not_told(told, set_clock):
    visit = booked(set_clock)
    told("2026-09-17T11:00")
    booking.cancel(visit, actor=DESK)
    assert told("2026-09-17T12:00") == []
    assert rows(visit, "cancelacion") == []


def test_an_import_is_told_only_when_asked_to_and_its_move_always(told, set_clock):
    silent = booked(set_clock, announces_booking=False)
    assert told("2026-09-10T10:00") == []
    move(silent, "2026-09-18T15:00", actor=booking.Actor(source="import"))
    assert told("2026-09-10T11:00") == ["cambio 18 3"]


def test_what_happened_before_there_were_notices_is_not_told(told, set_clock):
    ReminderRule.objects.filter(reminder_type__in=NOTICES).update(is_enabled=False)
    visit = booked(set_clock)
    told("2026-09-12T09:00")
    ReminderRule.objects.filter(reminder_type__in=NOTICES).update(is_enabled=True)
    assert told("2026-09-12T10:00") == []
    move(visit, "2026-09-18T15:00")
    assert told("2026-09-12T11:00") == ["cambio 18 3"]


def test_a_doctors_own_notice_made_within_the_pause_does_not_lose_the_change(told, set_clock):
    visit = booked(set_clock)
    told("2026-09-12T09:00")
    move(visit, "2026-09-18T15:00")
    told("2026-09-12T09:01")
    make_rule(0, reminder_type="cambio", offset_unit="minutes", doctor=visit.doctor)
    assert told("2026-09-12T10:00") == ["cambio 18 3"]


def test_a_doctor_may_say_that_no_notice_goes(told, set_clock):
    visit = booked(set_clock)
    make_rule(0, reminder_type="cambio", offset_unit="minutes", doctor=visit.doctor, channels=[])
    told("2026-09-12T09:00")
    move(visit, "2026-09-18T15:00")
    assert told("2026-09-12T10:00") == []
    assert rows(visit, "cambio") == []


def test_a_notice_takes_the_next_channel_where_the_first_cannot_run(told, set_clock):
    patient = make_patient(email="ana@example.org")
    ContactOptOut.objects.create(address=patient.phone, channel="whatsapp")
    booked(set_clock, patient=patient)
    assert told("2026-09-10T09:05") == ["reserva 17 10"]
    assert locmem.outbox[0].to == "ana@example.org"


def test_an_outage_of_an_hour_tells_each_thing_once(told, set_clock):
    """P17: what was never said of a change that was undone meanwhile stays unsaid."""
    visit = booked(set_clock)
    told("2026-09-12T09:00")
    move(visit, "2026-09-18T15:00")
    set_clock("2026-09-12T09:40")
    move(visit, "2026-09-17T10:00")
    set_clock("2026-09-12T10:00")
    assert told("2026-09-12T11:00") == []
