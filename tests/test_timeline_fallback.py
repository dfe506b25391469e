"""A step that ends without success hands the reminder to the rule's next channel, once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reminders.timeline import Reason, Row
from tests.timeline_values import WHATSAPP_AND_MAIL, at, plan, reachable, rows_of, rule, told, visit

R24 = rule("24h", channels=WHATSAPP_AND_MAIL)
PROMISE = "2026-09-16T10:00"


def rows(status: str, reason: str = "", *, was_called: bool = True, channel: str = "whatsapp") -> list[Row]:
    planned = rows_of(plan(visit(), R24), [R24])
    return [
        replace(row, status=status, reason=reason, was_called=was_called, channel=channel) for row in planned
    ]


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("failed", "refused"),
        ("failed", "attempts_exhausted"),
        ("failed", "no_answer"),
        ("skipped", "no_contact"),
        ("skipped", "opted_out"),
        ("skipped", "channel_off"),
        ("cancelled", "rule_disabled"),
    ],
)
def test_a_called_step_that_ended_without_success_is_followed_by_the_next_channel_at_the_same_promise(
    status, reason
):
    [next_step] = plan(visit(), R24, rows=rows(status, reason))
    assert told([next_step]) == [f"24h email {PROMISE}"]
    assert next_step.in_place_of == "whatsapp"


@pytest.mark.parametrize("status", ["pending", "sending", "unknown", "sent", "delivered", "read"])
def test_nothing_follows_while_the_step_may_succeed_or_has(status):
    assert plan(visit(), R24, rows=rows(status)) == []


@pytest.mark.parametrize("reason", ["superseded", "quiet_hours"])
def test_nothing_follows_a_step_that_the_clock_decided(reason):
    assert plan(visit(), R24, rows=rows("skipped", reason)) == []


def test_a_step_that_could_not_even_be_composed_is_followed_too():
    assert told(plan(visit(), R24, rows=rows("failed", "refused", was_called=False))) == [
        f"24h email {PROMISE}"
    ]


def test_an_unusable_next_channel_is_passed_over_with_its_reason():
    three = rule("24h", channels=("whatsapp", "email", "in_app"))
    planned = plan(
        visit(),
        three,
        rows=rows("failed", "refused"),
        reach=reachable(email=Reason.NO_CONTACT, in_app=None),
    )
    assert told(planned) == ["24h email no_contact", f"24h in_app {PROMISE}"]


def test_with_no_channel_left_the_failure_itself_is_the_end():
    planned = plan(visit(), R24, rows=rows("failed", "refused"), reach=reachable(email=Reason.NO_CONTACT))
    assert told(planned) == ["24h email no_contact"]


def test_with_no_channel_left_what_was_given_up_before_gets_a_closing_row():
    planned = plan(visit(), R24, rows=rows("skipped", "no_contact"), reach=reachable(email=Reason.NO_CONTACT))
    assert told(planned) == ["24h email no_contact", "24h - no_channel"]


def test_a_rule_of_one_channel_ends_with_it():
    alone = rule("24h")
    assert plan(visit(), alone, rows=rows("failed", "refused")) == []
    assert told(plan(visit(), alone, rows=rows("skipped", "no_contact"))) == ["24h - no_channel"]


def test_both_channels_that_failed_are_not_tried_again():
    tried = [*rows("failed", "refused"), *rows("failed", "no_answer", channel="email")]
    assert plan(visit(), R24, rows=tried) == []


def test_a_next_step_that_expired_is_not_revived():
    tried = [
        *rows("failed", "refused"),
        *rows("expired", "too_late", channel="email", was_called=False),
    ]
    assert plan(visit(), R24, rows=tried) == []


def test_a_first_channel_that_became_usable_meanwhile_is_tried_before_giving_up():
    tried = [
        *rows("skipped", "no_contact", was_called=False),
        *rows("failed", "refused", channel="email"),
    ]
    assert told(plan(visit(), R24, rows=tried)) == [f"24h whatsapp {PROMISE}"]


def test_an_unusable_template_sends_the_next_channel_in_its_place():
    planned = plan(visit(), R24, rows=rows("skipped", "template_unavailable", was_called=False))
    assert told(planned) == ["24h whatsapp template_unavailable", f"24h email {PROMISE}"]


def test_an_unusable_template_with_no_other_channel_leaves_no_channel():
    planned = plan(
        visit(),
        R24,
        rows=rows("skipped", "template_unavailable", was_called=False),
        reach=reachable(email=Reason.NO_CONTACT),
    )
    assert told(planned)[-1] == "24h - no_channel"


def test_a_moved_visit_starts_anew_on_the_first_channel():
    moved = visit("2026-09-18T10:00", sequence=1, changed_at=at("2026-09-16T11:00"))
    assert told(plan(moved, R24, rows=rows("failed", "refused"))) == ["24h whatsapp 2026-09-17T10:00"]
