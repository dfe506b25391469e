"""The call list names each visit of which no message told the patient, with its reason, and no other."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from appointments import booking, clock
from appointments.booking import Actor
from reminders import call_list
from reminders.call_list import Answer
from reminders.models import ReminderDelivery, Unreached
from tests.browser import PHONE, open_page, scrolls_sideways, serious_faults
from tests.factories import (
    make_appointment,
    make_delivery,
    make_doctor,
    make_patient,
    make_rule,
    make_user,
    soon,
)

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def visit():
    return make_appointment(at=soon(3), doctor=make_doctor())


def fallen(visit, status="failed", reason="refused", **fields) -> ReminderDelivery:
    fields.setdefault("called_at", clock.now() - timedelta(minutes=1))
    return make_delivery(appointment=visit, status=status, reason=reason, **fields)


def listed() -> list[tuple[object, str]]:
    return [(row.appointment_id, row.reason) for row in call_list.unreached(clock.now())]


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("failed", "refused"),
        ("failed", "attempts_exhausted"),
        ("failed", "no_answer"),
        ("skipped", "no_channel"),
        ("skipped", "quiet_hours"),
        ("expired", "too_late"),
    ],
)
def test_what_reached_nobody_is_listed_with_its_reason(visit, status, reason):
    fallen(visit, status, reason)
    assert listed() == [(visit.pk, reason)]


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("skipped", "opted_out"),
        ("skipped", "do_not_send"),
        ("skipped", "booked_late"),
        ("skipped", "superseded"),
        ("cancelled", "rule_disabled"),
    ],
)
def test_what_was_not_to_be_sent_is_not(visit, status, reason):
    fallen(visit, status, reason)
    assert listed() == []


@pytest.mark.parametrize("status", ["pending", "sending", "unknown", "sent", "delivered", "read"])
def test_not_while_another_channel_of_the_rule_may_reach_the_patient_or_has(visit, status):
    row = fallen(visit)
    make_delivery(appointment=visit, rule=row.rule, channel="email", status=status)
    # The factory clears what was planned and not called; the failed row was called.
    assert ReminderDelivery.objects.count() == 2
    assert listed() == []


def test_a_later_reminder_that_arrived_takes_the_visit_off_and_one_before_does_not(visit):
    now = clock.now()
    fallen(visit, scheduled_for=now - timedelta(hours=2))
    earlier = make_delivery(
        appointment=visit, rule=make_rule(-300), status="delivered", scheduled_for=now - timedelta(hours=5)
    )
    assert [pk for pk, _ in listed()] == [visit.pk]
    ReminderDelivery.objects.filter(pk=earlier.pk).update(scheduled_for=now - timedelta(hours=1))
    assert listed() == []


def test_what_never_arrived_is_listed_and_leaves_the_list_when_it_does(visit):
    now = clock.now()
    row = fallen(visit, "sent", "", given_up_at=now)
    assert listed() == [(visit.pk, "")]
    assert call_list.why(row) == "No consta que llegara"
    ReminderDelivery.objects.update(status="delivered")
    assert listed() == []


def test_what_was_delivered_and_not_read_needs_no_call(visit):
    now = clock.now()
    fallen(visit, "delivered", "", given_up_at=now, read_by=now)
    assert listed() == []


@pytest.mark.parametrize("status", ["pending", "sending", "unknown", "sent", "delivered", "read"])
def test_what_never_arrived_is_not_listed_while_the_next_channel_may_or_has(visit, status):
    row = fallen(visit, "sent", "", given_up_at=clock.now())
    make_delivery(appointment=visit, rule=row.rule, channel="email", status=status, fallback_of=row)
    assert listed() == []


def test_a_later_reminder_that_never_arrived_takes_no_visit_off(visit):
    now = clock.now()
    early = fallen(visit, scheduled_for=now - timedelta(hours=2))
    make_delivery(
        appointment=visit, rule=make_rule(-60), status="sent", given_up_at=now, called_at=now, channel="email"
    )
    assert len(listed()) == 2
    assert (early.appointment_id, "refused") in listed()


def test_an_expired_reminder_is_told_as_not_reminded(visit):
    """Case D2."""
    row = fallen(visit, "expired", "too_late", called_at=None)
    assert listed() == [(visit.pk, "too_late")]
    assert call_list.why(row) == "No se le recordó: ya era tarde"


def test_one_row_for_a_rule_of_which_two_channels_failed(visit):
    row = fallen(visit)
    fallen(visit, rule=row.rule, channel="email", reason="attempts_exhausted")
    assert [pk for pk, _ in listed()] == [visit.pk]


def test_a_visit_that_was_confirmed_since_leaves_the_list(visit):
    fallen(visit, scheduled_for=clock.now() - timedelta(hours=1))
    assert booking.confirm(visit, actor=booking.SYSTEM)
    assert listed() == []


def test_a_visit_that_was_confirmed_before_stays(visit):
    """Case D2: the reminder of the day found nobody, whatever was answered the day before."""
    assert booking.confirm(visit, actor=booking.SYSTEM)
    fallen(visit, "expired", "too_late", scheduled_for=clock.now() + timedelta(minutes=1), called_at=None)
    assert listed() == [(visit.pk, "too_late")]


def test_who_was_called_before_the_reminders_moment_is_not_called_again(visit):
    fallen(visit, "skipped", "no_channel", channel="", called_at=None, scheduled_for=clock.now() + DAY)
    assert listed() == [(visit.pk, "no_channel")]
    assert booking.confirm(visit, actor=booking.SYSTEM)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE reminders_reminderdelivery SET created_at = now() - interval '1 hour'")
    assert listed() == []


@pytest.mark.parametrize("verb", ["cancel", "check_in", "complete", "mark_no_show"])
def test_a_visit_that_is_called_off_or_has_begun_needs_no_call(visit, verb):
    fallen(visit)
    assert getattr(booking, verb)(visit, actor=booking.SYSTEM)
    assert listed() == []


def test_a_moved_visit_starts_anew(visit):
    fallen(visit)
    local = soon(5)
    assert booking.reschedule(visit, date=local.date(), start_time=local.time(), actor=booking.SYSTEM)
    assert listed() == []


def test_the_nearest_visit_stands_first():
    doctor = make_doctor()
    later, sooner = (make_appointment(at=soon(hours), doctor=doctor) for hours in (9, 4))
    fallen(later)
    fallen(sooner)
    assert [pk for pk, _ in listed()] == [sooner.pk, later.pk]


def test_the_admins_list_shows_phone_and_reason_and_only_ones_own_patients(client):
    mine, foreign = make_doctor(user=make_user()), make_doctor()
    patient = make_patient(doctor=mine)
    fallen(make_appointment(at=soon(3), doctor=mine, patient=patient))
    hidden = make_appointment(at=soon(3), doctor=foreign)
    fallen(hidden)
    client.force_login(mine.user)
    page = client.get("/admin/reminders/unreached/").content.decode()
    assert patient.full_name in page
    assert f'href="tel:{patient.phone}"' in page
    assert "El proveedor lo rechazó" in page
    assert hidden.patient.full_name not in page
    row = Unreached.objects.get(appointment=hidden)
    assert client.get(f"/admin/reminders/unreached/{row.pk}/change/").status_code == 404


# --- What they said on the phone ---------------------------------------------------


@pytest.fixture
def secretary(visit):
    user = make_user()
    visit.doctor.staff.add(user)
    return user


@pytest.fixture
def desk(client, secretary):
    client.force_login(secretary)
    return client


def tap(client, row, answer: str):
    return client.post(f"/admin/reminders/unreached/{row.pk}/llamada/{answer}/", follow=True)


def state(visit) -> str:
    visit.refresh_from_db()
    return visit.status


def test_told_and_coming_the_visit_is_confirmed_in_the_secretarys_name(visit, desk, secretary):
    row = fallen(visit)
    page = tap(desk, row, "confirma").content.decode()
    assert "quedó confirmada" in page
    assert state(visit) == "confirmed"
    step = visit.history.latest("id")
    assert (step.actor, step.source) == (secretary, "admin")
    row.refresh_from_db()
    assert row.told_by_phone_at and row.told_by_phone_by == secretary
    assert listed() == []


def test_told_and_not_coming_the_visit_is_cancelled(visit, desk):
    page = tap(desk, fallen(visit), "cancela").content.decode()
    assert "quedó cancelada" in page and "repóngala" in page
    assert state(visit) == "cancelled"
    assert listed() == []


def test_told_and_no_more_than_that_changes_nothing_of_the_visit(visit, desk, secretary):
    row = fallen(visit)
    before = visit.history.count()
    assert "ya está avisado" in tap(desk, row, "avisado").content.decode()
    assert (state(visit), visit.history.count()) == ("scheduled", before)
    row.refresh_from_db()
    assert row.told_by_phone_by == secretary
    assert (row.status, row.reason) == ("failed", "refused")
    assert listed() == []


@pytest.mark.parametrize("answer", list(Answer))
def test_a_second_tap_changes_nothing_and_says_so(visit, desk, answer):
    row = fallen(visit)
    tap(desk, row, answer)
    row.refresh_from_db()
    first, status, steps = row.told_by_phone_at, state(visit), visit.history.count()
    assert "Ya estaba anotado" in tap(desk, row, answer).content.decode()
    row.refresh_from_db()
    assert (row.told_by_phone_at, state(visit), visit.history.count()) == (first, status, steps)


def test_a_visit_that_was_confirmed_before_leaves_the_list_too_when_told(visit, desk):
    assert booking.confirm(visit, actor=booking.SYSTEM)
    row = fallen(visit, "expired", "too_late", scheduled_for=clock.now() + timedelta(minutes=1))
    assert len(listed()) == 1
    tap(desk, row, "confirma")
    assert (state(visit), listed()) == ("confirmed", [])


def test_of_a_rules_earlier_channel_nothing_comes_back_when_its_last_is_told(visit, desk):
    first = fallen(visit)
    last = fallen(visit, rule=first.rule, channel="email")
    tap(desk, last, "avisado")
    assert listed() == []


def test_one_call_serves_for_all_that_was_due_by_then_and_not_for_what_comes_later(visit, desk):
    now = clock.now()
    row = fallen(visit)
    fallen(visit, rule=make_rule(-300), scheduled_for=now - timedelta(hours=1))
    assert len(listed()) == 2
    tap(desk, row, "avisado")
    assert listed() == []
    fallen(visit, rule=make_rule(-60), scheduled_for=now + timedelta(minutes=5))
    assert len(listed()) == 1


def test_a_visit_that_was_moved_meanwhile_is_left_alone_and_the_desk_is_told(visit, desk):
    row = fallen(visit)
    local = soon(5)
    assert booking.reschedule(visit, date=local.date(), start_time=local.time(), actor=booking.SYSTEM)
    for answer in Answer:
        assert "No se anotó: la cita cambió" in tap(desk, row, answer).content.decode()
    assert state(visit) == "scheduled"
    row.refresh_from_db()
    assert row.told_by_phone_at is None


def test_after_its_start_a_visit_can_only_be_noted_as_told(desk, secretary):
    doctor = make_doctor()
    doctor.staff.add(secretary)
    over = make_appointment(at=soon(-1), doctor=doctor)
    row = fallen(over, "expired", "too_late", called_at=None)
    page = desk.get("/admin/reminders/unreached/").content.decode()
    assert f"{row.pk}/llamada/avisado/" in page
    assert f"{row.pk}/llamada/cancela/" not in page
    assert "No se anotó" in tap(desk, row, "cancela").content.decode()
    assert state(over) == "scheduled"


def test_a_strangers_row_an_unknown_word_and_a_look_change_nothing(visit, desk):
    foreign = fallen(make_appointment(at=soon(3), doctor=make_doctor()))
    assert tap(desk, foreign, "cancela").status_code == 404
    assert state(foreign.appointment) == "scheduled"
    own = fallen(visit)
    assert tap(desk, own, "otra").status_code == 404
    assert desk.get(f"/admin/reminders/unreached/{own.pk}/llamada/cancela/").status_code == 405
    assert state(visit) == "scheduled"


def test_a_call_from_no_screen_is_noted_as_well(visit):
    row = fallen(visit)
    actor = Actor(source="api", user_id=None)
    assert call_list.note(row, Answer.HEARD, actor=actor, now=clock.now())
    assert not call_list.note(row, Answer.HEARD, actor=actor, now=clock.now())


@pytest.mark.django_db(transaction=True)
def test_on_a_phone_and_by_keyboard_a_secretary_calls_and_notes_it(browser, live_server, client):
    secretary, doctor = make_user(), make_doctor()
    doctor.staff.add(secretary)
    visit = make_appointment(at=soon(3), doctor=doctor)
    row = fallen(visit, "sent", "", given_up_at=clock.now())
    client.force_login(secretary)
    page = open_page(browser, PHONE)
    session = client.cookies["sessionid"].value
    page.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    page.goto(f"{live_server.url}/admin/reminders/unreached/")
    assert page.get_by_role("cell", name="No consta que llegara").is_visible()
    assert not scrolls_sideways(page)
    for name in ("Avisado: confirma", "Avisado: cancela", "Avisado"):
        box = page.get_by_role("button", name=name, exact=True).bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"] and box["height"] >= 44
    assert page.get_by_role("link", name=visit.patient.phone).get_attribute("href").startswith("tel:+58")
    # The links of Django's own path above the page are not told apart from its words.
    assert [fault for fault in serious_faults(page) if not fault.startswith("link-in-text-block")] == []
    page.get_by_role("button", name="Avisado: confirma").focus()
    page.keyboard.press("Enter")
    page.get_by_text("quedó confirmada").wait_for()
    row.refresh_from_db()
    assert (state(visit), row.told_by_phone_by) == ("confirmed", secretary)


@pytest.mark.parametrize(("why", "shown"), [("sin-noticia", 1), ("refused", 1), ("too_late", 0)])
def test_the_list_can_be_narrowed_to_a_reason(visit, desk, why, shown):
    fallen(visit)
    fallen(visit, "sent", "", rule=make_rule(-300), given_up_at=clock.now())
    page = desk.get(f"/admin/reminders/unreached/?motivo={why}").content.decode()
    assert page.count('class="field-patient') == shown


def test_the_list_is_found_by_its_index():
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    assert "delivery_unreached" in call_list.unreached(clock.now()).explain()
