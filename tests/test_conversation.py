"""What follows from a tap, for each state that the visit may be in meanwhile."""

from __future__ import annotations

from datetime import timedelta

import pytest

from appointments import booking, clock
from appointments.models import Appointment, Office, Patient
from reminders import conversation, dispatch, taps
from reminders.models import ReminderDelivery, Reply
from reminders.taps import Word
from tests.factories import make_delivery, make_patient

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent() -> ReminderDelivery:
    """A reminder whose attempt is in the ledger."""
    row = make_delivery()
    assert len(dispatch.prepare(1, now=clock.now())) == 1
    row.refresh_from_db()
    return row


def tap(row: ReminderDelivery, word: Word = Word.CONFIRM, **fields: object) -> Reply | None:
    values = {
        "message_id": "wamid.tap",
        "phone": row.address.removeprefix("+"),
        "user_id": "",
        "payload": taps.payload(word, row.appointment),
        "in_answer_to": "",
        "at": clock.now(),
    }
    return conversation.tapped(conversation.Tapped(**values | fields), now=clock.now())


def status(row: ReminderDelivery) -> str:
    return Appointment.objects.get(pk=row.appointment_id).status


def change(row: ReminderDelivery, **fields: object) -> None:
    Appointment.objects.filter(pk=row.appointment_id).update(**fields)


@pytest.mark.parametrize(
    ("before", "word", "says", "after"),
    [
        ("scheduled", Word.CONFIRM, "confirmed", "confirmed"),
        ("confirmed", Word.CONFIRM, "already_confirmed", "confirmed"),
        ("checked_in", Word.CONFIRM, "already_confirmed", "checked_in"),
        ("in_consultation", Word.CONFIRM, "already_confirmed", "in_consultation"),
        ("completed", Word.CONFIRM, "over", "completed"),
        ("no_show", Word.CONFIRM, "over", "no_show"),
        ("cancelled", Word.CONFIRM, "cancelled", "cancelled"),
        ("scheduled", Word.RESCHEDULE, "call_us", "scheduled"),
        ("confirmed", Word.CANCEL, "call_us", "confirmed"),
        ("cancelled", Word.CANCEL, "cancelled", "cancelled"),
        ("completed", Word.RESCHEDULE, "over", "completed"),
        ("confirmed", Word.ARRIVED, "announce", "confirmed"),
    ],
)
def test_each_word_in_each_state_has_its_answer(sent, before, word, says, after):
    change(sent, status=before)
    reply = tap(sent, word)
    assert reply is not None
    assert (reply.says, status(sent)) == (says, after)


def test_the_same_message_twice_is_answered_once(sent):
    assert tap(sent) is not None
    assert tap(sent) is None
    assert Reply.objects.count() == 1


def test_a_button_of_an_older_version_confirms_nothing(sent):
    payload = taps.payload(Word.CONFIRM, sent.appointment)
    change(sent, date=sent.appointment.date + timedelta(days=2))
    reply = tap(sent, payload=payload)
    assert reply is not None
    assert (reply.says, status(sent)) == ("moved", "scheduled")


def test_a_visit_that_went_to_another_patient_is_not_told_to_the_former_one(sent):
    change(sent, patient=make_patient())
    reply = tap(sent)
    assert reply is not None
    assert (reply.says, status(sent)) == ("not_yours", "scheduled")
    [call] = dispatch.prepare(1, now=clock.now())
    newcomer = Appointment.objects.get(pk=sent.appointment_id).patient
    assert newcomer.full_name not in call.message.text
    assert call.message.to == sent.address


def test_a_visit_that_has_ended_by_the_clock_is_over(sent):
    long_ago = clock.now() - timedelta(days=2)
    change(sent, date=long_ago.date())
    reply = tap(sent, payload=taps.payload(Word.CONFIRM, Appointment.objects.get(pk=sent.appointment_id)))
    assert reply is not None
    assert (reply.says, status(sent)) == ("over", "scheduled")


def test_a_stranger_with_a_copied_button_changes_nothing_and_hears_nothing(sent):
    assert tap(sent, phone="584125559998") is None
    assert tap(sent, phone="", user_id="VE.999") is None
    assert status(sent) == "scheduled"


def test_a_visit_of_which_nobody_ever_heard_is_no_fault(sent):
    row = make_delivery()
    payload = taps.payload(Word.CONFIRM, row.appointment)
    assert tap(sent, payload=payload) is None


def test_an_answer_is_of_use_for_a_day_after_the_tap(sent):
    at = clock.now() - timedelta(hours=23)
    reply = tap(sent, at=at)
    assert reply is not None
    assert reply.useful_until == at + timedelta(hours=24)


def test_an_answer_goes_out_before_reminders_that_are_due_longer(sent):
    booking.confirm(make_delivery().appointment, actor=booking.SYSTEM)
    tap(sent)
    [first] = dispatch.prepare(1, now=clock.now())
    assert isinstance(first.row, Reply)
    assert "quedó confirmada" in first.message.text
    assert first.message.in_answer_to == "wamid.tap"


def move(visit: Appointment) -> None:
    later = visit.date + timedelta(days=3)
    booking.reschedule(visit, date=later, start_time=visit.start_time, actor=booking.SYSTEM)


def hand_over(visit: Appointment) -> None:
    Appointment.objects.filter(pk=visit.pk).update(patient=make_patient())


@pytest.mark.parametrize(
    ("meanwhile", "says"),
    [
        (move, "moved"),
        (lambda visit: booking.cancel(visit, actor=booking.SYSTEM), "cancelled"),
        (lambda visit: booking.complete(visit, actor=booking.SYSTEM), "over"),
        (hand_over, "not_yours"),
        (lambda visit: None, "confirmed"),
    ],
    ids=["moved", "cancelled", "over", "another's", "nothing"],
)
def test_an_answer_that_waited_says_what_is_true_when_it_leaves(sent, meanwhile, says):
    tap(sent)
    visit = Appointment.objects.get(pk=sent.appointment_id)
    meanwhile(visit)
    [call] = dispatch.prepare(1, now=clock.now())
    reply = Reply.objects.get()
    assert reply.says == says
    visit.refresh_from_db()
    if says == "not_yours":
        assert visit.patient.full_name not in call.message.text
    assert [button.title for button in call.message.buttons] == (["Confirmar"] if says == "moved" else [])


def test_an_answer_has_no_holes_where_the_office_has_no_words(sent):
    Office.objects.update(name="", phone="")
    Patient.objects.update(full_name="\u200b \n")
    tap(sent)
    [call] = dispatch.prepare(1, now=clock.now())
    assert "La cita de paciente con" in call.message.text
    assert "en el consultorio." in call.message.text
