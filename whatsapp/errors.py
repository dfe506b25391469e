"""What follows from each of Meta's error codes: one table, for responses and receipts alike.

The codes are those of Meta's page "Error codes" (WhatsApp Business Platform) and
of the Graph API's general ones; what follows from them is our decision. A code
tells the same wherever it comes from, so the same failure may be classified
twice with one result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Next(StrEnum):
    """What comes after a refusal."""

    RETRY = "retry"
    """Meta's own trouble: the same message again, later each time."""
    PACE = "pace"
    """Too fast. Waiting is all it takes."""
    UNREACHABLE = "unreachable"
    """This address has no WhatsApp now: another channel at once."""
    NEVER = "never"
    """This message to this person must not be repeated: another channel at once."""
    TEMPLATE = "template"
    """The template cannot be used until somebody mends it."""
    CHANNEL = "channel"
    """Number, account or credentials: everything sent would fail like this."""
    BUG = "bug"
    """We sent something wrong. No retry; a developer must look."""
    IGNORE = "ignore"
    """Nothing of ours failed."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What to do about an error code."""

    next: Next
    tries: int | None = None
    """How many refusals of this kind end it, the first one counted, where fewer than usual."""
    only_this_patient: bool = False
    """A PACE that holds for one address, while everybody else goes on."""
    means_marketing: bool = False
    """Only MARKETING templates fail like this: ours has lost its category UTILITY."""
    is_known: bool = True
    """False for a code that the table lacks: somebody should add it."""


RETRY = Verdict(next=Next.RETRY)
PACE = Verdict(next=Next.PACE)
UNREACHABLE = Verdict(next=Next.UNREACHABLE)
NEVER = Verdict(next=Next.NEVER)
TEMPLATE = Verdict(next=Next.TEMPLATE)
CHANNEL = Verdict(next=Next.CHANNEL)
BUG = Verdict(next=Next.BUG)
IGNORE = Verdict(next=Next.IGNORE)

UNKNOWN_ANSWER = Verdict(next=Next.RETRY, tries=2, is_known=False)
UNKNOWN_RECEIPT = Verdict(next=Next.NEVER, is_known=False)

TABLE: dict[int, Verdict] = {
    0: CHANNEL,  # the token could not be authenticated
    1: Verdict(next=Next.RETRY, tries=3),  # a bad request, or Meta's trouble
    2: RETRY,
    3: CHANNEL,
    4: PACE,  # calls of the whole app
    10: CHANNEL,
    17: PACE,
    33: CHANNEL,  # the business number was deleted
    100: BUG,
    104: CHANNEL,
    190: CHANNEL,  # the token is expired or revoked
    341: PACE,
    368: CHANNEL,  # restricted for policy
    613: PACE,
    80007: PACE,
    80008: PACE,
    80012: PACE,
    130403: NEVER,  # we blocked this person
    130429: PACE,
    130472: Verdict(next=Next.NEVER, means_marketing=True),
    130497: NEVER,  # not to that country; see verdict()
    130501: BUG,
    131000: Verdict(next=Next.RETRY, tries=4),
    131005: CHANNEL,
    131008: BUG,
    131009: BUG,
    131016: RETRY,
    131020: BUG,
    131021: BUG,  # to ourselves: the clinic's own number stands in a patient's file
    131026: UNREACHABLE,
    131030: CHANNEL,  # a test number, and a recipient who is not on its list
    131031: CHANNEL,
    131037: CHANNEL,
    131041: BUG,
    131042: CHANNEL,  # payment
    131043: NEVER,
    131044: BUG,
    131045: CHANNEL,
    131047: NEVER,  # the window is closed for this text; a template may still go
    131048: CHANNEL,  # blocked and reported too often: lasts hours or days
    131049: NEVER,
    131050: Verdict(next=Next.NEVER, means_marketing=True),
    131051: BUG,
    131052: IGNORE,
    131053: BUG,
    131055: BUG,
    131056: Verdict(next=Next.PACE, only_this_patient=True),
    131057: RETRY,
    131059: BUG,
    131060: IGNORE,
    131062: BUG,
    131063: Verdict(next=Next.TEMPLATE, means_marketing=True),
    131064: CHANNEL,  # capped for misclassified templates
    132000: TEMPLATE,  # also seen when Meta's copy is not the one we know
    132001: TEMPLATE,
    132005: BUG,
    132007: TEMPLATE,
    132008: BUG,
    132012: BUG,
    132015: TEMPLATE,  # paused for hours
    132016: TEMPLATE,  # disabled for good
    132018: BUG,
    132068: BUG,
    132069: BUG,
    133004: RETRY,
    133010: CHANNEL,
    134011: BUG,
    135000: Verdict(next=Next.RETRY, tries=2),  # says "parameters", and passes now and then
    137000: NEVER,
    200002: TEMPLATE,
    1752041: BUG,
    2388012: CHANNEL,
    2388091: CHANNEL,
    2388093: CHANNEL,
    2388103: CHANNEL,
    2494100: CHANNEL,
    2593107: BUG,
    2593108: BUG,
    **dict.fromkeys((2388019, 2388039, 2388040, 2388047, 2388072, 2388073, 2388293, 2388299), TEMPLATE),
    **dict.fromkeys((133000, 133005, 133006, 133008, 133009, 133015, 133016), CHANNEL),
}

RANGES: list[tuple[range, Verdict]] = [
    (range(200, 300), CHANNEL),  # permissions
    (range(131201, 131216), BUG),  # groups
    (range(134100, 134104), BUG),  # the marketing endpoint
    (range(138000, 139000), BUG),  # calls
    (range(139000, 139005), BUG),
    (range(139100, 139104), BUG),
    (range(147001, 147006), BUG),
    (range(200005, 200008), IGNORE),  # insights
    (range(2494164, 2494180), BUG),  # onboarding
]


def verdict(
    code: int | str | None,
    *,
    subcode: int | str | None = None,
    details: str = "",
    to_venezuela: bool = True,
    in_receipt: bool = False,
) -> Verdict:
    """What to do about a refusal with this code.

    ``details`` is Meta's ``error_data.details``. ``in_receipt`` says that the
    code came in a status, after Meta had taken the message.
    """
    number = as_code(code)
    if number == 100:
        return _of_bad_parameter(as_code(subcode), details)
    if number == 131009 and _names_recipient(details):
        return UNREACHABLE
    if number == 130497 and to_venezuela:
        return CHANNEL
    return _look_up(number) or (UNKNOWN_RECEIPT if in_receipt else UNKNOWN_ANSWER)


def as_code(value: object) -> int | None:
    """Meta's number, also where it is written as text; None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"\s*[0-9]{1,9}\s*", value):
        return int(value)
    return None


def known_codes() -> Iterable[int]:
    """Every code of the table, the ranges spelt out."""
    yield from TABLE
    for codes, _verdict in RANGES:
        yield from codes


def _of_bad_parameter(subcode: int | None, details: str) -> Verdict:
    if subcode == 33:
        # The id is wrong, or our token may not use it.
        return CHANNEL
    if subcode is not None and subcode > 1_000_000 and (found := _look_up(subcode)):
        # Creating a template fails as 100, with the reason in the subcode.
        return found
    return UNREACHABLE if _names_recipient(details) else BUG


def _names_recipient(details: str) -> bool:
    return "recipient" in details.lower()


def _look_up(code: int | None) -> Verdict | None:
    if code is None:
        return None
    if code in TABLE:
        return TABLE[code]
    return next((answer for codes, answer in RANGES if code in codes), None)
