"""The patients' inboxes: which mails lie in each, and what was done with them there."""

from __future__ import annotations

from dataclasses import dataclass, field

from amedi.sandbox.postmark.link_scan import VisitedLink
from amedi.sandbox.postmark.mails import AcceptedMail


class NoSuchMailError(LookupError):
    """The inbox has no such mail."""


@dataclass(kw_only=True)
class Letter:
    """One mail in one inbox."""

    accepted: AcceptedMail
    times_opened: int = 0
    one_click_status: int | None = None
    """What the clinic answered to the last one-click post; 0 when nothing came."""
    visited_links: tuple[VisitedLink, ...] | None = None
    """What the last scan found; None before the first."""


@dataclass(kw_only=True)
class Inbox:
    """One address and its mails, oldest first."""

    address: str
    letters: list[Letter] = field(default_factory=list)

    def letter(self, message_id: str) -> Letter:
        """Raises NoSuchMailError."""
        for letter in self.letters:
            if letter.accepted.message_id == message_id:
                return letter
        raise NoSuchMailError(f"This inbox has no mail {message_id}.")
