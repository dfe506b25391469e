"""What leaves when rules change while reminders wait: section H of the timeline, by number."""

# The rows alone: test_timeline_rules. What the preview says: test_preview.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from appointments import clock
from reminders import dispatch, preview
from reminders.channels.base import ChannelError
from reminders.models import ReminderRule
from reminders.timeline import ReminderType
from tests.days import Days, ends
from tests.factories import (
    make_appointment,
    make_delivery,
    make_doctor,
    make_office,
    make_patient,
    make_rule,
    make_specialty,
    make_user,
    soon,
)

pytestmark = pytest.mark.django_db
NEXT_WEEK = "2026-09-24T10:00"
PREPARATION = ReminderType.PREPARACION


@pytest.fixture
def days(settings, set_clock) -> Days:
    return Days(settings, set_clock)


def edit(rule: ReminderRule, **changes: Any) -> None:
    for name, value in changes.items():
        setattr(rule, name, value)
    rule.full_clean()
    rule.save()


MOMENTS = [
    # saved, from, to, what leaves
    ("H1", "2026-09-20T12:00", "24h", -2880, ["48h whatsapp 2026-09-22T10:00"]),
    ("H2", "2026-09-23T08:00", "24h", -2880, ["48h whatsapp 2026-09-23T10:00"]),
    ("beside H1: nearer the visit", "2026-09-20T12:00", "24h", -120, ["2h whatsapp 2026-09-24T08:00"]),
    ("beside H2: a minute before the new moment", "2026-09-22T09:59", "24h", -2880,
     ["48h whatsapp 2026-09-22T10:00"]),
    ("beside H2: at the new moment", "2026-09-22T10:00", "24h", -2880, ["48h whatsapp 2026-09-23T10:00"]),
    ("beside H2: of days", "2026-09-23T08:00", "24h", -3 * 1_440, ["72h whatsapp 2026-09-23T10:00"]),
]  # fmt: skip


@pytest.mark.complaint(
    "Editing a rule loses the reminders that were waiting.",
    about="rules",
    source="onehashai/Cal-ID #790; Wunderbyte-GmbH/moodle-mod_booking #760, #1410",
)
@pytest.mark.parametrize(
    ("saved", "before", "after", "left"), [case[1:] for case in MOMENTS], ids=[case[0] for case in MOMENTS]
)
def test_a_rule_with_another_moment_sends_nothing_on_saving_and_loses_nothing(
    days, saved, before, after, left
):
    [rule] = days.rules(before)
    days.book(NEXT_WEEK)
    assert days.until(saved) == []
    edit(rule, offset_minutes=after)
    assert days.until(saved) == []
    assert days.until(NEXT_WEEK) == left


SWITCHES = [
    ("H4", "2026-09-16T09:00", "2026-09-16T09:30", ["24h whatsapp 2026-09-16T10:00"]),
    ("beside H5: on again after its moment", "2026-09-16T09:00", "2026-09-16T10:30", []),
    ("beside H4: just before it", "2026-09-16T09:00", "2026-09-16T09:59", ["24h whatsapp 2026-09-16T10:00"]),
]  # fmt: skip


@pytest.mark.complaint(
    "Switching a rule off and on loses reminders, or switches off nothing.",
    about="rules",
    source="onehashai/Cal-ID PR#730; calcom/cal.diy PR#21416",
)
@pytest.mark.parametrize(
    ("off", "on", "left"), [case[1:] for case in SWITCHES], ids=[case[0] for case in SWITCHES]
)
def test_a_rule_that_is_switched_off_and_on_reminds_of_what_is_ahead(days, off, on, left):
    [rule] = days.rules("24h")
    visit = days.book()
    days.until(off)
    edit(rule, is_enabled=False)
    assert days.until(off) == []
    assert ends(visit) == ["24h whatsapp rule_disabled"]
    days.until(on)
    edit(rule, is_enabled=True)
    assert days.until("2026-09-17T10:00") == left


@pytest.mark.complaint(
    "Patients read the names of variables.",
    about="words",
    source="onehashai/Cal-ID #1409; indico/indico #5766; Wunderbyte-GmbH/moodle-mod_booking #1036, #626",
)
@pytest.mark.parametrize("words", [pytest.param("Hola {nombr}: {fecha}", id="H6")])
def test_words_that_cannot_be_filled_are_refused_and_the_valid_ones_leave(days, words):
    user = make_user()
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="reminders"))
    doctor = make_doctor(user=user)
    [rule] = days.rules("24h", doctor=doctor, body_template="Le esperamos, {nombre}: {fecha}.")
    days.book(doctor=doctor)
    days.until("2026-09-16T09:59")
    client = Client()
    client.force_login(user)
    page = client.post(
        reverse("admin:reminders_reminderrule_change", args=[rule.pk]),
        {
            "doctor": doctor.pk, "reminder_type": "cita_proxima", "is_enabled": "on",
            "offset_minutes": "-1440", "offset_unit": "hours", "first_channel": "whatsapp",
            "second_channel": "email", "body_template": words,
        },
    )  # fmt: skip
    assert page.status_code == 200
    assert "¿Quiso decir {nombre}?" in str(page.context["errors"])
    assert days.until("2026-09-16T10:00") == ["24h whatsapp 2026-09-16T10:00"]
    assert days.sent[0].message.text.startswith("Le esperamos, ")
    assert "{" not in days.sent[0].message.text


UNKNOWN = {"name": "", "address": "", "phone": ""}


@pytest.mark.complaint(
    "One empty value, and WhatsApp refuses the message.",
    about="words",
    source="shridarpatil/frappe_whatsapp #169",
)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Hola, {nombre}: le espera {doctor} en {consultorio}, {direccion}.", id="H7"),
        pytest.param("{nombre} ({titulo}) {especialidad}: {indicaciones}", id="beside H7: two side by side"),
        pytest.param("", id="beside H7: the words that ship"),
    ],
)
def test_what_is_not_known_of_a_patient_leaves_neither_hole_nor_empty_parameter(db, text):
    office = make_office(**UNKNOWN)
    doctor = make_doctor(office=office, title="", name="C")
    visit = make_appointment(
        at=soon(3), doctor=doctor, patient=make_patient(full_name="\u200b ", doctor=doctor)
    )
    make_delivery(appointment=visit, rule=make_rule(-90, offset_unit="minutes", body_template=text))
    [call] = dispatch.prepare(1, now=clock.now())
    assert not set(call.message.text) & set("{}")
    assert not any(hole in call.message.text for hole in ("  ", " .", " ,", "()", "\u200b"))
    parameters = [
        parameter
        for component in call.payload["template"]["components"]
        for parameter in component["parameters"]
    ]
    assert parameters
    for parameter in parameters:
        value = parameter.get("text") or parameter.get("payload")
        assert value and value.strip()
        assert "  " not in value


@pytest.mark.parametrize("deleted", [pytest.param("2026-09-16T12:00", id="H8")])
def test_a_deleted_rule_ends_what_waits_and_leaves_the_history_as_it_was(days, deleted):
    rules = days.rules("24h", "2h", body_template="Recuerde, {nombre}: {fecha}.")
    visit = days.book()
    days.until(deleted)
    names = {rule.offset_minutes: str(rule) for rule in rules}
    said = visit.deliveries.get(offset_minutes=-1440).attempts.get().payload["text"]
    for rule in rules:
        rule.delete()
    assert days.until("2026-09-17T10:00") == []
    assert ends(visit) == ["24h whatsapp sent", "2h whatsapp rule_deleted"]
    sent = visit.deliveries.get(offset_minutes=-1440)
    assert (sent.rule, sent.rule_name) == (None, names[-1440])
    assert sent.attempts.get().payload["text"] == said
    assert said.startswith("Recuerde, ")


Level = Callable[..., None]


@pytest.fixture
def doctor():
    return make_doctor()


LEVELS = [
    # rules of the doctor: offset, type and specialty; the specialty of the visit; what leaves
    ("H9 in Cardiología", [("48h", None, "Cardiología"), ("24h", None, None)], "Cardiología", ["48h"]),
    ("H9 in Medicina interna",
     [("48h", None, "Cardiología"), ("24h", None, None)], "Medicina interna", ["24h"]),
    ("H10", [("3d", PREPARATION, "Cardiología"), ("24h", None, None)], "Cardiología", ["3d", "24h"]),
    ("H11", [("24h", None, None), ("2h", None, None)], "Cardiología", ["24h", "2h"]),
    ("beside H10: the preparation is not everybody's",
     [("3d", PREPARATION, "Cardiología"), ("24h", None, None)], "Medicina interna", ["24h"]),
    ("beside H9: a visit without a specialty",
     [("48h", None, "Cardiología"), ("24h", None, None)], None, ["24h"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "specialty", "left"), [case[1:] for case in LEVELS], ids=[case[0] for case in LEVELS]
)
def test_of_a_type_the_most_specific_rules_leave_and_no_others(days, doctor, rules, specialty, left):
    days.rules("12h")  # the clinic's, which the doctor's own replace
    for offset, kind, its_specialty in rules:
        days.rules(
            offset,
            kind=kind or ReminderType.CITA_PROXIMA,
            doctor=doctor,
            specialty=make_specialty(its_specialty) if its_specialty else None,
        )
    days.book(doctor=doctor, specialty=make_specialty(specialty) if specialty else None)
    assert [line.split()[0] for line in days.until("2026-09-17T10:00")] == left


@pytest.mark.parametrize("switched", [pytest.param("2026-09-12T09:00", id="H12")])
def test_the_rule_of_a_specialty_that_is_switched_off_gives_way_to_the_general_one(days, doctor, switched):
    heart = make_specialty("Cardiología")
    days.rules("24h", doctor=doctor)
    [own] = days.rules("48h", doctor=doctor, specialty=heart)
    days.book(doctor=doctor, specialty=heart)
    days.until(switched)
    own.is_enabled = False
    foreseen = preview.of_rule(own, now=clock.now())
    assert (foreseen.vanished, foreseen.new) == (1, 1)
    own.save()
    assert days.until("2026-09-17T10:00") == ["24h whatsapp 2026-09-16T10:00"]


@pytest.mark.parametrize(
    ("saved", "left"),
    [
        pytest.param(None, ["24h whatsapp 2026-09-16T10:00"], id="H13 no rules of the doctor"),
        pytest.param("2026-09-12T09:00", ["48h whatsapp 2026-09-15T10:00"], id="H13 the first one"),
        pytest.param(
            "2026-09-16T09:00", ["24h whatsapp 2026-09-16T10:00"], id="beside H13: its moment is past"
        ),
    ],
)
def test_the_first_rule_of_a_doctor_takes_the_place_of_the_clinics(days, doctor, saved, left):
    days.rules("24h")
    days.book(doctor=doctor)
    if saved:
        assert days.until(saved) == []
        first = ReminderRule(
            doctor=doctor, reminder_type="cita_proxima", offset_minutes=-2880, offset_unit="hours",
            channels=["whatsapp"], body_template="",
        )  # fmt: skip
        foreseen = preview.of_rule(first, now=clock.now())
        is_ahead = left[0].startswith("48h")
        assert (foreseen.vanished, foreseen.new, foreseen.kept) == ((1, 1, 0) if is_ahead else (0, 0, 1))
        first.save()
    assert days.until("2026-09-17T10:00") == left


@pytest.mark.complaint(
    "After a change of doctor the reminder speaks of the former one.",
    about="moves",
    source="calcom/cal.diy PR#17305",
)
@pytest.mark.parametrize("handed_over", [pytest.param("2026-09-12T09:00", id="beside H9: another doctor")])
def test_a_visit_that_is_given_to_another_doctor_is_reminded_of_by_that_doctors_rules(
    days, doctor, handed_over
):
    successor = make_doctor()
    days.rules("24h", doctor=doctor, body_template="Le espera {doctor}.")
    days.rules("2h", doctor=successor, body_template="Le recibe {doctor}.")
    visit = days.book(doctor=doctor)
    days.until(handed_over)
    visit.doctor = successor
    visit.save()
    assert days.until("2026-09-17T10:00") == ["2h whatsapp 2026-09-17T08:00"]
    assert days.sent[0].message.text == f"Le recibe {successor}."
    former = visit.deliveries.filter(sequence=0)
    assert set(former.values_list("status", "reason")) == {("cancelled", "moved")}


# --- A rule that changes while its step fails ----------------------------------------


def test_what_goes_in_a_steps_place_is_of_its_moment_though_the_rule_has_another_by_now(days):
    [day_before] = days.rules("24h")
    visit = days.book(start=NEXT_WEEK)
    days.refuse({"whatsapp": ChannelError("131000")})
    assert days.until("2026-09-23T10:00") == []
    edit(day_before, offset_minutes=-120)
    assert days.until("2026-09-23T20:00")[0].startswith("24h email 2026-09-23T1")
    assert ends(visit) == ["24h whatsapp attempts_exhausted", "24h email sent"]
