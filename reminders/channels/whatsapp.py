"""WhatsApp, in the words of the queue. The only place that knows Meta's client."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from reminders.channels.base import (
    AnswerLost,
    Channel,
    ChannelError,
    Message,
    Receipt,
    Throttled,
    Undeliverable,
)
from reminders.timeline import ReminderType
from whatsapp import client, messages, templates
from whatsapp.errors import Next, Verdict

LONG_LEAD = timedelta(hours=12)
"""With less time left, the template goes whose time to live is an hour."""

TEMPLATES = {
    ReminderType.PREPARACION: "appointment_preparation",
    ReminderType.LLEGADA: "appointment_arrival",
    ReminderType.SEGUIMIENTO: "appointment_follow_up",
    ReminderType.CONTROL: "appointment_check_up",
}


class WhatsAppChannel(Channel):
    """Reminders go out as approved templates, answers as free text within the window."""

    def payload(self, message: Message) -> dict[str, Any]:
        """The body of Meta's /messages call."""
        if message.kind == "reply":
            return messages.text_message(
                to=message.to,
                text=message.text,
                buttons=[(button.payload, button.title) for button in message.buttons],
                reference=message.reference,
                context=message.in_answer_to,
            )
        template = templates.standard_templates()[template_for(message)]
        return messages.template_message(
            to=message.to,
            name=template.name,
            language=template.language,
            parameters={name: message.values[name] for name in template.parameters},
            payloads=[button.payload for button in message.buttons],
            reference=message.reference,
        )

    def send(self, message: Message, payload: dict[str, Any]) -> Receipt:  # noqa: ARG002
        try:
            # Nothing is written before the settings are right.
            graph = client.Client.from_settings()
        except ImproperlyConfigured as error:
            raise ChannelError("not_configured") from error
        try:
            accepted = graph.send(payload)
        except client.AnswerLost as lost:
            raise AnswerLost("answer_lost") from lost
        except client.NotReached as unreached:
            raise ChannelError("not_reached") from unreached
        except client.GraphError as refused:
            raise error_for(refused.verdict, refused) from refused
        return Receipt(message_id=accepted.wamid, wa_id=accepted.wa_id, user_id=accepted.user_id)


def template_for(message: Message) -> str:
    """The template that says it: asking or not, a day before or hours before."""
    if message.kind != ReminderType.CITA_PROXIMA:
        return TEMPLATES[ReminderType(message.kind)]
    name = "appointment_reminder_24h" if message.time_left > LONG_LEAD else "appointment_reminder_2h"
    return name if message.asks_to_confirm else f"{name}_confirmed"


def error_for(verdict: Verdict, refused: client.GraphError) -> ChannelError:
    """Meta's refusal as the queue's: later, slower, or never."""
    code = str(refused.code)
    if verdict.next == Next.PACE:
        return Throttled(code, refused.details, retry_after=refused.retry_after)
    # A broken account would refuse everything: the retries bridge the minutes
    # until somebody mends it, instead of losing the whole morning at once.
    if verdict.next in (Next.RETRY, Next.CHANNEL):
        return ChannelError(code, refused.details, retry_after=refused.retry_after, tries=verdict.tries)
    return Undeliverable(code, refused.details)
