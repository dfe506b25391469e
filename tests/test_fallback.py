"""What one channel cannot deliver goes out over the next at once, exactly once; or a person is told."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction

from appointments import clock
from reminders import call_list, dispatch, planner, receipts
from reminders.flight import Flight
from reminders.models import ConsentEvent, ReminderDelivery, ReminderRule
from reminders.receipts import Receipt
from reminders.tick import tick
from tests.engine import settle
from tests.factories import MARK, agree, make_appointment, make_patient, make_user, only_rules, soon
from whatsapp.models import Template

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def channels(settings):
    settings.REMINDER_CHANNELS = ["whatsapp", "email", "in_app"]


def due(*channels: str, **patient):
    """A visit whose reminder of two hours before has just fallen due on these channels."""
    if ReminderRule.objects.count() != 1:
        with transaction.atomic(), connection.cursor() as cursor:
            # A rule acts on moments after it was made: this one stands since long ago.
            cursor.execute("SELECT set_config('amedi.now', '2026-01-01T00:00Z', true)")
            only_rules(-120, channels=list(channels))
    patient.setdefault("email", f"ana.{MARK}@example.com")
    someone = make_patient(**patient)
    agree(someone)
    return make_appointment(at=soon(2) - timedelta(minutes=1), patient=someone)


def told(visit) -> dict[str, tuple[str, str]]:
    return {row.channel: (row.status, row.reason) for row in visit.deliveries.all()}


def refused(sandbox, visit) -> None:
    sandbox.change(error_for={visit.patient.phone: 131026})


def test_a_refusal_for_good_goes_out_by_email_in_the_same_turn(sandbox, postmark):
    visit = due("whatsapp", "email")
    refused(sandbox, visit)
    assert tick() == 2
    assert told(visit)["whatsapp"] == ("failed", "refused")
    mail = visit.deliveries.get(channel="email")
    assert mail.status in ("sent", "delivered")
    assert mail.fallback_of == visit.deliveries.get(channel="whatsapp")
    assert len(postmark.accepted_for(str(mail.pk))) == 1
    assert tick() == 0


def test_a_patient_without_whatsapp_gets_the_email_at_the_planned_moment(sandbox, postmark):
    visit = due("whatsapp", "email", phone="")
    assert tick() == 1
    assert told(visit)["whatsapp"] == ("skipped", "no_contact")
    assert len(postmark.accepted) == 1


def test_a_channel_that_is_switched_off_is_passed_over(sandbox, postmark, settings):
    settings.REMINDER_CHANNELS = ["email", "in_app"]
    visit = due("whatsapp", "email")
    assert tick() == 1
    assert told(visit)["whatsapp"] == ("skipped", "channel_off")
    assert (len(sandbox.accepted), len(postmark.accepted)) == (0, 1)


def test_an_unusable_template_sends_the_email_instead(sandbox, postmark, settings):
    visit = due("whatsapp", "email")
    for name in ("appointment_reminder_2h", "appointment_reminder_2h_confirmed"):
        Template.objects.create(
            business_account_id=settings.WHATSAPP_BUSINESS_ACCOUNT_ID, known_at=clock.now(),
            name=name, language="es", category="UTILITY", status="PAUSED",
        )  # fmt: skip
    assert tick() == 1
    assert told(visit)["whatsapp"] == ("skipped", "template_unavailable")
    assert (len(sandbox.accepted), len(postmark.accepted)) == (0, 1)
    assert tick() == 0


def test_a_failed_receipt_sends_the_email_and_the_visit_is_not_on_the_call_list(sandbox, postmark):
    visit = due("whatsapp", "email")
    sandbox.change(status_error_for={visit.patient.phone: 131026})
    settle(sandbox)
    settle(sandbox)
    assert told(visit)["whatsapp"] == ("failed", "refused")
    assert len(postmark.accepted) == 1
    assert not call_list.unreached(clock.now()).exists()


def test_a_lost_answer_waits_and_only_then_the_email_goes(sandbox, postmark, settings):
    settings.REMINDER_UNKNOWN_WAIT_SECONDS = 600
    visit = due("whatsapp", "email")
    sandbox.change(lose_answer_for={visit.patient.phone}, receipts=())
    tick()
    assert told(visit) == {"whatsapp": ("unknown", "")}
    assert not postmark.accepted
    visit.deliveries.update(next_attempt_at=clock.now())
    assert tick() == 1
    assert told(visit)["whatsapp"] == ("failed", "no_answer")
    assert len(postmark.accepted) == 1
    assert len(sandbox.accepted_for(f"d:{visit.deliveries.get(channel='whatsapp').pk}")) == 1


def test_late_good_news_takes_back_an_email_that_has_not_left(sandbox, postmark):
    visit = due("whatsapp", "email")
    sandbox.change(lose_answer_for={visit.patient.phone}, receipts=())
    tick()
    visit.deliveries.update(next_attempt_at=clock.now())
    dispatch.tidy(now=clock.now())
    planner.plan_marked(now=clock.now())
    assert told(visit) == {"whatsapp": ("failed", "no_answer"), "email": ("pending", "")}
    row = visit.deliveries.get(channel="whatsapp")
    receipts.advance(Receipt(reference=row.reference, message_id="wamid.x", status="sent", at=clock.now()))
    assert tick() == 0
    assert told(visit) == {"whatsapp": ("sent", ""), "email": ("cancelled", "channel_replaced")}
    assert not postmark.accepted


def test_late_good_news_ends_the_retries_of_the_next_channel(sandbox, postmark):
    visit = due("whatsapp", "email")
    sandbox.change(lose_answer_for={visit.patient.phone}, receipts=())
    tick()
    postmark.change(error_for={visit.patient.email.lower(): 10})
    visit.deliveries.update(next_attempt_at=clock.now())
    tick()
    mail = visit.deliveries.get(channel="email")
    assert (mail.status, mail.retry_count) == ("pending", 1)
    row = visit.deliveries.get(channel="whatsapp")
    receipts.advance(Receipt(reference=row.reference, message_id="wamid.x", status="sent", at=clock.now()))
    postmark.change(error_for={})
    visit.deliveries.filter(pk=mail.pk).update(next_attempt_at=clock.now())
    assert tick() == 0
    assert told(visit) == {"whatsapp": ("sent", ""), "email": ("cancelled", "channel_replaced")}
    assert not postmark.accepted


@pytest.fixture
def two_reminders():
    """Of 24 and of 2 hours before, each by WhatsApp and then by mail, made long ago."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('amedi.now', '2026-01-01T00:00Z', true)")
        only_rules(-1440, -120, channels=["whatsapp", "email"])
    patient = make_patient(email=f"ana.{MARK}@example.com")
    agree(patient)
    visit = make_appointment(at=soon(2) - timedelta(minutes=1), patient=patient)
    planner.plan_marked(now=clock.now())
    return visit


def fell(visit, offset: int) -> None:
    """The reminder was called on WhatsApp, and refused."""
    visit.deliveries.filter(offset_minutes=offset).update(
        status="failed", reason="refused", called_at=clock.now()
    )


def test_the_mail_of_the_day_before_gives_way_to_the_reminder_of_two_hours_before(
    two_reminders, sandbox, postmark
):
    """P8: both would leave in one turn and say the same."""
    visit = two_reminders
    fell(visit, -1440)
    tick()
    assert (len(sandbox.accepted), len(postmark.accepted)) == (1, 0)
    assert visit.deliveries.get(channel="email").reason == "superseded"


def test_the_mail_of_the_day_before_does_not_come_after_the_reminder_of_two_hours_before(
    two_reminders, sandbox, postmark
):
    visit = two_reminders
    visit.deliveries.filter(offset_minutes=-1440).update(next_attempt_at=soon(1))
    tick()
    fell(visit, -1440)
    tick()
    assert (len(sandbox.accepted), len(postmark.accepted)) == (1, 0)


def test_where_the_nearer_reminder_failed_as_well_one_mail_goes(two_reminders, sandbox, postmark):
    visit = two_reminders
    fell(visit, -1440)
    fell(visit, -120)
    tick()
    assert (len(sandbox.accepted), len(postmark.accepted)) == (0, 1)
    assert visit.deliveries.get(channel="email", offset_minutes=-120).status in ("sent", "delivered")


def test_a_receipt_that_races_the_deadline_leaves_one_message_or_two_and_never_two_emails(sandbox, postmark):
    """Two workers tidy, plan and send while the receipt of the lost answer comes in."""
    visits = []
    for number in range(6):
        visit = due("whatsapp", "email", email=f"ana.{MARK}{number}@example.com")
        visits.append(visit)
    sandbox.change(lose_answer_for={visit.patient.phone for visit in visits}, receipts=())
    tick()
    unknown = list(ReminderDelivery.objects.filter(status="unknown"))
    assert len(unknown) == 6
    ReminderDelivery.objects.filter(status="unknown").update(next_attempt_at=clock.now())
    start = threading.Barrier(3)

    def worker() -> None:
        try:
            start.wait()
            tick()
            tick()
        finally:
            connections.close_all()

    def receive() -> None:
        try:
            start.wait()
            for row in unknown:
                receipts.advance(
                    Receipt(
                        reference=row.reference, message_id=f"wamid.{row.pk}", status="sent", at=clock.now()
                    )
                )
        finally:
            connections.close_all()

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(worker), pool.submit(worker), pool.submit(receive)]:
            done.result(60)
    tick()
    for row in unknown:
        row.refresh_from_db()
        assert row.status == "sent"
        assert len(sandbox.accepted_for(f"d:{row.pk}")) == 1
    assert all(count == 1 for count in postmark.accepted_per_delivery().values())
    assert not ReminderDelivery.objects.filter(status__in=["pending", "sending", "unknown"]).exists()


def test_two_workers_send_the_next_channel_once(sandbox, postmark):
    visit = due("whatsapp", "email")
    refused(sandbox, visit)
    start = threading.Barrier(2)

    def worker() -> None:
        try:
            start.wait()
            tick()
            tick()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(worker), pool.submit(worker)]:
            done.result(60)
    assert list(postmark.accepted_per_delivery().values()) == [1]
    assert visit.deliveries.count() == 2


def test_a_retry_that_lost_its_contact_goes_on_with_the_next_channel(sandbox, postmark):
    visit = due("whatsapp", "email")
    sandbox.change(error_for={visit.patient.phone: 131016})
    tick()
    assert told(visit) == {"whatsapp": ("pending", "")}
    type(visit.patient).objects.filter(pk=visit.patient_id).update(phone="")
    visit.deliveries.update(next_attempt_at=clock.now())
    tick()
    assert told(visit)["whatsapp"] == ("skipped", "no_contact")
    assert len(postmark.accepted) == 1


def test_with_no_channel_left_the_visit_is_on_the_call_list_with_its_reason(sandbox, postmark):
    visit = due("whatsapp", "email")
    refused(sandbox, visit)
    postmark.change(inactive={visit.patient.email.lower()})
    tick()
    [row] = call_list.unreached(clock.now())
    assert (row.appointment_id, row.channel, row.reason) == (visit.pk, "email", "refused")
    assert tick() == 0


def test_the_inbox_of_the_application_is_the_last_resort_and_counts_as_delivered(sandbox, postmark):
    visit = due("whatsapp", "email", "in_app", user=make_user())
    refused(sandbox, visit)
    postmark.change(inactive={visit.patient.email.lower()})
    tick()
    assert told(visit)["in_app"] == ("delivered", "")
    assert not call_list.unreached(clock.now()).exists()


def test_the_pilot_runs_without_whatsapp_which_is_switched_on_later(sandbox, postmark, settings):
    settings.REMINDER_CHANNELS = ["email", "in_app"]
    first = due("whatsapp", "email")
    tick()
    settings.REMINDER_CHANNELS = ["whatsapp", "email", "in_app"]
    second = make_appointment(at=soon(2) - timedelta(minutes=1), patient=make_patient(email="b@example.com"))
    agree(second.patient)
    tick()
    assert told(first)["email"][0] in ("sent", "delivered")
    assert told(second)["whatsapp"][0] in ("sent", "delivered")
    assert (len(sandbox.accepted), len(postmark.accepted)) == (1, 1)


def test_at_night_the_next_channel_waits_too(sandbox, postmark, settings):
    visit = due("whatsapp", "email")
    sandbox.change(error_for={visit.patient.phone: 131026})
    with Flight(4) as flight:
        dispatch.run(clock=clock.now, flight=flight)
    # The night falls between the refusal and the mail, and lasts until an hour before the visit.
    local = clock.now().astimezone(visit.office.zone).replace(second=0, microsecond=0)
    settings.REMINDER_QUIET_HOURS = (
        (local - timedelta(minutes=1)).time(),
        (local + timedelta(hours=1)).time(),
    )
    tick()
    mail = visit.deliveries.get(channel="email")
    assert (mail.status, mail.called_at) == ("pending", None)
    assert mail.next_attempt_at == local + timedelta(hours=1)
    assert not postmark.accepted


def test_a_refusal_of_whatsapp_itself_is_no_opt_in_for_another_channel(sandbox, postmark):
    """Without a consent WhatsApp is passed over; the mail needs none."""
    visit = due("whatsapp", "email")
    ConsentEvent.objects.create(
        patient=visit.patient, channel="whatsapp", agrees=False, how="desk", evidence="no"
    )
    assert tick() == 1
    assert told(visit)["whatsapp"] == ("skipped", "no_consent")
    assert len(postmark.accepted) == 1
