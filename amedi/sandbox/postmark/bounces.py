"""The types of bounces, as postmarkapp.com/developer/api/bounce-api lists them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Bounce:
    """One type of bounce."""

    code: int
    name: str
    description: str
    is_final: bool = False
    """Whether Postmark sends nothing more to the address."""


BOUNCES = {
    "HardBounce": Bounce(
        code=1,
        name="Hard bounce",
        description=("The server was unable to deliver your message (ex: unknown user, mailbox not found)."),
        is_final=True,
    ),
    "Transient": Bounce(
        code=2,
        name="Message delayed",
        description=(
            "The server could not temporarily deliver your message "
            "(ex: Message is delayed due to network troubles)."
        ),
    ),
    "DnsError": Bounce(code=256, name="DNS error", description="A temporary DNS error."),
    "SpamNotification": Bounce(
        code=512,
        name="Spam notification",
        description=(
            "The message was delivered, but was either blocked by the user, or classified as spam, "
            "bulk mail, or had rejected content."
        ),
    ),
    "SoftBounce": Bounce(
        code=4096,
        name="Soft bounce",
        description=(
            "Unable to temporarily deliver message "
            "(ex: mailbox full, account disabled, exceeds quota, out of disk space)."
        ),
    ),
    "BadEmailAddress": Bounce(
        code=100000,
        name="Invalid email address",
        description="The address is not a valid email address.",
        is_final=True,
    ),
    "Blocked": Bounce(
        code=100006,
        name="ISP block",
        description="Blocked from this ISP due to content or blacklisting.",
    ),
    "DMARCPolicy": Bounce(code=100009, name="DMARC Policy", description="Email rejected due DMARC Policy."),
}
