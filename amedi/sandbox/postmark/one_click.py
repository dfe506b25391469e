"""The one-click unsubscription of RFC 8058, as a mail provider does it for its user."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import requests

from amedi.sandbox.postmark.mails import Mail

TIMEOUT_SECONDS = (5, 10)
POST_HEADER = "List-Unsubscribe=One-Click"
_OURS = ("127.0.0.1", "localhost", "::1")


class NoOneClickError(LookupError):
    """The mail offers no such unsubscription. Says why, in Spanish: the page shows it."""


def one_click_address(mail: Mail) -> str:
    """Where to post. Raises NoOneClickError for what a provider would not offer to its user."""
    if not mail.header("List-Unsubscribe"):
        raise NoOneClickError("Este correo no trae el encabezado List-Unsubscribe.")
    if mail.header("List-Unsubscribe-Post") != POST_HEADER:
        raise NoOneClickError(f"A este correo le falta el encabezado List-Unsubscribe-Post: {POST_HEADER}.")
    for address in re.findall(r"<([^>]*)>", mail.header("List-Unsubscribe")):
        parts = urlsplit(address)
        # The standard wants https; on one machine there is none.
        if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _OURS):
            return str(address)
    raise NoOneClickError("El encabezado List-Unsubscribe no trae ninguna dirección https.")


def unsubscribe(address: str) -> int:
    """Post as RFC 8058 has it, and give the HTTP status; 0 when no answer came."""
    with requests.Session() as session:
        session.trust_env = False
        try:
            # Neither cookies nor redirects: a provider's server has nothing of the patient's browser.
            return session.post(
                address,
                data=POST_HEADER,
                headers={"Content-Type": "application/x-www-form-urlencoded"},
                timeout=TIMEOUT_SECONDS,
                allow_redirects=False,
            ).status_code
        except requests.RequestException:
            return 0
