"""Signatures of what patients bring back: buttons and links.

They are those of Django's ``Signer``, to the letter: buttons and links in old
messages go on working, and so does SECRET_KEY_FALLBACKS.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache

from django.conf import settings
from django.core.signing import Signer, b64_encode
from django.utils.encoding import force_bytes


def signer(salt: str, *, sep: str = ":") -> Signer:
    """What signs and reads the texts of one purpose, with the keys that now hold."""
    return _signer(salt, sep, settings.SECRET_KEY, tuple(settings.SECRET_KEY_FALLBACKS))


@lru_cache(maxsize=16)
def _signer(salt: str, sep: str, key: str | bytes, fallbacks: tuple[str | bytes, ...]) -> Signer:
    return _QuickSigner(key=key, salt=salt, sep=sep, fallback_keys=list(fallbacks))


class _QuickSigner(Signer):
    """Prepares its key once. Django does it for each text, and a morning has three buttons a patient."""

    def signature(self, value: str | bytes, key: str | bytes | None = None) -> str:
        prepared = _prepared(self.salt, key or self.key).copy()
        prepared.update(force_bytes(value))
        return b64_encode(prepared.digest()).decode()


@lru_cache(maxsize=32)
def _prepared(salt: str, key: str | bytes) -> hmac.HMAC:
    """The beginning of every signature with the salt, as ``django.utils.crypto.salted_hmac`` makes it."""
    derived = hashlib.sha256(force_bytes(f"{salt}signer") + force_bytes(key)).digest()
    return hmac.new(derived, digestmod="sha256")
