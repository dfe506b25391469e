"""What a card says of the last reminder, in plain words."""

from __future__ import annotations

from typing import Any

import pytest

from reminders.models import ReminderDelivery
from reminders.room.last_reminder import tell
from tests.factories import CARACAS, caracas

NOW = caracas("2026-09-17T09:30")


def at(text: str) -> Any:
    return caracas(f"2026-09-17T{text}")


def row(**fields: Any) -> ReminderDelivery:
    planned = {"scheduled_for": at("08:00"), "next_attempt_at": at("08:00"), "created_at": at("07:00")}
    return ReminderDelivery(**(planned | fields))


def words_of(*rows: ReminderDelivery) -> tuple[str, str]:
    told = tell(rows, zone=CARACAS, now=NOW)
    return told.words, str(told.tone)


CALLED = {"called_at": at("08:00"), "sent_at": at("08:00")}


@pytest.mark.parametrize(
    ("fields", "words", "tone"),
    [
        ({"status": "read", "read_at": at("09:12")}, "Leído 9:12 a. m.", "good"),
        ({"status": "read", "read_at": caracas("2026-09-16T21:05")}, "Leído ayer, 9:05 p. m.", "good"),
        ({"status": "read", "read_at": caracas("2026-09-14T21:05")}, "Leído 14/09, 9:05 p. m.", "good"),
        ({"status": "delivered", "delivered_at": at("08:01")}, "Entregado 8:01 a. m., sin leer", "good"),
        ({"status": "sent"}, "Enviado 8:00 a. m., sin entregar todavía", "quiet"),
        ({"status": "sent", "given_up_at": at("09:00")}, "Enviado, pero no le llegó a tiempo", "bad"),
        ({"status": "unknown"}, "Enviado; el proveedor no ha contestado", "quiet"),
        ({"status": "failed", "reason": "refused"}, "No le llegó: el proveedor lo rechazó", "bad"),
        (
            {"status": "failed", "reason": "attempts_exhausted"},
            "No le llegó: se agotaron los intentos",
            "bad",
        ),
        (
            {"status": "failed", "reason": "no_answer"},
            "No se sabe si le llegó: el proveedor no contestó",
            "bad",
        ),
        (
            {"status": "pending", "next_attempt_at": at("09:40")},
            "El proveedor no lo tomó; se reintenta: 9:40 a. m.",
            "quiet",
        ),
    ],
)
def test_a_reminder_that_was_sent(fields, words, tone):
    assert words_of(row(**(CALLED | fields))) == (words, tone)


@pytest.mark.parametrize(
    ("fields", "words", "tone"),
    [
        (
            {"status": "pending", "next_attempt_at": at("10:15")},
            "Recordatorio previsto: 10:15 a. m.",
            "quiet",
        ),
        ({"status": "pending"}, "Recordatorio por salir", "quiet"),
        ({"status": "sending"}, "Recordatorio por salir", "quiet"),
        (
            {"status": "skipped", "reason": "opted_out"},
            "Sin recordatorio: el paciente pidió no recibirlo",
            "quiet",
        ),
        (
            {"status": "skipped", "reason": "no_consent"},
            "Sin recordatorio: el paciente no ha aceptado WhatsApp",
            "quiet",
        ),
        ({"status": "expired", "reason": "too_late"}, "Sin recordatorio: ya no era útil", "bad"),
    ],
)
def test_a_reminder_that_was_not_sent(fields, words, tone):
    assert words_of(row(**fields)) == (words, tone)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"status": "sent", "channel": "email"}, "Enviado 8:00 a. m., por correo"),
        (
            {"status": "delivered", "channel": "in_app", "delivered_at": at("08:00")},
            "Entregado 8:00 a. m., en la aplicación",
        ),
        ({"status": "sent", "channel": "whatsapp"}, "Enviado 8:00 a. m., sin entregar todavía"),
    ],
)
def test_a_channel_that_is_not_the_usual_one_is_named(fields, words):
    assert words_of(row(**(CALLED | fields)))[0] == words


def test_what_takes_the_place_of_a_message_that_did_not_arrive():
    refused = row(status="failed", reason="refused", channel="whatsapp", called_at=at("09:00"))
    instead = row(status="pending", channel="email", fallback_of=refused)
    assert words_of(refused, instead) == ("No le llegó; ahora sale por otro canal: Correo", "quiet")


def test_no_reminder_at_all():
    assert words_of() == ("Sin recordatorio", "quiet")


def test_what_was_sent_last_counts_before_what_is_to_come_and_what_was_not_sent():
    read = row(status="read", called_at=at("08:00"), read_at=at("08:30"))
    refused = row(status="failed", reason="refused", called_at=at("09:00"))
    coming = row(status="pending", next_attempt_at=at("10:00"))
    skipped = row(status="skipped", reason="no_consent", scheduled_for=at("09:20"))
    assert words_of(read, coming, skipped) == ("Leído 8:30 a. m.", "good")
    assert words_of(read, refused, coming)[1] == "bad"
    assert words_of(coming, skipped)[0].startswith("Recordatorio previsto")
