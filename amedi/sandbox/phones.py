"""The patients' phones: what each of them shows, and what can be tapped."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from amedi.sandbox.messages import Choice, Message
from amedi.sandbox.outbox import Webhook

WINDOW = timedelta(hours=24)
_RANK = {"accepted": 0, "sent": 1, "delivered": 2, "read": 3, "failed": 4}


class NothingToTapError(LookupError):
    """The phone shows no such button."""


@dataclass(kw_only=True)
class Bubble:
    """One message on the screen, from the clinic or from the patient."""

    wamid: str
    at: datetime
    body: str
    message: Message | None = None
    """The clinic's; None for what the patient said."""
    answers_to: str = ""
    status: str = "accepted"
    error_code: int | None = None
    opened: bool = False
    """Looked at on the phone's page; "read" is on its way."""
    webhook: Webhook | None = None
    """That carries the patient's words to the clinic."""

    def climb(self, status: str) -> None:
        """Show a later status; an earlier one that comes late changes nothing."""
        self.status = max(self.status, status, key=_RANK.__getitem__)

    @property
    def clinic_message(self) -> Message:
        """Raises LookupError for what the patient said."""
        if self.message is None:
            raise LookupError("The patient said this.")
        return self.message

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What can stand under it, links included."""
        return self.message.choices if self.message else ()

    def as_json(self) -> dict[str, object]:
        """As the phone's page reads it."""
        if self.webhook is not None:
            self.status = "delivered" if self.webhook.answered.is_set() else "sent"
        shown: dict[str, object] = {
            "wamid": self.wamid,
            "at": self.at.isoformat(),
            "from_patient": self.message is None,
            "body": self.body,
            "status": self.status,
            "error_code": self.error_code,
            "answers_to": self.answers_to,
            "choices": [
                {
                    "title": choice.title,
                    "description": choice.description,
                    "section": choice.section,
                    "can_be_tapped": choice.kind != "link",
                }
                for choice in self.choices
            ],
        }
        if self.message:
            shown |= {
                "header": self.message.header,
                "footer": self.message.footer,
                "list_label": self.message.list_label,
            }
        return shown


@dataclass(kw_only=True)
class Phone:
    """One number's conversation with the clinic."""

    number: str
    bubbles: list[Bubble] = field(default_factory=list)
    heard_from_at: datetime | None = None

    def window_is_open(self, now: datetime) -> bool:
        """Whether the patient wrote or tapped in the last 24 hours."""
        return self.heard_from_at is not None and now < self.heard_from_at + WINDOW

    def bubble(self, wamid: str) -> Bubble:
        """Raises NothingToTapError when the phone has no such message."""
        for bubble in self.bubbles:
            if bubble.wamid == wamid:
                return bubble
        raise NothingToTapError(f"This phone has no message {wamid}.")

    def choice(
        self,
        *,
        wamid: str | None = None,
        title: str | None = None,
        payload: str | None = None,
        index: int | None = None,
    ) -> tuple[Bubble, Choice]:
        """The newest button that fits everything given. Raises NothingToTapError when none does."""
        bubbles = reversed(self.bubbles) if wamid is None else [self.bubble(wamid)]
        for bubble in bubbles:
            for place, choice in enumerate(bubble.choices):
                if (
                    choice.kind != "link"
                    and bubble.status != "failed"
                    and title in (None, choice.title)
                    and payload in (None, choice.payload)
                    and index in (None, place)
                ):
                    return bubble, choice
        raise NothingToTapError("This phone shows no such button.")
