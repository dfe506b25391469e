"""The stand-in itself: what it took, what it refused, and the inboxes it delivered to."""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from amedi.sandbox.json_shapes import JsonObject
from amedi.sandbox.outbox import Webhook
from amedi.sandbox.postmark import fates, link_scan, message_search, one_click
from amedi.sandbox.postmark.errors import BrokenAnswer, PostmarkError, error_about, inactive_error
from amedi.sandbox.postmark.inboxes import Inbox, Letter, NoSuchMailError
from amedi.sandbox.postmark.link_scan import VisitedLink
from amedi.sandbox.postmark.mail_rules import read_mail
from amedi.sandbox.postmark.mails import AcceptedMail, Mail, RefusedMail
from amedi.sandbox.postmark.options import PostmarkOptions
from amedi.sandbox.postmark.routes import Handler
from amedi.sandbox.postmark.webhooks import PostmarkOutbox
from amedi.sandbox.stand_in import StandIn

logger = logging.getLogger(__name__)


class Postmark(StandIn[PostmarkOptions]):
    """A stand-in for Postmark on this machine: ``url`` stands for https://api.postmarkapp.com."""

    handler = Handler

    def __init__(
        self,
        options: PostmarkOptions | None = None,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(options or PostmarkOptions(), clock=clock)
        self._accepted: list[AcceptedMail] = []
        self._refused: list[RefusedMail] = []
        self._inboxes: dict[str, Inbox] = {}
        self._inactive: set[str] = set()
        self._to_come: dict[str, list[fates.Event]] = {}
        self.outbox = PostmarkOutbox(lambda: self._options)

    # --- What the clinic sends ------------------------------------------------

    def take(self, bodies: Sequence[JsonObject]) -> list[AcceptedMail | PostmarkError]:
        """Accept or refuse each mail of a request, in its order.

        Raises BrokenAnswer, with nothing accepted, when the options break the answer to one of them.
        """
        with self._lock:
            read = [self._read(body) for body in bodies]
            for mail in read:
                if isinstance(mail, Mail):
                    self._break_answer(mail)
            return [
                self._accept(mail, body) if isinstance(mail, Mail) else self._refuse(mail, body)
                for mail, body in zip(read, bodies, strict=True)
            ]

    def send_events(self, accepted: AcceptedMail) -> list[Webhook]:
        """Queue the webhooks of a mail, once; what they tell was settled when it was accepted."""
        with self._lock:
            events = self._to_come.pop(accepted.message_id, [])
            if self._options.reorder_webhooks:
                events.reverse()
            return self._tell(*events)

    def search(self, query: Mapping[str, str]) -> dict[str, object]:
        """Answer a search in the outbound messages. Raises PostmarkError."""
        with self._lock:
            newest = self._clock() - timedelta(seconds=self._options.indexing_delay_seconds)
            return message_search.search([mail for mail in self._accepted if mail.at <= newest], query)

    # --- What happens at the recipient's side ---------------------------------

    def open(self, address: str, message_id: str, *, user_agent: str = "") -> Letter:
        """Look at a mail; posts the webhook where it asked for that. Raises NoSuchMailError."""
        with self._lock:
            letter = self.letter(address, message_id)
            letter.times_opened += 1
            if letter.accepted.mail.tracks_opens:
                is_first = letter.times_opened == 1
                self._tell(
                    fates.opening(
                        letter.accepted, address, self._clock, is_first=is_first, user_agent=user_agent
                    )
                )
            return letter

    def unsubscribe(self, address: str, message_id: str) -> int:
        """Press the provider's button: the HTTP status of the one-click post, 0 without an answer.

        Raises NoSuchMailError; NoOneClickError where the mail does not offer it.
        """
        letter = self.letter(address, message_id)
        status = one_click.unsubscribe(one_click.one_click_address(letter.accepted.mail))
        letter.one_click_status = status
        return status

    def scan(self, address: str, message_id: str) -> tuple[VisitedLink, ...]:
        """Let a security scanner ask for every link of the mail. Raises NoSuchMailError."""
        letter = self.letter(address, message_id)
        letter.visited_links = link_scan.scan(link_scan.links_of(letter.accepted.mail))
        return letter.visited_links

    def suppress(self, address: str, *, origin: str = "Recipient") -> None:
        """Send nothing more to an address: its owner (or the ``Customer``) said so at Postmark."""
        with self._lock:
            self._inactive.add(address.lower())
            stream = self._options.message_streams[0]
            self._tell(
                fates.suppression(
                    address, self._clock, stream=stream, reason="ManualSuppression", origin=origin
                )
            )

    def reactivate(self, address: str) -> None:
        """Send to an address again that had bounced, complained or been suppressed."""
        with self._lock:
            self._inactive.discard(address.lower())
            stream = self._options.message_streams[0]
            self._tell(fates.reactivation(address, self._clock, stream=stream))

    # --- What tests and pages look at -----------------------------------------

    @property
    def accepted(self) -> list[AcceptedMail]:
        """All that was accepted, oldest first; lost answers and bounces count."""
        with self._lock:
            return list(self._accepted)

    @property
    def refused(self) -> list[RefusedMail]:
        """All that was refused, oldest first."""
        with self._lock:
            return list(self._refused)

    def accepted_for(self, delivery: str) -> list[AcceptedMail]:
        """Those that the clinic sent under this id."""
        return [mail for mail in self.accepted if mail.delivery == delivery]

    def accepted_per_delivery(self) -> Counter[str]:
        """How many mails were accepted for each id of the clinic's."""
        return Counter(mail.delivery for mail in self.accepted)

    def inboxes(self) -> list[Inbox]:
        """Those that have mail, the latest first."""
        with self._lock:
            return sorted(
                self._inboxes.values(), key=lambda inbox: inbox.letters[-1].accepted.at, reverse=True
            )

    def letters(self, address: str) -> list[Letter]:
        """The mails in an inbox, oldest first; what bounced never came there."""
        with self._lock:
            inbox = self._inboxes.get(address.lower())
            return list(inbox.letters) if inbox else []

    def letter(self, address: str, message_id: str) -> Letter:
        """Raises NoSuchMailError."""
        with self._lock:
            if inbox := self._inboxes.get(address.lower()):
                return inbox.letter(message_id)
        raise NoSuchMailError("No mail has come to this inbox.")

    def is_inactive(self, address: str) -> bool:
        """Whether Postmark refuses to send to it."""
        return address.lower() in self._inactive or address.lower() in self._options.inactive

    # --------------------------------------------------------------------------

    def _read(self, body: JsonObject) -> Mail | PostmarkError:
        options = self._options
        try:
            mail = read_mail(body, options.message_streams)
        except PostmarkError as error:
            return error
        for recipient in mail.recipients:
            if code := options.error_for.get(recipient.lower()):
                return error_about(code, recipient)
        if all(self.is_inactive(recipient) for recipient in mail.recipients):
            return inactive_error(list(mail.recipients))
        return mail

    def _break_answer(self, mail: Mail) -> None:
        for recipient in mail.recipients:
            if status := self._options.status_for.get(recipient.lower()):
                raise BrokenAnswer(status)

    def _accept(self, mail: Mail, body: JsonObject) -> AcceptedMail:
        options = self._options
        accepted = AcceptedMail(
            message_id=str(uuid.uuid4()),
            mail=mail,
            body=body,
            delivery=mail.metadata.get(options.delivery_key, ""),
            inactive=tuple(filter(self.is_inactive, mail.recipients)),
            at=self._clock(),
        )
        self._accepted.append(accepted)
        self._to_come[accepted.message_id] = [
            event
            for recipient in accepted.reached
            for event in fates.fate(options, accepted, recipient, self._clock)
        ]
        for recipient in accepted.reached:
            if recipient.lower() not in options.bounce_for:
                inbox = self._inboxes.setdefault(recipient.lower(), Inbox(address=recipient))
                inbox.letters.append(Letter(accepted=accepted))
            if fates.is_end(options, recipient):
                self._inactive.add(recipient.lower())
        logger.info("postmark accepted delivery=%s", accepted.delivery or "-")
        return accepted

    def _refuse(self, error: PostmarkError, body: JsonObject) -> PostmarkError:
        self._refused.append(RefusedMail(code=error.code, message=error.message, to=str(body.get("To", ""))))
        logger.info("postmark refused code=%d", error.code)
        return error

    def _tell(self, *events: fates.Event) -> list[Webhook]:
        options = self._options
        switched_on = [event for event in events if event.record_type in options.events]
        return [
            self.outbox.put(event.build, after_seconds=options.event_delay_seconds * place)
            for place, event in enumerate(switched_on, start=1)
        ]
