"""Whether a webhook body comes from Meta: X-Hub-Signature-256 over the raw bytes."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence

HEADER = re.compile(r"sha256=([0-9a-fA-F]{64})")


def is_authentic(raw: bytes, header: str | None, secrets: Sequence[str]) -> bool:
    """Whether one of the app secrets signed exactly these bytes.

    Several secrets pass while one is being replaced by the next. Without any,
    nothing is authentic.
    """
    match = HEADER.fullmatch(header or "")
    if not match:
        return False
    given = bytes.fromhex(match[1])
    # All are tried: how long it takes must not tell which one fitted.
    fits = [hmac.compare_digest(given, _signature(raw, secret)) for secret in secrets if secret]
    return any(fits)


def sign(raw: bytes, secret: str) -> str:
    """The header that Meta sends with these bytes."""
    return f"sha256={_signature(raw, secret).hex()}"


def _signature(raw: bytes, secret: str) -> bytes:
    return hmac.new(secret.encode(), raw, hashlib.sha256).digest()
