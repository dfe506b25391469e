"""A year of ten practices in five zones, minute by minute, against the stand-ins of Meta and Postmark.

    python -m bench.year [--seed N] [--visits N] [--quick]

Visits are booked, moved, called off, brought back, completed and corrected at
random through many paths, while rules and contacts change, receipts come twice
and out of order, Meta fails and the dispatcher stands still for hours and more
than a day. Each message that a stand-in was given is judged at its instant by
the tests' model, which shares no code with the engine; at the end rows, ledger
and the stand-ins' own counts are compared. Prints the seed; 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import logging
import random
import sys
import tempfile
import threading
import time as machine
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from typing import Any
from zoneinfo import ZoneInfo

from bench.stage import query  # first: it gives Django its database

# isort: split
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, connections
from django.test import Client
from django.urls import reverse

from amedi.sandbox import Sandbox, SandboxOptions, template_from_json
from amedi.sandbox.postmark import Postmark, PostmarkOptions
from appointments import booking
from appointments.models import Appointment, Doctor, Office, Patient
from bench import figures, year_checks
from reminders import dispatch, links, preferences
from reminders.flight import Flight
from reminders.models import ConsentEvent, ReminderDelivery, ReminderRule
from reminders.postmark.client import references_of
from reminders.tick import housekeep
from tests.timeline_model import OPEN, Message, Person, Visit, When, instant, objections

VISITS = 2_000
BEGIN = datetime(2027, 1, 4, 12, tzinfo=UTC)
END = BEGIN + timedelta(days=365)
ZONES = [
    ZoneInfo(name)
    for name in ("America/Caracas", "America/New_York", "America/Santiago", "Europe/Madrid", "America/Bogota")
]
DOCTORS_A_ZONE = 2
PATIENTS = 240
FIRST = [
    "Ana", "Beto", "Carla", "Darío", "Elena", "Fabián", "Gloria", "Hugo", "Inés", "Jesús",
    "Karla", "Luis", "María", "Néstor", "Olga", "Pedro", "Rosa", "Saúl", "Tomás", "Zoila",
]  # fmt: skip
LAST = [
    "Ávila", "Bravo", "Castro", "Duarte", "Espinoza", "Farías",
    "Gómez", "Herrera", "Ibarra", "Jaimes", "Leal", "Moreno",
]  # fmt: skip
STARTS = [time(hour, minute) for hour in range(7, 19) for minute in (0, 30)]
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
TWO_AT_ONCE = 0.05
POSTMARK_SECRET = "postmark:bench-password-not-real"
TROUBLES: dict[str, int] = {"later": 131000, "never": 131026, "busy": 130429}
"""What Meta answers in a bad hour, by its error code."""


class Mailbag(ThreadingHTTPServer):
    """Takes the stand-ins' webhooks, for the year to hand on when it is time."""

    def __init__(self) -> None:
        self.posts: list[tuple[str, bytes, dict[str, str]]] = []
        super().__init__(("127.0.0.1", 0), _Taker)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Taker(BaseHTTPRequestHandler):
    server: Mailbag

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posts.append((self.path, body, dict(self.headers)))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Complaints(logging.Handler):
    """What the engine itself logs as an error: it goes on after one, and the year must not."""

    def __init__(self, wrong: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._wrong = wrong

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith(("sandbox", "amedi.sandbox")):
            self._wrong.append(f"the engine logged: {record.getMessage()[:200]}")


class Year:
    """The world, its clock, and the model beside it."""

    def __init__(self, seed: int, visits: int) -> None:
        self.chance = random.Random(seed)
        self.now = BEGIN
        self.wanted = visits
        self.visits: dict[Any, Visit] = {}
        self.people: dict[int, Person] = {}
        self.sent: dict[Any, list[Message]] = {}
        self.moments: dict[int, set[When]] = {}
        """By rule, those that it has had."""
        self.wrong: list[str] = []
        logging.getLogger().addHandler(Complaints(self.wrong))
        self.counts: Counter[str] = Counter()
        self.stopped: set[str] = set()
        self._agenda: list[tuple[datetime, int, Callable[[], None]]] = []
        self._number = itertools.count()
        self._deaf_until = BEGIN
        self._heard = {"whatsapp": 0, "email": 0}
        self._late_posts: list[tuple[str, bytes, dict[str, str]]] = []
        self.bag = Mailbag()
        self.meta = Sandbox(_meta(self.bag.url), clock=lambda: self.now)
        self.postmark = Postmark(_postmark(self.bag.url), clock=lambda: self.now)
        self.client = Client()

    # --- The clock and what stands in the agenda -------------------------------------------

    def at(self, moment: datetime, what: Callable[[], None]) -> None:
        if moment < END:
            heapq.heappush(self._agenda, (max(moment, self.now), next(self._number), what))

    def live(self) -> None:
        with self.meta, self.postmark:
            settings.WHATSAPP_API_URL, settings.POSTMARK_API_URL = self.meta.url, self.postmark.url
            self._set_clock(BEGIN)
            self._found()
            while self.now < END:
                self._next_minute()
            self._set_clock(END + 40 * DAY)
            for _ in range(4):
                self.tick()

    def _next_minute(self) -> None:
        moment = min(self._agenda[0][0] if self._agenda else END, self._next_due(), END)
        self._set_clock(max(moment, self.now + MINUTE))
        while self._agenda and self._agenda[0][0] <= self.now:
            heapq.heappop(self._agenda)[2]()
        if self.now >= self._deaf_until:
            self.tick()

    def _next_due(self) -> datetime:
        [(due,)] = query(
            """SELECT least(
                 (SELECT min(next_attempt_at) FROM reminders_reminderdelivery
                  WHERE status IN ('pending', 'unknown') AND next_attempt_at > %s),
                 (SELECT min(next_attempt_at) FROM reminders_reply WHERE status IN ('pending', 'unknown')),
                 (SELECT min(deliver_by) FROM reminders_reminderdelivery
                  WHERE status = 'sent' AND deliver_by IS NOT NULL AND given_up_at IS NULL),
                 (SELECT min(read_by) FROM reminders_reminderdelivery
                  WHERE status = 'delivered' AND read_by IS NOT NULL AND given_up_at IS NULL))""",
            self.now,
        )
        whole: datetime = max(due or END, self._deaf_until)
        return whole if whole == whole.replace(second=0, microsecond=0) else _ceil(whole)

    def _set_clock(self, moment: datetime) -> None:
        self.now = moment
        _set_clock_of_this_connection(moment)

    # --- A turn of the engine ---------------------------------------------------------------

    def tick(self) -> None:
        """What a tick does; now and then by two dispatchers at once."""
        self.counts["ticks"] += 1
        for pk, minutes, unit in ReminderRule.objects.values_list("pk", "offset_minutes", "offset_unit"):
            self.moments.setdefault(pk, set()).add(When(minutes, unit))
        with Flight(20) as flight:
            for _ in range(3):
                self._hand_on_posts()
                housekeep(now=self.now, flight=flight)
                beside = self.chance.random() < TWO_AT_ONCE
                other = threading.Thread(target=self._other_dispatcher)
                if beside:
                    other.start()
                started = dispatch.run(clock=lambda: self.now, flight=flight)
                if beside:
                    other.join()
                self._judge()
                if not (started or beside or self.bag.posts):
                    return

    def _other_dispatcher(self) -> None:
        self.counts["ticks of two at once"] += 1
        try:
            _set_clock_of_this_connection(self.now)
            with Flight(20) as flight:
                dispatch.run(clock=lambda: self.now, flight=flight)
        finally:
            connections.close_all()

    def _hand_on_posts(self) -> None:
        """Webhooks come: some twice, some late, some in another order."""
        self.meta.flush()
        self.postmark.flush()
        posts, self.bag.posts = [*self.bag.posts, *self._late_posts], []
        self._late_posts = []
        if self.chance.random() < 0.1:
            self.chance.shuffle(posts)
        for post in posts:
            if self.chance.random() < 0.03:
                self._late_posts.append(post)
                continue
            for _ in range(2 if self.chance.random() < 0.05 else 1):
                self._post(*post)

    def _post(self, path: str, body: bytes, headers: dict[str, str]) -> None:
        kept = {name: headers[name] for name in ("X-Hub-Signature-256", "Authorization") if name in headers}
        answer = self.client.post(path, body, content_type="application/json", headers=kept)
        self.counts["webhook posts"] += 1
        if answer.status_code != 200:
            self.wrong.append(f"a webhook post was answered with {answer.status_code}")

    # --- The judge ---------------------------------------------------------------------------

    def _judge(self) -> None:
        """Hold each message that a stand-in was given since against the model."""
        meant = [(one.reference, one.to) for one in self.meta.accepted[self._heard["whatsapp"] :]]
        mails = self.postmark.accepted[self._heard["email"] :]
        self._heard["whatsapp"] += len(meant)
        self._heard["email"] += len(mails)
        for reference, address in meant:
            if reference.startswith("d:"):
                self._judge_message("whatsapp", [reference], address)
            else:
                self.counts["answers to taps"] += 1
        for mail in mails:
            self._judge_message("email", references_of(mail.mail.metadata), mail.mail.recipients[0])

    def _judge_message(self, channel: str, references: list[str], address: str) -> None:
        self.counts[f"messages over {channel}"] += 1
        self.counts["visits told of beside another"] += len(references) - 1
        keys = [reference.split(":")[1] for reference in references]
        rows = {
            str(row.pk): row for row in ReminderDelivery.objects.select_related("rule").filter(pk__in=keys)
        }
        visits = {key: self.visits[rows[key].appointment_id] for key in keys}
        for key in keys:
            mates = tuple(visit for other, visit in visits.items() if other != key)
            self._judge_row(rows[key], visits[key], mates, channel, address)

    def _judge_row(
        self, row: ReminderDelivery, visit: Visit, mates: tuple[Visit, ...], channel: str, address: str
    ) -> None:
        before = self.sent.setdefault(row.appointment_id, [])
        told = Message(
            at=self.now,
            visit=visit,
            version=row.sequence,
            kind=row.reminder_type,
            when=When(row.offset_minutes, row.offset_unit),
            channel=channel,
            address=address,
            is_taken=True,
            waits_for_reading=bool(row.rule and row.rule.fallback_after_minutes),
            ever=tuple(self.moments.get(row.rule_id or 0, ())),
            mates=mates,
        )
        for objection in objections(told, before):
            self.wrong.append(
                f"{self.now:%Y-%m-%dT%H:%MZ} {told.kind} row {row.pk} over {channel}: {objection}"
            )
        before.append(told)

    # --- The founding ------------------------------------------------------------------------

    def _found(self) -> None:
        User.objects.create_superuser("ops", password="bench-only")
        self.client.force_login(User.objects.get(username="ops"))
        self._set_clock(BEGIN - 30 * DAY)
        ReminderRule.objects.exclude(reminder_type__in=["reserva", "cambio", "cancelacion"]).delete()
        ReminderRule.objects.update(channels=["whatsapp", "email"])
        for minutes, unit in ((-4320, "days"), (-1440, "hours"), (-120, "hours")):
            _rule("cita_proxima", minutes, unit)
        _rule("seguimiento", 1440, "hours")
        self.doctors = [_doctor(zone, number) for zone in ZONES for number in range(DOCTORS_A_ZONE)]
        for number in range(PATIENTS):
            self._patient(number)
        self._set_clock(BEGIN)
        for _ in range(self.wanted):
            self.at(self._some_time(END - 20 * DAY), self.book)
        for _ in range(self.wanted // 40):
            self.at(self._some_time(END), self.edit_a_rule)
            self.at(self._some_time(END), self.stop_or_return)
            self.at(self._some_time(END), self.change_a_contact)
        for _ in range(max(3, self.wanted // 80)):
            self.at(self._some_time(END), self.go_deaf)
            self.at(self._some_time(END), self.trouble_at_meta)

    def _some_time(self, until: datetime) -> datetime:
        minutes = self.chance.randrange(int((until - BEGIN) / MINUTE))
        return BEGIN + (minutes - minutes % 5) * MINUTE

    def _patient(self, number: int) -> None:
        # Some share a number, as families do, some have no mail, some live elsewhere.
        phone = f"+58412{7_000_000 + (number - number % 2 if number % 10 == 1 else number):07d}"
        email = "" if number % 7 == 0 else f"paciente-{number}@example.org"
        zone = ZONES[number % 5] if number % 4 == 0 else None
        patient = Patient.objects.create(
            full_name=f"{FIRST[number % 20]} {LAST[number // 20]}",
            phone=phone,
            email=email,
            time_zone=zone.key if zone else "",
        )
        if number % 9:
            ConsentEvent.objects.create(
                patient=patient, channel="whatsapp", agrees=True, how="desk", evidence="formulario"
            )
        person = Person(zone, {"whatsapp": phone if number % 9 else "", "email": email}, self.stopped)
        self.people[patient.pk] = person

    # --- Events: visits ----------------------------------------------------------------------

    def book(self) -> None:
        doctor, office = self.chance.choice(self.doctors)
        patient = self.chance.choice(list(self.people))
        zone = ZoneInfo(office.time_zone)
        for _ in range(20):
            day = (self.now + self.chance.choice([0, 1, 1, 2, 3, 5, 8, 15]) * DAY).astimezone(zone).date()
            clock = self.chance.choice(STARTS)
            starts_at = instant(day, clock, zone)
            if starts_at > self.now + 10 * MINUTE and self._is_free(doctor, starts_at):
                break
        else:
            return
        path = self.chance.choice([self._book_by_verb, self._book_in_the_admin, self._book_by_import])
        pk = path(doctor, office, patient, day, clock)
        self.counts[f"booked: {path.__name__.removeprefix('_book_')}"] += 1
        patient = Appointment.objects.values_list("patient", flat=True).get(pk=pk)
        self.visits[pk] = Visit(self.people[patient], zone, starts_at, booked_at=self.now)
        self._plan_its_fate(pk)

    def _is_free(self, doctor: Doctor, starts_at: datetime) -> bool:
        taken = Appointment.objects.filter(doctor=doctor, starts_at=starts_at).exclude(status="cancelled")
        return not taken.exists()

    def _book_by_verb(self, doctor: Doctor, office: Office, patient: int, day: date, clock: time) -> Any:
        made = booking.book(
            doctor=doctor, office=office, patient=Patient.objects.get(pk=patient), date=day, start_time=clock,
            actor=booking.SYSTEM, booked_at=self.now,
        )  # fmt: skip
        return made.pk

    def _book_in_the_admin(self, doctor: Doctor, office: Office, patient: int, day: date, clock: time) -> Any:
        fields = {"doctor": doctor.pk, "office": office.pk, "patient": patient}
        answer = self.client.post(reverse("admin:appointments_appointment_add"), _form(fields, day, clock))
        assert answer.status_code == 302, answer.context["errors"]
        return Appointment.objects.get(doctor=doctor, date=day, start_time=clock, status="scheduled").pk

    def _book_by_import(self, doctor: Doctor, office: Office, patient: int, day: date, clock: time) -> Any:
        number = f"AG-{next(self._number)}"
        self._import(number, doctor, office, Patient.objects.get(pk=patient), day, clock, booked=self.now)
        made = Appointment.objects.select_related("patient").get(external_id=number)
        self._learn_contact(made.patient)
        return made.pk

    def _learn_contact(self, patient: Patient) -> None:
        """An agenda brings its own contacts, says that they agree, and may bring a patient of its own."""
        person = self.people.setdefault(patient.pk, Person(None, {}, self.stopped))
        person.addresses.update(whatsapp=patient.phone, email=patient.email)

    def _import(
        self, number: str, doctor: Doctor, office: Office, patient: Patient, day: date, clock: time, *,
        booked: datetime,
    ) -> None:  # fmt: skip
        local = booked.astimezone(ZoneInfo(office.time_zone))
        head = (
            "Identificador;Paciente;Teléfono;Correo;Médico;Consultorio;Fecha;Hora;Reservada;Acepta WhatsApp"
        )
        line = ";".join(
            (number, patient.full_name, patient.phone, patient.email, doctor.name, office.name,
             f"{day:%d/%m/%Y}", f"{clock:%H:%M}", f"{local:%d/%m/%Y %H:%M}", "Sí")
        )  # fmt: skip
        with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="utf-8") as file:
            file.write(f"{head}\n{line}\n")
            file.flush()
            call_command("import_agenda", file.name, "--notify", stdout=StringIO(), stderr=StringIO())

    def _plan_its_fate(self, pk: Any) -> None:
        visit, chance = self.visits[pk], self.chance
        left = visit.starts_at - self.now

        def some_time() -> datetime:
            return _ceil(self.now + left * chance.random())

        for share, event in (
            (0.3, self.move),
            (0.1, self.there_and_back),
            (0.15, self.cancel),
            (0.3, self.answer),
        ):
            if chance.random() < share:
                self.at(some_time(), lambda event=event: event(pk))
        self.at(visit.starts_at + 40 * MINUTE, lambda: self.close(pk))

    def _still_open(self, pk: Any) -> bool:
        visit = self.visits[pk]
        return visit.status in OPEN and visit.starts_at > self.now

    def move(self, pk: Any) -> None:
        if not self._still_open(pk):
            return
        made = Appointment.objects.select_related("office", "doctor", "patient").get(pk=pk)
        target = made.starts_at + self.chance.choice([-2, -1, 1, 1, 2, 4, 7]) * DAY
        zone = ZoneInfo(made.office.time_zone)
        day = target.astimezone(zone).date()
        if instant(day, made.start_time, zone) <= self.now or not self._is_free(
            made.doctor, instant(day, made.start_time, zone)
        ):
            return
        self._move_to(made, day)
        self.at(self.visits[pk].starts_at + 40 * MINUTE, lambda: self.close(pk))

    def _move_to(self, made: Appointment, day: date) -> None:
        paths = [self._move_by_verb, self._move_in_the_admin]
        path = self.chance.choice([*paths, self._move_by_import] if made.external_id else paths)
        path(made, day)
        visit = self.visits[made.pk]
        visit.move(instant(day, made.start_time, visit.zone), self.now)
        self.counts[f"moved: {path.__name__.removeprefix('_move_')}"] += 1

    def _move_by_verb(self, made: Appointment, day: date) -> None:
        booking.reschedule(made, date=day, start_time=made.start_time, actor=booking.SYSTEM)

    def _move_in_the_admin(self, made: Appointment, day: date) -> None:
        fields = {"doctor": made.doctor_id, "office": made.office_id, "patient": made.patient_id}
        page = reverse("admin:appointments_appointment_change", args=[made.pk])
        answer = self.client.post(page, _form(fields, day, made.start_time))
        assert answer.status_code == 302, answer.context["errors"]

    def _move_by_import(self, made: Appointment, day: date) -> None:
        booked = made.booked_at or self.now
        self._import(
            made.external_id, made.doctor, made.office, made.patient, day, made.start_time, booked=booked
        )
        self._learn_contact(Patient.objects.get(pk=made.patient_id))

    def there_and_back(self, pk: Any) -> None:
        """A typing error, put right a minute later."""
        if self._still_open(pk):
            made = Appointment.objects.select_related("office", "doctor", "patient").get(pk=pk)
            here, there = made.date, made.date + timedelta(days=30)
            self._move_to(made, there)
            made.refresh_from_db()
            self._move_to(made, here)

    def cancel(self, pk: Any) -> None:
        if not self._still_open(pk):
            return
        path = self.chance.choice(["verb", "action", "delete", "page"])
        made = Appointment.objects.get(pk=pk)
        if path == "verb":
            booking.cancel(made, actor=booking.SYSTEM)
        elif path == "delete":
            self.client.post(reverse("admin:appointments_appointment_delete", args=[pk]), {"post": "yes"})
        elif path == "page":
            self.client.post(f"/cita/{links.visit_token(made)}/cancelar/")
        else:
            chosen = {"action": "cancel", "_selected_action": [str(pk)], "post": "yes"}
            self.client.post(reverse("admin:appointments_appointment_changelist"), chosen)
        self._learn(pk, path, "cancelled")
        if self.visits[pk].status == "cancelled":
            self.visits[pk].cancel(self.now)
            if self.chance.random() < 0.3:
                self.at(self.now + self.chance.choice([1, 2, 60, 1440]) * MINUTE, lambda: self.reinstate(pk))

    def reinstate(self, pk: Any) -> None:
        visit, made = self.visits[pk], Appointment.objects.get(pk=pk)
        if (
            visit.status == "cancelled"
            and visit.starts_at > self.now
            and self._is_free(made.doctor, made.starts_at)
        ):
            booking.reinstate(made, actor=booking.SYSTEM)
            visit.reinstate(self.now)
            self.counts["brought back"] += 1

    def answer(self, pk: Any) -> None:
        """The patient confirms: on the phone, on the page; or the room notes it."""
        if not self._still_open(pk):
            return
        made = Appointment.objects.get(pk=pk)
        path = self.chance.choice(["tap", "page", "room"])
        if path == "page":
            self.client.post(f"/cita/{links.visit_token(made)}/")
        elif path == "room":
            self.client.post(f"/sala/citas/{pk}/confirmo/", headers={"X-Room": "again"})
        elif not self._tap(made):
            return
        self._learn(pk, f"confirmed by {path}", "confirmed")

    def _tap(self, made: Appointment) -> bool:
        row = made.deliveries.filter(
            channel="whatsapp", reminder_type="cita_proxima", sequence=made.sequence,
            status__in=["sent", "delivered", "read"],
        ).last()  # fmt: skip
        if row is None:
            return False
        self.meta.tap(row.address, title="Confirmar", wamid=row.message_id)
        self._hand_on_posts()
        return True

    def close(self, pk: Any) -> None:
        """It is over: completed, or nobody came; now and then that was wrong."""
        visit, made = self.visits[pk], Appointment.objects.get(pk=pk)
        if visit.status not in (*OPEN, "completed", "no_show") or visit.starts_at + 40 * MINUTE > self.now:
            return
        came = self.chance.random() < 0.8
        path = self.chance.choice(["verb", "room"])
        if path == "room":
            action = "atendida" if came else "no-asistio"
            self.client.post(f"/sala/citas/{pk}/{action}/", headers={"X-Room": "again"})
        if path == "verb" or Appointment.objects.get(pk=pk).status in OPEN:
            (booking.complete if came else booking.mark_no_show)(made, actor=booking.SYSTEM)
        made.refresh_from_db()
        self._learn(pk, f"closed by {path}", made.status)
        visit.completed_at = made.completed_at
        if self.chance.random() < 0.05:
            self.at(self.now + 200 * MINUTE, lambda: self.close(pk))

    def _learn(self, pk: Any, what: str, status: str) -> None:
        """Take over what became of a visit; staff and patient may have been refused."""
        self.counts[what] += 1
        is_now = Appointment.objects.get(pk=pk).status
        if is_now == status:
            self.visits[pk].status = status

    # --- Events: what is set, wanted and broken -------------------------------------------------

    def edit_a_rule(self) -> None:
        """Moments, channels, on and off, of everybody's rules or a doctor's own."""
        doctor, _office = self.chance.choice(self.doctors)
        rules = list(ReminderRule.objects.filter(reminder_type="cita_proxima").order_by("pk"))
        rule = self.chance.choice(rules)
        what = self.chance.choice(["moment", "channels", "unread", "switch", "own"])
        if what == "own":
            own = ReminderRule.objects.filter(doctor=doctor, reminder_type="cita_proxima")
            if own.exists():
                own.delete()
            else:
                _rule("cita_proxima", self.chance.choice([-2880, -1440, -180]), "hours", doctor=doctor)
        elif what == "moment":
            wanted = self.chance.choice(
                [(-2880, "hours"), (-1440, "days"), (-1440, "hours"), (-180, "hours")]
            )
            same = ReminderRule.objects.filter(
                doctor=rule.doctor,
                reminder_type="cita_proxima",
                offset_minutes=wanted[0],
                offset_unit=wanted[1],
            )
            if not same.exists():
                rule.offset_minutes, rule.offset_unit = wanted
                rule.save()
        else:
            if what == "channels":
                rule.channels = self.chance.choice(
                    [["whatsapp", "email"], ["email", "whatsapp"], ["whatsapp"]]
                )
            elif what == "unread":
                rule.fallback_after_minutes = None if rule.fallback_after_minutes else 240
            else:
                rule.is_enabled = not rule.is_enabled
            rule.save()
        self.counts["rules edited"] += 1

    def stop_or_return(self) -> None:
        pk = self.chance.choice(list(self.people))
        channel = self.chance.choice(["whatsapp", "email"])
        address = self.people[pk].addresses[channel]
        told: dict[str, Any] = {
            "address": address, "channel": channel, "patient": Patient.objects.get(pk=pk), "evidence": "BAJA"
        }  # fmt: skip
        if not address:
            return
        if address in self.stopped:
            preferences.opt_in(**told)
            self.stopped.discard(address)
        else:
            preferences.opt_out(**told)
            self.stopped.add(address)
        self.counts["opted out or in"] += 1

    def change_a_contact(self) -> None:
        pk = self.chance.choice(list(self.people))
        patient, person = Patient.objects.get(pk=pk), self.people[pk]
        patient.email = f"nuevo-{next(self._number)}@example.org" if self.chance.random() < 0.8 else ""
        patient.save()
        person.addresses["email"] = patient.email
        self.counts["contacts changed"] += 1

    def go_deaf(self) -> None:
        """The dispatcher stands still, for minutes or for days."""
        self._deaf_until = self.now + self.chance.choice([15, 120, 600, 2_000]) * MINUTE
        self.counts["outages"] += 1

    def trouble_at_meta(self) -> None:
        """For some hours Meta refuses some numbers, loses answers to others, and tells of failures later."""
        numbers = [
            person.addresses["whatsapp"] for person in self.people.values() if person.addresses["whatsapp"]
        ]
        some = self.chance.sample(numbers, len(numbers) // 3)
        third = len(some) // 3
        self.meta.change(
            error_for={number: self.chance.choice(list(TROUBLES.values())) for number in some[:third]},
            lose_answer_for=frozenset(some[third : 2 * third]),
            status_error_for=dict.fromkeys(some[2 * third :], 131026),
        )
        self.counts["hours of trouble at Meta"] += 1
        calm: dict[str, Any] = {"error_for": {}, "lose_answer_for": frozenset(), "status_error_for": {}}
        self.at(self.now + self.chance.choice([1, 5, 12]) * 60 * MINUTE, lambda: self.meta.change(**calm))


def _meta(url: str) -> SandboxOptions:
    known = [
        template_from_json(json.loads(path.read_text()))
        for path in settings.WHATSAPP_TEMPLATES_DIR.glob("*.json")
    ]
    return SandboxOptions(
        callback_url=f"{url}/webhooks/whatsapp/",
        access_token=settings.WHATSAPP_ACCESS_TOKEN,
        app_secret=settings.WHATSAPP_APP_SECRETS[0],
        phone_number_id=settings.WHATSAPP_PHONE_NUMBER_ID,
        business_account_id=settings.WHATSAPP_BUSINESS_ACCOUNT_ID,
        known_templates=tuple(known),
    )


def _postmark(url: str) -> PostmarkOptions:
    return PostmarkOptions(
        callback_url=f"{url}/webhooks/postmark/tracking/",
        server_token=settings.POSTMARK_SERVER_TOKEN,
        webhook_secret=settings.POSTMARK_WEBHOOK_SECRET,
    )


def _form(fields: dict[str, Any], day: date, clock: time) -> dict[str, Any]:
    return fields | {
        "specialty": "", "date": f"{day:%d/%m/%Y}", "start_time": f"{clock:%H:%M}", "duration_minutes": 30,
        "modality": "in_person", "video_url": "", "history-TOTAL_FORMS": 0, "history-INITIAL_FORMS": 0,
    }  # fmt: skip


def _rule(kind: str, minutes: int, unit: str, **fields: Any) -> None:
    ReminderRule.objects.create(
        reminder_type=kind, offset_minutes=minutes, offset_unit=unit, channels=["whatsapp", "email"], **fields
    )


def _doctor(zone: ZoneInfo, number: int) -> tuple[Doctor, Office]:
    name = f"{zone.key.rpartition('/')[2].replace('_', ' ')} {'Uno' if number == 0 else 'Dos'}"
    office = Office.objects.create(
        name=f"Consultorio {name}", address="Avenida", phone="+582120000000", time_zone=zone.key
    )
    doctor = Doctor.objects.create(title="Dra.", name=f"Médica {name}")
    doctor.offices.add(office)
    return doctor, office


def _set_clock_of_this_connection(moment: datetime) -> None:
    with connection.cursor() as cursor:
        # What this server forgets in a power cut is nobody's.
        cursor.execute(
            "SELECT set_config('amedi.now', %s, false), set_config('synchronous_commit', 'off', false)",
            [moment.isoformat()],
        )


def _ceil(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0) + MINUTE


def main() -> int:
    """Live the year and print what happened; 1 when anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--visits", type=int, default=VISITS)
    parser.add_argument("--quick", action="store_true", help="a tenth of the visits")
    options = parser.parse_args()
    print(figures.heading("bench.year", packages=("pyreqwest",)) + f"seed {options.seed}", flush=True)
    settings.REMINDER_QUIET_HOURS = (time(21), time(7))
    settings.REMINDER_CHANNELS = ["whatsapp", "email"]
    settings.POSTMARK_SERVER_TOKEN, settings.POSTMARK_WEBHOOK_SECRET = "bench-token-not-real", POSTMARK_SECRET
    settings.DEFAULT_FROM_EMAIL = "Consultorio <citas@consultorio.example>"
    settings.ALLOWED_HOSTS = ["*"]
    settings.EMAIL_MAX_PER_SECOND = 1_000
    began = machine.monotonic()
    year = Year(options.seed, options.visits // 10 if options.quick else options.visits)
    year.live()
    wrong = [*year.wrong, *year_checks.of(year)]
    for what, count in sorted(year.counts.items()):
        print(f"  {what}: {count}")
    print(f"{len(year.visits)} visits in {machine.monotonic() - began:.0f} s; {len(wrong)} things are wrong")
    for line in wrong:
        print(f"  {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
