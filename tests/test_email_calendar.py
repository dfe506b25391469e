"""The visit comes along as an entry for the patient's calendar."""

from __future__ import annotations

from datetime import timedelta

import pytest
from icalendar import Calendar

from reminders import letter
from reminders.timeline import ReminderType
from tests.mail_values import START, make_entry, make_message


def attached(message):
    """The mail's attachment, as a calendar reads it, and its MIME part."""
    mime = letter.mail_of(letter.write(message)).message()
    [part] = [part for part in mime.walk() if part.get_content_type() == "text/calendar"]
    return Calendar.from_ical(part.get_payload(decode=True)), part


def test_the_visit_is_attached_with_its_uid_and_sequence():
    calendar, part = attached(make_message(entry=make_entry()))
    assert part.get_filename() == "cita.ics"
    assert (part.get_param("method"), part.get_content_charset()) == ("PUBLISH", "utf-8")
    [event] = calendar.walk("VEVENT")
    assert calendar["METHOD"] == "PUBLISH"
    assert (event["UID"], event["SEQUENCE"]) == ("visit@citas.example.org", 2)
    assert event["DTSTART"].dt == START
    assert event["SUMMARY"] == "Cita con Dra. Cármen Ruiz"


def test_a_cancelled_visit_takes_its_entry_away():
    message = make_message(entry=make_entry(sequence=3, is_cancelled=True))
    calendar, part = attached(message)
    assert (calendar["METHOD"], part.get_param("method")) == ("CANCEL", "CANCEL")
    [event] = calendar.walk("VEVENT")
    assert (event["UID"], event["SEQUENCE"], event["STATUS"]) == ("visit@citas.example.org", 3, "CANCELLED")


def test_it_is_stamped_with_the_moment_of_sending():
    calendar, _part = attached(make_message(entry=make_entry(), time_left=timedelta(hours=2)))
    [event] = calendar.walk("VEVENT")
    assert event["DTSTAMP"].dt == START - timedelta(hours=2)


def test_its_lines_end_as_the_standard_says():
    letter_of_it = letter.write(make_message(entry=make_entry()))
    lines = letter_of_it["calendar"]["text"].split("\r\n")
    assert lines[0] == "BEGIN:VCALENDAR"
    assert not any("\n" in line for line in lines)
    _calendar, part = attached(make_message(entry=make_entry()))
    assert part.get_payload(decode=True).decode() == letter_of_it["calendar"]["text"]


@pytest.mark.parametrize(
    "fields",
    [
        {"entry": None},
        {"kind": ReminderType.SEGUIMIENTO, "time_left": timedelta(days=-1), "entry": make_entry()},
    ],
    ids=["no entry", "after the visit"],
)
def test_no_file_comes_along_where_there_is_nothing_ahead(fields):
    message = make_message(**fields)
    assert letter.write(message)["calendar"] == {}
    assert "text/calendar" not in letter.mail_of(letter.write(message)).message().as_string()
