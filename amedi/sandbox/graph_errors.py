"""What the Graph API says when it refuses: one table, one exception, two bodies.

Codes, titles and HTTP statuses follow Meta's list of Cloud API error codes. The
titles are for people: nobody may decide on them.
"""

from __future__ import annotations

import secrets

HELP = "https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes/"

_ERRORS: dict[int, tuple[int, str]] = {
    0: (401, "AuthException"),
    1: (400, "API Unknown"),
    2: (503, "API Service"),
    3: (500, "API Method"),
    4: (429, "API Too Many Calls"),
    10: (403, "Permission Denied"),
    33: (400, "Parameter value is not valid"),
    100: (400, "Invalid parameter"),
    104: (401, "An access token is required to request this resource."),
    190: (401, "Invalid OAuth access token"),
    200: (403, "API Permission"),
    368: (403, "Temporarily blocked for policies violations"),
    2500: (400, "Unknown path components"),
    80007: (429, "Rate limit issues"),
    130429: (429, "Rate limit hit"),
    130472: (400, "User's number is part of an experiment"),
    130497: (403, "Business account is restricted from messaging users in this country"),
    131000: (500, "Something went wrong"),
    131005: (403, "Access denied"),
    131008: (400, "Required parameter is missing"),
    131009: (400, "Parameter value is not valid"),
    131016: (503, "Service unavailable"),
    131021: (400, "Recipient cannot be sender"),
    131026: (400, "Message undeliverable"),
    131030: (400, "Recipient phone number not in allowed list"),
    131031: (403, "Account has been locked"),
    131042: (400, "Business eligibility payment issue"),
    131045: (500, "Incorrect certificate"),
    131047: (400, "Re-engagement message"),
    131048: (429, "Spam rate limit hit"),
    131049: (400, "Meta chose not to deliver"),
    131050: (400, "User stopped marketing messages"),
    131051: (400, "Unsupported message type"),
    131053: (400, "Media upload error"),
    131056: (429, "(Business Account, Consumer Account) pair rate limit hit"),
    131057: (500, "Account in maintenance mode"),
    131062: (400, "Recipient identifier not supported for this message"),
    131064: (400, "Account limited for template misclassification"),
    132000: (400, "Number of parameters does not match the expected number of params"),
    132001: (404, "Template name does not exist in the translation"),
    132005: (400, "Translated text too long"),
    132007: (400, "Template content policy violated"),
    132012: (400, "Parameter format does not match format in the created template"),
    132015: (400, "Template is paused"),
    132016: (400, "Template is disabled"),
    132018: (400, "Template validation error"),
    133004: (503, "Server temporarily unavailable"),
    133010: (400, "Phone number not registered"),
    133016: (429, "Account register deregister rate limit exceeded"),
    135000: (400, "Generic user error"),
}
_TRANSIENT = {1, 2, 4, 80007, 130429, 131016, 131056, 131057, 133004}
_WITHOUT_DATA = {0, 104, 190}
"""Refused before the request reached WhatsApp: no error_data."""


class GraphError(Exception):
    """The Graph API refuses the request."""

    def __init__(
        self,
        code: int,
        details: str = "",
        *,
        subcode: int | None = None,
        user_message: str = "",
        kind: str = "OAuthException",
    ) -> None:
        super().__init__(f"Graph error {code}")
        self.code = code
        self.details = details
        self.subcode = subcode
        self.user_message = user_message
        """For whoever made the template; only template creation sends it."""
        self.kind = kind

    @property
    def http_status(self) -> int:
        """A code that is not in the table is a bad request."""
        return _ERRORS.get(self.code, (400, ""))[0]

    def body(self) -> dict[str, object]:
        """The JSON body of the answer."""
        error: dict[str, object] = {
            "message": f"(#{self.code}) {title(self.code)}",
            "type": self.kind,
            "code": self.code,
        }
        if self.subcode == 33 or self.code in _WITHOUT_DATA:
            error["message"] = self.details or title(self.code)
        elif self.user_message:
            error |= {
                "message": title(self.code),
                "is_transient": False,
                "error_user_title": "La plantilla no es válida",
                "error_user_msg": self.user_message,
            }
        else:
            error["error_data"] = {
                "messaging_product": "whatsapp",
                "details": self.details or title(self.code),
            }
        if self.subcode is not None:
            error["error_subcode"] = self.subcode
        if self.code in _TRANSIENT:
            error["is_transient"] = True
        error["fbtrace_id"] = f"A{secrets.token_urlsafe(16)}"
        return {"error": error}


def title(code: int) -> str:
    """Meta's short name of a code; codes that are not in the table get a general one."""
    return _ERRORS.get(code, (400, "An unknown error occurred"))[1]


def status_error(code: int) -> dict[str, object]:
    """The entry of ``errors`` in a ``failed`` status webhook."""
    return {
        "code": code,
        "title": title(code),
        "message": title(code),
        "error_data": {"details": title(code)},
        "href": HELP,
    }
