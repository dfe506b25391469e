"""Which rows a visit gets, and with which reasons: sections A, E and I of the timeline, by number."""

# Told elsewhere, because it needs the table, the dispatcher or a notice:
# A2 two processes, A9 the request to confirm (dispatcher); the booking messages of
# A3, A4, A5 and A7 (notices); E3 the list "without closing"; E4 a correction, which
# cancels rows (planner); I2 the call list; I5-I7, I9, I10 and I12 (contacts, taps).

from dataclasses import replace

import pytest

from reminders.timeline import Reason, ReminderType
from tests.timeline_values import (
    WHATSAPP_AND_MAIL,
    at,
    plan,
    quiet_hours,
    reachable,
    rows_of,
    rule,
    told,
    utc,
    visit,
)

R24, R2 = rule("24h"), rule("2h")
EVE, MORNING = "24h whatsapp 2026-09-16T10:00", "2h whatsapp 2026-09-17T08:00"

BOOKINGS = [
    ("A1", "2026-09-10T09:00", [EVE, MORNING]),
    ("A3", "2026-09-17T07:00", ["24h whatsapp booked_late", MORNING]),
    ("A4a", "2026-09-17T07:30", ["24h whatsapp booked_late", "2h whatsapp booked_late"]),
    ("A4b", "2026-09-17T07:29", ["24h whatsapp booked_late", MORNING]),
    ("A4c", "2026-09-17T06:30", ["24h whatsapp booked_late", MORNING]),
    ("A5", "2026-09-17T09:15", ["24h whatsapp booked_late", "2h whatsapp booked_late"]),
    ("A6", "2026-09-16T10:00", ["24h whatsapp booked_late", MORNING]),
    ("beside A6: just before the half hour", "2026-09-16T09:29", [EVE, MORNING]),
    ("beside A6: at the half hour", "2026-09-16T09:30", ["24h whatsapp booked_late", MORNING]),
]


@pytest.mark.parametrize(("booked", "expected"), [c[1:] for c in BOOKINGS], ids=[c[0] for c in BOOKINGS])
def test_each_rule_has_its_row_and_what_was_booked_too_late_says_so(booked, expected):
    assert told(plan(visit(booked=booked), R24, R2)) == expected


ELSEWHERE = [
    # In Madrid the night before 2026-03-29 is an hour short: 24 hours before 09:00 is 08:00.
    ("half an hour ahead", "2026-03-29T09:00 Madrid", "2026-03-28T07:30 Madrid", "24h", "booked_late"),
    ("and a minute more", "2026-03-29T09:00 Madrid", "2026-03-28T07:29 Madrid", "24h", "2026-03-28T08:00"),
    ("a day is at nine", "2026-03-29T09:00 Madrid", "2026-03-28T08:29 Madrid", "1d", "2026-03-28T09:00"),
    ("half an hour before it", "2026-03-29T09:00 Madrid", "2026-03-28T08:30 Madrid", "1d", "booked_late"),
    ("booked in another zone", "2026-09-17T10:00", "2026-09-16T15:29 Madrid", "24h", "2026-09-16T10:00"),
    ("and at half past three there", "2026-09-17T10:00", "2026-09-16T15:30 Madrid", "24h", "booked_late"),
    ("booked in the double hour", "2026-11-02T10:00 NewYork", "2026-11-01T01:30 NewYork²", "24h",
     "2026-11-01T10:00"),
    ("of a leap day", "2028-03-01T10:00", "2028-02-29T09:30", "1d", "booked_late"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("start", "booked", "offset", "expected"), [c[1:] for c in ELSEWHERE], ids=[c[0] for c in ELSEWHERE]
)
def test_a_late_booking_is_late_by_elapsed_time_wherever_it_was_made(start, booked, offset, expected):
    place = start.partition(" ")[2] or "Caracas"
    planned = plan(visit(start, booked=booked), rule(offset), quiet=quiet_hours(place=place))
    assert told(planned, place) == [f"{offset} whatsapp {expected}"]


def test_a7_a_preparation_that_was_booked_too_late_keeps_its_row():
    preparation = rule("3d", ReminderType.PREPARACION)
    assert told(plan(visit(booked="2026-09-15T10:00"), preparation)) == ["3d whatsapp booked_late"]


def test_beside_a8_a_moment_that_quiet_hours_move_still_counts_from_the_booking():
    for booked, expected in [("2026-09-17T20:50", "booked_late"), ("2026-09-17T20:49", "2026-09-18T07:00")]:
        at_night = visit("2026-09-18T21:20", booked=booked)
        assert told(plan(at_night, R24)) == [f"24h whatsapp {expected}"]


@pytest.mark.parametrize(
    ("learnt", "expected"),
    [
        ("2026-09-16T09:59", [EVE, MORNING]),
        ("2026-09-16T10:00", ["24h whatsapp booked_late", MORNING]),
        ("2026-09-17T07:45", ["24h whatsapp booked_late", MORNING]),
        ("2026-09-17T09:30", ["24h whatsapp booked_late", "2h whatsapp booked_late"]),
    ],
)
def test_an_import_without_a_booking_time_plans_every_moment_ahead(learnt, expected):
    imported = visit(booked_at=None, created_at=at(learnt))
    assert told(plan(imported, R24, R2)) == expected


def test_an_import_at_night_keeps_what_waits_for_the_morning():
    imported = visit("2026-09-17T22:00", booked_at=None, created_at=at("2026-09-16T23:00"))
    assert told(plan(imported, R24)) == ["24h whatsapp 2026-09-17T07:00"]


def test_an_import_counts_from_the_booking_where_that_is_known():
    imported = visit(booked="2026-09-01T09:00", created_at=at("2026-09-16T12:00"))
    assert told(plan(imported, R24, R2)) == [EVE, MORNING]


@pytest.mark.parametrize("learnt", ["2026-09-17T10:00", "2026-09-18T10:00"])
def test_a_visit_that_was_over_when_we_learnt_of_it_has_nothing_before_it(learnt):
    assert plan(visit(booked_at=None, created_at=at(learnt)), R24, R2) == []


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        ("2026-09-12T09:00", [EVE, MORNING]),
        ("2026-09-16T09:29", [EVE, MORNING]),
        ("2026-09-16T09:30", [EVE, MORNING]),
        ("2026-09-16T09:31", ["24h whatsapp covered_by_notice", MORNING]),
        ("2026-09-17T07:31", ["24h whatsapp covered_by_notice", "2h whatsapp covered_by_notice"]),
    ],
)
def test_a_new_version_leaves_out_what_the_change_itself_tells(moved, expected):
    assert told(plan(visit(sequence=1, changed_at=at(moved)), R24, R2)) == expected


def test_a_move_counts_before_a_late_booking():
    moved = visit(booked="2026-09-16T09:50", sequence=1, changed_at=at("2026-09-16T09:55"))
    assert told(plan(moved, R24)) == ["24h whatsapp covered_by_notice"]


def test_rows_of_an_older_version_count_for_nothing():
    sent = rows_of(plan(visit(), R24, R2), [R24, R2], status="sent", was_called=True)
    moved = visit(sequence=1, changed_at=at("2026-09-12T09:00"))
    assert told(plan(moved, R24, R2, rows=sent)) == [EVE, MORNING]


ALL_TYPES = [
    rule("3d", ReminderType.PREPARACION),
    rule("24h"),
    rule("15min", ReminderType.LLEGADA),
    rule("25h", ReminderType.SEGUIMIENTO),
    rule("6mo", ReminderType.CONTROL),
]


@pytest.mark.complaint(
    "A condition on the status guards only some kinds of reminder.",
    about="moves",
    source="LibreBooking/librebooking PR#773",
)
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("scheduled", ["3d", "24h", "15min"]),
        ("confirmed", ["3d", "24h", "15min"]),
        ("checked_in", []),
        ("in_consultation", []),
        ("completed", ["25h", "6mo"]),
        ("cancelled", []),
        pytest.param("no_show", [], id="E2"),
    ],
)
def test_each_status_of_the_visit_wants_its_own_types(status, expected):
    its_visit = visit(status=status, completed_at=at("2026-09-17T11:05"))
    assert [row.rule for row in plan(its_visit, *ALL_TYPES)] == expected


def test_e1_a_follow_up_and_a_check_up_come_after_a_completed_visit():
    done = visit(status="completed", completed_at=at("2026-09-17T11:05"))
    after = [rule("24h", ReminderType.SEGUIMIENTO), rule("6mo", ReminderType.CONTROL)]
    assert told(plan(done, *after)) == ["24h whatsapp 2026-09-18T11:05", "6mo whatsapp 2027-03-17T10:00"]


MAIL_FIRST = ("email", "whatsapp")
OUT, NO_CONTACT = Reason.OPTED_OUT, Reason.NO_CONTACT
STEPS = [
    ("I1a", WHATSAPP_AND_MAIL, {"whatsapp": NO_CONTACT}, ["whatsapp no_contact", "email 2026-09-16T10:00"]),
    ("I1b", MAIL_FIRST, {"email": NO_CONTACT}, ["email no_contact", "whatsapp 2026-09-16T10:00"]),
    ("I3", WHATSAPP_AND_MAIL, {"whatsapp": NO_CONTACT}, ["whatsapp no_contact", "email 2026-09-16T10:00"]),
    ("the first that can, and no other", WHATSAPP_AND_MAIL, {}, ["whatsapp 2026-09-16T10:00"]),
    (
        "refused one of two",
        WHATSAPP_AND_MAIL,
        {"whatsapp": OUT},
        ["whatsapp opted_out", "email 2026-09-16T10:00"],
    ),
    (
        "I2",
        WHATSAPP_AND_MAIL,
        {"whatsapp": NO_CONTACT, "email": NO_CONTACT},
        ["whatsapp no_contact", "email no_contact", "- no_channel"],
    ),
    (
        "refused wherever there is a contact",
        WHATSAPP_AND_MAIL,
        {"whatsapp": OUT, "email": NO_CONTACT},
        ["whatsapp opted_out", "email no_contact", "- opted_out"],
    ),
    (
        "refused everywhere",
        WHATSAPP_AND_MAIL,
        {"whatsapp": OUT, "email": OUT},
        ["whatsapp opted_out", "email opted_out", "- opted_out"],
    ),
    (
        "refused where we could, off elsewhere",
        WHATSAPP_AND_MAIL,
        {"whatsapp": OUT, "email": Reason.CHANNEL_OFF},
        ["whatsapp opted_out", "email channel_off", "- opted_out"],
    ),
    (
        "never asked is not refused",
        WHATSAPP_AND_MAIL,
        {"whatsapp": Reason.NO_CONSENT, "email": OUT},
        ["whatsapp no_consent", "email opted_out", "- no_channel"],
    ),
    ("do not send", (), {}, ["- do_not_send"]),
    ("a channel that nobody speaks of is off", ("push",), {}, ["push channel_off", "- no_channel"]),
]


@pytest.mark.parametrize(
    ("channels", "obstacles", "expected"), [c[1:] for c in STEPS], ids=[c[0] for c in STEPS]
)
def test_a_step_that_cannot_run_is_skipped_at_once(channels, obstacles, expected):
    planned = plan(visit(), rule("24h", channels=channels), reach=reachable(**obstacles))
    assert told(planned) == [f"24h {row}" for row in expected]
    assert {utc(row.scheduled_for) for row in planned} == {"2026-09-16T14:00Z"}


def test_reach_may_differ_by_type():
    reach = {**reachable(), ReminderType.PREPARACION: {"whatsapp": Reason.OPTED_OUT}}
    planned = plan(visit(), R24, rule("2d", ReminderType.PREPARACION), reach=reach)
    assert told(planned) == [EVE, "2d whatsapp opted_out", "2d - opted_out"]


def test_a_late_booking_is_told_on_the_first_channel_that_can():
    late = visit(booked="2026-09-16T12:00")
    by_two = rule("24h", channels=WHATSAPP_AND_MAIL)
    planned = plan(late, by_two, reach=reachable(whatsapp=Reason.NO_CONTACT))
    assert told(planned) == ["24h whatsapp no_contact", "24h email booked_late"]


def test_that_nobody_can_be_reached_weighs_more_than_a_late_booking():
    late = visit(booked="2026-09-16T12:00")
    planned = plan(late, R24, reach=reachable(whatsapp=Reason.NO_CONTACT))
    assert told(planned) == ["24h whatsapp no_contact", "24h - no_channel"]


def test_a_rule_that_has_been_called_says_nothing_more():
    [called] = rows_of(plan(visit(), R24), [R24], status="sent", was_called=True)
    by_mail = replace(R24, channels=("email",))
    assert plan(visit(), by_mail, rows=[called]) == []


def test_a_call_under_the_name_of_another_rule_of_the_same_moment_counts():
    [called] = rows_of(plan(visit(), R24), [R24], status="delivered", was_called=True)
    copy = replace(R24, key="copy")
    assert plan(visit(), copy, rows=[replace(called, rule=None)]) == []
    assert told(plan(visit(), R2, rows=[replace(called, rule=None)])) == [MORNING]


def test_a_rule_that_has_been_called_and_changes_its_moment_does_not_speak_again():
    [called] = rows_of(plan(visit(), R24), [R24], status="sent", was_called=True)
    assert plan(visit(), replace(R2, key=R24.key), rows=[called]) == []


@pytest.mark.parametrize(
    ("status", "reason"),
    [("skipped", Reason.SUPERSEDED), ("skipped", Reason.QUIET_HOURS), ("expired", Reason.TOO_LATE)],
)
def test_what_ended_at_the_last_look_is_not_planned_again(status, reason):
    ended = rows_of(plan(visit(), R24), [R24], status=status, reason=reason)
    assert told(plan(visit(), R24, rows=ended)) == ([f"24h whatsapp {reason}"] if status == "skipped" else [])


def test_what_ended_comes_back_with_another_promise():
    ended = rows_of(plan(visit(), R24), [R24], status="expired", reason=Reason.TOO_LATE)
    assert told(plan(visit(), replace(R2, key="24h"), rows=ended)) == ["24h whatsapp 2026-09-17T08:00"]


def test_a_contact_that_is_added_brings_a_row_back():
    closed = plan(visit(), R24, reach=reachable(whatsapp=Reason.NO_CONTACT))
    assert told(plan(visit(), R24, rows=rows_of(closed, [R24]))) == [EVE]


@pytest.mark.parametrize(
    ("kind", "offset", "until"),
    [
        (ReminderType.CITA_PROXIMA, "24h", "2026-09-17T13:30Z"),
        (ReminderType.CITA_PROXIMA, "20min", "2026-09-17T14:00Z"),
        (ReminderType.PREPARACION, "3d", "2026-09-17T02:00Z"),
        (ReminderType.PREPARACION, "2h", "2026-09-17T14:00Z"),
        (ReminderType.LLEGADA, "15min", "2026-09-17T14:00Z"),
    ],
)
def test_a_row_before_the_visit_is_useful_until_its_minimum_lead(kind, offset, until):
    [planned] = plan(visit(), rule(offset, kind))
    assert utc(planned.useful_until) == until


@pytest.mark.parametrize(
    ("kind", "until"),
    [(ReminderType.SEGUIMIENTO, "2026-09-21T15:05Z"), (ReminderType.CONTROL, "2026-10-18T14:00Z")],
)
def test_a_row_after_the_visit_is_useful_for_some_days(kind, until):
    [planned] = plan(visit(status="completed", completed_at=at("2026-09-17T11:05")), rule("1d", kind))
    assert utc(planned.useful_until) == until
