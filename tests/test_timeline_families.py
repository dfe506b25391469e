"""Whom a message reaches, and whose answer it is: section I of the timeline, by number."""

# Told elsewhere: what is not read in time goes once more (I12), in test_given_up.

from __future__ import annotations

from typing import Any

import pytest

from appointments import booking, clock
from appointments.models import Appointment, Patient
from reminders import call_list, conversation, preferences
from reminders.models import ContactOptOut, NotificationPreference
from reminders.models.labels import ChannelName
from tests.days import Days, Sent, ends
from tests.factories import MARK, make_doctor, make_patient, make_phone, make_specialty, make_user

pytestmark = pytest.mark.django_db
EVE = "2026-09-16T10:00"
WHATSAPP_FIRST, MAIL_FIRST = ["whatsapp", "email"], ["email", "whatsapp"]
MAIL = f"ana.{MARK}@example.com"


@pytest.fixture
def days(settings, set_clock) -> Days:
    return Days(settings, set_clock)


CONTACTS = [
    # steps, what is known of the patient, what leaves, and the rows
    ("I1a", WHATSAPP_FIRST, {"phone": "", "email": MAIL}, [f"24h email {EVE}"],
     ["24h whatsapp no_contact", "24h email sent"]),
    ("I1b", MAIL_FIRST, {"email": ""}, [f"24h whatsapp {EVE}"],
     ["24h whatsapp sent", "24h email no_contact"]),
    ("I2", WHATSAPP_FIRST, {"phone": "", "email": ""}, [],
     ["24h whatsapp no_contact", "24h email no_contact", "24h - no_channel"]),
    ("I3", WHATSAPP_FIRST, {"phone": "+582125551234", "email": MAIL}, [f"24h email {EVE}"],
     ["24h whatsapp no_contact", "24h email sent"]),
    ("beside I3: and no mail", WHATSAPP_FIRST, {"phone": "+582125551234", "email": ""}, [],
     ["24h whatsapp no_contact", "24h email no_contact", "24h - no_channel"]),
    ("beside I1: a mobile of another country", WHATSAPP_FIRST, {"phone": "+34600000001", "email": ""},
     [f"24h whatsapp {EVE}"], ["24h whatsapp sent"]),
    ("beside I1: three steps of which the last can run", ["whatsapp", "email", "in_app"],
     {"phone": "", "email": "", "user": True}, [f"24h in_app {EVE}"],
     ["24h whatsapp no_contact", "24h email no_contact", "24h in_app sent"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "known", "left", "rows"), [c[1:] for c in CONTACTS], ids=[c[0] for c in CONTACTS]
)
def test_a_step_that_cannot_run_costs_no_time(days, steps, known, left, rows):
    days.rules("24h", channels=steps)
    user = {"user": make_user()} if known.pop("user", None) else {}
    visit = days.book(patient=make_patient(**known | user))
    assert days.until("2026-09-17T10:00") == left
    assert ends(visit) == rows


@pytest.mark.parametrize("booked", [pytest.param("2026-09-10T09:00", id="I2")])
def test_whom_no_channel_reaches_is_on_the_call_list_from_the_booking_on(days, booked):
    days.rules("24h")
    visit = days.book(booked=booked, patient=make_patient(phone="", email=""))
    days.until(booked)
    listed = [(row.appointment_id, row.reason) for row in call_list.unreached(clock.now())]
    assert listed == [(visit.pk, "no_channel")]


# --- One number, several people -----------------------------------------------------


def family(days: Days, *, emails: tuple[str, ...] = ("", "", ""), **fields: Any) -> list[Appointment]:
    """A mother and two children with one number, on 2026-09-17 at 09:00, 09:20 and 15:00."""
    days.rules("24h", body_template="")
    doctor, phone = make_doctor(), make_phone()
    return [
        days.book(
            f"2026-09-17T{hour}",
            doctor=doctor,
            duration_minutes=20,
            patient=make_patient(full_name=name, phone=phone, email=email, doctor=doctor),
            **fields,
        )
        for hour, name, email in zip(
            ("09:00", "09:20", "15:00"),
            (f"Eva {MARK}", f"Leo {MARK}", f"Ana {MARK}"),
            emails,
            strict=True,
        )
    ]


def confirm(days: Days, sent: Sent) -> str:
    """Tap "confirm" under a message; what the answer says."""
    button = next(button for button in sent.message.buttons if button.title == "Confirmar")
    reply = conversation.tapped(
        conversation.Tapped(
            message_id=f"wamid.{sent.row.pk}",
            phone=sent.message.to.removeprefix("+"),
            user_id="",
            payload=button.payload,
            in_answer_to="",
            at=clock.now(),
        ),
        now=clock.now(),
    )
    assert reply is not None
    return reply.says


def statuses(visits: list[Appointment]) -> list[str]:
    for visit in visits:
        visit.refresh_from_db()
    return [visit.status for visit in visits]


@pytest.mark.complaint(
    "One «yes» confirms the visits of the whole family.",
    about="people",
    source="carlos-emr/carlos #3842; SparkDevNetwork/Rock #2663; help pages of NexHealth",
)
@pytest.mark.complaint(
    "Everybody is greeted by the name of the first.",
    about="words",
    source="calcom/cal.diy PR#10468, #10451",
)
@pytest.mark.parametrize(
    ("tapped", "after"),
    [
        pytest.param(0, ["confirmed", "scheduled", "scheduled"], id="I5"),
        pytest.param(1, ["scheduled", "confirmed", "scheduled"], id="beside I5: the second child"),
        pytest.param(2, ["scheduled", "scheduled", "confirmed"], id="beside I5: the mother"),
    ],
)
def test_each_of_a_family_is_named_and_answers_for_one_visit_only(days, tapped, after):
    visits = family(days)
    assert days.until("2026-09-16T16:00") == [
        "24h whatsapp 2026-09-16T09:00",
        "24h whatsapp 2026-09-16T09:20",
        "24h whatsapp 2026-09-16T15:00",
    ]
    assert {sent.message.to for sent in days.sent} == {visits[0].patient.phone}
    for visit, sent in zip(visits, days.sent, strict=True):
        named = [other for other in visits if other.patient.full_name in sent.message.text]
        assert named == [visit]
    assert confirm(days, days.sent[tapped]) == "confirmed"
    assert statuses(visits) == after


STOPPED = [
    (
        "I6",
        (f"eva.{MARK}@example.com", f"leo.{MARK}@example.com", f"ana.{MARK}@example.com"),
        ["24h email 2026-09-16T09:00", "24h email 2026-09-16T09:20", "24h email 2026-09-16T15:00"],
        [["24h whatsapp opted_out", "24h email sent"]] * 3,
    ),
    (
        "I6 no mail",
        ("", "", ""),
        [],
        # Who refused every way there is to them is not called instead.
        [["24h whatsapp opted_out", "24h email no_contact", "24h - opted_out"]] * 3,
    ),
    (
        "I6 one has a mail",
        ("", f"leo.{MARK}@example.com", ""),
        ["24h email 2026-09-16T09:20"],
        [
            ["24h whatsapp opted_out", "24h email no_contact", "24h - opted_out"],
            ["24h whatsapp opted_out", "24h email sent"],
            ["24h whatsapp opted_out", "24h email no_contact", "24h - opted_out"],
        ],
    ),
]


@pytest.mark.complaint(
    "The address is a relative's who wants no more, and goes on getting what is for others.",
    about="people",
    source="knadh/listmonk PR#1998",
)
@pytest.mark.parametrize(
    ("emails", "left", "rows"), [case[1:] for case in STOPPED], ids=[case[0] for case in STOPPED]
)
def test_a_stop_of_the_number_reaches_all_who_use_it_and_that_channel_only(days, emails, left, rows):
    visits = family(days, emails=emails)
    days.until("2026-09-16T07:59")
    days.now_is("2026-09-16T08:00")
    patient = visits[0].patient
    assert preferences.opt_out(
        address=patient.phone, channel=ChannelName.WHATSAPP, patient=patient, evidence="BAJA"
    )
    assert days.until("2026-09-16T16:00") == left
    assert [ends(visit) for visit in visits] == rows


@pytest.mark.parametrize("back", [pytest.param("2026-09-16T09:10", id="beside I6: they come back")])
def test_who_comes_back_gets_what_is_ahead(days, back):
    visits = family(days)
    days.until("2026-09-16T08:00")
    ContactOptOut.objects.create(address=visits[0].patient.phone, channel="whatsapp")
    assert days.until(back) == []
    ContactOptOut.objects.all().delete()
    left = days.until("2026-09-16T16:00")
    # What was due meanwhile is still of use.
    assert left == [f"24h whatsapp {back}", "24h whatsapp 2026-09-16T09:20", "24h whatsapp 2026-09-16T15:00"]


def turn_off(
    patient: Patient, *kinds: str, channels: tuple[str, ...] = ("whatsapp", "email", "in_app")
) -> None:
    for kind in kinds:
        for channel in channels:
            NotificationPreference.objects.create(
                patient=patient, reminder_type=kind, channel=channel, is_enabled=False
            )


OFF = [
    ("I7", ["cita_proxima"], ("whatsapp", "email", "in_app"), [],
     ["24h whatsapp opted_out", "24h email opted_out", "24h - opted_out"]),
    ("beside I7: one channel", ["cita_proxima"], ("whatsapp",), [f"24h email {EVE}"],
     ["24h whatsapp opted_out", "24h email sent"]),
    ("beside I7: another type", ["seguimiento"], ("whatsapp", "email", "in_app"), [f"24h whatsapp {EVE}"],
     ["24h whatsapp sent"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kinds", "channels", "left", "rows"), [case[1:] for case in OFF], ids=[case[0] for case in OFF]
)
def test_what_the_patient_turned_off_a_minute_ago_does_not_leave(days, kinds, channels, left, rows):
    days.rules("24h")
    visit = days.book()
    days.until("2026-09-16T09:59")
    turn_off(visit.patient, *kinds, channels=channels)
    assert days.until("2026-09-17T10:00") == left
    assert ends(visit) == rows
    assert not call_list.unreached(clock.now()).exists()


@pytest.mark.parametrize("of", [pytest.param(0, id="beside I7: a choice is one person's")])
def test_a_choice_of_one_of_a_family_leaves_the_others_theirs(days, of):
    visits = family(days)
    days.until("2026-09-16T08:00")
    turn_off(visits[of].patient, "cita_proxima")
    assert days.until("2026-09-16T16:00") == [
        "24h whatsapp 2026-09-16T09:20",
        "24h whatsapp 2026-09-16T15:00",
    ]


@pytest.mark.parametrize(("first", "second"), [pytest.param("2026-09-17T09:00", "2026-09-17T11:00", id="I9")])
def test_two_visits_of_one_patient_on_one_day_are_both_named_and_answered_apart(days, first, second):
    days.rules("24h", body_template="{especialidad} con {doctor} a las {hora}")
    patient = make_patient(email=MAIL)
    visits = [
        days.book(start, patient=patient, specialty=make_specialty(name))
        for start, name in ((first, "Cardiología"), (second, "Laboratorio"))
    ]
    assert days.until("2026-09-16T12:00") == [
        "24h whatsapp 2026-09-16T09:00",
        "24h whatsapp 2026-09-16T11:00",
    ]
    for visit, sent, said in zip(visits, days.sent, ("9:00 a. m.", "11:00 a. m."), strict=True):
        assert sent.message.text == f"{visit.specialty} con {visit.doctor} a las {said}"
    assert confirm(days, days.sent[1]) == "confirmed"
    assert statuses(visits) == ["scheduled", "confirmed"]


@pytest.mark.parametrize(
    ("first", "second"), [pytest.param("2026-09-17T09:00", "2026-09-17T11:00", id="I9, mail")]
)
def test_two_visits_of_one_patient_on_one_day_are_both_named_in_one_mail(days, first, second):
    days.rules("24h", channels=["email"], body_template="{especialidad} con {doctor} a las {hora}")
    patient = make_patient(email=MAIL)
    visits = [
        days.book(start, patient=patient, specialty=make_specialty(name))
        for start, name in ((first, "Cardiología"), (second, "Laboratorio"))
    ]
    assert days.until("2026-09-17T12:00") == ["24h email 2026-09-16T09:00"]
    [sent] = days.sent
    for visit, message, said in zip(
        visits, (sent.message, *sent.message.also), ("9:00 a. m.", "11:00 a. m."), strict=True
    ):
        assert message.text == f"{visit.specialty} con {visit.doctor} a las {said}"
    assert [visit.deliveries.get(channel="email").status for visit in visits] == ["sent", "sent"]


CORRECTED = [
    ("I10", "2026-09-16T09:50", {"phone": "+584125559998"}, f"24h whatsapp {EVE}", "+584125559998"),
    ("beside I10: the last minute", "2026-09-16T09:59", {"phone": "+584125559998"}, f"24h whatsapp {EVE}",
     "+584125559998"),
    ("beside I10: taken away", "2026-09-16T09:50", {"phone": ""}, f"24h email {EVE}", MAIL),
    ("beside I10: a landline now", "2026-09-16T09:50", {"phone": "+582125551234"}, f"24h email {EVE}", MAIL),
]  # fmt: skip


@pytest.mark.complaint(
    "The reminder goes to the number that was on file at the booking.",
    about="people",
    source="adamspd/django-appointment, read in its code",
)
@pytest.mark.parametrize(
    ("corrected", "contact", "left", "to"), [c[1:] for c in CORRECTED], ids=[c[0] for c in CORRECTED]
)
def test_the_address_is_read_when_the_message_leaves(days, corrected, contact, left, to):
    days.rules("24h")
    visit = days.book(patient=make_patient(email=MAIL))
    days.until(corrected)
    Patient.objects.filter(pk=visit.patient_id).update(**contact)
    assert days.until("2026-09-17T10:00") == [left]
    assert [sent.message.to for sent in days.sent] == [to]


@pytest.mark.parametrize("at", [pytest.param("2026-09-16T09:00", id="beside I10: a contact that comes late")])
def test_who_gets_a_contact_in_time_is_reminded_and_leaves_the_call_list(days, at):
    days.rules("24h")
    visit = days.book(patient=make_patient(phone="", email=""))
    days.until(at)
    Patient.objects.filter(pk=visit.patient_id).update(email=MAIL)
    assert days.until("2026-09-16T12:00") == [f"24h email {EVE}"]
    assert not call_list.unreached(clock.now()).exists()


@pytest.mark.parametrize("word", [booking.confirm], ids=["beside I5: staff confirm one"])
def test_a_confirmation_by_staff_is_of_one_visit_too(days, word):
    visits = family(days)
    assert word(visits[1], actor=booking.SYSTEM)
    assert statuses(visits) == ["scheduled", "confirmed", "scheduled"]
