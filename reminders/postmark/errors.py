"""What follows from what Postmark says: one table for answers to a call, one for bounces.

The error codes are those of Postmark's page "API overview" ("API error codes"),
the bounce types those of "Bounce API" ("Bounce types"); what follows is our
decision.
"""

from __future__ import annotations

from enum import StrEnum


class Next(StrEnum):
    """What comes after a refusal."""

    RETRY = "retry"
    """Postmark's own trouble: the same mail again, later each time."""
    PACE = "pace"
    """Too fast. Waiting is all it takes."""
    ACCOUNT = "account"
    """Token, sender or account: everything sent would fail like this, until somebody mends it."""
    INACTIVE = "inactive"
    """Postmark does not write to this address: it bounced or complained before."""
    INVALID = "invalid"
    """The address is none."""
    NEVER = "never"
    """This mail cannot be sent; another channel at once."""
    UNKNOWN = "unknown"
    """A code that the table lacks: somebody should add it."""


_ACCOUNT_CODES = (
    10,  # the token is missing or wrong
    400,  # the sender's signature is not known
    401,  # or not confirmed
    405,  # not allowed to send: no credits
    412,  # the account waits for approval
    413,  # the account may not send
    1235,  # no such message stream
)
_NEVER_CODES = (402, 403, 409, 410, 411)  # not the JSON, or the attachment, that Postmark takes

CODES: dict[int, Next] = {
    100: Next.RETRY,  # maintenance
    300: Next.NEVER,  # an invalid mail; see after_code()
    406: Next.INACTIVE,
    429: Next.PACE,
    500: Next.RETRY,
    503: Next.RETRY,
    **dict.fromkeys(_ACCOUNT_CODES, Next.ACCOUNT),
    **dict.fromkeys(_NEVER_CODES, Next.NEVER),
}
STATUSES: dict[int, Next] = {413: Next.NEVER, 429: Next.PACE}
"""HTTP statuses without a code that say more than that nothing was taken."""


def after_code(code: int, message: str) -> Next:
    """What to do about an ErrorCode and its Message."""
    if code == 300:
        if "'To'" in message:
            return Next.INVALID
        if "'From'" in message:
            return Next.ACCOUNT
    return CODES.get(code, Next.UNKNOWN)


def after_status(status: int) -> Next | None:
    """What to do about an HTTP answer that is no success and has no code; None where it tells nothing.

    A redirect or a 4xx says that the request was not carried out: most often
    something before the API stopped it, such as Postmark's own wall (its support
    article "Getting a 403 that doesn't look like a Postmark error?").
    """
    if 300 <= status < 500 and status != 408:
        return STATUSES.get(status, Next.ACCOUNT)
    return None


class Fate(StrEnum):
    """What a bounce means for the mail and its address."""

    DEAD = "dead"
    """It did not arrive, and nothing else will at this address."""
    FAILED = "failed"
    """It did not arrive, and Postmark tries no more; the next may."""
    UNWANTED = "unwanted"
    """Whoever reads there wants nothing from us."""
    NOTHING = "nothing"
    """It may still arrive, or it did."""


BOUNCES: dict[str, Fate] = {
    "HardBounce": Fate.DEAD,
    "BadEmailAddress": Fate.DEAD,
    "ManuallyDeactivated": Fate.DEAD,
    # Postmark tried for hours and gave up (support article "How to fix soft bounces").
    "SoftBounce": Fate.FAILED,
    "Blocked": Fate.FAILED,
    "DMARCPolicy": Fate.FAILED,
    "SMTPApiError": Fate.FAILED,
    "SpamNotification": Fate.FAILED,
    "TemplateRenderingFailed": Fate.FAILED,
    "Unconfirmed": Fate.FAILED,
    "VirusNotification": Fate.FAILED,
    "SpamComplaint": Fate.UNWANTED,
    "Unsubscribe": Fate.UNWANTED,
    "ManualSuppression": Fate.UNWANTED,  # of a reader who stopped us at Postmark
    # Still trying, or a machine's answer to a mail that arrived.
    **dict.fromkeys(
        ("AddressChange", "AutoResponder", "ChallengeVerification", "DnsError", "InboundError",
         "OpenRelayTest", "Subscribe", "Transient", "Unknown"),
        Fate.NOTHING,
    ),
}  # fmt: skip


def fate(bounce_type: str, *, is_inactive: bool = False) -> Fate:
    """What a bounce of this type means; ``is_inactive`` is Postmark's word that it writes there no more."""
    known = BOUNCES.get(bounce_type, Fate.NOTHING)
    return Fate.DEAD if is_inactive and known != Fate.UNWANTED else known
