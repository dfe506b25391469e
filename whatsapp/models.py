"""What Meta told us: posts as received, and what stood in them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar, Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from whatsapp.events import (
    PAYLOAD_LENGTH,
    PHONE_LENGTH,
    REFERENCE_LENGTH,
    USER_ID_LENGTH,
    WAMID_LENGTH,
    WORD_LENGTH,
)


class WebhookPostQuerySet(models.QuerySet["WebhookPost"]):
    def unprocessed(self) -> Self:
        """Posts that were not worked off to their end."""
        return self.filter(processed_at=None)

    def claimable(self, now: datetime) -> Self:
        """Unprocessed posts that nobody holds, and that did not stop every worker so far."""
        free = Q(claimed_until=None) | Q(claimed_until__lt=now)
        return self.unprocessed().filter(free, claims__lt=WebhookPost.MOST_CLAIMS)


class WebhookPost(models.Model):
    """The body of one webhook post, as received: kept before anything reads it."""

    MOST_CLAIMS: ClassVar[int] = 10
    """After so many workers that did not come to the end it waits for a person."""

    is_awaited: bool = False
    """Of a post just stored: whether a worker was on its way, since an older one waited. It takes all."""

    body = models.BinaryField(_("cuerpo"))
    sha256 = models.CharField(_("huella"), max_length=64, unique=True)
    received_at = models.DateTimeField(_("recibido"), db_default=Now())
    claimed_until = models.DateTimeField(_("en manos de alguien hasta"), null=True)
    claims = models.PositiveSmallIntegerField(_("intentos"), default=0)
    processed_at = models.DateTimeField(_("procesado"), null=True)
    error = models.CharField(_("error"), max_length=100, blank=True)

    objects = WebhookPostQuerySet.as_manager()

    class Meta:
        verbose_name = _("aviso recibido")
        verbose_name_plural = _("avisos recibidos")
        ordering = ["-pk"]
        indexes = [
            # For inbox.work_off(): what still waits, oldest first.
            models.Index(fields=["id"], name="webhook_post_unprocessed", condition=Q(processed_at=None)),
        ]

    def __str__(self) -> str:
        return str(self.pk)


class QuarantinedItem(models.Model):
    """A part of a post that could not be read or handled. Gone once a replay succeeds."""

    post = models.ForeignKey(
        WebhookPost, models.CASCADE, related_name="quarantined", verbose_name=_("aviso recibido")
    )
    path = models.CharField(_("lugar en el cuerpo"), max_length=200, blank=True)
    reason = models.CharField(_("motivo"), max_length=100)
    created_at = models.DateTimeField(_("apartado"))

    class Meta:
        verbose_name = _("parte en cuarentena")
        verbose_name_plural = _("cuarentena")
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["post", "path"], name="quarantined_once_per_post_and_path")
        ]

    def __str__(self) -> str:
        return f"{self.post_id} {self.path}"


class InboundMessage(models.Model):
    """What somebody wrote to us, or tapped."""

    wamid = models.CharField(_("identificador de WhatsApp"), max_length=WAMID_LENGTH, unique=True)
    from_phone = models.CharField(_("número"), max_length=PHONE_LENGTH, blank=True)
    from_user_id = models.CharField(_("usuario de WhatsApp"), max_length=USER_ID_LENGTH, blank=True)
    type = models.CharField(_("tipo"), max_length=WORD_LENGTH)
    text = models.TextField(_("texto"), blank=True)
    payload = models.CharField(_("dato del botón"), max_length=PAYLOAD_LENGTH, blank=True)
    context_wamid = models.CharField(_("en respuesta a"), max_length=WAMID_LENGTH, blank=True)
    is_group = models.BooleanField(_("de un grupo"), default=False)
    sent_at = models.DateTimeField(_("enviado"))
    received_at = models.DateTimeField(_("recibido"))
    post = models.ForeignKey(
        WebhookPost, models.PROTECT, related_name="messages", verbose_name=_("aviso recibido")
    )

    class Meta:
        verbose_name = _("mensaje de un paciente")
        verbose_name_plural = _("mensajes de pacientes")
        ordering = ["-pk"]

    def __str__(self) -> str:
        return str(self.pk)


class StatusEventQuerySet(models.QuerySet["StatusEvent"]):
    def parked(self, now: datetime) -> Self:
        """Receipts that nobody knew so far and that are to be offered again by now."""
        return self.filter(settled_at=None, next_offer_at__lte=now)


class StatusEvent(models.Model):
    """One receipt of one message. Each kind keeps its own row: what a message is now follows from all."""

    wamid = models.CharField(_("identificador de WhatsApp"), max_length=WAMID_LENGTH)
    status = models.CharField(_("estado"), max_length=WORD_LENGTH)
    reference = models.CharField(_("nuestra referencia"), max_length=REFERENCE_LENGTH, blank=True)
    at = models.DateTimeField(_("cuándo"))
    recipient_phone = models.CharField(_("número"), max_length=PHONE_LENGTH, blank=True)
    recipient_user_id = models.CharField(_("usuario de WhatsApp"), max_length=USER_ID_LENGTH, blank=True)
    errors = models.JSONField(_("errores"), default=list, blank=True)
    category = models.CharField(_("categoría cobrada"), max_length=WORD_LENGTH, blank=True)
    received_at = models.DateTimeField(_("recibido"))
    settled_at = models.DateTimeField(_("reconocido"), null=True)
    next_offer_at = models.DateTimeField(_("se vuelve a ofrecer"), null=True)

    objects = StatusEventQuerySet.as_manager()

    class Meta:
        verbose_name = _("acuse")
        verbose_name_plural = _("acuses")
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["wamid", "status"], name="status_once_per_message_and_kind")
        ]
        indexes = [
            # For inbox.settle_parked(): receipts that still wait for their message.
            models.Index(
                fields=["next_offer_at"],
                name="status_event_parked",
                condition=Q(settled_at=None, next_offer_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.wamid} {self.status}"


class TemplateQuerySet(models.QuerySet["Template"]):
    def usable(self) -> Self:
        """Templates that may be sent: approved, and still what reminders are."""
        return self.filter(status=Template.APPROVED, category=Template.UTILITY)

    def withheld_by_meta(self) -> Self:
        """Templates that Meta told us not to send; one of which it told nothing yet may be tried."""
        told_off = ~Q(status__in=["", Template.APPROVED]) | Q(category=Template.MARKETING)
        return self.filter(told_off)


class Template(models.Model):
    """A message template as Meta has it."""

    APPROVED: ClassVar[str] = "APPROVED"
    UTILITY: ClassVar[str] = "UTILITY"
    MARKETING: ClassVar[str] = "MARKETING"

    business_account_id = models.CharField(_("cuenta de WhatsApp"), max_length=64)
    name = models.CharField(_("nombre"), max_length=512)
    language = models.CharField(_("idioma"), max_length=16)
    template_id = models.CharField(_("identificador en Meta"), max_length=64, blank=True)
    # Meta's own words, which grow: no choices.
    status = models.CharField(_("estado"), max_length=WORD_LENGTH, blank=True)
    category = models.CharField(_("categoría"), max_length=WORD_LENGTH, blank=True)
    asked_category = models.CharField(_("categoría pedida"), max_length=WORD_LENGTH, blank=True)
    quality = models.CharField(_("calidad"), max_length=WORD_LENGTH, blank=True)
    reason = models.TextField(_("motivo del rechazo"), blank=True)
    components = models.JSONField(_("partes"), default=list, blank=True)
    ttl_seconds = models.IntegerField(_("segundos de vida"), null=True, blank=True)
    known_at = models.DateTimeField(
        _("así desde"), help_text=_("El momento del que sabemos lo que aquí dice.")
    )
    synced_at = models.DateTimeField(_("leída de Meta"), null=True, blank=True)

    objects = TemplateQuerySet.as_manager()

    class Meta:
        verbose_name = _("plantilla de WhatsApp")
        verbose_name_plural = _("plantillas de WhatsApp")
        ordering = ["name", "language"]
        constraints = [
            models.UniqueConstraint(
                fields=["business_account_id", "name", "language"],
                name="template_once_per_account_name_and_language",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.language})"

    @property
    def is_usable(self) -> bool:
        """Approved, and still UTILITY: as MARKETING it costs more, and Meta holds it back."""
        return self.status == self.APPROVED and self.category == self.UTILITY


class ConversationWindow(models.Model):
    """Until when we may write freely to somebody: 24 hours from their last message."""

    LENGTH: ClassVar[timedelta] = timedelta(hours=24)

    address = models.CharField(
        _("número o usuario"), max_length=USER_ID_LENGTH, unique=True, help_text=_("Cifras sin +, o VE.1234.")
    )
    open_until = models.DateTimeField(_("abierta hasta"))

    class Meta:
        verbose_name = _("ventana de conversación")
        verbose_name_plural = _("ventanas de conversación")

    def __str__(self) -> str:
        return str(self.pk)

    @classmethod
    def extend(cls, address: str, until: datetime) -> None:
        """Open the window at least until then; it never closes earlier than it would."""
        _window, created = cls.objects.get_or_create(address=address, defaults={"open_until": until})
        if not created:
            cls.objects.filter(address=address, open_until__lt=until).update(open_until=until)

    @classmethod
    def is_open(cls, address: str, *, at: datetime) -> bool:
        """Whether free text may go to this number (with or without +) or user id."""
        return cls.objects.filter(address=address.lstrip("+"), open_until__gt=at).exists()
