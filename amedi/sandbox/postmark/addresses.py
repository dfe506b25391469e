"""Reads the addresses in a mail's fields by Postmark's own rules.

The patterns are those of postmarkapp.com/support/article/1180, and a little stricter:
a domain has a dot, and neither begins nor ends with one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import getaddresses

from amedi.sandbox.json_shapes import length
from amedi.sandbox.postmark.errors import PostmarkError

MOST_RECIPIENTS = 50
MOST_IN_FROM = 255
_MAILBOX = re.compile(r"[a-z0-9.!#$%&'`*+\-/=^_{}|~]+", re.IGNORECASE)
_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Mailbox:
    """A name and an address, as ``"Ruiz, Ana" <ana@example.org>`` has them."""

    name: str
    address: str


def is_address(text: str) -> bool:
    """Whether this is one bare address."""
    mailbox, _, domain = text.rpartition("@")
    return bool(_MAILBOX.fullmatch(mailbox) and _DOMAIN.fullmatch(domain))


def read_addresses(value: str, field: str) -> tuple[Mailbox, ...]:
    """The addresses in a field, by commas; none in an empty one. Raises PostmarkError."""
    if not value.strip():
        return ()
    found = tuple(Mailbox(name=name, address=address) for name, address in getaddresses([value]))
    for mailbox in found:
        _check(mailbox.address or value, field)
    return found


def read_sender(value: str) -> Mailbox:
    """The one address in ``From``. Raises PostmarkError."""
    found = read_addresses(value, "From")
    if len(found) != 1 or length(value) > MOST_IN_FROM:
        raise PostmarkError(300, "Invalid 'From' value.")
    return found[0]


def _check(address: str, field: str) -> None:
    mailbox, at, domain = address.rpartition("@")
    if not at:
        raise PostmarkError(
            300,
            f"Error parsing '{field}': Illegal email address '{address}'. It must contain the '@' symbol.",
        )
    if not _DOMAIN.fullmatch(domain):
        raise PostmarkError(
            300, f"Error parsing '{field}': Illegal email domain '{domain}' in address '{address}'."
        )
    if not _MAILBOX.fullmatch(mailbox):
        raise PostmarkError(300, f"Invalid '{field}' address: '{address}'.")
