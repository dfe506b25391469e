"""The planner makes the rows of marked visits equal to what the timeline says."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction

from appointments import booking, clock
from appointments.models import Appointment
from reminders import planner
from reminders.models import ContactOptOut, Mark, NotificationPreference, ReminderDelivery, ReminderRule
from tests.factories import (
    agree,
    break_office,
    caracas,
    make_appointment,
    make_doctor,
    make_office,
    make_patient,
    make_rule,
    only_rules,
)


def planned(visit: Appointment) -> list[tuple[int, str, str, str]]:
    """Offset, channel, status and reason of each row of the present version."""
    visit.refresh_from_db()
    rows = visit.deliveries.filter(sequence=visit.sequence).order_by("offset_minutes", "channel")
    return list(rows.values_list("offset_minutes", "channel", "status", "reason"))


def plan() -> int:
    return planner.plan_marked(now=clock.now())


@pytest.fixture
def visit(set_clock) -> Appointment:
    """Booked on the 10th for the 17th at ten, with R24 and R2; the patient has agreed."""
    set_clock("2026-09-10T09:00")
    only_rules(-1440, -120)
    visit = make_appointment()
    agree(visit.patient)
    plan()
    return visit


def test_each_rule_gets_one_row_at_its_moment(visit):
    assert planned(visit) == [(-1440, "whatsapp", "pending", ""), (-120, "whatsapp", "pending", "")]
    moments = visit.deliveries.order_by("scheduled_for").values_list("scheduled_for", flat=True)
    assert list(moments) == [caracas("2026-09-16T10:00"), caracas("2026-09-17T08:00")]


def test_planning_again_changes_nothing_and_leaves_no_mark(visit):
    before = list(ReminderDelivery.objects.order_by("pk").values())
    Mark.objects.create(subject="everything", changes_rules=True, at=clock.now())
    assert plan() == 1
    assert list(ReminderDelivery.objects.order_by("pk").values()) == before
    assert not Mark.objects.exists()


def test_a_move_cancels_the_rows_of_the_old_version_and_plans_the_new(visit, set_clock):
    set_clock("2026-09-12T09:00")
    booking.reschedule(
        visit, date=caracas("2026-09-18").date(), start_time=caracas("2026-09-18T15:00").time(),
        actor=booking.SYSTEM,
    )  # fmt: skip
    plan()
    assert planned(visit) == [(-1440, "whatsapp", "pending", ""), (-120, "whatsapp", "pending", "")]
    old = visit.deliveries.filter(sequence=0)
    assert set(old.values_list("status", "reason")) == {("cancelled", "moved")}


@pytest.mark.complaint(
    "Reminders of a visit that is off are shown as waiting.",
    about="moves",
    source="onehashai/Cal-ID #1020",
)
@pytest.mark.parametrize(
    ("verb", "reason"),
    [
        (booking.cancel, "visit_cancelled"),
        (booking.mark_no_show, "visit_closed"),
        (booking.complete, "visit_closed"),
    ],
)
def test_what_ends_a_visit_cancels_what_is_pending(visit, verb, reason):
    verb(visit, actor=booking.SYSTEM)
    plan()
    assert {(status, why) for _, _, status, why in planned(visit)} == {("cancelled", reason)}


def test_a_reinstated_visit_is_planned_again(visit, set_clock):
    """Case C10."""
    booking.cancel(visit, actor=booking.SYSTEM)
    plan()
    set_clock("2026-09-14T09:00")
    booking.reinstate(visit, actor=booking.SYSTEM)
    plan()
    assert planned(visit) == [(-1440, "whatsapp", "pending", ""), (-120, "whatsapp", "pending", "")]


def test_a_new_version_too_near_its_moment_is_covered_by_the_notice(visit, set_clock):
    set_clock("2026-09-16T09:40")
    Appointment.objects.filter(pk=visit.pk).update(start_time=caracas("2026-09-17T10:10").time())
    plan()
    assert planned(visit) == [
        (-1440, "whatsapp", "skipped", "covered_by_notice"), (-120, "whatsapp", "pending", ""),
    ]  # fmt: skip


def test_completing_a_visit_plans_what_follows_it(visit, set_clock):
    make_rule(1440, reminder_type="seguimiento")
    set_clock("2026-09-17T11:05")
    booking.complete(visit, actor=booking.SYSTEM)
    plan()
    [row] = visit.deliveries.filter(reminder_type="seguimiento")
    assert (row.status, row.scheduled_for) == ("pending", caracas("2026-09-18T11:05"))
    booking.mark_no_show(visit, actor=booking.SYSTEM)
    plan()
    row.refresh_from_db()
    assert (row.status, row.reason) == ("cancelled", "visit_closed")


def test_without_consent_whatsapp_is_skipped_and_says_so(set_clock):
    set_clock("2026-09-10T09:00")
    only_rules(-1440)
    visit = make_appointment()
    plan()
    assert planned(visit) == [
        (-1440, "", "skipped", "no_channel"),
        (-1440, "whatsapp", "skipped", "no_consent"),
    ]
    agree(visit.patient)
    plan()
    assert planned(visit) == [
        (-1440, "", "cancelled", "channel_replaced"), (-1440, "whatsapp", "pending", ""),
    ]  # fmt: skip
    agree(visit.patient, agrees=False)
    plan()
    assert planned(visit) == [
        (-1440, "", "skipped", "no_channel"),
        (-1440, "whatsapp", "skipped", "no_consent"),
    ]


def test_a_landline_and_a_missing_phone_are_no_contact(set_clock):
    """Cases I2 and I3."""
    set_clock("2026-09-10T09:00")
    only_rules(-1440)
    doctor = make_doctor()
    for hour, phone in enumerate(("+582125551234", "")):
        patient = make_patient(phone=phone, doctor=doctor)
        agree(patient)
        visit = make_appointment(at=f"2026-09-17T1{hour}:00", doctor=doctor, patient=patient)
        plan()
        assert planned(visit) == [
            (-1440, "", "skipped", "no_channel"), (-1440, "whatsapp", "skipped", "no_contact"),
        ]  # fmt: skip


def test_an_opt_out_of_the_number_reaches_every_patient_who_uses_it(visit):
    sister = make_patient(phone=visit.patient.phone, doctor=visit.doctor)
    agree(sister)
    hers = make_appointment(at="2026-09-17T11:00", doctor=visit.doctor, patient=sister)
    plan()
    ContactOptOut.objects.create(address=visit.patient.phone, channel="whatsapp")
    plan()
    for one in (visit, hers):
        reasons = {(channel, why) for _, channel, _, why in planned(one)}
        assert reasons == {("", "opted_out"), ("whatsapp", "opted_out")}


def test_a_choice_of_the_patient_counts_for_its_type_only(visit):
    make_rule(-2880, reminder_type="preparacion", offset_unit="days")
    NotificationPreference.objects.create(
        patient=visit.patient, reminder_type="cita_proxima", channel="whatsapp", is_enabled=False
    )
    plan()
    assert (-2880, "whatsapp", "pending", "") in planned(visit)
    assert (-1440, "whatsapp", "skipped", "opted_out") in planned(visit)


def test_a_channel_that_is_off_is_skipped(visit, settings):
    settings.REMINDER_CHANNELS = ["email"]
    Mark.objects.create(subject="everything", changes_rules=False, at=clock.now())
    plan()
    assert (-1440, "whatsapp", "skipped", "channel_off") in planned(visit)


def test_a_disabled_rule_cancels_and_an_enabled_one_plans_again(visit, set_clock):
    """Case H4."""
    set_clock("2026-09-16T09:00")
    rule = ReminderRule.objects.filter(offset_minutes=-1440)
    rule.update(is_enabled=False)
    plan()
    assert planned(visit)[0] == (-1440, "whatsapp", "cancelled", "rule_disabled")
    set_clock("2026-09-16T09:30")
    rule.update(is_enabled=True)
    plan()
    assert planned(visit)[0] == (-1440, "whatsapp", "pending", "")


@pytest.mark.complaint(
    "A new rule writes to the cases of the past.",
    about="rules",
    source="civicrm/civicrm-core PR#18298, PR#10255",
)
def test_a_rule_enabled_after_its_moment_sends_nothing(visit, set_clock):
    rule = ReminderRule.objects.filter(offset_minutes=-1440)
    rule.update(is_enabled=False)
    plan()
    set_clock("2026-09-16T10:01")
    rule.update(is_enabled=True)
    plan()
    assert planned(visit)[0] == (-1440, "whatsapp", "cancelled", "rule_disabled")


def test_a_changed_rule_moves_what_is_pending_and_loses_nothing(visit, set_clock):
    """Cases H1 and H2."""
    rule = ReminderRule.objects.filter(offset_minutes=-1440)
    row = visit.deliveries.get(offset_minutes=-1440)
    set_clock("2026-09-14T08:00")
    rule.update(offset_minutes=-2880)
    plan()
    row.refresh_from_db()
    assert row.scheduled_for == caracas("2026-09-15T10:00")
    set_clock("2026-09-15T08:00")
    rule.update(offset_minutes=-4320)
    plan()
    row.refresh_from_db()
    assert (row.status, row.scheduled_for) == ("pending", caracas("2026-09-15T10:00"))


def test_a_doctors_own_rule_replaces_the_default_of_its_type(visit):
    """Case H13."""
    own = make_rule(-2880, doctor=visit.doctor)
    plan()
    assert planned(visit) == [
        (-2880, "whatsapp", "pending", ""),
        (-1440, "whatsapp", "cancelled", "rule_replaced"),
        (-120, "whatsapp", "cancelled", "rule_replaced"),
    ]
    own.delete()
    plan()
    assert [row[2:] for row in planned(visit)] == [
        ("cancelled", "rule_deleted"), ("pending", ""), ("pending", ""),
    ]  # fmt: skip


def test_a_doctors_first_rule_whose_moment_is_past_does_not_lose_what_was_promised(visit, set_clock):
    """P12 and H13: the new rule acts on moments ahead; what the default had promised stays until then."""
    set_clock("2026-09-16T09:00")
    make_rule(-2880, doctor=visit.doctor)
    plan()
    assert planned(visit) == [(-1440, "whatsapp", "pending", ""), (-120, "whatsapp", "pending", "")]


def test_what_a_replaced_rule_had_promised_goes_on_to_its_next_channel(visit, set_clock, settings):
    settings.REMINDER_CHANNELS = ["whatsapp", "email"]
    set_clock("2026-09-16T09:00")
    ReminderRule.objects.update(channels=["whatsapp", "email"])
    type(visit.patient).objects.update(email="ana@example.org")
    make_rule(-2880, doctor=visit.doctor)
    plan()
    set_clock("2026-09-16T10:05")
    called = visit.deliveries.filter(offset_minutes=-1440)
    called.update(status="failed", reason="refused", called_at=clock.now())
    plan()
    assert (-1440, "email", "pending", "") in planned(visit)


def test_a_doctor_who_says_do_not_send_ends_what_the_default_had_promised(visit, set_clock):
    set_clock("2026-09-16T09:00")
    make_rule(-2880, doctor=visit.doctor, channels=[])
    plan()
    assert {row[2:] for row in planned(visit)} == {("cancelled", "rule_replaced")}


def test_a_rule_that_says_do_not_send_closes_with_that_reason(visit):
    make_rule(-1440, doctor=visit.doctor, channels=[])
    plan()
    assert (-1440, "", "skipped", "do_not_send") in planned(visit)


@pytest.mark.complaint(
    "A copied rule sends again what the first has sent.",
    about="rules",
    source="pretix/pretix PR#3181",
)
def test_a_row_that_was_called_is_never_planned_again_also_under_a_copied_rule(visit):
    row = visit.deliveries.get(offset_minutes=-1440)
    ReminderDelivery.objects.filter(pk=row.pk).update(status="sent", called_at=clock.now())
    make_rule(-1440, doctor=visit.doctor)
    plan()
    current = visit.deliveries.filter(offset_minutes=-1440)
    assert [(one.pk, one.status) for one in current] == [(row.pk, "sent")]


def test_planning_late_gives_the_rows_of_planning_on_time(set_clock):
    """P17: the planner was down from the booking until after R24's moment."""
    set_clock("2026-09-10T09:00")
    only_rules(-1440, -120)
    visit = make_appointment()
    agree(visit.patient)
    set_clock("2026-09-16T15:00")
    plan()
    assert planned(visit) == [(-1440, "whatsapp", "pending", ""), (-120, "whatsapp", "pending", "")]
    assert visit.deliveries.order_by("scheduled_for")[0].scheduled_for == caracas("2026-09-16T10:00")


def test_a_corrected_zone_moves_the_moments_within_the_version(visit):
    office = visit.office
    office.time_zone = "America/Santiago"
    office.save()
    plan()
    visit.refresh_from_db()
    assert visit.sequence == 0
    assert visit.deliveries.get(offset_minutes=-120).scheduled_for == visit.starts_at - timedelta(hours=2)


@pytest.mark.complaint(
    "One patient without a phone number, and nobody after them is reminded.",
    about="twice",
    source="Bahmni/openmrs-module-appointments, read in its code",
)
def test_one_visit_that_cannot_be_planned_does_not_stop_its_neighbours(visit):
    broken = make_appointment(at="2026-09-17T12:00")
    break_office(broken)
    other = make_appointment(at="2026-09-17T13:00", doctor=visit.doctor)
    assert plan() >= 1
    assert other.deliveries.exists()
    left = Mark.objects.all()
    assert {(mark.subject_id, mark.tries) for mark in left} == {(str(broken.pk), 1)}
    assert all(mark.not_before > clock.now() for mark in left)


def test_a_planner_fault_never_costs_the_booking(db, settings, django_capture_on_commit_callbacks):
    settings.REMINDER_QUIET_HOURS = ("nine", "seven")
    with django_capture_on_commit_callbacks(execute=True):
        visit = make_appointment(at="2030-09-17T10:00")
    assert Appointment.objects.filter(pk=visit.pk).exists()
    assert not visit.deliveries.exists()
    assert Mark.objects.filter(subject_id=str(visit.pk)).exists()


def test_a_patients_zone_that_does_not_exist_is_as_good_as_none(set_clock):
    set_clock("2026-09-10T09:00")
    only_rules(-1440)
    visit = make_appointment(patient=make_patient(time_zone="Nowhere/X"))
    agree(visit.patient)
    plan()
    assert planned(visit) == [(-1440, "whatsapp", "pending", "")]


def test_a_rule_that_comes_to_hold_after_its_moment_stays_silent_also_when_the_visit_changes_later(
    visit, set_clock
):
    """P12: the doctor's own rule goes, and the default's moment is past."""
    own = make_rule(-60, doctor=visit.doctor)
    plan()
    set_clock("2026-09-16T14:00")
    own.delete()
    plan()
    set_clock("2026-09-16T14:05")
    type(visit.patient).objects.update(email="ana@example.org")
    plan()
    assert planned(visit)[0] == (-1440, "whatsapp", "cancelled", "rule_replaced")
    assert (-120, "whatsapp", "pending", "") in planned(visit)


def test_an_edit_during_an_outage_of_the_planner_does_not_lose_what_was_due_before_it(set_clock):
    """P17: booked, then R24 becomes R48 after R48's moment, and only then the planner runs."""
    set_clock("2026-09-10T09:00")
    [rule] = only_rules(-1440)
    visit = make_appointment()
    agree(visit.patient)
    set_clock("2026-09-15T12:00")
    ReminderRule.objects.filter(pk=rule.pk).update(offset_minutes=-2880)
    set_clock("2026-09-15T13:00")
    plan()
    assert planned(visit) == [(-2880, "whatsapp", "pending", "")]


def test_an_edit_of_a_rule_plans_each_visit_once_and_new_words_plan_none(visit):
    rules = ReminderRule.objects.filter(offset_minutes=-120)
    rules.update(body_template="Hola {nombre}, su cita es {fecha}.")
    assert plan() == 0
    rules.update(offset_minutes=-180)
    assert plan() == 1


def test_a_booking_is_planned_right_after_its_commit(db, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        visit = make_appointment(at="2030-09-17T10:00")
    assert visit.deliveries.exists()


@pytest.mark.django_db(transaction=True)
def test_a_mark_written_while_the_planner_works_is_not_lost():
    visit = make_appointment(at="2030-09-17T10:00")
    Mark.objects.create(subject="appointment", subject_id=str(visit.pk), at=clock.now())
    done = threading.Event()

    def change_meanwhile() -> None:
        Appointment.objects.filter(pk=visit.pk).update(booked_at=None)
        connections.close_all()
        done.set()

    now = clock.now()
    with transaction.atomic():
        taken = list(Mark.objects.select_for_update(skip_locked=True))
        assert taken
        thread = threading.Thread(target=change_meanwhile)
        thread.start()
        assert done.wait(10)
        thread.join()
        Mark.objects.filter(pk__in=[mark.pk for mark in taken]).delete()
    assert Mark.objects.filter(subject_id=str(visit.pk)).count() == 1
    assert planner.plan_marked(now=now) == 1


@pytest.mark.django_db(transaction=True)
def test_a_visit_that_somebody_holds_keeps_its_mark_and_costs_no_wait():
    visit = make_appointment(at="2030-09-17T10:00", office=make_office())
    Mark.objects.all().delete()
    Mark.objects.create(subject="appointment", subject_id=str(visit.pk), at=clock.now())
    results: list[int] = []

    def plan_beside() -> None:
        results.append(planner.plan_marked(now=clock.now()))
        connections.close_all()

    with transaction.atomic():
        Appointment.objects.select_for_update().get(pk=visit.pk)
        thread = threading.Thread(target=plan_beside)
        thread.start()
        thread.join(10)
        assert results == [0]
    assert Mark.objects.count() == 1
    assert planner.plan_marked(now=clock.now()) == 1
    assert connection.is_usable()
