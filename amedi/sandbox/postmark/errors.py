"""What Postmark says when it refuses: one table, one exception.

Codes and HTTP statuses follow postmarkapp.com/developer/api/overview, "API error codes".
The words are for people; only those about inactive and invalid addresses are parsed by clients.
"""

from __future__ import annotations

_ERRORS: dict[int, tuple[int, str]] = {
    10: (401, "Request does not contain a valid Server token."),
    100: (503, "Maintenance: the Postmark API is offline for maintenance."),
    300: (422, "Invalid email request."),
    400: (422, "The 'From' address you supplied is not a Sender Signature on your account."),
    401: (422, "The Sender Signature of this 'From' address is not confirmed."),
    402: (422, "Received invalid JSON input."),
    403: (422, "Invalid request field(s)."),
    405: (422, "Not allowed to send: your account has run out of credits."),
    406: (422, "You tried to send to a recipient that has been marked as inactive."),
    409: (
        415,
        "Your HTTP request does not have the Accept and Content-Type headers set to application/json.",
    ),
    410: (422, "Too many batch messages: at most 500 in one call."),
    411: (422, "Forbidden attachment type."),
    412: (422, "While your account is pending approval, all recipients must share the 'From' domain."),
    413: (422, "Your account may not send."),
    429: (429, "Rate limit exceeded."),
    # Not a code of theirs: what a failure inside their own servers looks like.
    500: (500, "Internal server error."),
    700: (422, "Messages query exception: invalid querystring parameters."),
    701: (404, "This message does not exist."),
    1235: (422, "The stream provided does not exist on this server."),
}
CODES = frozenset(_ERRORS)
_INACTIVE = (
    "Inactive recipients are ones that have generated a hard bounce, a spam complaint, "
    "or a manual suppression."
)


class PostmarkError(Exception):
    """Postmark refuses a mail or a request."""

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(f"Postmark error {code}")
        self.code = code
        self.http_status, words = _ERRORS[code]
        self.message = message or words

    def body(self) -> dict[str, object]:
        """The JSON body of the answer, and the entry in the answer to a batch."""
        return {"ErrorCode": self.code, "Message": self.message}


class BrokenAnswer(Exception):
    """Not Postmark but what stands before it answers: a status, and a page instead of JSON."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP status {status}")
        self.status = status


def error_about(code: int, address: str) -> PostmarkError:
    """The error as Postmark words it for one recipient."""
    if code == 300:
        return PostmarkError(300, f"Invalid 'To' address: '{address}'.")
    if code == 406:
        return inactive_error([address])
    return PostmarkError(code)


def inactive_error(addresses: list[str]) -> PostmarkError:
    """For a mail that nobody would get."""
    return PostmarkError(
        406,
        "You tried to send to a recipient that has been marked as inactive. "
        f"Found inactive addresses: {_listed(addresses)}. {_INACTIVE}",
    )


def partly_inactive(addresses: list[str]) -> str:
    """What a mail's answer says that only some recipients will get."""
    return f"Message OK, but will not deliver to these inactive addresses: {_listed(addresses)}. {_INACTIVE}"


def _listed(addresses: list[str]) -> str:
    return ", ".join(address.lower() for address in addresses)
