"""What is due goes out once, and everything else ends with its reason."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import call_command

from appointments import booking, clock
from appointments.models import Appointment
from reminders import dispatch, planner
from reminders.channels import locmem
from reminders.flight import Flight
from reminders.models import ContactOptOut, DeliveryAttempt, Mark, ReminderDelivery, ReminderRule
from tests.factories import (
    agree,
    break_office,
    caracas,
    make_appointment,
    make_delivery,
    make_doctor,
    make_patient,
    make_rule,
    only_rules,
    soon,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def outbox(settings):
    settings.CHANNEL_BACKENDS = {"whatsapp": {"BACKEND": "reminders.channels.locmem.LocmemChannel"}}
    settings.REMINDER_QUIET_HOURS = (settings.REMINDER_QUIET_HOURS[0], settings.REMINDER_QUIET_HOURS[0])
    locmem.outbox.clear()
    return locmem.outbox


def send(limit: int | None = None) -> int:
    with Flight(8) as flight:
        return dispatch.run(clock=clock.now, flight=flight, limit=limit)


def ended(row: ReminderDelivery) -> tuple[str, str]:
    row.refresh_from_db()
    return row.status, row.reason


def test_what_is_due_goes_out_and_what_is_not_stays(outbox):
    due = make_delivery()
    later = make_delivery(next_attempt_at=clock.now() + timedelta(hours=1))
    assert send() == 1
    assert [message.to for message in outbox] == [due.patient.phone]
    assert ended(due) == ("sent", "")
    assert ended(later) == ("pending", "")
    assert due.message_id and due.sent_at and due.lease_until is None


@pytest.mark.complaint(
    "The same reminder leaves with every run.",
    about="twice",
    source="openemr/openemr #11477, #11480, PR#11588",
)
def test_a_second_run_at_the_same_instant_sends_nothing(outbox):
    make_delivery()
    assert (send(), send()) == (1, 0)
    assert len(outbox) == 1


def test_the_ledger_says_what_was_sent_to_whom(outbox):
    row = make_delivery()
    send()
    attempt = DeliveryAttempt.objects.get(delivery=row)
    row.refresh_from_db()
    assert (attempt.number, attempt.outcome, attempt.address) == (1, "accepted", row.patient.phone)
    assert attempt.payload["text"] == outbox[0].text
    assert attempt.message_id == row.message_id
    assert row.called_at == attempt.called_at


def test_the_nearest_visit_goes_first(outbox):
    far = make_delivery(appointment=make_appointment(at=soon(30)))
    near = make_delivery(appointment=make_appointment(at=soon(2)))
    assert send(limit=1) == 1
    assert (ended(near)[0], ended(far)[0]) == ("sent", "pending")


def test_the_address_and_the_words_are_those_of_the_moment_of_sending(outbox):
    """Case I10."""
    row = make_delivery()
    type(row.patient).objects.filter(pk=row.patient_id).update(phone="+584125559999")
    send()
    assert outbox[0].to == "+584125559999"
    assert row.patient.full_name in outbox[0].text


@pytest.mark.parametrize(
    ("change", "end"),
    [
        (lambda row: booking.cancel(row.appointment, actor=booking.SYSTEM), ("cancelled", "visit_cancelled")),
        (
            lambda row: Appointment.objects.update(start_time=caracas("2026-01-01T23:50").time()),
            ("cancelled", "moved"),
        ),
        (
            lambda row: booking.check_in(row.appointment, actor=booking.SYSTEM),
            ("cancelled", "visit_closed"),
        ),
        (lambda row: ReminderRule.objects.update(is_enabled=False), ("cancelled", "rule_disabled")),
        (lambda row: ReminderRule.objects.filter(pk=row.rule_id).delete(), ("cancelled", "rule_deleted")),
        (
            lambda row: ContactOptOut.objects.create(address=row.patient.phone, channel="whatsapp"),
            ("skipped", "opted_out"),
        ),
        (lambda row: agree(row.patient, agrees=False), ("skipped", "no_consent")),
        (lambda row: type(row.patient).objects.update(phone=""), ("skipped", "no_contact")),
        (
            lambda row: ReminderDelivery.objects.update(useful_until=clock.now() - timedelta(seconds=1)),
            ("expired", "too_late"),
        ),
    ],
    ids=["cancelled", "moved", "arrived", "disabled", "deleted", "opted_out", "refused", "no_phone", "late"],
)
def test_what_changed_a_moment_ago_counts_although_nobody_planned_since(outbox, change, end):
    """P10 and case C8."""
    row = make_delivery()
    change(row)
    assert send() == 0
    assert ended(row) == end
    assert not outbox
    assert not DeliveryAttempt.objects.exists()


def test_of_two_rows_at_one_moment_only_the_nearer_to_the_visit_goes(outbox):
    """P8 and case B9."""
    visit = make_appointment(at=soon())
    ten_hours = make_delivery(appointment=visit, rule=make_rule(-600))
    one_hour = make_delivery(appointment=visit, rule=make_rule(-60))
    assert send() == 1
    assert (ended(one_hour), ended(ten_hours)) == (("sent", ""), ("skipped", "superseded"))


def test_the_farther_row_stays_superseded_when_the_nearer_one_went_before(outbox):
    visit = make_appointment(at=soon())
    make_delivery(appointment=visit, rule=make_rule(-60))
    send()
    promise = visit.starts_at - timedelta(hours=10)
    late = make_delivery(appointment=visit, rule=make_rule(-600), scheduled_for=promise)
    assert send() == 0
    assert ended(late) == ("skipped", "superseded")
    Mark.objects.create(subject="appointment", subject_id=str(visit.pk), at=clock.now())
    planner.plan_marked(now=clock.now())
    assert ended(late) == ("skipped", "superseded")


def test_a_moment_that_was_called_for_is_not_called_again_under_a_copied_rule(outbox):
    visit = make_appointment(at=soon())
    make_delivery(appointment=visit, rule=make_rule(-90, offset_unit="minutes"))
    send()
    copy = make_delivery(appointment=visit, rule=make_rule(-90, offset_unit="minutes", doctor=visit.doctor))
    assert send() == 0
    assert ended(copy) == ("skipped", "superseded")


def test_an_overdue_row_waits_for_the_end_of_quiet_hours(outbox, settings, set_clock):
    """Case D4: due at 18:00, the dispatcher is back at 23:00."""
    settings.REMINDER_QUIET_HOURS = (caracas("2026-01-01T21:00").time(), caracas("2026-01-01T07:00").time())
    set_clock("2026-09-10T09:00")
    only_rules(-1440)
    visit = make_appointment(at="2026-09-17T18:00")
    agree(visit.patient)
    planner.plan_marked(now=clock.now())
    row = visit.deliveries.get()
    assert row.scheduled_for == caracas("2026-09-16T18:00")
    set_clock("2026-09-16T23:00")
    assert send() == 0
    row.refresh_from_db()
    assert (row.status, row.next_attempt_at) == ("pending", caracas("2026-09-17T07:00"))
    assert row.scheduled_for == caracas("2026-09-16T18:00")
    planner.plan_marked(now=clock.now())
    set_clock("2026-09-17T07:00")
    assert send() == 1
    assert ended(row) == ("sent", "")


def test_an_overdue_row_for_which_the_night_is_too_long_is_not_sent(outbox, settings, set_clock):
    settings.REMINDER_QUIET_HOURS = (caracas("2026-01-01T21:00").time(), caracas("2026-01-01T07:00").time())
    set_clock("2026-09-16T22:00")
    row = make_delivery(
        appointment=make_appointment(at="2026-09-17T07:10"), useful_until=caracas("2026-09-17T07:10")
    )
    assert send() == 0
    assert ended(row) == ("skipped", "quiet_hours")


def test_late_but_useful_goes_out_once_and_useless_expires(outbox, set_clock):
    """Cases D1 and D2."""
    set_clock("2026-09-10T09:00")
    only_rules(-1440, -120)
    useful = make_appointment(at="2026-09-17T10:00")
    useless = make_appointment(at="2026-09-16T12:00")
    for visit in (useful, useless):
        agree(visit.patient)
    set_clock("2026-09-16T13:00")
    planner.plan_marked(now=clock.now())
    dispatch.tidy(now=clock.now())
    assert send() == 1
    assert [message.to for message in outbox] == [useful.patient.phone]
    assert set(useless.deliveries.values_list("status", "reason")) == {("expired", "too_late")}
    planner.plan_marked(now=clock.now())
    dispatch.tidy(now=clock.now())
    assert send() == 0


def test_a_confirmed_visit_is_reminded_without_being_asked_again(outbox):
    """Case A9."""
    asked = make_delivery()
    confirmed = make_delivery(appointment=make_appointment(at=soon(5)))
    booking.confirm(confirmed.appointment, actor=booking.SYSTEM)
    send()
    asks = {message.to: message.asks_to_confirm for message in outbox}
    assert asks == {asked.patient.phone: True, confirmed.patient.phone: False}


def test_words_that_slipped_past_the_form_do_not_reach_a_patient(outbox):
    """Case H6, by a path around the form."""
    row = make_delivery()
    ReminderRule.objects.filter(pk=row.rule_id).update(body_template="Hola {nombr}")
    send()
    assert "{" not in outbox[0].text
    assert row.patient.full_name in outbox[0].text


def test_family_members_on_one_number_get_a_message_each_that_names_them(outbox):
    """Case I5."""
    doctor = make_doctor()
    children = [make_patient(phone="+584125550001", doctor=doctor) for _ in range(2)]
    for hours, child in enumerate(children, start=3):
        make_delivery(appointment=make_appointment(at=soon(hours), doctor=doctor, patient=child))
    assert send() == 1
    ReminderDelivery.objects.filter(status="pending").update(next_attempt_at=clock.now())
    assert send() == 1
    for child, message in zip(children, sorted(outbox, key=lambda m: m.time_left), strict=True):
        assert child.full_name in message.text


def test_one_broken_row_does_not_stop_the_others_nor_come_back_for_ever(outbox, settings):
    """T23."""
    broken, good = make_delivery(), make_delivery()
    break_office(broken.appointment)
    assert send() == 1
    assert ended(good) == ("sent", "")
    assert ended(broken) == ("pending", "")
    for _ in range(settings.REMINDER_MAX_ATTEMPTS - 1):
        ReminderDelivery.objects.filter(status="pending").update(next_attempt_at=clock.now())
        assert send() == 0
    assert ended(broken) == ("failed", "attempts_exhausted")


def test_the_command_plans_sends_what_is_due_and_says_how_many(outbox, set_clock, capsys):
    """Case A1."""
    set_clock("2026-09-10T09:00")
    only_rules(-1440, -120)
    visit = make_appointment()
    agree(visit.patient)
    for moment, sent in (("2026-09-16T09:59", 0), ("2026-09-16T10:00", 1), ("2026-09-17T08:00", 1)):
        set_clock(moment)
        call_command("dispatch_reminders", limit=5)
        assert f"{sent} calls started." in capsys.readouterr().out
    assert ["mañana, " in message.text for message in outbox] == [True, False]
    assert "hoy, jueves 17 de septiembre" in outbox[1].text


@pytest.mark.parametrize("own_words", ["", "Nos vemos en {consultorio}: {enlace_video}"])
def test_a_reminder_of_a_video_call_says_how_to_enter_and_names_no_street(outbox, own_words):
    visit = make_appointment(at=soon(3), modality="virtual", video_url="https://video.example/sala")
    [rule] = only_rules(-120, body_template=own_words)
    make_delivery(appointment=visit, rule=rule)
    send()
    [message] = outbox
    assert "videollamada" in message.text and "https://video.example/sala" in message.text
    assert visit.office.name not in message.text
    assert message.is_virtual


def test_nobody_is_asked_to_say_that_they_have_arrived_at_a_video_call(outbox):
    visit = make_appointment(at=soon(3), modality="virtual", video_url="https://video.example/sala")
    [rule] = only_rules(-20, reminder_type="llegada", offset_unit="minutes", body_template="")
    make_delivery(appointment=visit, rule=rule, reminder_type="llegada", offset_minutes=-20)
    send()
    assert outbox[0].buttons == ()
    assert "avísenos" not in outbox[0].text
