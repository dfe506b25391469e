"""A mail as the stand-in understood it, and the two books that it keeps of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from amedi.sandbox.postmark.addresses import Mailbox


@dataclass(frozen=True, kw_only=True)
class Attachment:
    """A file that came with a mail."""

    name: str
    content_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Mail:
    """What the patient will see, and what comes back with every webhook."""

    sender: Mailbox
    to: tuple[Mailbox, ...]
    cc: tuple[Mailbox, ...] = ()
    bcc: tuple[Mailbox, ...] = ()
    reply_to: str = ""
    subject: str = ""
    text: str = ""
    html: str = ""
    tag: str = ""
    stream: str
    headers: tuple[tuple[str, str], ...] = ()
    attachments: tuple[Attachment, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    tracks_opens: bool = False
    """Only a mail with HTML can be tracked."""
    tracks_links: str = "None"

    @property
    def recipients(self) -> tuple[str, ...]:
        """Bare addresses of everybody who gets it, each once, as they were typed."""
        every = {box.address.lower(): box.address for box in (*self.to, *self.cc, *self.bcc)}
        return tuple(every.values())

    def header(self, name: str) -> str:
        """Its value, or "" where the mail has none."""
        return next((value for given, value in self.headers if given.lower() == name.lower()), "")


@dataclass(frozen=True, kw_only=True)
class AcceptedMail:
    """One mail that was answered with ErrorCode 0, or whose answer was lost on purpose."""

    message_id: str
    mail: Mail
    body: Mapping[str, object] = field(repr=False)
    """Exactly what was posted."""
    delivery: str
    """The clinic's id of what it sends, out of the metadata; "" where they have none."""
    inactive: tuple[str, ...] = ()
    """Recipients to whom Postmark sends nothing, while others get the mail."""
    at: datetime
    """Aware, UTC."""

    @property
    def reached(self) -> list[str]:
        """The recipients to whom it is sent."""
        return [address for address in self.mail.recipients if address not in self.inactive]

    @property
    def to(self) -> str:
        """The first recipient's bare address."""
        return self.mail.recipients[0]

    @property
    def metadata(self) -> Mapping[str, str]:
        """The clinic's own words about it."""
        return self.mail.metadata


@dataclass(frozen=True, kw_only=True)
class RefusedMail:
    """One mail that was answered with an error."""

    code: int
    message: str
    to: str
    """As it was posted."""
