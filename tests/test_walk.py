"""One appointment from the desk to the patient's answer, over real HTTP.

The table "One appointment through it" of the docs, row by row.
"""

from __future__ import annotations

import pytest
from django_q.models import OrmQ

from appointments import booking, clock
from appointments.models import AppointmentHistory
from reminders import dispatch
from reminders.flight import Flight
from reminders.models import Mark, Reply
from reminders.planner import plan_marked
from tests.engine import due_visit, settle
from whatsapp import inbox
from whatsapp.models import WebhookPost

pytestmark = pytest.mark.django_db(transaction=True)


def test_one_appointment_from_the_desk_to_the_patients_answer(sandbox):
    # 1 booked: visit, history and mark in one transaction
    visit = due_visit()
    phone = visit.patient.phone
    assert visit.history.get().to_status == "scheduled"

    # 2 planned: a row for each rule, and the marks are gone
    plan_marked(now=clock.now())
    row = visit.deliveries.get(channel="whatsapp")
    assert (row.status, row.attempt) == ("pending", 0)
    assert not Mark.objects.exists()

    # 3 to 5a due, claimed, called, sent: the ledger was there before the call
    with Flight(2) as flight:
        assert dispatch.run(clock=clock.now, flight=flight) == 1
    row.refresh_from_db()
    [accepted] = sandbox.accepted_for(f"d:{row.pk}")
    attempt = row.attempts.get()
    assert attempt.payload == accepted.body
    assert attempt.message_id == accepted.wamid == row.message_id

    # 6 receipts: stored at once, worked off later
    assert sandbox.flush()
    assert WebhookPost.objects.filter(processed_at=None).count() == 2
    # Nobody calls a second worker while one is on its way.
    assert OrmQ.objects.exists()
    inbox.work_off(now=clock.now())
    row.refresh_from_db()
    assert (row.status, row.sent_at is not None, row.delivered_at is not None) == ("delivered", True, True)
    sandbox.open_phone(phone)
    settle(sandbox)
    row.refresh_from_db()
    assert (row.status, row.read_at is not None) == ("read", True)

    # 7 tapped: the visit is confirmed, by WhatsApp, and the patient is told
    sandbox.tap(phone, title="Confirmar")
    settle(sandbox)
    visit.refresh_from_db()
    assert (visit.status, visit.confirmed_at is not None) == ("confirmed", True)
    last = visit.history.last()
    assert (last.from_status, last.to_status, last.source) == ("scheduled", "confirmed", "whatsapp")
    answer = Reply.objects.get()
    assert (answer.says, answer.status) == ("confirmed", "delivered")
    said = sandbox.conversation(phone)[-1]["body"]
    assert "quedó confirmada" in said
    assert f"{visit.start_time.hour % 12 or 12}:{visit.start_time:%M}" in said

    # nothing of it happens twice
    settle(sandbox)
    assert set(sandbox.accepted_per_delivery().values()) == {1}
    assert AppointmentHistory.objects.count() == 2


def test_a_second_tap_changes_nothing_and_says_so_kindly(sandbox):
    visit = due_visit()
    settle(sandbox)
    for _ in range(2):
        sandbox.tap(visit.patient.phone, title="Confirmar")
        settle(sandbox)
    visit.refresh_from_db()
    assert visit.status == "confirmed"
    assert visit.history.count() == 2
    assert "ya estaba confirmada" in sandbox.conversation(visit.patient.phone)[-1]["body"]


def test_a_tap_on_an_old_message_tells_the_new_hour_and_offers_to_confirm_it(sandbox):
    visit = due_visit()
    settle(sandbox)
    later = (visit.starts_at.astimezone(visit.office.zone)).replace(hour=10, minute=0)
    later = later.replace(day=1, month=1, year=later.year + 1)
    booking.reschedule(visit, date=later.date(), start_time=later.time(), actor=booking.SYSTEM)
    sandbox.tap(visit.patient.phone, title="Confirmar")
    settle(sandbox)
    visit.refresh_from_db()
    assert visit.status == "scheduled"
    offer = sandbox.conversation(visit.patient.phone)[-1]
    assert "ahora es" in offer["body"]
    assert "1 de enero" in offer["body"] and "10:00 a. m." in offer["body"]
    # The button under the offer belongs to the new version.
    sandbox.tap(visit.patient.phone, title="Confirmar")
    settle(sandbox)
    visit.refresh_from_db()
    assert visit.status == "confirmed"


@pytest.mark.parametrize(
    ("verb", "words"),
    [(booking.cancel, "está cancelada"), (booking.complete, "ya pasó")],
    ids=["cancelled", "over"],
)
def test_a_tap_about_a_visit_that_ended_brings_nothing_back(sandbox, verb, words):
    visit = due_visit()
    settle(sandbox)
    verb(visit, actor=booking.SYSTEM)
    ended_as = visit.status
    sandbox.tap(visit.patient.phone, title="Confirmar")
    settle(sandbox)
    visit.refresh_from_db()
    assert visit.status == ended_as
    assert words in sandbox.conversation(visit.patient.phone)[-1]["body"]


@pytest.mark.parametrize("title", ["Reagendar", "Cancelar"])
def test_what_only_the_desk_can_do_yet_is_answered_with_its_number(sandbox, title):
    visit = due_visit()
    settle(sandbox)
    sandbox.tap(visit.patient.phone, title=title)
    settle(sandbox)
    visit.refresh_from_db()
    assert visit.status == "scheduled"
    said = sandbox.conversation(visit.patient.phone)[-1]["body"]
    assert "sigue en pie" in said and visit.office.phone in said
