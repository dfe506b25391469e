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
    """What signs and reads texts of one purpose, with the keys that now hold."""
    return _signer(salt, sep, settings.SECRET_KEY, tuple(settings.SECRET_KEY_FALLBACKS))


@lru_cache(maxsize=16)
def _signer(salt: str, sep: str, key: str | bytes, fallbacks: tuple[str | bytes, ...]) -> Signer:
    return _QuickSigner(key=key, salt=salt, sep=sep, fallback_keys=list(fallbacks))


class _QuickSigner(Signer):
    """Derives the key of its salt once; Django does it for each text, which costs four times as much."""

    def signature(self, value: str | bytes, key: str | bytes | None = None) -> str:
        derived = _derived(self.salt, self.key if key is None else key)
        return b64_encode(hmac.digest(derived, force_bytes(value), "sha256")).decode()


@lru_cache(maxsize=32)
def _derived(salt: str, key: str | bytes) -> bytes:
    """The key for one salt, as ``django.utils.crypto.salted_hmac`` derives it."""
    return hashlib.sha256(force_bytes(f"{salt}signer") + force_bytes(key)).digest()
