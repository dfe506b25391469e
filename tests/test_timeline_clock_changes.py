"""What leaves in the weeks when clocks change, and what people read of it: section F of the timeline."""

# The instants alone: test_timeline_clocks.

from __future__ import annotations

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

import pytest

from appointments import booking, clock, local_time
from appointments.agenda_import import read, take_in
from appointments.models import Appointment, Doctor
from reminders import wording
from tests.days import Days, ends
from tests.factories import make_doctor, make_office, make_patient
from tests.timeline_values import utc

pytestmark = pytest.mark.django_db

CHANGES = [
    # place, visit, rule, what leaves, and its instant
    ("F1", "NewYork", "2026-03-08T10:00", "24h", "2026-03-07T09:00", "2026-03-07T14:00Z"),
    ("F1", "NewYork", "2026-03-08T10:00", "1d", "2026-03-07T10:00", "2026-03-07T15:00Z"),
    ("F2", "NewYork", "2026-11-01T10:00", "24h", "2026-10-31T11:00", "2026-10-31T15:00Z"),
    ("F2", "NewYork", "2026-11-01T10:00", "1d", "2026-10-31T10:00", "2026-10-31T14:00Z"),
    ("F11", "Madrid", "2026-03-29T09:00", "24h", "2026-03-28T08:00", "2026-03-28T07:00Z"),
    ("F11", "Madrid", "2026-03-29T09:00", "1d", "2026-03-28T09:00", "2026-03-28T08:00Z"),
    ("beside F2: in Madrid", "Madrid", "2026-10-25T10:00", "24h", "2026-10-24T11:00", "2026-10-24T09:00Z"),
    ("beside F2: in Madrid", "Madrid", "2026-10-25T10:00", "1d", "2026-10-24T10:00", "2026-10-24T08:00Z"),
    (
        "beside F1: in Santiago",
        "Santiago",
        "2026-09-06T10:00",
        "24h",
        "2026-09-05T09:00",
        "2026-09-05T13:00Z",
    ),
    ("beside F1: in Santiago", "Santiago", "2026-09-06T10:00", "1d", "2026-09-05T10:00", "2026-09-05T14:00Z"),
    ("no change there", "Bogota", "2026-03-08T10:00", "24h", "2026-03-07T10:00", "2026-03-07T15:00Z"),
    ("half an hour", "LordHowe", "2026-10-04T10:00", "24h", "2026-10-03T09:30", "2026-10-02T23:00Z"),
    ("half an hour", "LordHowe", "2026-10-04T10:00", "1d", "2026-10-03T10:00", "2026-10-02T23:30Z"),
    ("half an hour back", "LordHowe", "2026-04-05T10:00", "24h", "2026-04-04T10:30", "2026-04-03T23:30Z"),
    ("half an hour back", "LordHowe", "2026-04-05T10:00", "1d", "2026-04-04T10:00", "2026-04-03T23:00Z"),
]


@pytest.mark.parametrize(
    ("place", "start", "offset", "left", "instant"),
    [case[1:] for case in CHANGES],
    ids=[f"{case[0]} {case[3]}" for case in CHANGES],
)
def test_hours_are_elapsed_and_days_keep_the_clock(settings, set_clock, place, start, offset, left, instant):
    days = Days(settings, set_clock, place)
    days.rules(offset)
    days.book(start, booked=f"{start[:4]}-01-15T09:00")
    assert days.until(start) == [f"{offset} whatsapp {left}"]
    assert utc(days.sent[0].at) == instant
    assert wording_of_hour(start) in days.sent[0].message.text


def wording_of_hour(start: str) -> str:
    return f"a las {local_time.as_told(datetime.fromisoformat(start).time())}"


@pytest.mark.complaint(
    "In the night of the change something repeats without end, or never comes.",
    about="clocks",
    source="nextcloud/calendar #2670; Futsch1/medTimer #56, #943",
)
@pytest.mark.parametrize("start", [pytest.param("2026-11-02T01:30", id="F4")])
def test_what_falls_into_an_hour_that_comes_twice_leaves_once(settings, set_clock, start):
    days = Days(settings, set_clock, "NewYork")
    days.quiet("00:00", "00:00")
    days.rules("1d")
    visit = days.book(start)
    assert days.until("2026-11-02T01:00") == ["1d whatsapp 2026-11-01T01:30"]
    assert utc(days.sent[0].at) == "2026-11-01T05:30Z"
    assert ends(visit) == ["1d whatsapp sent"]


@pytest.mark.parametrize("hour", [pytest.param(time(0, 30), id="F5")])
def test_who_types_an_hour_that_does_not_exist_is_told_the_first_that_does(hour):
    office = make_office(time_zone="America/Santiago")
    doctor = make_doctor(office=office)
    with pytest.raises(local_time.DoesNotExist) as refused:
        booking.book(
            doctor=doctor, patient=make_patient(), office=office, date=date(2026, 9, 6), start_time=hour,
            actor=booking.SYSTEM, booked_at=clock.now(),
        )  # fmt: skip
    assert "no existe ese día" in str(refused.value)
    assert "01:00 del 06/09/2026" in str(refused.value)
    assert utc(refused.value.first_valid) == "2026-09-06T04:00Z"
    assert not Appointment.objects.exists()


@pytest.mark.parametrize("cell", [pytest.param("00:30", id="F5")])
def test_an_import_takes_the_hour_after_the_gap_and_says_so(cell):
    make_doctor(name="Ruiz", office=make_office(time_zone="America/Santiago"))
    agenda = f"ID;Paciente;Teléfono;Médico;Fecha;Hora\n;Ana;;Ruiz;06/09/2026;{cell}"
    now = datetime(2026, 8, 1, 12, tzinfo=UTC)
    report = take_in(read(agenda.encode()), doctors=Doctor.objects.all(), now=now, dry_run=False)
    visit = Appointment.objects.get()
    assert (visit.start_time, utc(visit.starts_at)) == (time(1, 30), "2026-09-06T04:30Z")
    [note] = report.notes
    assert "1:30 a. m." in note.text


@pytest.mark.parametrize(
    ("start", "left", "instant"),
    [pytest.param("2026-04-05T08:00", "2026-04-05T07:00", "2026-04-05T11:00Z", id="F7")],
)
def test_quiet_hours_hold_in_the_hour_that_comes_twice(settings, set_clock, start, left, instant):
    days = Days(settings, set_clock, "Santiago")
    days.quiet("22:30", "07:00")
    days.rules("9h")
    days.book(start, booked="2026-03-01T09:00")
    assert days.until(start) == [f"9h whatsapp {left}"]
    assert utc(days.sent[0].at) == instant


@pytest.mark.complaint(
    "Over the change of clocks everything is an hour off.",
    about="clocks",
    source="calcom/cal.diy #1092; department-of-veterans-affairs/va.gov-team #102262",
)
@pytest.mark.parametrize("start", [pytest.param("2026-04-15T10:00", id="F9")])
def test_what_is_booked_in_winter_for_summer_is_at_the_hour_of_the_clock_then(settings, set_clock, start):
    days = Days(settings, set_clock, "Madrid")
    days.rules("24h")
    visit = days.book(start, booked="2026-02-10T09:00")
    assert utc(visit.starts_at) == "2026-04-15T08:00Z"
    assert days.until(start) == ["24h whatsapp 2026-04-14T10:00"]
    assert "mañana, miércoles 15 de abril a las 10:00 a. m." in days.sent[0].message.text


@pytest.mark.complaint(
    "Near midnight the message names the wrong day.",
    about="clocks",
    source="calcom/cal.diy PR#9059, and read in its code",
)
@pytest.mark.parametrize(
    ("place", "start", "sent_at", "said"),
    [
        pytest.param(
            "America/New_York", "2026-03-08T14:00Z", "2026-03-07T15:00Z",
            "mañana, domingo 8 de marzo, a las 10:00 a. m.", id="F12",
        ),
        pytest.param(
            "America/New_York", "2026-03-08T14:00Z", "2026-03-05T15:00Z",
            "el domingo 8 de marzo, a las 10:00 a. m.", id="F12 days ahead",
        ),
        pytest.param(
            "Europe/Madrid", "2026-10-25T22:30Z", "2026-10-24T21:00Z",
            "mañana, domingo 25 de octubre, a las 11:30 p. m.", id="beside F12: near midnight, to winter",
        ),
        pytest.param(
            "America/Santiago", "2026-09-07T02:30Z", "2026-09-05T22:00Z",
            "mañana, domingo 6 de septiembre, a las 11:30 p. m.", id="beside F12: near midnight, to summer",
        ),
    ],
)  # fmt: skip
def test_day_and_hour_are_those_of_the_visit_and_not_of_the_offset_of_today(place, start, sent_at, said):
    starts_at, now = datetime.fromisoformat(start), datetime.fromisoformat(sent_at)
    assert wording.when(starts_at, ZoneInfo(place), now) == said
