"""The visit as a calendar takes it: parsed back, as a calendar would."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from icalendar import Calendar, Event, Timezone

from appointments import booking
from appointments.models import Appointment, Office
from reminders import calendar_file, links
from tests.factories import CARACAS, MARK, caracas, make_appointment, make_doctor, make_office, make_patient

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 9, 11, 12, 0, 7, 123456, tzinfo=UTC)


@pytest.fixture(autouse=True)
def addresses(settings):
    settings.CLIENT_URL = "https://citas.example.org:8443"
    settings.DEFAULT_FROM_EMAIL = "Consultorio <citas@example.org>"


def file_of(visit: Appointment) -> str:
    return calendar_file.render(calendar_file.entry_of(visit), now=NOW)


def parsed(visit: Appointment) -> tuple[Calendar, Event]:
    visit.refresh_from_db()
    calendar = Calendar.from_ical(file_of(visit))
    [event] = calendar.events
    assert not calendar.errors
    assert not event.errors
    return calendar, event


def move(visit: Appointment, *, days: int = 1) -> None:
    booking.reschedule(
        visit,
        date=visit.date + timedelta(days=days),
        start_time=visit.start_time,
        actor=booking.SYSTEM,
    )


def test_it_says_who_where_and_when_in_the_zone_of_the_place():
    visit = make_appointment(duration_minutes=45)
    calendar, event = parsed(visit)
    assert calendar["METHOD"] == "PUBLISH"
    assert event["SUMMARY"] == f"Cita con {visit.doctor}"
    assert event["LOCATION"] == "Torre Médica, piso 3, Av. Principal de Las Mercedes"
    assert event["STATUS"] == "CONFIRMED"
    assert event["URL"] == links.visit_url(visit)
    assert event["DTSTAMP"].dt == NOW.replace(microsecond=0)
    assert event["DTSTART"].params["TZID"] == event["DTEND"].params["TZID"] == "America/Caracas"
    assert event["DTSTART"].dt == caracas("2026-09-17T10:00")
    assert event["DTEND"].dt - event["DTSTART"].dt == timedelta(minutes=45)
    assert event["ORGANIZER"] == "mailto:citas@example.org"
    assert event["ORGANIZER"].params["CN"] == str(visit.doctor)


def test_it_says_nothing_of_the_patient():
    assert MARK not in file_of(make_appointment())


@pytest.mark.parametrize("zone", ["America/Caracas", "America/New_York", "Europe/Madrid"])
def test_it_brings_the_clock_changes_of_the_place_along(zone):
    visit = make_appointment(office=make_office(time_zone=zone))
    calendar, event = parsed(visit)
    [rules] = [part for part in calendar.subcomponents if isinstance(part, Timezone)]
    assert rules["TZID"] == event["DTSTART"].params["TZID"] == zone
    start = visit.starts_at.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    assert rules.to_tz().utcoffset(start) == ZoneInfo(zone).utcoffset(start)


def test_the_entry_keeps_its_name_and_climbs_with_whatever_happens():
    visit = make_appointment()
    steps = [parsed(visit)]
    for happens in (
        move,
        lambda visit: booking.cancel(visit, actor=booking.SYSTEM),
        lambda visit: booking.reinstate(visit, actor=booking.SYSTEM),
        move,
    ):
        happens(visit)
        steps.append(parsed(visit))
    assert {event["UID"] for _, event in steps} == {f"{visit.pk}@citas.example.org"}
    numbers = [int(event["SEQUENCE"]) for _, event in steps]
    assert numbers == sorted(set(numbers))
    assert [calendar["METHOD"] for calendar, _ in steps] == [
        "PUBLISH", "PUBLISH", "CANCEL", "PUBLISH", "PUBLISH",
    ]  # fmt: skip


def test_a_confirmation_is_no_new_entry():
    visit = make_appointment()
    before = parsed(visit)[1]["SEQUENCE"]
    booking.confirm(visit, actor=booking.SYSTEM)
    assert parsed(visit)[1]["SEQUENCE"] == before


def test_a_cancelled_visit_takes_its_entry_out():
    visit = make_appointment()
    booking.cancel(visit, actor=booking.SYSTEM)
    calendar, event = parsed(visit)
    assert (calendar["METHOD"], event["STATUS"]) == ("CANCEL", "CANCELLED")
    assert event["DTSTART"].dt == caracas("2026-09-17T10:00")


def test_hard_words_come_through_and_cannot_add_lines_of_their_own():
    office = make_office(
        name='Torre; "Ñandú", piso\\3\r\nATTENDEE:mailto:x@example.org', address="Av. " + "Ñ" * 120
    )
    visit = make_appointment(doctor=make_doctor(name="Ruiz; Carmen, «la» 🩺\nBEGIN:VALARM", office=office))
    text = file_of(visit)
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))
    assert "\n" not in text.replace("\r\n", "")
    assert text.endswith("END:VCALENDAR\r\n")
    _, event = parsed(visit)
    assert "ATTENDEE" not in event
    assert not event.subcomponents
    assert event["LOCATION"].startswith('Torre; "Ñandú", piso\\3 ATTENDEE:mailto:x@example.org, Av. ÑÑ')
    assert event["SUMMARY"] == "Cita con Dra. Ruiz; Carmen, «la» 🩺 BEGIN:VALARM"


def test_a_video_call_takes_place_at_its_link():
    visit = make_appointment(modality="virtual", video_url="https://video.example.org/1")
    _, event = parsed(visit)
    assert event["LOCATION"] == event["URL"] == "https://video.example.org/1"
    assert event["DESCRIPTION"].split("\n") == [
        "Entrar a la videollamada: https://video.example.org/1",
        f"Ver, confirmar o cancelar la cita: {links.visit_url(visit)}",
    ]
    assert "Torre" not in file_of(visit)


@pytest.mark.parametrize("video_url", ["", "javascript:alert(1)"])
def test_a_video_call_without_a_link_says_that_it_will_come(video_url):
    visit = make_appointment(modality="virtual", video_url=video_url)
    _, event = parsed(visit)
    assert event["LOCATION"] == "Por videollamada"
    assert event["URL"] == links.visit_url(visit)
    assert "El consultorio le enviará el enlace" in event["DESCRIPTION"]


def test_a_cancelled_video_call_does_not_lead_into_it():
    visit = make_appointment(modality="virtual", video_url="https://video.example.org/1")
    booking.cancel(visit, actor=booking.SYSTEM)
    visit.refresh_from_db()
    assert "video.example.org" not in file_of(visit)


@pytest.mark.parametrize(
    ("zone", "remarks"),
    [
        ("Europe/Madrid", ["La cita es a las 10:00 a. m. (hora de Caracas)."]),
        ("America/La_Paz", []),
        ("", []),
    ],
)
def test_it_says_the_hour_of_the_place_where_the_calendar_will_show_another(zone, remarks):
    visit = make_appointment(patient=make_patient(time_zone=zone))
    _, event = parsed(visit)
    assert event["DESCRIPTION"].split("\n")[:-1] == remarks


def test_a_place_without_an_address_is_named_alone():
    visit = make_appointment(office=make_office(address=""))
    assert parsed(visit)[1]["LOCATION"] == "Torre Médica, piso 3"


def test_a_corrected_zone_moves_the_entry():
    visit = make_appointment(at=datetime.now(CARACAS).replace(tzinfo=None, microsecond=0) + timedelta(days=3),
                             patient=make_patient())  # fmt: skip
    before = parsed(visit)[1]["DTSTART"].dt
    Office.objects.filter(pk=visit.office_id).update(time_zone="Europe/Madrid")
    visit = Appointment.objects.get(pk=visit.pk)
    after = parsed(visit)[1]["DTSTART"]
    assert after.params["TZID"] == "Europe/Madrid"
    assert after.dt.replace(tzinfo=None) == before.replace(tzinfo=None)
