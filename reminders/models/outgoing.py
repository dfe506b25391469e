"""What a reminder and an answer have in common: a row of a queue.

The life of a row is drawn in docs/lifecycle.md. Each change names the state
that it may come from, and the row count says whether it happened.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, ClassVar, TypeVar

from django.db import connection, models, transaction
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from appointments.access import ScopedQuerySet
from appointments.models import Patient
from reminders.models.each import array_type, as_array
from reminders.models.labels import REASON_CHOICES, ChannelName

O = TypeVar("O", bound="OutgoingMessage")  # noqa: E741
ADDRESS_LENGTH = 320
"""The longest address that mail allows: 64 characters, the @, and 255 more (RFC 5321)."""


class QueueQuerySet(ScopedQuerySet[O]):
    """The questions that the dispatcher asks a queue."""

    nearest_first: ClassVar[tuple[Any, ...]] = ("next_attempt_at", "pk")
    lock_too: ClassVar[str] = ""
    """What a claim locks beside the queue's row ``q``, as a JOIN; held by somebody, the row is left."""

    def due(self, now: datetime) -> QueueQuerySet[O]:
        """Rows to be sent by now."""
        return self.filter(status=OutgoingMessage.Status.PENDING, next_attempt_at__lte=now)

    def line_up(self, now: datetime, *, limit: int) -> list[tuple[Any, str]]:
        """Who is next: id and channel of due rows in their order. No claim: others read the same."""
        with transaction.atomic(savepoint=False), connection.cursor() as cursor:
            # By the partial index, also when the statistics are of an hour at which all was due.
            cursor.execute("SET LOCAL enable_seqscan = off")
            return list(self.due(now).order_by(*self.nearest_first).values_list("pk", "channel")[:limit])

    def abandoned(self, now: datetime) -> QueueQuerySet[O]:
        """Rows whose worker let its lease run out, most probably by dying."""
        return self.filter(status=OutgoingMessage.Status.SENDING, lease_until__lte=now)

    def useless(self, now: datetime) -> QueueQuerySet[O]:
        """Rows that would come too late to help."""
        return self.filter(status=OutgoingMessage.Status.PENDING, useful_until__lte=now)

    def unsettled(self, now: datetime) -> QueueQuerySet[O]:
        """Rows of which no receipt has told in the time that we wait for one."""
        return self.filter(status=OutgoingMessage.Status.UNKNOWN, next_attempt_at__lte=now)

    def claim(self, ids: Collection[Any], *, now: datetime, lease: timedelta) -> list[O]:
        """Take those of the rows that are due and that nobody holds; nobody else can then take them.

        ``attempt`` rises: it is the token with which the holder proves later that
        the row is still theirs. What is returned knows its key, channel, attempt, visit and patient only.
        """
        table, keys = self.model._meta.db_table, array_type(self.model)
        # One statement, one commit. Every name is ours.
        sql = f"""
            WITH free AS MATERIALIZED (
                SELECT q.id FROM {table} q {self.lock_too}
                WHERE q.id = ANY(%s{keys}) AND q.status = 'pending' AND q.next_attempt_at <= %s
                FOR UPDATE SKIP LOCKED
            )
            UPDATE {table} t SET status = 'sending', attempt = t.attempt + 1, lease_until = %s
            FROM free WHERE t.id = free.id
            RETURNING t.id, t.channel, t.patient_id, t.attempt, t.appointment_id"""  # noqa: S608
        with connection.cursor() as cursor:
            cursor.execute(sql, [as_array(ids), now, now + lease])
            # In the order in which the model declares them.
            known = ["id", "channel", "patient_id", "attempt", "appointment_id"]
            return [self.model.from_db(self.db, known, row) for row in cursor.fetchall()]

    def held(self, row: OutgoingMessage, *, also_unknown: bool = False) -> QueueQuerySet[O]:
        """The row itself, as long as the claim that it was read with still stands.

        ``also_unknown``: or as long as nobody knows how that very attempt ended.
        """
        statuses = [OutgoingMessage.Status.SENDING, *[OutgoingMessage.Status.UNKNOWN] * also_unknown]
        return self.filter(pk=row.pk, status__in=statuses, attempt=row.attempt)


class OutgoingMessage(models.Model):
    """One message to one address over one channel."""

    class Status(models.TextChoices):
        # Waits for next_attempt_at; claim() makes it SENDING.
        PENDING = "pending", _("Pendiente")
        # Claimed by one worker until lease_until. The worker or a receipt moves
        # it on; if neither does, the next tick decides by the ledger.
        SENDING = "sending", _("Enviándose")
        # The provider may have it: the answer was lost. A receipt settles it, or
        # after a wait it is FAILED. Never sent again.
        UNKNOWN = "unknown", _("Sin respuesta del proveedor")
        # The provider took it. Receipts move it on, only upwards.
        SENT = "sent", _("Enviado")
        # It is on the patient's phone.
        DELIVERED = "delivered", _("Entregado")
        # The patient has opened it.
        READ = "read", _("Leído")
        # It will not arrive on this channel; `reason` says why.
        FAILED = "failed", _("Falló")
        # Not sent, on purpose.
        SKIPPED = "skipped", _("No se envía")
        # The visit or the rule went before it was sent.
        CANCELLED = "cancelled", _("Anulado")
        # It would have come too late to help.
        EXPIRED = "expired", _("Vencido")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    channel = models.CharField(_("canal"), max_length=10, choices=ChannelName.choices, blank=True)
    patient = models.ForeignKey(Patient, models.PROTECT, verbose_name=_("paciente"))
    address = models.CharField(_("escrito a"), max_length=ADDRESS_LENGTH, blank=True)
    scheduled_for = models.DateTimeField(_("prometido para"))
    next_attempt_at = models.DateTimeField(_("próximo intento"))
    useful_until = models.DateTimeField(_("útil hasta"))
    status = models.CharField(_("estado"), max_length=10, choices=Status.choices, default=Status.PENDING)
    reason = models.CharField(_("motivo"), max_length=30, choices=REASON_CHOICES, blank=True)
    attempt = models.PositiveIntegerField(_("intento"), default=0)
    retry_count = models.PositiveIntegerField(_("reintentos"), default=0)
    lease_until = models.DateTimeField(_("tomado hasta"), null=True, blank=True)
    called_at = models.DateTimeField(_("primera llamada"), null=True, blank=True)
    message_id = models.CharField(_("identificador del proveedor"), max_length=255, blank=True)
    error_code = models.CharField(_("código de error"), max_length=40, blank=True)
    error_message = models.CharField(_("error"), max_length=500, blank=True)
    sent_at = models.DateTimeField(_("enviado"), null=True, blank=True)
    delivered_at = models.DateTimeField(_("entregado"), null=True, blank=True)
    read_at = models.DateTimeField(_("leído"), null=True, blank=True)
    given_up_at = models.DateTimeField(_("dado por perdido"), null=True, blank=True)
    created_at = models.DateTimeField(_("planificado"), db_default=Now(), editable=False)

    kind: ClassVar[str]
    """The letter by which a reference names this table."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return str(self.pk)

    @property
    def reference(self) -> str:
        """What receipts carry back: table, row and attempt."""
        return f"{self.kind}:{self.pk}:{self.attempt}"
