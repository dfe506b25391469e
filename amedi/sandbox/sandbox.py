"""The sandbox itself: what it took, what it refused, and the phones it delivered to."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from amedi.sandbox import webhook_bodies
from amedi.sandbox.graph_errors import GraphError
from amedi.sandbox.json_shapes import JsonObject
from amedi.sandbox.message_rules import read_message
from amedi.sandbox.messages import AcceptedMessage, Message, RefusedMessage, canonical, new_wamid
from amedi.sandbox.options import SandboxOptions
from amedi.sandbox.outbox import Webhook
from amedi.sandbox.phones import Bubble, NothingToTapError, Phone
from amedi.sandbox.routes import Handler
from amedi.sandbox.stand_in import StandIn
from amedi.sandbox.template_creation import read_new_template
from amedi.sandbox.templates import Template
from amedi.sandbox.webhooks import MetaOutbox

logger = logging.getLogger(__name__)
_UNREAD = ("sent", "delivered")


class Sandbox(StandIn[SandboxOptions]):
    """A stand-in for Meta's Graph API on this machine: ``url`` stands for https://graph.facebook.com."""

    handler = Handler

    def __init__(
        self,
        options: SandboxOptions | None = None,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(options or SandboxOptions(), clock=clock)
        self._accepted: list[AcceptedMessage] = []
        self._refused: list[RefusedMessage] = []
        self._phones: dict[str, Phone] = {}
        self.outbox = MetaOutbox(lambda: self._options)

    # --- What the clinic sends ------------------------------------------------

    def take(self, body: JsonObject) -> AcceptedMessage:
        """Accept a message and put it on the patient's phone, or refuse it with GraphError."""
        with self._lock:
            try:
                message = self._readable(body)
            except GraphError as error:
                self._refuse(error, body)
                raise
            accepted = AcceptedMessage(
                wamid=new_wamid(),
                to=message.to,
                reference=message.reference,
                body=body,
                at=self._clock(),
            )
            self._accepted.append(accepted)
            self._phone(message.to).bubbles.append(
                Bubble(
                    wamid=accepted.wamid,
                    at=accepted.at,
                    body=message.body,
                    message=message,
                    answers_to=message.answers_to,
                )
            )
            logger.info("sandbox accepted reference=%s", message.reference or "-")
            return accepted

    def send_receipts(self, accepted: AcceptedMessage) -> list[Webhook]:
        """Queue the statuses of a message as the options say."""
        options = self._options
        bubble = self._phone(accepted.to).bubble(accepted.wamid)
        if code := options.status_error_for.get(accepted.to):
            failure = partial(self._failed, bubble, code)
            return [self.outbox.put(failure, after_seconds=options.receipt_delay_seconds)]
        receipts = options.receipts[::-1] if options.reorder_webhooks else options.receipts
        return [
            self.outbox.put(
                partial(self._receipt, bubble, status),
                after_seconds=options.receipt_delay_seconds * place,
            )
            for place, status in enumerate(receipts, start=1)
        ]

    def create_template(self, body: JsonObject) -> Template:
        """Create and approve a template. Raises GraphError for what Meta would refuse."""
        with self._lock:
            known = self._options.known_templates
            template = replace(
                read_new_template(body, known), template_id=str(500_000_000_000_001 + len(known))
            )
            self.change(known_templates=(*known, template))
            return template

    # --- What the patient does ------------------------------------------------

    def tap(
        self,
        number: str,
        *,
        title: str | None = None,
        payload: str | None = None,
        wamid: str | None = None,
        index: int | None = None,
    ) -> str:
        """Tap the newest button that fits, and give the wamid of the tap.

        Raises NothingToTapError (a LookupError) when the phone shows no such button.
        """
        number = canonical(number)
        with self._lock:
            if number not in self._phones:
                raise NothingToTapError("No message has come to this phone.")
            bubble, choice = self._phones[number].choice(
                wamid=wamid, title=title, payload=payload, index=index
            )

            def build(tap: str, at: datetime) -> JsonObject:
                return webhook_bodies.tap_body(
                    self._options, sender=number, wamid=tap, answers_to=bubble.wamid, choice=choice, at=at
                )

            return self._say(number, choice.title, build, answers_to=bubble.wamid)

    def write(self, number: str, text: str) -> str:
        """Send free text to the clinic, and give its wamid."""
        number = canonical(number)

        def build(wamid: str, at: datetime) -> JsonObject:
            return webhook_bodies.text_body(self._options, sender=number, wamid=wamid, text=text, at=at)

        with self._lock:
            return self._say(number, text, build)

    def open_phone(self, number: str) -> None:
        """Look at the phone: what is unread becomes read, if ``read_when_opened``."""
        with self._lock:
            phone = self._phones.get(canonical(number))
            if phone is None or not self._options.read_when_opened:
                return
            for bubble in phone.bubbles:
                # Not what failed, what is still on its way, or what was read before.
                if bubble.message and bubble.status in _UNREAD and not bubble.opened:
                    bubble.opened = True
                    self.outbox.put(partial(self._receipt, bubble, "read"))

    # --- What tests and pages look at -----------------------------------------

    @property
    def accepted(self) -> list[AcceptedMessage]:
        """All that was accepted, oldest first; lost answers count."""
        with self._lock:
            return list(self._accepted)

    @property
    def refused(self) -> list[RefusedMessage]:
        """All that was refused, oldest first."""
        with self._lock:
            return list(self._refused)

    def accepted_for(self, reference: str) -> list[AcceptedMessage]:
        """Those with this whole reference, or with it as delivery (``d:<id>``)."""
        return [message for message in self.accepted if reference in (message.reference, message.delivery)]

    def accepted_per_delivery(self) -> Counter[str]:
        """How many messages were accepted for each ``d:<id>`` or ``r:<id>``."""
        return Counter(message.delivery for message in self.accepted)

    def phones(self) -> list[dict[str, object]]:
        """Each phone's number with its last message, the latest first."""
        with self._lock:
            newest = sorted(self._phones.values(), key=lambda phone: phone.bubbles[-1].at, reverse=True)
            return [
                {
                    "number": phone.number,
                    "body": phone.bubbles[-1].body,
                    "at": phone.bubbles[-1].at.isoformat(),
                }
                for phone in newest
            ]

    def conversation(self, number: str) -> list[dict[str, object]]:
        """The phone's messages as its page shows them; empty for an unknown number."""
        with self._lock:
            phone = self._phones.get(canonical(number))
            return [bubble.as_json() for bubble in phone.bubbles] if phone else []

    # --------------------------------------------------------------------------

    def _readable(self, body: JsonObject) -> Message:
        options = self._options
        message = read_message(body, options.known_templates, own_number=options.display_phone_number)
        if code := options.error_for.get(message.to):
            raise GraphError(code)
        phone = self._phones.get(message.to)
        if message.kind != "template" and not (phone and phone.window_is_open(self._clock())):
            raise GraphError(131047, "More than 24 hours have passed since the recipient last replied.")
        return message

    def _refuse(self, error: GraphError, body: JsonObject) -> None:
        with self._lock:
            self._refused.append(
                RefusedMessage(
                    code=error.code,
                    to=str(body.get("to", body.get("recipient", ""))),
                    reference=str(body.get("biz_opaque_callback_data", "")),
                    details=error.details,
                )
            )
        logger.info("sandbox refused code=%d", error.code)

    def _phone(self, number: str) -> Phone:
        with self._lock:
            return self._phones.setdefault(number, Phone(number=number))

    def _say(
        self,
        number: str,
        words: str,
        build: Callable[[str, datetime], JsonObject],
        *,
        answers_to: str = "",
    ) -> str:
        wamid, at = new_wamid(), self._clock()
        phone = self._phone(number)
        phone.heard_from_at = at
        webhook = self.outbox.put(lambda: build(wamid, at))
        phone.bubbles.append(Bubble(wamid=wamid, at=at, body=words, answers_to=answers_to, webhook=webhook))
        return wamid

    def _receipt(self, bubble: Bubble, status: str) -> JsonObject:
        with self._lock:
            bubble.climb(status)
        return webhook_bodies.status_body(
            self._options, wamid=bubble.wamid, message=bubble.clinic_message, status=status, at=self._clock()
        )

    def _failed(self, bubble: Bubble, code: int) -> JsonObject:
        with self._lock:
            bubble.climb("failed")
            bubble.error_code = code
        return webhook_bodies.failed_body(
            self._options, wamid=bubble.wamid, message=bubble.clinic_message, code=code, at=self._clock()
        )
