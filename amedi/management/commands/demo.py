"""The whole product on one machine, with invented patients, and a screen that tells what happens."""

from __future__ import annotations

import io
import logging
import signal
import time
from argparse import ArgumentParser
from datetime import datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn
from zoneinfo import ZoneInfo

import requests
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from amedi import demo_agenda, demo_people, local_postgres
from amedi.demo_patient import Patient, Reader
from amedi.demo_people import Login
from amedi.demo_programs import Programs, answers, free_port
from amedi.demo_story import SILENT, SOON, WALK, Happening, Step, Story
from amedi.supervisor import Supervisor
from appointments import clock
from appointments.models import Appointment
from reminders.models import Heartbeat, ReminderDelivery
from reminders.tick import HEARTBEAT

FOLDER = settings.LOCAL_DIR / "demo"
AGENDA = settings.BASE_DIR / "demo" / "agenda.csv"
ZONE = ZoneInfo("America/Caracas")
WALKER = "CR-101"
"""The visit, by its identifier in the agenda, whose patient confirms by herself."""
READER = "CR-107"
"""The visit whose patient has no mobile, and confirms by the link in her mail."""
BY_MAIL = (Step.PLANNED, Step.SENT, Step.DELIVERED, Step.READ, Step.CONFIRMED)
BREATH = 0.5
"""Seconds between two looks at the database."""
START_SECONDS = 60
WALK_SECONDS = 180
CRASH = timedelta(seconds=20)
"""A program that ends so soon after its start would do no better the next time."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Command(BaseCommand):
    """Runs until Ctrl-C, which ends everything that it started."""

    help = "Show the product at work: agenda in, reminders out, a tap back, a confirmed visit."
    requires_system_checks: list[str] = []
    supervisor: Supervisor
    programs: Programs
    story: Story
    patient: Patient
    reader: Reader
    stale_after: timedelta
    since: datetime

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--once",
            action="store_true",
            help="walk two visits through unattended, one by WhatsApp and one by mail, and end",
        )
        parser.add_argument("--port", type=int, default=8000, help="the web server's, if it is free")
        parser.add_argument(
            "--stale-after", type=int, default=150, metavar="SECONDS",
            help="restart the cluster when no tick has shown a sign of life for so long",
        )  # fmt: skip

    def handle(self, *, once: bool, port: int, stale_after: int, **_options: Any) -> None:
        listen_to_signals()
        self.stale_after = timedelta(seconds=stale_after)
        self.supervisor = Supervisor(FOLDER)
        try:
            self.set_up(port)
            if once:
                self.walk_once()
            else:
                self.say(_("Todo está en marcha. Ctrl-C lo termina."))
                while True:
                    self.look()
        except KeyboardInterrupt:
            self.say(_("Terminando…"))
            if once:
                raise CommandError(_("Interrumpida antes de terminar.")) from None
        finally:
            ignore_signals()
            self.supervisor.stop()
            stop_postgres_unless_used()

    # --- Setting up -----------------------------------------------------------

    def set_up(self, port: int) -> None:
        """Database, people, agenda and programs. Raises CommandError in one sentence."""
        if self.supervisor.take_over():
            self.say(_("Otra demostración estaba en marcha: se terminó."))
        keep_log_lines_in(FOLDER / "demo.log")
        if local_postgres.is_wanted():
            # The other one may have stopped it on its way out.
            local_postgres.SERVER.start()
        logins = self.fill_database()
        self.programs = Programs(
            web_port=free_port(port),
            sandbox_port=free_port(8001),
            mail_port=free_port(8002),
            stream_port=free_port(8003),
        )
        self.since = clock.now()
        self.import_agenda()
        # Schedules wait up to half a minute for their first turn.
        async_task("reminders.tick.scheduled_tick")
        programs = self.programs
        for program in (programs.sandbox, programs.web, programs.stream, programs.cluster):
            self.supervisor.start(program)
        self.wait_for_servers()
        visits = self.visits_with_reminders_soon()
        self.tell_addresses(logins, visits)
        self.story = Story(since=self.since)
        self.patient = Patient(sandbox_url=self.programs.sandbox_url, number=phone_of_the_walker(visits))
        reads = next(visit for visit in visits if visit.external_id == READER)
        self.reader = Reader(mail_url=self.programs.mail_url, address=reads.patient.email)

    def fill_database(self) -> list[Login]:
        try:
            demo_people.refuse_strangers()
        except demo_people.NotADemo as problem:
            raise CommandError(str(problem)) from None
        self.say(_("Preparando la base de datos…"))
        call_command("migrate", verbosity=0)
        call_command("setup_schedules", stdout=io.StringIO())
        logins = demo_people.make()
        demo_people.clear_agenda()
        return logins

    def import_agenda(self) -> None:
        text = demo_agenda.expand(AGENDA.read_text(encoding="utf-8"), now=clock.now(), zone=ZONE)
        file = FOLDER / "agenda.csv"
        file.write_text(text, encoding="utf-8")
        self.say(_("Importando demo/agenda.csv, con sus errores de siempre:"))
        done = self.supervisor.run(self.programs.import_agenda(file))
        for line in done.stdout.splitlines():
            self.stdout.write(f"    {line}")
        if done.returncode:
            raise CommandError(_("La agenda no se pudo importar; véase %s.") % self.supervisor.log("import"))

    def wait_for_servers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        servers = (
            self.programs.sandbox_url,
            self.programs.mail_url,
            f"{self.programs.web_url}/admin/",
            f"{self.programs.stream_url}/healthz",
        )
        while not all(answers(url) for url in servers):
            self.watch()
            if time.monotonic() > deadline:
                self.give_up(_("Los servidores no arrancan."))
            time.sleep(BREATH)

    def tell_addresses(self, logins: list[Login], visits: list[Appointment]) -> None:
        self.say(_("Administración: %s/admin/") % self.programs.web_url)
        for login in logins:
            self.stdout.write(f"    {login.role:<12} {login.username:<16} {login.password}")
        self.say(_("La sala, en vivo: %s/sala/") % self.programs.web_url)
        self.say(_("Pantalla de la sala de espera: %s/sala/espera/") % self.programs.web_url)
        self.say(_("Correos de los pacientes: %s/") % self.programs.mail_url)
        self.say(_("Teléfonos de los pacientes: %s/") % self.programs.sandbox_url)
        for visit in visits:
            if not visit.patient.phone.startswith("+584"):
                inbox = f"{self.programs.mail_url}/inbox/{visit.patient.email}/"
                note = _("confirma sola, por el enlace del correo")
                self.stdout.write(f"    {visit.patient.full_name.split()[0]:<12} {inbox}  ({note})")
                continue
            phone = self.programs.sandbox_url + f"/phone/{visit.patient.phone}"
            note = _("confirma sola") if visit.external_id == WALKER else _("espera su toque")
            self.stdout.write(f"    {visit.patient.full_name.split()[0]:<12} {phone}  ({note})")

    def visits_with_reminders_soon(self) -> list[Appointment]:
        soon = ReminderDelivery.objects.filter(scheduled_for__lt=self.since + SOON).exclude(status__in=SILENT)
        visits = Appointment.objects.filter(created_at__gte=self.since, pk__in=soon.values("appointment"))
        return list(visits.select_related("patient").order_by("external_id"))

    # --- Running --------------------------------------------------------------

    def look(self) -> list[Happening]:
        """Tell what is new, let the patient act, see that everything lives; then wait a moment."""
        news = self.story.news()
        for happening in news:
            self.stdout.write(happening.line)
        self.stdout.flush()
        self.watch()
        try:
            self.patient.act(now=time.monotonic())
            self.reader.act(now=time.monotonic())
        except requests.RequestException as error:
            self.say(_("El teléfono o el correo no contesta: %s") % type(error).__name__)
        time.sleep(BREATH)
        return news

    def watch(self) -> None:
        """Start again what ended, and the cluster when it hangs."""
        for name in self.supervisor.ended():
            if self.supervisor.age(name) < CRASH:
                self.give_up(_("«%s» no arranca.") % name)
            self.say(_("«%s» terminó por su cuenta: se arranca de nuevo.") % name)
            self.supervisor.restart(name)
        silence = Heartbeat.age(HEARTBEAT, clock.now())
        if self.supervisor.restart_if_silent("cluster", since=silence, limit=self.stale_after):
            self.say(_("El cluster no daba señales de vida: se arrancó de nuevo."))

    def walk_once(self) -> None:
        """See two visits to their answers. Raises CommandError with what did not happen."""
        self.say(_("Se espera a que dos citas recorran todo el camino: una por WhatsApp, otra por correo…"))
        wanted = [(WALKER, step) for step in WALK] + [(READER, step) for step in BY_MAIL]
        walked: dict[tuple[str, Step], datetime] = {}
        deadline = time.monotonic() + WALK_SECONDS
        while missing := [station for station in wanted if station not in walked]:
            if time.monotonic() > deadline:
                break
            for happening in self.look():
                walked.setdefault((happening.visit.external_id, happening.step), happening.at)
        for visit in (WALKER, READER):
            self.say(_("Lo que pasó con la cita %s:") % visit)
            for station in wanted:
                if station[0] == visit:
                    at = walked.get(station)
                    told = f"{at.astimezone(ZONE):%H:%M:%S}" if at else _("no ocurrió")
                    self.stdout.write(f"    {station[1].label:<12} {told}")
        if missing:
            self.give_up(_("No ocurrió: %s.") % ", ".join(f"{visit} {step.label}" for visit, step in missing))

    # --- Words ----------------------------------------------------------------

    def give_up(self, problem: str) -> NoReturn:
        """Show the ends of the logs, and raise CommandError."""
        for name in self.supervisor.names:
            self.say(f"--- {self.supervisor.log(name)}")
            for line in self.supervisor.last_lines(name):
                self.stdout.write(f"    {line}")
        raise CommandError(problem)

    def say(self, sentence: str) -> None:
        self.stdout.write(f"{datetime.now(ZONE):%H:%M:%S}  {sentence}")
        self.stdout.flush()


def phone_of_the_walker(visits: list[Appointment]) -> str:
    """Raises CommandError when the agenda has no such visit, or no reminder of it is due soon."""
    for visit in visits:
        if visit.external_id == WALKER:
            return visit.patient.phone
    raise CommandError(_("demo/agenda.csv no tiene la cita %s con un recordatorio pronto.") % WALKER)


def keep_log_lines_in(file: Path) -> None:
    """The screen is for the story."""
    stream = open(file, "a")  # noqa: SIM115  (until the process ends)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(stream)


def listen_to_signals() -> None:
    """Each way of being told to stop ends the run like a Ctrl-C, also in the background."""
    for number in SIGNALS:
        # nohup asks us to outlive the terminal.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)


def ignore_signals() -> None:
    """A second Ctrl-C must not leave half of it running."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def stop_postgres_unless_used() -> None:
    """End the embedded server, unless another program of this folder works on it."""
    if not local_postgres.is_wanted() or not local_postgres.SERVER.is_running():
        return
    # A Ctrl-C in the middle of a query leaves a connection that cannot be used.
    connection.close()
    for _attempt in range(20):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
            others = cursor.fetchone()[0]
        if not others:
            connection.close()
            local_postgres.SERVER.stop()
            return
        # Of programs that were just ended; the server needs a moment to notice.
        time.sleep(0.1)
