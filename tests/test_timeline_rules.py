"""Which rules hold, and what their change does to pending rows (P12, P13, section H), by number."""

# Told elsewhere: H4 and H8 cancel rows (planner); H6 and H7 in test_wording.

from dataclasses import replace

import pytest

from reminders import timeline
from reminders.timeline import ReminderType
from tests.timeline_values import at, plan, rows_of, rule, told, visit

DOCTOR, CARDIOLOGY, INTERNAL = 7, 1, 2
GENERAL = rule("24h", key="clinic")
IN_CARDIOLOGY = rule("48h", key="cardiology", doctor=DOCTOR, specialty=CARDIOLOGY)
OF_THE_DOCTOR = rule("24h", key="doctor", doctor=DOCTOR)
PREPARATION = rule("3d", ReminderType.PREPARACION, key="preparation", doctor=DOCTOR, specialty=CARDIOLOGY)

OF_THE_CLINIC_IN_CARDIOLOGY = rule("24h", key="clinic cardiology", specialty=CARDIOLOGY)
LEVELS = [
    ("H9 cardiology", [IN_CARDIOLOGY, OF_THE_DOCTOR], CARDIOLOGY, ["cardiology"]),
    ("H9 internal medicine", [IN_CARDIOLOGY, OF_THE_DOCTOR], INTERNAL, ["doctor"]),
    ("H10", [PREPARATION, OF_THE_DOCTOR], CARDIOLOGY, ["preparation", "doctor"]),
    ("H11", [OF_THE_DOCTOR, rule("2h", key="2h", doctor=DOCTOR)], CARDIOLOGY, ["doctor", "2h"]),
    ("H12", [replace(IN_CARDIOLOGY, is_enabled=False), OF_THE_DOCTOR], CARDIOLOGY, ["doctor"]),
    ("H13 none of their own", [GENERAL], CARDIOLOGY, ["clinic"]),
    ("H13 the first of their own", [GENERAL, OF_THE_DOCTOR], CARDIOLOGY, ["doctor"]),
    ("doctor, then the clinic", [OF_THE_CLINIC_IN_CARDIOLOGY, OF_THE_DOCTOR], CARDIOLOGY, ["doctor"]),
    ("the clinic by specialty", [GENERAL, OF_THE_CLINIC_IN_CARDIOLOGY], CARDIOLOGY, ["clinic cardiology"]),
    ("a visit without a specialty", [IN_CARDIOLOGY, OF_THE_DOCTOR], None, ["doctor"]),
    ("another doctor's rules", [replace(OF_THE_DOCTOR, doctor=8), GENERAL], CARDIOLOGY, ["clinic"]),
    ("do not send is a rule", [replace(OF_THE_DOCTOR, channels=()), GENERAL], CARDIOLOGY, ["doctor"]),
    ("none", [], CARDIOLOGY, []),
]


@pytest.mark.parametrize(
    ("rules", "specialty", "expected"), [c[1:] for c in LEVELS], ids=[c[0] for c in LEVELS]
)
def test_per_type_the_most_specific_active_level_wins_whole(rules, specialty, expected):
    for order in (rules, rules[::-1]):
        effective = timeline.effective(order, doctor=DOCTOR, specialty=specialty)
        assert sorted(rule.key for rule in effective) == sorted(expected)


VISIT = visit("2026-09-24T10:00")
R24 = rule("24h", key="R")
EDITED = rule("48h", key="R")


def edited(moment: str):
    return replace(EDITED, since=at(moment))


def rows(**fields):
    return rows_of(plan(VISIT, R24), [R24], **fields)


def test_h1_a_pending_row_takes_the_new_moment_that_is_ahead():
    saved = at("2026-09-20T12:00")
    planned = plan(VISIT, edited("2026-09-20T12:00"), rows=rows(), rules_changed_at=saved)
    assert told(planned) == ["R whatsapp 2026-09-22T10:00"]


def test_h2_a_row_keeps_its_moment_where_the_new_one_is_past():
    saved = at("2026-09-23T08:00")
    for status in ("pending", "sending"):
        waiting = rows(status=status)
        planned = plan(VISIT, edited("2026-09-23T08:00"), rows=waiting, rules_changed_at=saved)
        assert told(planned) == ["R whatsapp 2026-09-23T10:00"]


def test_h2_holds_in_every_later_planning():
    rule_now = edited("2026-09-23T08:00")
    kept = rows_of(plan(VISIT, rule_now, rows=rows()), [rule_now])
    assert told(plan(VISIT, rule_now, rows=kept)) == ["R whatsapp 2026-09-23T10:00"]


def test_h2_a_new_moment_before_the_booking_does_not_lose_the_row_either():
    booked_late = visit("2026-09-24T10:00", booked="2026-09-22T12:00")
    waiting = rows_of(plan(booked_late, R24), [R24])
    planned = plan(booked_late, edited("2026-09-22T15:00"), rows=waiting)
    assert told(planned) == ["R whatsapp 2026-09-23T10:00"]


@pytest.mark.parametrize("saved", ["2026-09-23T10:00", "2026-09-23T10:30"])
def test_beside_h3_a_new_rule_does_nothing_about_a_moment_that_is_past(saved):
    assert plan(VISIT, replace(R24, since=at(saved))) == []
    assert plan(VISIT, R24, rules_changed_at=at(saved)) == []


@pytest.mark.parametrize("saved", ["2026-09-23T09:59", "2026-09-20T10:00"])
def test_beside_h3_a_new_rule_acts_on_a_moment_ahead(saved):
    assert told(plan(VISIT, replace(R24, since=at(saved)))) == ["R whatsapp 2026-09-23T10:00"]


def test_an_older_change_of_other_rules_does_not_make_a_rule_older():
    assert (
        plan(VISIT, replace(R24, since=at("2026-09-23T10:30")), rules_changed_at=at("2026-09-20T10:00")) == []
    )


def test_beside_h3_a_new_rule_says_nothing_about_visits_that_were_booked_after_its_moment():
    assert plan(visit("2026-09-24T10:00", booked="2026-09-23T12:00"), edited("2026-09-23T13:00")) == []


def test_a_rule_that_held_when_the_visit_was_booked_tells_why_it_has_no_moment():
    held = replace(EDITED, since=at("2026-09-23T08:00"))
    late = visit("2026-09-24T10:00", booked="2026-09-23T09:00")
    assert told(plan(late, held)) == ["R whatsapp booked_late"]
    assert told(plan(late, held, rules_changed_at=at("2026-09-23T08:00"))) == ["R whatsapp booked_late"]


@pytest.mark.parametrize(
    ("enabled", "expected"),
    [
        pytest.param("2026-09-23T09:30", ["R whatsapp 2026-09-23T10:00"], id="H4"),
        pytest.param("2026-09-23T10:30", [], id="beside H5: too late"),
    ],
)
def test_a_rule_that_is_enabled_again_plans_what_is_ahead(enabled, expected):
    cancelled = rows(status="cancelled", reason="rule_disabled")
    again = replace(R24, since=at(enabled))
    assert told(plan(VISIT, again, rows=cancelled, rules_changed_at=at(enabled))) == expected


def test_a_row_that_is_overdue_stays_when_other_rules_change():
    overdue = rows()
    assert told(plan(VISIT, R24, rows=overdue, rules_changed_at=at("2026-09-23T11:00"))) == [
        "R whatsapp 2026-09-23T10:00"
    ]


def test_a_row_without_a_channel_stays_closed_when_the_moment_is_past():
    closed = rows_of(plan(VISIT, replace(R24, channels=("push",))), [R24])
    planned = plan(VISIT, R24, rows=closed, rules_changed_at=at("2026-09-23T11:00"))
    assert told(planned) == ["R push channel_off", "R - no_channel"]


def test_a_move_after_the_change_of_a_rule_plans_anew():
    moved = visit("2026-09-24T10:00", sequence=1, changed_at=at("2026-09-23T12:00"))
    planned = plan(moved, edited("2026-09-23T08:00"), rows=rows())
    assert told(planned) == ["R whatsapp covered_by_notice"]


def test_a_rule_that_no_longer_sends_closes_its_pending_row():
    saved = "2026-09-23T10:30"
    planned = plan(VISIT, replace(R24, channels=(), since=at(saved)), rows=rows())
    assert told(planned) == ["R - do_not_send"]
