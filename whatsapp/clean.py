"""Text from and for the outside, made fit: for the database, for a template, for a column."""

from __future__ import annotations

import re
import unicodedata

PARAMETER_LIMIT = 150
"""Characters of one template parameter: all of a template's at their longest still fit
into the BODY_LIMIT."""
BODY_LIMIT = 1_024
"""Characters of a template's body with its variables filled in (error 132005)."""
NEUTRAL_WORD = "—"

NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str, limit: int) -> str:
    """The text without what Postgres refuses (NUL, lone surrogates), cut to the limit."""
    return NOT_STORABLE.sub("", text)[:limit]


def shorten(text: str, limit: int) -> str:
    """The text with an ellipsis where it passes the limit."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def parameter(text: str, *, fallback: str = NEUTRAL_WORD, limit: int = PARAMETER_LIMIT) -> str:
    """The text as Meta takes it for a template's variable, cut to the limit.

    Meta refuses a newline, a tab, a run of spaces and an empty value (132018),
    and one such character costs one patient's message. Invisible characters go
    too: they come with names pasted from elsewhere.
    """
    # Nearly always all of it can be printed, and this runs a thousand times a second.
    visible = text if text.isprintable() else "".join(filter(_is_visible, text))
    return shorten(" ".join(visible.split()), limit) or fallback


def _is_visible(char: str) -> bool:
    # Cc control, Cf format (zero width, bidi marks), Cs surrogates.
    return char.isspace() or unicodedata.category(char) not in ("Cc", "Cf", "Cs")
