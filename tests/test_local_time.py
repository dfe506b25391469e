"""What a wall clock means in the nights when it jumps (P3), in Python and in the trigger."""

from datetime import date, time
from zoneinfo import ZoneInfo

import pytest
from django.db import connection

from appointments import local_time

CASES = [
    ("2026-09-17", "10:00", "America/Caracas", "2026-09-17T14:00"),
    ("2026-11-01", "01:30", "America/New_York", "2026-11-01T05:30"),
    ("2026-03-08", "02:30", "America/New_York", "2026-03-08T07:30"),
    ("2026-09-06", "00:30", "America/Santiago", "2026-09-06T04:30"),
    ("2026-04-04", "23:30", "America/Santiago", "2026-04-05T02:30"),
    ("2007-12-09", "02:45", "America/Caracas", "2007-12-09T06:45"),
    ("2007-12-09", "10:00", "America/Caracas", "2007-12-09T14:30"),
    ("2016-05-01", "02:40", "America/Caracas", "2016-05-01T07:10"),
    ("2026-10-25", "02:30", "Europe/Madrid", "2026-10-25T00:30"),
    ("2026-04-15", "10:00", "Europe/Madrid", "2026-04-15T08:00"),
]


@pytest.mark.parametrize(("day", "clock", "zone", "utc"), CASES)
def test_a_repeated_hour_means_the_first_and_a_skipped_one_moves_ahead(day, clock, zone, utc, db):
    in_python = local_time.instant(date.fromisoformat(day), time.fromisoformat(clock), ZoneInfo(zone))
    with connection.cursor() as cursor:
        cursor.execute("SELECT appointments_instant(%s, %s, %s)", [day, clock, zone])
        [in_sql] = cursor.fetchone()
    assert f"{in_python:%Y-%m-%dT%H:%M}" == utc
    assert in_sql == in_python


@pytest.mark.parametrize(
    ("day", "clock", "zone", "first"),
    [
        ("2026-09-06", "00:30", "America/Santiago", "01:00"),
        ("2026-03-08", "02:30", "America/New_York", "03:00"),
        ("2016-05-01", "02:40", "America/Caracas", "03:00"),
    ],
)
def test_staff_who_type_a_skipped_hour_are_told_the_first_valid_one(day, clock, zone, first):
    with pytest.raises(local_time.DoesNotExist) as refused:
        local_time.require(date.fromisoformat(day), time.fromisoformat(clock), ZoneInfo(zone))
    assert first in str(refused.value)


def test_a_repeated_hour_is_known_as_such():
    zone = ZoneInfo("America/New_York")
    assert local_time.is_repeated(date(2026, 11, 1), time(1, 30), zone)
    assert not local_time.is_repeated(date(2026, 11, 1), time(3, 30), zone)
