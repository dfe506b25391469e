"""Visits and messages of years in which the clocks of Caracas were others: section G of the timeline."""

# The instants alone: test_timeline_clocks.

from __future__ import annotations

from datetime import datetime

import pytest
from django.test import Client
from django.urls import reverse

from appointments.models import Appointment
from reminders import timeline, wording
from reminders.models import ReminderDelivery
from reminders.timeline import OffsetUnit
from reminders.visits import visit_of
from tests.factories import make_appointment, make_delivery, make_rule, make_user
from tests.timeline_values import ZONES, rule, told, utc, visit
from tests.timeline_values import plan as planned_for

ROWS = [
    # visit, rule, when by the clock of Caracas, and the instant
    ("G1", "2007-12-09T10:00", "24h", "2007-12-08T10:30", "2007-12-08T14:30Z"),
    ("G1", "2007-12-09T10:00", "1d", "2007-12-08T10:00", "2007-12-08T14:00Z"),
    ("G3", "2016-05-01T10:00", "24h", "2016-04-30T09:30", "2016-04-30T14:00Z"),
    ("beside G3", "2016-05-01T10:00", "1d", "2016-04-30T10:00", "2016-04-30T14:30Z"),
    ("beside G2: between the changes", "2010-06-02T10:00", "24h", "2010-06-01T10:00", "2010-06-01T14:30Z"),
    (
        "beside G4: a month over the change",
        "2016-05-15T10:00",
        "1mo",
        "2016-04-15T10:00",
        "2016-04-15T14:30Z",
    ),
]


@pytest.mark.parametrize(
    ("start", "offset", "local", "instant"),
    [case[1:] for case in ROWS],
    ids=[f"{case[0]} {case[2]}" for case in ROWS],
)
def test_each_moment_has_the_offset_of_its_time(start, offset, local, instant):
    years_before = f"{int(start[:4]) - 1}-01-10T09:00"
    planned = planned_for(visit(start, booked=years_before), rule(offset))
    assert told(planned) == [f"{offset} whatsapp {local}"]
    assert utc(planned[0].scheduled_for) == instant


HISTORY = ["2006-06-01T13:00Z", "2010-06-01T13:30Z", "2020-06-01T13:00Z"]


@pytest.mark.parametrize("instant", [pytest.param(text, id=f"G5 {text[:4]}") for text in HISTORY])
def test_a_message_of_then_tells_nine_oclock(instant):
    moment = datetime.fromisoformat(instant)
    assert wording.when(moment, ZONES["Caracas"], moment).endswith("a las 9:00 a. m.")


@pytest.mark.django_db
@pytest.mark.parametrize("instants", [pytest.param(HISTORY, id="G5")])
def test_the_list_of_what_was_sent_tells_nine_oclock(instants):
    for instant in instants:
        its_rule = make_rule(-60 * (int(instant[:4]) - 2000))
        row = make_delivery(
            appointment=make_appointment(at=f"{instant[:10]}T10:00", booked_at=None), rule=its_rule
        )
        ReminderDelivery.objects.filter(pk=row.pk).update(scheduled_for=datetime.fromisoformat(instant))
    client = Client()
    client.force_login(make_user(is_superuser=True))
    page = client.get(reverse("admin:reminders_reminderdelivery_changelist")).content.decode()
    for year in ("2006", "2010", "2020"):
        assert f"01/06/{year}, 9:00 a. m." in page
        # The visit itself, an hour later.
        assert f"01/06/{year}, 10:00 a. m." in page
    assert "9:30" not in page


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("start", "starts_at", "day_before"),
    [
        pytest.param("2007-12-09T10:00", "2007-12-09T14:30Z", "2007-12-08T14:00Z", id="G1"),
        pytest.param("2016-05-01T10:00", "2016-05-01T14:00Z", "2016-04-30T14:30Z", id="beside G3"),
    ],
)
def test_the_database_knows_these_offsets_too(start, starts_at, day_before):
    stored = Appointment.objects.get(pk=make_appointment(at=start, booked_at=None).pk)
    assert utc(stored.starts_at) == starts_at
    one_day = rule("1d")
    assert one_day.offset_unit is OffsetUnit.DAYS
    assert utc(timeline.moment(one_day, visit_of(stored))) == day_before
