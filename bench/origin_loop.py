"""The loop of the document that the project comes from, for comparison.

    python -m bench.origin_loop UNIX_TIME

What is due is selected from all visits, sent one request after the other, and
committed once at the end. Prints how many were sent, and in JSON how long after
the moment each was.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import aiohttp
import django
import psycopg
from psycopg.rows import class_row

WINDOW = timedelta(minutes=5)


@dataclass
class Visit:
    """A visit with the two flags that say what was sent of it."""

    id: int
    phone: str
    scheduled_at: datetime
    reminder_24h_sent: bool
    reminder_2h_sent: bool


class Sender:
    """Sends a template as our own channel does, and notes when."""

    def __init__(self, session: aiohttp.ClientSession, begin: float) -> None:
        from django.conf import settings

        self._session = session
        self._begin = begin
        self._url = f"{settings.WHATSAPP_API_URL}/v26.0/{settings.WHATSAPP_PHONE_NUMBER_ID}/messages"
        self._headers = {"Authorization": f"Bearer {settings.WHATSAPP_ACCESS_TOKEN}"}
        self.delays: list[float] = []

    async def send(self, phone: str, reference: str) -> None:
        """One request, and its answer."""
        body = template(phone, reference)
        async with self._session.post(self._url, json=body, headers=self._headers) as answer:
            await answer.json()
        self.delays.append(time.time() - self._begin)


def template(phone: str, reference: str) -> dict[str, object]:
    """The reminder of a day before, with its words and buttons."""
    from whatsapp import messages

    return messages.template_message(
        to=phone,
        name="appointment_reminder_24h",
        language="es",
        parameters={
            "nombre": "Paciente", "doctor": "Dra. Carmen Ruiz", "fecha": "mañana, jueves 17 de septiembre",
            "hora": "10:00 a. m.", "consultorio": "Torre Médica, piso 3",
        },
        payloads=["confirm", "reschedule", "cancel"],
        reference=reference,
    )  # fmt: skip


async def run_once(connection: psycopg.AsyncConnection, sender: Sender, *, now: datetime) -> int:
    """The loop itself: all open visits are read, and the window is looked at in Python."""
    target_24h, target_2h = now + timedelta(hours=24), now + timedelta(hours=2)
    sent = 0
    async with connection.transaction(), connection.cursor(row_factory=class_row(Visit)) as cursor:
        await cursor.execute(
            "SELECT id, phone, scheduled_at, reminder_24h_sent, reminder_2h_sent"
            " FROM bench_origin WHERE status IN ('scheduled', 'confirmed')"
        )
        visits = await cursor.fetchall()
        changed = []
        for visit in visits:
            if not visit.reminder_24h_sent and abs(visit.scheduled_at - target_24h) <= WINDOW:
                await sender.send(visit.phone, f"24h:{visit.id}:1")
                visit.reminder_24h_sent = True
                changed.append(visit)
                sent += 1
            if not visit.reminder_2h_sent and abs(visit.scheduled_at - target_2h) <= WINDOW:
                await sender.send(visit.phone, f"2h:{visit.id}:1")
                visit.reminder_2h_sent = True
                changed.append(visit)
                sent += 1
        await cursor.executemany(
            "UPDATE bench_origin SET reminder_24h_sent = %s, reminder_2h_sent = %s WHERE id = %s",
            [(visit.reminder_24h_sent, visit.reminder_2h_sent, visit.id) for visit in changed],
        )
    return sent


async def work(begin: float) -> None:
    """Wait for the moment, and run the loop once."""
    connection = await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"], autocommit=True)
    async with aiohttp.ClientSession() as session, connection:
        sender = Sender(session, begin)
        await asyncio.sleep(max(0.0, begin - time.time()))
        sent = await run_once(connection, sender, now=datetime.now(UTC))
        print(sent, json.dumps(sender.delays), flush=True)


if __name__ == "__main__":
    django.setup()
    asyncio.run(work(float(sys.argv[1])))
    signal.pause()
