"""The demonstration tells what the rows say, and its patient acts through her phone only."""

from __future__ import annotations

import pytest

from amedi.demo_patient import PAUSE, Patient, Reader
from amedi.demo_story import WALK, Step, Story
from appointments import booking, clock
from reminders.models import ReminderRule
from tests.engine import due_visit, settle

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_walk_is_told_step_by_step_and_each_step_once(sandbox):
    story = Story(since=clock.now())
    visit = due_visit()
    settle(sandbox)
    assert steps(story) == [Step.PLANNED, Step.SENT, Step.DELIVERED]
    assert steps(story) == []
    sandbox.open_phone(visit.patient.phone)
    sandbox.tap(visit.patient.phone, title="Confirmar")
    settle(sandbox)
    assert steps(story) == [Step.READ, Step.TAPPED, Step.CONFIRMED, Step.ANSWERED]
    assert steps(Story(since=visit.created_at)) == WALK


def test_a_line_names_the_visit_by_its_id_its_hour_and_the_first_name(sandbox):
    visit = due_visit()
    settle(sandbox)
    [planned, sent, _] = Story(since=visit.created_at).news()
    assert str(visit.pk)[:8] in planned.line and f"{visit.start_time:%H:%M}" in planned.line
    assert sent.line.endswith(f"recordatorio enviado por WhatsApp · Ana, cita {str(visit.pk)[:8]}")


def test_a_message_that_cannot_arrive_is_told_too(sandbox):
    story = Story(since=clock.now())
    visit = due_visit()
    sandbox.change(error_for={visit.patient.phone: 131026})
    settle(sandbox)
    assert steps(story) == [Step.PLANNED, Step.FAILED]


def test_visits_of_earlier_starts_and_what_is_due_much_later_are_no_news(sandbox):
    earlier = due_visit()
    settle(sandbox)
    story = Story(since=clock.now())
    booking.cancel(earlier, actor=booking.SYSTEM)
    assert story.news() == []


def test_the_patient_reads_then_taps_each_after_a_pause_and_then_no_more(sandbox):
    visit = due_visit()
    patient = Patient(sandbox_url=sandbox.url, number=visit.patient.phone)
    patient.act(now=0)
    assert sandbox.conversation(visit.patient.phone) == []
    settle(sandbox)
    seen = []
    for turn in range(8):
        patient.act(now=turn * PAUSE / 2)
        settle(sandbox)
        visit.refresh_from_db()
        seen.append((visit.deliveries.get(channel="whatsapp").status, visit.status))
    assert seen == [
        ("delivered", "scheduled"),
        ("delivered", "scheduled"),
        ("read", "scheduled"),
        ("read", "scheduled"),
        ("read", "scheduled"),
        ("read", "confirmed"),
        ("read", "confirmed"),
        ("read", "confirmed"),
    ]
    assert visit.replies.count() == 1
    assert visit.history.filter(source="whatsapp").count() == 1


def steps(story: Story) -> list[Step]:
    return [happening.step for happening in story.news()]


def test_the_reader_opens_her_mail_and_confirms_on_the_page(sandbox, postmark, settings):
    settings.REMINDER_CHANNELS = ["whatsapp", "email"]
    settings.CLIENT_URL = sandbox.options.callback_url.removesuffix("/webhooks/whatsapp/")
    visit = due_visit()
    ReminderRule.objects.update(channels=["whatsapp", "email"])
    type(visit.patient).objects.filter(pk=visit.patient_id).update(phone="", email="reader@example.com")
    reader = Reader(mail_url=postmark.url, address="reader@example.com")
    reader.act(now=0)
    settle(sandbox)
    seen = []
    for turn in range(1, 6):
        reader.act(now=turn * PAUSE)
        assert postmark.flush()
        visit.refresh_from_db()
        seen.append((visit.deliveries.get(channel="email").status, visit.status))
    assert seen[0] == ("read", "scheduled")
    assert seen[1:] == [("read", "confirmed")] * 4
    assert visit.history.filter(source="email").count() == 1
