"""Postmark's search in the outbound messages: which questions it takes, and how it answers.

Source: postmarkapp.com/developer/api/messages-api and support article 1125 (metadata).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from amedi.sandbox.postmark.addresses import Mailbox
from amedi.sandbox.postmark.errors import PostmarkError
from amedi.sandbox.postmark.event_bodies import eastern
from amedi.sandbox.postmark.mails import AcceptedMail

MOST_AT_ONCE = 500
MOST_IN_ALL = 10_000
METADATA = "metadata_"
_FILTERS: dict[str, Callable[[AcceptedMail, str], bool]] = {
    "recipient": lambda found, value: value.lower() in (box.lower() for box in found.mail.recipients),
    "fromemail": lambda found, value: value.lower() == found.mail.sender.address.lower(),
    "subject": lambda found, value: value == found.mail.subject,
    "tag": lambda found, value: value == found.mail.tag,
    "messagestream": lambda found, value: value == found.mail.stream,
    "status": lambda _, value: value in ("sent", "processed"),
}


def search(mails: Sequence[AcceptedMail], query: Mapping[str, str]) -> dict[str, object]:
    """The body of the answer, newest first. Raises PostmarkError (700) for what cannot be asked.

    Dates are not searched by here, and say so.
    """
    count, offset = _number(query, "count"), _number(query, "offset")
    if not 1 <= count <= MOST_AT_ONCE or count + offset > MOST_IN_ALL:
        raise PostmarkError(
            700, f"count is 1 to {MOST_AT_ONCE}; count and offset are {MOST_IN_ALL} together at most."
        )
    _check(query)
    found = [mail for mail in reversed(mails) if _fits(mail, query)]
    return {
        "TotalCount": len(found),
        "Messages": [_as_json(mail) for mail in found[offset : offset + count]],
    }


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "")
    if not text.isascii() or not text.isdigit():
        raise PostmarkError(700, f"The parameter '{name}' is required, and a whole number.")
    return int(text)


def _check(query: Mapping[str, str]) -> None:
    names = query.keys() - _FILTERS.keys() - {"count", "offset"}
    if sum(name.startswith(METADATA) for name in names) > 1:
        raise PostmarkError(700, "Search by a single metadata field at a time.")
    for name in names:
        if not name.startswith(METADATA):
            raise PostmarkError(700, f"There is no search by '{name}' here.")


def _fits(found: AcceptedMail, query: Mapping[str, str]) -> bool:
    for name, value in query.items():
        if name.startswith(METADATA) and found.metadata.get(name.removeprefix(METADATA)) != value:
            return False
        if name in _FILTERS and not _FILTERS[name](found, value):
            return False
    return True


def _as_json(found: AcceptedMail) -> dict[str, object]:
    mail = found.mail
    return {
        "Tag": mail.tag,
        "MessageID": found.message_id,
        "MessageStream": mail.stream,
        "To": _boxes(mail.to),
        "Cc": _boxes(mail.cc),
        "Bcc": _boxes(mail.bcc),
        "Recipients": list(mail.recipients),
        "ReceivedAt": eastern(found.at),
        "From": f'"{mail.sender.name}" <{mail.sender.address}>' if mail.sender.name else mail.sender.address,
        "Subject": mail.subject,
        "Attachments": [attachment.name for attachment in mail.attachments],
        "Status": "Sent",
        "TrackOpens": mail.tracks_opens,
        "TrackLinks": mail.tracks_links,
        "Metadata": dict(mail.metadata),
        "Sandboxed": False,
    }


def _boxes(boxes: Sequence[Mailbox]) -> list[dict[str, str | None]]:
    return [{"Email": box.address, "Name": box.name or None} for box in boxes]
