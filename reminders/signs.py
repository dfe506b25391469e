"""The vital signs of the engine: up to where each is well, what it means beyond, and what to do then.

The words are for somebody who did not write the system, and whom it called out of bed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from reminders import questions

TICK_STALE = timedelta(minutes=3)
UNSENT_LATE = timedelta(minutes=5)


class Unit(StrEnum):
    SECONDS = "seconds"
    ITEMS = "items"


@dataclass(frozen=True, kw_only=True)
class Sign:
    """One question, with its threshold and its words."""

    name: str
    unit: Unit = Unit.SECONDS
    label: Promise
    explanation: str
    """For the metrics."""
    ask: Callable[[datetime], float | None]
    """The value at a time; None when there is nothing to measure."""
    threshold: Callable[[], float]
    """What is above it is bad."""
    is_grave: bool = False
    """Whether a bad value says that messages do not go out, or that answers do not come in."""
    sentence: Promise
    """What a bad value means; ``%(value)s`` stands for the value in words."""
    what_to_do: Promise


DATABASE = Sign(
    name="database_seconds",
    label=_("Base de datos"),
    explanation="Time that the database takes to answer.",
    ask=questions.seconds_to_answer,
    threshold=questions.PATIENCE.total_seconds,
    is_grave=True,
    sentence=_("La base de datos no contesta, o tarda demasiado: nada se planifica ni se envía."),
    what_to_do=_(
        "Compruebe que Postgres está en marcha, que su disco no está lleno y que DATABASE_URL es la "
        "correcta. Los procesos se reconectan por sí mismos."
    ),
)
SIGNS = (
    DATABASE,
    Sign(
        name="tick_age_seconds",
        label=_("Última señal de vida del cluster"),
        explanation="Time since a tick of the cluster, or a dispatcher, was last alive.",
        ask=lambda now: questions.last_tick_and_oldest_unsent(now)[0],
        threshold=TICK_STALE.total_seconds,
        is_grave=True,
        sentence=_("Ningún proceso trabaja desde hace %(value)s: no sale ningún recordatorio."),
        what_to_do=_(
            "Reinicie el cluster entero (por ejemplo: systemctl restart amedi-cluster). Si en dos minutos "
            "sigue igual, ejecute python manage.py setup_schedules. Y si tampoco, ejecute "
            "python manage.py dispatch_reminders --loop: envía sin el cluster."
        ),
    ),
    Sign(
        name="oldest_unsent_seconds",
        label=_("Mensaje más atrasado"),
        explanation="Time since the oldest message that still waits fell due.",
        ask=lambda now: questions.last_tick_and_oldest_unsent(now)[1],
        threshold=UNSENT_LATE.total_seconds,
        is_grave=True,
        sentence=_("Hay mensajes que ya debieron salir; el más atrasado, hace %(value)s."),
        what_to_do=_(
            "Si el cluster tampoco da señales de vida, resuelva eso primero. Si las da, mire las líneas "
            "ERROR del log. Si no hay, la cola es más larga de lo que sale: ejecute además "
            "python manage.py dispatch_reminders --loop, y suba REMINDER_BATCH_SIZE."
        ),
    ),
    Sign(
        name="overdue_lease_seconds",
        label=_("Mensaje abandonado"),
        explanation="Time since the oldest lease ran out that a worker never gave back.",
        ask=questions.overdue_lease,
        threshold=lambda: 2 * settings.REMINDER_LEASE_SECONDS,
        is_grave=True,
        sentence=_("Un proceso murió con un mensaje en las manos, y hace %(value)s que nadie lo recoge."),
        what_to_do=_(
            "Recogerlo es parte de cada turno del cluster. Si el cluster da señales de vida, busque "
            "«tick part failed» en el log: ahí está qué se lo impide. Si no, reinícielo entero."
        ),
    ),
    Sign(
        name="oldest_unknown_seconds",
        label=_("Mensaje sin respuesta del proveedor"),
        explanation="Time since the oldest message whose answer was lost became unknown.",
        ask=questions.oldest_unknown,
        threshold=lambda: settings.REMINDER_UNKNOWN_WAIT_SECONDS + 300,
        is_grave=True,
        sentence=_(
            "De un mensaje no se sabe desde hace %(value)s si llegó, y nadie lo ha pasado a otro canal "
            "ni a la lista de llamadas."
        ),
        what_to_do=_(
            "Cerrarlo es parte de cada turno del cluster. Si el cluster da señales de vida, busque "
            "«tick part failed» en el log: ahí está qué se lo impide. Si no, reinícielo entero."
        ),
    ),
    Sign(
        name="webhook_lag_seconds",
        label=_("Aviso de WhatsApp sin procesar"),
        explanation="Time since the oldest webhook post came in that nobody has worked off.",
        ask=questions.webhook_lag,
        threshold=timedelta(minutes=2).total_seconds,
        is_grave=True,
        sentence=_(
            "Lo que los pacientes contestan, y los acuses de WhatsApp, esperan desde hace %(value)s: "
            "quien tocó «Confirmar» no recibe respuesta."
        ),
        what_to_do=_(
            "Reinicie el cluster entero: procesa lo que espera en cuanto arranca. Si sigue igual, mire las "
            "líneas ERROR del log y ejecute python manage.py replay_webhooks."
        ),
    ),
    Sign(
        name="planner_lag_seconds",
        label=_("Cambio de la agenda sin planificar"),
        explanation="Time since the oldest change was made that the planner has not worked on.",
        ask=questions.planner_lag,
        threshold=timedelta(minutes=5).total_seconds,
        is_grave=True,
        sentence=_(
            "Un cambio de la agenda o de las reglas espera desde hace %(value)s: los recordatorios aún "
            "son los de antes."
        ),
        what_to_do=_(
            "Tras cambiar una regla general, o las horas de silencio, puede tardar unos minutos y baja solo. "
            "Si no baja y el cluster da señales de vida, busque «tick part failed» en el log."
        ),
    ),
    Sign(
        name="failing_plans",
        unit=Unit.ITEMS,
        label=_("Cambios que no se pueden planificar"),
        explanation="Changes whose planning has failed several times.",
        ask=questions.failing_plans,
        threshold=lambda: 0,
        sentence=_("No se puede planificar (%(value)s): los recordatorios de esas citas no están al día."),
        what_to_do=_(
            "El log nombra cada cita y el fallo: busque «plan appointment=… failed». Suele ser un dato "
            "imposible, como una zona horaria del consultorio que no existe. Corregido, se planifica solo."
        ),
    ),
    Sign(
        name="webhook_posts_given_up",
        unit=Unit.ITEMS,
        label=_("Avisos de WhatsApp abandonados"),
        explanation="Webhook posts that stopped every worker that took them.",
        ask=questions.posts_given_up,
        threshold=lambda: 0,
        sentence=_("Hay avisos de WhatsApp que ningún proceso logró terminar (%(value)s)."),
        what_to_do=_(
            "En la administración, «Avisos recibidos» los muestra con su error. Resuelta la causa, ejecute "
            "python manage.py replay_webhooks."
        ),
    ),
    Sign(
        name="quarantined_items",
        unit=Unit.ITEMS,
        label=_("Partes de avisos en cuarentena"),
        explanation="Parts of webhook posts that could not be read or handled.",
        ask=questions.quarantined,
        threshold=lambda: 0,
        sentence=_("Hay partes de avisos de WhatsApp que no se entendieron (%(value)s)."),
        what_to_do=_(
            "En la administración, «Cuarentena» dice el motivo de cada una. Resuelta la causa, ejecute "
            "python manage.py replay_webhooks --quarantined."
        ),
    ),
    Sign(
        name="templates_withheld",
        unit=Unit.ITEMS,
        label=_("Plantillas que Meta retiene"),
        explanation="Templates that the rules need and that Meta does not let through.",
        ask=questions.templates_withheld,
        threshold=lambda: 0,
        sentence=_(
            "Meta no deja usar plantillas que las reglas necesitan (%(value)s): esos recordatorios van por "
            "otro canal, o a la lista de llamadas."
        ),
        what_to_do=_(
            "Ejecute python manage.py whatsapp_templates sync, y vea en la administración, «Plantillas de "
            "WhatsApp», el estado y el motivo. Se corrigen en Meta; docs/whatsapp.md dice cómo."
        ),
    ),
    Sign(
        name="open_transaction_seconds",
        label=_("Transacción abierta más antigua"),
        explanation="Age of the oldest transaction that is open in the database.",
        ask=questions.open_transaction,
        threshold=timedelta(minutes=10).total_seconds,
        sentence=_(
            "Una transacción está abierta desde hace %(value)s; mientras dure, la cola se hace más lenta."
        ),
        what_to_do=_(
            "Vea de quién es: SELECT pid, usename, application_name, state, xact_start FROM pg_stat_activity "
            "ORDER BY xact_start. Si es una copia de seguridad, espere. Si nadie la necesita: "
            "SELECT pg_terminate_backend(pid)."
        ),
    ),
)
