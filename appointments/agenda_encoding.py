"""A file's bytes as text, whichever program wrote them."""

from __future__ import annotations

import codecs


def decoded(raw: bytes) -> str:
    """UTF-8 or UTF-16 where the bytes are that, else Windows-1252; any bytes come out as some text."""
    for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if raw.startswith(mark):
            return raw.decode(encoding, errors="replace")
    # Latin-1 last: it takes any byte, also the five that cp1252 leaves undefined.
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return raw.decode("latin-1")
