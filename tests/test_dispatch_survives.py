"""What goes wrong beside a call does not cost the call its outcome."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.db.models import Model

from appointments import clock
from appointments.models import Appointment, Patient
from reminders import dispatch, receipts
from reminders.channels.base import ChannelError, Message, Receipt, Undeliverable
from reminders.flight import Call, Flight
from reminders.line import Line
from reminders.models import DeliveryAttempt, ReminderDelivery, Reply
from tests.deadlocks import SHUTDOWN, undone
from tests.engine import wait_for
from tests.factories import make_appointment, make_delivery, make_doctor, soon

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def outbox(settings):
    settings.CHANNEL_BACKENDS = {"whatsapp": {"BACKEND": "reminders.channels.locmem.LocmemChannel"}}
    settings.REMINDER_QUIET_HOURS = (settings.REMINDER_QUIET_HOURS[0],) * 2


def test_calls_in_the_air_are_recorded_when_the_database_fails_meanwhile():
    row = make_delivery()
    # The second reading of the clock, after the take-off, meets a database that is gone.
    answers = iter([False, True])

    def failing_clock():
        if next(answers, False):
            raise OperationalError
        return clock.now()

    with Flight(4) as flight, pytest.raises(OperationalError):
        dispatch.run(clock=failing_clock, flight=flight)
    row.refresh_from_db()
    assert (row.status, bool(row.message_id)) == ("sent", True)


def test_locks_that_cross_ours_cost_one_turn_and_nothing_else():
    """The desk holds the patient and then wants the visit, as the last look does the other way round."""
    visit = make_appointment(at=soon(), doctor=make_doctor())
    row = make_delivery(appointment=visit)
    [claimed] = Line(ReminderDelivery.objects.all()).claim(1, now=clock.now())
    outcomes: list[object] = []

    def look() -> None:
        outcomes.append(dispatch._look(dispatch.last_look.deliveries, [claimed], clock.now()))
        connections.close_all()

    def is_waiting() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            return cursor.fetchone()[0] > 0

    thread = threading.Thread(target=look)
    try:
        with transaction.atomic():
            Patient.objects.select_for_update().get(pk=visit.patient_id)
            thread.start()
            wait_for(is_waiting)
            Appointment.objects.select_for_update().get(pk=visit.pk)
    except OperationalError:
        outcomes.append("the desk gave way")
    thread.join(20)
    row.refresh_from_db()
    if [] in outcomes:
        assert (row.status, row.called_at) == ("sending", None)
    else:
        assert row.called_at is not None
    assert len(outcomes) in (1, 2)


def called(count: int) -> list[Call]:
    for _ in range(count):
        make_delivery()
    return dispatch.prepare(count, now=clock.now())


def statuses_of(calls: list[Call]) -> list[str]:
    rows = ReminderDelivery.objects.in_bulk([call.row.pk for call in calls])
    return [rows[call.row.pk].status for call in calls]


@pytest.mark.parametrize("detail", ["user\x00 unknown", "half an emoji \ud83d", "x" * 5000])
def test_a_refusal_in_words_that_cannot_be_stored_is_recorded(detail):
    calls = called(3)
    odd = Undeliverable("c" * 60 + "\x00", detail)
    outcomes = [ChannelError("131016"), odd, Receipt(message_id="wamid.three")]
    dispatch.record(list(zip(calls, outcomes, strict=True)), now=clock.now())
    assert statuses_of(calls) == ["pending", "failed", "sent"]
    row = ReminderDelivery.objects.get(pk=calls[1].row.pk)
    assert (row.error_code, row.error_message[:4]) == ("c" * 40, detail[:4])
    attempt = row.attempts.get()
    assert (attempt.error_code, attempt.error_message) == (row.error_code, row.error_message)


def test_what_whatsapp_calls_a_patient_may_be_odd_and_costs_nobody_the_outcome():
    calls = called(2)
    odd = Receipt(message_id="wamid.one", wa_id="5" * 200, user_id="VE.\x00")
    dispatch.record([(calls[0], odd), (calls[1], ChannelError("131016"))], now=clock.now())
    assert statuses_of(calls) == ["sent", "pending"]


def test_an_outcome_that_cannot_be_written_is_left_to_the_lease_and_costs_no_neighbour_its_own(
    no_patient_in_the_logs,
):
    calls = called(3)
    broken = Undeliverable("131026")
    broken.code = "longer than any column that was made for it"
    outcomes = [Undeliverable("131026"), broken, ChannelError("131016")]
    dispatch.record(list(zip(calls, outcomes, strict=True)), now=clock.now())
    assert statuses_of(calls) == ["failed", "sending", "pending"]
    told = f"call ref={calls[1].message.reference} not recorded kind=DataError"
    assert any(told in line for line in no_patient_in_the_logs.lines)
    dispatch.tidy(now=clock.now() + timedelta(hours=1))
    assert statuses_of(calls)[1] == "unknown"


def answered(row: ReminderDelivery) -> Reply:
    """An answer to the patient of a reminder, whose call is in the air too."""
    reply = Reply.objects.create(
        appointment=row.appointment, patient=row.patient, channel="whatsapp", address=row.patient.phone,
        says=Reply.Says.CONFIRMED, cause="wamid.tap", scheduled_for=clock.now(),
        next_attempt_at=clock.now(), useful_until=soon(), status="sending", attempt=1, called_at=clock.now(),
    )  # fmt: skip
    DeliveryAttempt.objects.create(
        reply=reply, number=1, claimed_at=clock.now(), called_at=clock.now(), address=reply.address
    )
    return reply


def waits_for(work: Callable[[], object], row: ReminderDelivery, others: list[Model]) -> None:
    """Hold the reminder until ``work`` waits for it; what lies behind it must still be free then."""

    def in_a_connection_of_its_own() -> None:
        work()
        connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            ReminderDelivery.objects.select_for_update().get(pk=row.pk)
            waiting = pool.submit(in_a_connection_of_its_own)
            wait_for(is_somebody_waiting)
            for other in others:
                type(other)._default_manager.select_for_update(nowait=True).get(pk=other.pk)
        waiting.result(20)


def is_somebody_waiting() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def test_acceptances_wait_for_reminders_first_as_receipts_do():
    [call] = called(1)
    reply = answered(call.row)
    of_reply = DeliveryAttempt.objects.get(reply=reply)
    of_row = DeliveryAttempt.objects.get(pk=call.attempt_id)
    message = Message(to=reply.address, reference=reply.reference, kind="reply", text="x")
    both = [
        (Call(row=reply, message=message, payload={}, attempt_id=of_reply.pk), Receipt(message_id="wamid.r")),
        (call, Receipt(message_id="wamid.d")),
    ]
    waits_for(lambda: dispatch.record(both, now=clock.now()), call.row, [reply, of_reply, of_row])
    reply.refresh_from_db()
    assert (statuses_of([call]), reply.status) == (["sent"], "sent")


def test_a_refusal_waits_for_its_row_before_the_ledger():
    [call] = called(1)
    of_row = DeliveryAttempt.objects.get(pk=call.attempt_id)
    waits_for(lambda: dispatch.record([(call, ChannelError("131016"))], now=clock.now()), call.row, [of_row])
    assert statuses_of([call]) == ["pending"]


def test_receipts_wait_for_reminders_first_and_then_for_answers_and_the_ledger():
    [call] = called(1)
    reply = answered(call.row)
    of_reply = DeliveryAttempt.objects.get(reply=reply)
    of_row = DeliveryAttempt.objects.get(pk=call.attempt_id)
    told = [
        receipts.Receipt(reference=f"r:{reply.pk}:1", message_id="wamid.r", status="sent", at=clock.now()),
        receipts.Receipt(
            reference=call.message.reference, message_id="wamid.d", status="sent", at=clock.now()
        ),
    ]
    waits_for(lambda: receipts.advance_all(told), call.row, [reply, of_reply, of_row])
    assert statuses_of([call]) == ["sent"]
    of_row.refresh_from_db()
    of_reply.refresh_from_db()
    assert (of_reply.message_id, of_row.message_id) == ("wamid.r", "wamid.d")


def test_a_receipt_does_not_wait_for_its_patient():
    """The last look holds patients, and then wants rows."""
    [call] = called(1)
    told = receipts.Receipt(
        reference=call.message.reference, message_id="wamid.d", status="delivered", at=clock.now(),
        wa_id="584120000009",
    )  # fmt: skip
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        Patient.objects.select_for_update(no_key=True).get(pk=call.row.patient_id)
        pool.submit(lambda: (receipts.advance(told), connections.close_all())).result(20)
    assert statuses_of([call]) == ["delivered"]
    receipts.advance(told)
    assert Patient.objects.get(pk=call.row.patient_id).wa_id == "584120000009"


@pytest.mark.parametrize(("times", "sent"), [(1, 3), (2, 2)])
def test_acceptances_that_a_deadlock_undid_are_written_one_by_one(times, sent):
    calls = called(3)
    landed = [(call, Receipt(message_id=f"wamid.{place}")) for place, call in enumerate(calls)]
    with undone("reminders_deliveryattempt", times=times):
        dispatch.record(landed, now=clock.now())
    assert sorted(statuses_of(calls)) == ["sending"] * (3 - sent) + ["sent"] * sent


def test_a_database_that_is_lost_ends_the_recording():
    calls = called(2)
    landed = [(call, ChannelError("131016")) for call in calls]
    with undone("reminders_deliveryattempt", times=1, code=SHUTDOWN), pytest.raises(OperationalError):
        dispatch.record(landed, now=clock.now())
