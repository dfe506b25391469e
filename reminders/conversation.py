"""What a patient taps, and what follows: a verb of booking and an answer."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction

from appointments import booking
from appointments.models import Appointment, AppointmentHistory
from reminders import answers, taps
from reminders.models import DeliveryAttempt, Reply
from reminders.models.labels import ChannelName
from reminders.taps import Tap, Word

logger = logging.getLogger(__name__)
Says = Reply.Says
BY_WHATSAPP = booking.Actor(source=AppointmentHistory.Source.WHATSAPP)
WINDOW = timedelta(hours=24)
"""How long after a patient's message a free answer may go out (Meta)."""


@dataclass(frozen=True, kw_only=True)
class Tapped:
    """A tap as it came in, in our words."""

    message_id: str
    phone: str
    """Digits without "+"; "" for a user without a number."""
    user_id: str
    payload: str
    in_answer_to: str
    """Our message under which the button stood; "" when not said."""
    at: datetime


def tapped(tap: Tapped, *, now: datetime) -> Reply | None:
    """Carry a tap out and answer it; None for one that is not ours to answer.

    Repeating it changes nothing: the verbs are safe to repeat, and an answer is
    written once for each message of the patient.
    """
    asked = taps.read(tap.payload) or _read_label(tap)
    if asked is None:
        logger.info("tap message=%s ignored reason=not_a_button_of_ours", tap.message_id)
        return None
    attempt = _what_we_wrote(asked, tap)
    if attempt is None:
        logger.warning("tap message=%s ignored reason=sender_is_not_who_we_wrote_to", tap.message_id)
        return None
    with transaction.atomic():
        appointment = (
            Appointment.objects.select_related("office", "doctor", "patient")
            .select_for_update(of=("self",))
            .get(pk=asked.appointment_id)
        )
        says = _carry_out(asked, appointment, attempt, now)
        logger.info(
            "tap message=%s appointment=%s word=%s answer=%s",
            tap.message_id,
            appointment.pk,
            asked.word,
            says,
        )
        return _reply(tap, appointment, attempt, says, now)


def _carry_out(asked: Tap, appointment: Appointment, attempt: DeliveryAttempt, now: datetime) -> Says:
    """What to say to a word, given the visit as it is now. Only CONFIRM changes anything yet."""
    if forced := answers.forced(appointment, patient_id=attempt.row.patient_id, now=now):
        return forced
    if asked.sequence != appointment.sequence:
        return Says.MOVED
    if asked.word == Word.ARRIVED:
        return Says.ANNOUNCE
    if asked.word != Word.CONFIRM:
        return Says.CALL_US
    return Says.CONFIRMED if booking.confirm(appointment, actor=BY_WHATSAPP) else Says.ALREADY_CONFIRMED


def _read_label(tap: Tapped) -> Tap | None:
    """A tap whose payload is just the label: the message it stood under tells which visit."""
    words = [word for word, title in taps.TITLES.items() if title == tap.payload]
    attempt = (
        DeliveryAttempt.objects.filter(message_id=tap.in_answer_to).first() if tap.in_answer_to else None
    )
    if not words or attempt is None or attempt.delivery is None:
        return None
    return Tap(
        word=words[0], appointment_id=attempt.delivery.appointment_id, sequence=attempt.delivery.sequence
    )


def _what_we_wrote(asked: Tap, tap: Tapped) -> DeliveryAttempt | None:
    """The latest attempt by which we wrote to this very sender about the visit."""
    about = DeliveryAttempt.objects.select_related("delivery__patient", "reply__patient").order_by(
        "-called_at"
    )
    to_whatsapp = {"channel": ChannelName.WHATSAPP, "appointment": asked.appointment_id}
    attempts: list[DeliveryAttempt] = [
        *about.filter(**{f"delivery__{name}": value for name, value in to_whatsapp.items()}),
        *about.filter(**{f"reply__{name}": value for name, value in to_whatsapp.items()}),
    ]
    return next((attempt for attempt in attempts if _came_from(attempt, tap)), None)


def _came_from(attempt: DeliveryAttempt, tap: Tapped) -> bool:
    """Whether the sender of a tap is the one to whom an attempt went."""
    if tap.phone:
        patient = attempt.row.patient
        alias = patient.wa_id if patient.phone == attempt.address else ""
        return tap.phone in (attempt.address.removeprefix("+"), alias)
    # A user who shows no number: known by an earlier receipt, or by the message
    # under which they tapped, which Meta delivered to nobody else.
    is_known = bool(tap.user_id) and tap.user_id in (attempt.address, attempt.row.patient.bsuid)
    return is_known or (bool(tap.in_answer_to) and tap.in_answer_to == attempt.message_id)


def _reply(
    tap: Tapped, appointment: Appointment, attempt: DeliveryAttempt, says: Says, now: datetime
) -> Reply | None:
    try:
        with transaction.atomic():
            return Reply.objects.create(
                appointment=appointment,
                patient_id=attempt.row.patient_id,
                channel=ChannelName.WHATSAPP,
                address=f"+{tap.phone}" if tap.phone else tap.user_id,
                says=says,
                cause=tap.message_id,
                scheduled_for=now,
                next_attempt_at=now,
                useful_until=tap.at + WINDOW,
            )
    except IntegrityError:
        return None  # answered before
