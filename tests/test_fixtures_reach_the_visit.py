"""Meta's bodies, from the webhook to the visit and the row that they are about.

The payload files hold references and payloads of nobody's grammar: each test
puts ours in their place. Every body is posted twice.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.test import Client

from appointments import clock
from appointments.models import Appointment
from reminders import dispatch, taps
from reminders.channels.base import Message, Receipt
from reminders.flight import Call
from reminders.models import ReminderDelivery, Reply
from tests.factories import make_appointment, make_delivery, make_doctor, make_patient, soon
from whatsapp import inbox
from whatsapp.models import InboundMessage, StatusEvent

pytestmark = pytest.mark.django_db
BEFORE_THE_FIXTURES = datetime(2026, 12, 1, 12, tzinfo=UTC)
PAYLOADS = Path(__file__).parent / "payloads"
SECRET = b"test-app-secret-not-real"
PHONES = {
    "ana": "+584120000001", "beto": "+584240000002", "carla": "+584140000003", "dario": "+584160000004",
    "elena": "+584260000005", "felix": "+584220000006",
}  # fmt: skip


def ours(number: int) -> str:
    """The wamid of one of our messages in the payload files."""
    return f"wamid.TESTOUT{number:021d}AA=="


def send(body: bytes) -> int:
    """Post signed bytes as Meta does, work them off, and give the answer's status."""
    signature = f"sha256={hmac.new(SECRET, body, hashlib.sha256).hexdigest()}"
    response = Client().post(
        "/webhooks/whatsapp/", data=body, content_type="application/json",
        headers={"X-Hub-Signature-256": signature},
    )  # fmt: skip
    inbox.work_off(now=clock.now())
    return response.status_code


def post(name: str, *replacements: tuple[str, str]) -> None:
    """Post a payload file through the real view and work it off, twice."""
    body = (PAYLOADS / f"{name}.json").read_text()
    for old, new in replacements:
        assert old in body
        body = body.replace(old, new)
    for _ in range(2):
        assert send(body.encode()) == 200


def in_the_air(who: str = "ana", *, visit: Appointment | None = None, hours: float = 3) -> ReminderDelivery:
    """A reminder to one of the cast whose call was written down and has not come back."""
    doctor = make_doctor()
    visit = visit or make_appointment(
        at=soon(hours), doctor=doctor, patient=make_patient(phone=PHONES[who], doctor=doctor)
    )
    row = make_delivery(appointment=visit)
    [call] = dispatch.prepare(1, now=clock.now())
    assert call.row.pk == row.pk
    row.refresh_from_db()
    return row


def accepted(row: ReminderDelivery, wamid: str) -> ReminderDelivery:
    """The same after Meta's answer was recorded, shortly before what the fixtures tell."""
    message = Message(to=row.address, reference=row.reference, kind="x", text="x")
    call = Call(row=row, message=message, payload={}, attempt_id=row.attempts.get().pk)
    dispatch.record([(call, Receipt(message_id=wamid))], now=BEFORE_THE_FIXTURES)
    row.refresh_from_db()
    return row


def refreshed(row: ReminderDelivery) -> ReminderDelivery:
    row.refresh_from_db()
    return row


def tap_on(row: ReminderDelivery, word: taps.Word = taps.Word.CONFIRM) -> str:
    return taps.payload(word, row.appointment)


# --- Taps -----------------------------------------------------------------------


def test_in_03_a_template_tap_confirms_once():
    row = accepted(in_the_air(), ours(1))
    post("in-03-button-template-tap", ("v1.confirm.apt_7Q2M9K4D.s3kQ", tap_on(row)))
    visit = Appointment.objects.get(pk=row.appointment_id)
    assert visit.status == "confirmed"
    assert visit.history.count() == 2
    answer = Reply.objects.get()
    assert (answer.says, answer.address) == ("confirmed", PHONES["ana"])


def test_in_03_also_counts_when_the_answer_of_the_call_never_came():
    row = in_the_air()
    post("in-03-button-template-tap", ("v1.confirm.apt_7Q2M9K4D.s3kQ", tap_on(row)))
    assert Appointment.objects.get(pk=row.appointment_id).status == "confirmed"


def test_in_03_from_a_number_to_which_we_did_not_write_changes_nothing():
    row = accepted(in_the_air("beto"), ours(1))
    post("in-03-button-template-tap", ("v1.confirm.apt_7Q2M9K4D.s3kQ", tap_on(row)))
    assert Appointment.objects.get(pk=row.appointment_id).status == "scheduled"
    assert not Reply.objects.exists()


def test_in_05_a_tap_that_brings_only_its_label_is_read_by_the_message_it_stood_under():
    first = accepted(in_the_air("beto"), ours(1))
    second = accepted(in_the_air("beto", hours=30), ours(2))
    post("in-05-button-payload-is-label")
    assert Appointment.objects.get(pk=second.appointment_id).status == "confirmed"
    assert Appointment.objects.get(pk=first.appointment_id).status == "scheduled"


def test_in_05_never_guesses_a_visit_when_the_message_is_unknown():
    row = accepted(in_the_air("beto"), ours(9))
    post("in-05-button-payload-is-label")
    assert Appointment.objects.get(pk=row.appointment_id).status == "scheduled"
    assert not Reply.objects.exists()


def test_in_06_a_session_button_asks_to_cancel_and_is_answered_without_cancelling_yet():
    row = accepted(in_the_air(), ours(3))
    post("in-06-interactive-button-reply", ("v1.cancel.apt_7Q2M9K4D.m20a", tap_on(row, taps.Word.CANCEL)))
    assert Appointment.objects.get(pk=row.appointment_id).status == "scheduled"
    assert Reply.objects.get().says == "call_us"


def test_a_session_button_confirms_like_a_templates():
    row = accepted(in_the_air(), ours(3))
    post("in-06-interactive-button-reply", ("v1.cancel.apt_7Q2M9K4D.m20a", tap_on(row)))
    assert Appointment.objects.get(pk=row.appointment_id).status == "confirmed"


def test_in_15_a_user_without_a_number_confirms_by_the_id_that_a_receipt_made_known():
    row = accepted(in_the_air("felix"), ours(6))
    type(row.patient).objects.filter(pk=row.patient_id).update(bsuid="VE.100000000000000006")
    post("in-15-bsuid-only-button", ("v1.confirm.apt_5H8T1B6W.q0Zr", tap_on(row)))
    assert Appointment.objects.get(pk=row.appointment_id).status == "confirmed"
    assert InboundMessage.objects.get().from_phone == ""
    assert Reply.objects.get().address == "VE.100000000000000006"


def test_in_15_a_user_without_a_number_confirms_under_the_message_that_we_sent_them():
    row = accepted(in_the_air("felix"), ours(6))
    post("in-15-bsuid-only-button", ("v1.confirm.apt_5H8T1B6W.q0Zr", tap_on(row)))
    assert Appointment.objects.get(pk=row.appointment_id).status == "confirmed"


def test_in_15_an_id_that_we_have_never_seen_confirms_nothing_elsewhere():
    row = accepted(in_the_air("felix"), ours(7))
    post("in-15-bsuid-only-button", ("v1.confirm.apt_5H8T1B6W.q0Zr", tap_on(row)))
    assert Appointment.objects.get(pk=row.appointment_id).status == "scheduled"


def test_in_10_a_thumb_up_is_no_confirmation():
    row = accepted(in_the_air(), ours(1))
    post("in-10-reaction-add-remove")
    assert Appointment.objects.get(pk=row.appointment_id).status == "scheduled"
    assert not Reply.objects.exists()


def test_in_18_everything_in_a_mixed_body_is_handled():
    ana = accepted(in_the_air("ana"), ours(1))
    beto = accepted(in_the_air("beto", hours=5), ours(7))
    carla = accepted(in_the_air("carla", hours=7), ours(8))
    dario = accepted(in_the_air("dario", hours=9), ours(9))
    post("in-18-many-entries-mixed", ("v1.confirm.apt_2C7R5X9N.t6Lw", tap_on(beto)))
    assert [refreshed(row).status for row in (ana, carla, dario)] == ["delivered", "sent", "read"]
    assert Appointment.objects.get(pk=beto.appointment_id).status == "confirmed"


def test_bad_13_hostile_payloads_do_nothing():
    row = accepted(in_the_air(), ours(1))
    forged = tap_on(row)[:-3] + "AAA"
    post("bad-13-hostile-payload-strings", ("v1.confirm.apt_7Q2M9K4D.AAAA", forged))
    assert Appointment.objects.get(pk=row.appointment_id).status == "scheduled"
    assert not Reply.objects.exists()


def test_a_payload_for_another_version_or_visit_cannot_be_made_from_a_real_one():
    row = accepted(in_the_air(), ours(1))
    signature = tap_on(row).rpartition(":")[2]
    other = f"CONFIRM_{row.appointment_id.hex}_{row.sequence + 1}:{signature}"
    assert taps.read(tap_on(row)) is not None
    assert taps.read(other) is None


def test_bad_07_a_group_message_is_no_private_answer():
    row = accepted(in_the_air(), ours(1))
    body = json.loads((PAYLOADS / "bad-07-unknown-type-and-extra-fields.json").read_text())
    message = body["entry"][0]["changes"][0]["value"]["messages"][1]
    message |= {"type": "button", "button": {"payload": tap_on(row), "text": "Confirmar"}}
    assert send(json.dumps(body).encode()) == 200
    assert Appointment.objects.get(pk=row.appointment_id).status == "scheduled"


# --- Receipts: each also before the answer of the send is recorded -----------------


def test_st_01_sent_is_sent_and_the_conversation_is_ignored():
    row = accepted(in_the_air(), ours(1))
    post("st-01-sent-v23-conversation")
    assert refreshed(row).status == "sent"


@pytest.mark.parametrize("is_recorded", [True, False])
def test_st_02_is_found_by_our_reference_even_without_the_providers_id(is_recorded):
    row = in_the_air("beto")
    if is_recorded:
        accepted(row, ours(2))
    post("st-02-sent-then-delivered-opaque", ("att_01TESTATTEMPT0000000002", row.reference))
    row = refreshed(row)
    assert (row.status, row.message_id) == ("delivered", ours(2))
    assert row.sent_at < row.delivered_at
    row.patient.refresh_from_db()
    assert row.patient.bsuid == "VE.100000000000000002"


def test_st_03_read_counts_as_delivered():
    row = accepted(in_the_air("carla"), ours(3))
    post("st-03-read-without-delivered")
    assert refreshed(row).status == "read"


def test_st_03_before_the_send_is_recorded_waits_and_is_applied_then():
    row = in_the_air("carla")
    post("st-03-read-without-delivered")
    assert refreshed(row).status == "sending"
    assert StatusEvent.objects.get().settled_at is None
    accepted(row, ours(3))
    inbox.settle_parked(now=clock.now() + timedelta(minutes=1))
    assert refreshed(row).status == "read"
    assert StatusEvent.objects.get().settled_at is not None


@pytest.mark.parametrize("is_recorded", [True, False])
def test_st_04_failed_ends_the_row_with_its_code_and_no_retry(is_recorded):
    row = in_the_air("dario")
    if is_recorded:
        accepted(row, ours(4))
    post("st-04-failed-131026", ("att_01TESTATTEMPT0000000004", row.reference))
    row = refreshed(row)
    assert (row.status, row.reason, row.error_code) == ("failed", "refused", "131026")
    assert dispatch.prepare(5, now=clock.now()) == []


def test_st_08_an_unknown_message_is_parked_and_kept():
    row = accepted(in_the_air(), ours(1))
    post("st-08-unknown-wamid")
    event = StatusEvent.objects.get()
    assert (event.settled_at, refreshed(row).status) == (None, "sent")
    inbox.settle_parked(now=clock.now())
    assert StatusEvent.objects.count() == 1


def test_st_10_played_counts_as_read_and_new_words_move_nothing():
    played, warned = accepted(in_the_air("ana"), ours(12)), accepted(in_the_air("beto", hours=5), ours(13))
    post("st-10-unknown-status-values")
    assert [refreshed(row).status for row in (played, warned)] == ["read", "sent"]
    assert StatusEvent.objects.count() == 4


def test_bad_05_numbers_written_as_text_work():
    row = accepted(in_the_air("ana"), ours(22))
    post("bad-05-numbers-as-strings")
    row = refreshed(row)
    assert (row.status, row.error_code) == ("failed", "131026")


def test_acct_09_a_wish_about_marketing_stops_no_reminder():
    make_delivery(appointment=make_appointment(at=soon(), patient=make_patient(phone=PHONES["ana"])))
    post("acct-09-user-preferences")
    assert len(dispatch.prepare(5, now=clock.now())) == 1
