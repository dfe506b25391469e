"""A provider's words, made fit for a column of ours."""

from __future__ import annotations

import re

ID_LENGTH = 255
CODE_LENGTH = 40
DETAIL_LENGTH = 500
_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(words: str, length: int) -> str:
    """The words cut to the length, with a mark in the place of what Postgres refuses.

    That is NUL and half a surrogate pair; a provider may repeat either from a
    mail server that it spoke to.
    """
    return _NOT_STORABLE.sub("\ufffd", words[:length])


def is_storable(identifier: str, length: int) -> bool:
    """Whether an identifier can be kept as it is: a changed or cut one would be somebody else's."""
    return len(identifier) <= length and not _NOT_STORABLE.search(identifier)
