"""WhatsApp, in the words of the queue. The only place that knows Meta's client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from reminders import wording
from reminders.channels.base import (
    AnswerLost,
    Channel,
    ChannelError,
    Message,
    Receipt,
    Throttled,
    Undeliverable,
)
from reminders.timeline import Reason, ReminderType
from whatsapp import answers
from whatsapp.account import Account
from whatsapp.clean import BODY_LIMIT, PARAMETER_LIMIT
from whatsapp.errors import Next
from whatsapp.messages import template_message, text_message
from whatsapp.models import Template
from whatsapp.sender import Sender
from whatsapp.templates import StandardTemplate, standard_templates

REPLY = "reply"

LONG_LEAD = timedelta(hours=12)
"""With less time left, the template goes whose time to live is an hour."""

TEMPLATES: Mapping[str, tuple[str, ...]] = {
    ReminderType.CITA_PROXIMA: (
        "appointment_reminder_24h", "appointment_reminder_24h_confirmed",
        "appointment_reminder_2h", "appointment_reminder_2h_confirmed",
    ),
    ReminderType.PREPARACION: ("appointment_preparation",),
    ReminderType.LLEGADA: ("appointment_arrival", "appointment_arrival_virtual"),
    ReminderType.SEGUIMIENTO: ("appointment_follow_up",),
    ReminderType.CONTROL: ("appointment_check_up",),
    ReminderType.RESERVA: ("appointment_booked", "appointment_booked_preparation"),
    ReminderType.CAMBIO: ("appointment_changed", "appointment_changed_preparation"),
    ReminderType.CANCELACION: ("appointment_cancelled",),
}  # fmt: skip
"""The templates that say each type; the first where nothing else is to be chosen."""
PREPARATION = "preparacion"


class WhatsAppChannel(Channel):
    """Reminders go out as approved templates, answers as free text within the window."""

    gives_receipts = True

    def __init__(self) -> None:
        self._sender: Sender | None = None

    def payload(self, message: Message) -> dict[str, Any]:
        """The body of Meta's /messages call."""
        if message.kind == REPLY:
            return text_message(
                to=message.to,
                text=message.text,
                buttons=[(button.payload, button.title) for button in message.buttons],
                reference=message.reference,
                context=message.in_answer_to,
            )
        template = _template_for(message)
        if template is None:
            raise ValueError(f"No template says {message.kind}.")
        parameters = {name: _said(name, message) for name in template.parameters}
        return template_message(
            to=message.to,
            name=template.name,
            language=template.language,
            parameters=parameters,
            payloads=[button.payload for button in message.buttons],
            reference=message.reference,
            limits={PREPARATION: _room_left(template, parameters)},
        )

    def withheld(self, messages: Sequence[Message]) -> Mapping[str, Reason]:
        """The messages whose template Meta does not let through, or charges as advertising.

        A template that was never synced is taken for usable.
        """
        wanted = {
            message.reference: template
            for message in messages
            if message.kind != REPLY and (template := _template_for(message))
        }
        if not wanted:
            return {}
        names = {template.name for template in wanted.values()}
        rows = Template.objects.withheld_by_meta().filter(
            business_account_id=settings.WHATSAPP_BUSINESS_ACCOUNT_ID, name__in=names
        )
        out_of_use = set(rows.values_list("name", "language"))
        return {
            reference: Reason.TEMPLATE_UNAVAILABLE
            for reference, template in wanted.items()
            if (template.name, template.language) in out_of_use
        }

    async def send(self, message: Message, payload: dict[str, Any]) -> Receipt:  # noqa: ARG002
        if self._sender is None:
            self._sender = _sender()
        try:
            accepted = await self._sender.send(payload)
        except answers.AnswerLost as lost:
            raise AnswerLost("answer_lost") from lost
        except answers.NotReached as unreached:
            raise ChannelError("not_reached") from unreached
        except answers.GraphError as refused:
            raise _error_for(refused) from refused
        return Receipt(message_id=accepted.wamid, wa_id=accepted.wa_id, user_id=accepted.user_id)

    async def close(self) -> None:
        if self._sender:
            await self._sender.close()


def _sender() -> Sender:
    """A sender on this loop. Nothing is written before the settings are right."""
    try:
        return Sender(Account.from_settings())
    except ImproperlyConfigured as error:
        raise ChannelError("not_configured") from error


def _template_for(message: Message) -> StandardTemplate | None:
    """The template that says it: asking or not, a day before or hours before."""
    name = TEMPLATES.get(message.kind, ("",))[0]
    if message.preparation:
        name = f"{name}_preparation"
    elif message.kind == ReminderType.LLEGADA and message.is_virtual:
        name = f"{name}_virtual"
    elif message.kind == ReminderType.CITA_PROXIMA:
        name = "appointment_reminder_24h" if message.time_left > LONG_LEAD else "appointment_reminder_2h"
        name = name if message.asks_to_confirm else f"{name}_confirmed"
    return standard_templates().get(name)


def _said(name: str, message: Message) -> str:
    """What a variable says on WhatsApp, where an address that is cut leads nowhere."""
    if name == PREPARATION:
        return message.preparation
    if name == "consultorio" and message.is_virtual and message.time_left > timedelta(0):
        return _place(message)
    if name == "enlace_video":
        return _way_in(message)
    return message.values[name]


def _way_in(message: Message, *, room: int = PARAMETER_LIMIT) -> str:
    """The video call's address; where that is too long, the visit's page, which leads there."""
    link = message.values["enlace_video"]
    return link if len(link) <= room else message.values["enlace"]


def _place(message: Message) -> str:
    """That the visit is a video call, and how to enter."""
    place = wording.VIDEO_CALL
    if not wording.web(message.values["enlace_video"]):
        return f"{place} ({wording.LINK_TO_COME})"
    whole = f"{place}: {_way_in(message, room=PARAMETER_LIMIT - len(place) - 2)}"
    return whole if len(whole) <= PARAMETER_LIMIT else place


def _room_left(template: StandardTemplate, parameters: Mapping[str, str]) -> int:
    """How long the instructions may be beside all else that the template says."""
    others = (said[:PARAMETER_LIMIT] for name, said in parameters.items() if name != PREPARATION)
    return BODY_LIMIT - len(template.text) - sum(map(len, others))


def _error_for(refused: answers.GraphError) -> ChannelError:
    """Meta's refusal as the queue's: later, slower, or never."""
    code, verdict = str(refused.code), refused.verdict
    if verdict.next == Next.PACE:
        return Throttled(code, refused.details, retry_after=refused.retry_after)
    # A broken account would refuse everything: the retries bridge the minutes
    # until somebody mends it, instead of losing the whole morning at once.
    if verdict.next in (Next.RETRY, Next.CHANNEL):
        return ChannelError(code, refused.details, retry_after=refused.retry_after, tries=verdict.tries)
    return Undeliverable(code, refused.details)
