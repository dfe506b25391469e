"""Whatever is changed of a rule: what the preview says is what the planner then does."""

from __future__ import annotations

import copy
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from hypothesis import HealthCheck, Phase, assume, event, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from appointments import booking
from appointments.models import Appointment, Doctor, Specialty
from reminders import planner, preview, timeline
from reminders.models import Mark, ReminderDelivery, ReminderRule
from reminders.visits import quiet_hours_of, visit_of
from tests.factories import agree, caracas, make_appointment, make_doctor, make_patient, make_specialty
from tests.timeline_values import LONG_AGO

pytestmark = pytest.mark.django_db
BOOKED, CHANGED = "2026-09-10T09:00", "2026-09-16T09:00"


@pytest.fixture(autouse=True)
def channels_that_are_on(settings) -> None:
    settings.REMINDER_CHANNELS = ["whatsapp", "email"]


offsets = st.one_of(
    st.integers(1, 96).map(lambda hours: (hours * 60, "hours")),
    st.integers(1, 4).map(lambda days: (days * 1_440, "days")),
    st.sampled_from([(1_440, "hours"), (120, "hours"), (2_880, "hours")]),
)
channels = st.permutations(["whatsapp", "email", "in_app"]).flatmap(
    lambda order: st.sampled_from([2, 1, 3, 2, 0]).map(lambda count: order[:count])
)
kinds = st.sampled_from([*["cita_proxima"] * 5, "preparacion", "seguimiento"])
# Of the two doctors and the two specialties, or nobody's and of all.
levels = st.tuples(st.sampled_from([None, None, 0, 1]), st.sampled_from([None, None, None, 0, 1]))


@st.composite
def terms(draw: st.DrawFn) -> dict[str, Any]:
    """A rule, with the number of its doctor and specialty in their place."""
    kind = draw(kinds)
    minutes, unit = draw(offsets)
    doctor, specialty = draw(levels)
    return {
        "reminder_type": kind,
        "offset_minutes": minutes if kind == "seguimiento" else -minutes,
        "offset_unit": unit,
        "channels": draw(channels),
        "is_enabled": draw(st.sampled_from([True, True, True, False])),
        "doctor": doctor,
        "specialty": specialty,
    }


@st.composite
def visits(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "hours_ahead": draw(
            st.sampled_from([30, 60, 100, 4, -6]).flatmap(lambda hours: st.integers(hours - 4, hours + 20))
        ),
        "doctor": draw(st.integers(0, 1)),
        "specialty": draw(st.sampled_from([None, 0, 1])),
        "email": draw(st.sampled_from([True, True, False])),
        "agrees": draw(st.sampled_from([True, True, False])),
        "then": draw(st.sampled_from([*[""] * 8, "completed", "moved", "just booked", "cancelled"])),
    }


fates = st.lists(
    st.sampled_from(["", "", "", "sent", "fell", "retries", "sending", "expired", "superseded"]), min_size=1
)
edits = st.one_of(
    st.sampled_from(
        [{"moment"}, {"moment", "words"}, "delete", "add", {"is_enabled"}, {"channels"}, {"words"}]
    ),
    st.sets(
        st.sampled_from(["moment", "channels", "is_enabled", "doctor", "specialty"]), min_size=1, max_size=3
    ),
)


class World:
    """Two doctors and two specialties, with what was drawn for them."""

    def __init__(self) -> None:
        self.doctors: list[Doctor] = [make_doctor(), make_doctor()]
        self.specialties: list[Specialty] = [make_specialty("Cardiología"), make_specialty("Pediatría")]

    def set_clock(self, moment: datetime) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('amedi.now', %s, true)", [moment.isoformat()])

    def fields(self, drawn: dict[str, Any]) -> dict[str, Any]:
        doctor, specialty = drawn["doctor"], drawn["specialty"]
        return drawn | {
            "doctor": None if doctor is None else self.doctors[doctor],
            "specialty": None if specialty is None else self.specialties[specialty],
        }

    def save(self, rule: ReminderRule) -> None:
        """Refuses the draw where the database refuses the rule."""
        try:
            with transaction.atomic():
                rule.save()
        except IntegrityError:
            assume(False)

    def book(self, drawn: dict[str, Any], number: int) -> Appointment:
        start = caracas(CHANGED) + timedelta(hours=drawn["hours_ahead"], minutes=number)
        patient = make_patient(email=f"p{number}@example.com" if drawn["email"] else "")
        if drawn["agrees"]:
            agree(patient)
        return make_appointment(
            at=start, doctor=self.doctors[drawn["doctor"]], patient=patient, booked_at=BOOKED,
            specialty=None if drawn["specialty"] is None else self.specialties[drawn["specialty"]],
            is_overbooked=True,
        )  # fmt: skip

    def live_on(self, visit: Appointment, then: str) -> None:
        match then:
            case "completed":
                booking.complete(visit, actor=booking.SYSTEM)
            case "cancelled":
                booking.cancel(visit, actor=booking.SYSTEM)
            case "moved":
                moved = visit.starts_at.astimezone(visit.office.zone) + timedelta(days=1)
                booking.reschedule(visit, date=moved.date(), start_time=moved.time(), actor=booking.SYSTEM)


def befall(row: ReminderDelivery, fate: str, now: datetime) -> None:
    """What the dispatcher has made of a pending row."""
    called: dict[str, Any] = {"called_at": now, "attempt": 1}
    changes: dict[str, dict[str, Any]] = {
        "sent": called | {"status": "sent"},
        "fell": called | {"status": "failed", "reason": "refused"},
        "retries": called,
        "sending": {"status": "sending", "lease_until": now, "attempt": 1},
        "expired": {"status": "expired", "reason": "too_late"},
        "superseded": {"status": "skipped", "reason": "superseded"},
    }
    if fate:
        try:
            with transaction.atomic():
                ReminderDelivery.objects.filter(pk=row.pk).update(**changes[fate])
        except IntegrityError:
            pass  # another rule has spoken for this moment


def pending() -> dict[Any, ReminderDelivery]:
    return {row.pk: row for row in ReminderDelivery.objects.filter(status="pending").select_related("rule")}


def edited(rule: ReminderRule, edit: set[str], new: dict[str, Any]) -> ReminderRule:
    if "moment" in edit:
        same_side = (rule.offset_minutes < 0) == (new["offset_minutes"] < 0)
        rule.offset_minutes = new["offset_minutes"] if same_side else -new["offset_minutes"]
        rule.offset_unit = new["offset_unit"]
    for name in edit & {"channels", "doctor", "specialty"}:
        setattr(rule, name, new[name])
    if "is_enabled" in edit:
        rule.is_enabled = not rule.is_enabled
    if "words" in edit:
        rule.body_template = "Otra cosa."
    return rule


def is_kept(row: ReminderDelivery, edited_key: int, before: list[timeline.Rule], now: datetime) -> bool:
    """Told from the tables: the rule says another moment, or no longer holds, and the row is still there."""
    visit = row.appointment
    level = {"doctor": visit.doctor_id, "specialty": visit.specialty_id}
    after = [rule.as_planned() for rule in ReminderRule.objects.all()]
    in_force = {rule.key: rule for rule in timeline.effective(after, **level)}
    if row.rule_id not in in_force:
        return row.rule_id in {rule.key for rule in timeline.effective(before, **level)}
    if row.rule_id != edited_key or row.called_at or row.fallback_of_id:
        return False
    since_ever = timeline.replace(in_force[row.rule_id], since=LONG_AGO, channels=(row.channel,))
    [named] = timeline.plan(
        visit_of(visit), rules=[since_ever], reach={since_ever.type: {row.channel: None}},
        quiet=quiet_hours_of(visit), rows=[],
    )  # fmt: skip
    return row.scheduled_for != named.scheduled_for <= now


@hypothesis_settings(
    deadline=None, max_examples=40, phases=set(Phase) - {Phase.explain},
    suppress_health_check=[
        HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much,
    ],
)  # fmt: skip
@given(
    drawn_rules=st.lists(terms(), min_size=2, max_size=5),
    drawn_visits=st.lists(visits(), min_size=2, max_size=4),
    drawn_fates=fates,
    edit=edits,
    new=terms(),
    which=st.integers(0, 4),
)
def test_the_counts_are_those_of_the_planner(drawn_rules, drawn_visits, drawn_fates, edit, new, which):
    with transaction.atomic():
        _try(drawn_rules, drawn_visits, drawn_fates, edit, new, which)
        transaction.set_rollback(True)


def _try(drawn_rules, drawn_visits, drawn_fates, edit, new, which) -> None:
    world, changed_at = World(), caracas(CHANGED)
    world.set_clock(caracas("2026-09-09T09:00"))
    ReminderRule.objects.all().delete()
    for drawn in drawn_rules:
        world.save(ReminderRule(**world.fields(drawn)))
    Mark.objects.all().delete()
    world.set_clock(caracas(BOOKED))
    booked = [
        (world.book(drawn, number), drawn["then"])
        for number, drawn in enumerate(drawn_visits)
        if drawn["then"] != "just booked"
    ]
    planner.plan_marked(now=caracas(BOOKED))
    world.set_clock(changed_at - timedelta(hours=2))
    for visit, then in booked:
        world.live_on(visit, then)
    planner.plan_marked(now=changed_at - timedelta(hours=2))
    rows = ReminderDelivery.objects.filter(status="pending").order_by(
        "scheduled_for", "appointment__starts_at"
    )
    for row, fate in zip(list(rows), drawn_fates, strict=False):
        befall(row, fate, changed_at - timedelta(hours=1))
    planner.plan_marked(now=changed_at - timedelta(hours=1))

    world.set_clock(changed_at)
    unplanned = [
        world.book(drawn, number)
        for number, drawn in enumerate(drawn_visits)
        if drawn["then"] == "just booked"
    ]
    rule = one_that_matters(which)
    versions = [copy.copy(rule)]
    if edit == "add":
        rule = ReminderRule(**world.fields(new))
        versions = [rule]
    elif edit != "delete":
        versions.append(edited(rule, edit, world.fields(new)))
    concerned = versions if len({terms_of(rule) for rule in versions}) == len(versions) else []
    foreign = {visit.pk for visit in unplanned if not any(concerns(rule, visit) for rule in concerned)}
    before, rules_before = pending(), [rule.as_planned() for rule in ReminderRule.objects.all()]
    tables = as_they_stand()
    told = (preview.of_deletion if edit == "delete" else preview.of_rule)(rule, now=changed_at)
    assert as_they_stand() == tables

    key = rule.pk
    if edit == "delete":
        rule.delete()
    else:
        world.save(rule)
    planner.plan_marked(now=changed_at)
    after = {pk: row for pk, row in pending().items() if row.appointment_id not in foreign}
    before = {pk: row for pk, row in before.items() if row.appointment_id not in foreign}
    moved, unmoved = [], []
    for pk in before.keys() & after.keys():
        same = before[pk].scheduled_for == after[pk].scheduled_for
        (unmoved if same else moved).append((before[pk], after[pk]))
    kept = [row for _, row in unmoved if is_kept(row, key or rule.pk, rules_before, changed_at)]
    assert (told.moved, told.kept, told.vanished, told.new, told.unplannable) == (
        len(moved), len(kept), len(before.keys() - after.keys()), len(after.keys() - before.keys()), 0,
    )  # fmt: skip
    assert {(move.visit, move.channel, move.before, move.after) for move in told.first_moves} == {
        (row.appointment_id, row.channel, old.scheduled_for, row.scheduled_for) for old, row in moved
    }
    for name in ("moved", "kept", "vanished", "new"):
        event(f"{name}: {bool(getattr(told, name))}")


def one_that_matters(which: int) -> ReminderRule:
    """One of the rules with something pending, or one more."""
    rules = list(ReminderRule.objects.order_by("pk"))
    busy = set(ReminderDelivery.objects.filter(status="pending").values_list("rule", flat=True))
    rules.sort(key=lambda rule: rule.pk not in busy)
    return rules[which % min(len(rules), len(busy) + 1)]


def as_they_stand() -> list[Any]:
    tables = (ReminderDelivery, ReminderRule, Mark)
    return [list(table.objects.order_by("pk").values()) for table in tables]


def terms_of(rule: ReminderRule) -> tuple[Any, ...]:
    level = rule.doctor_id, rule.specialty_id
    return (*level, rule.is_enabled, rule.offset_minutes, rule.offset_unit, tuple(rule.channels))


def concerns(rule: ReminderRule, visit: Appointment) -> bool:
    levels = (rule.doctor_id, visit.doctor_id), (rule.specialty_id, visit.specialty_id)
    return all(ours in (None, theirs) for ours, theirs in levels)
