"""When to try again after a definite refusal."""

from __future__ import annotations

import random
from datetime import timedelta

FIRST = timedelta(seconds=30)
LONGEST = timedelta(minutes=10)


def delay(attempt: int, *, jitter: float | None = None) -> timedelta:
    """Half a minute after the first refusal, then doubling, up to ten minutes.

    ``attempt`` counts from 1. Up to a tenth is added at random, or as ``jitter``
    from 0 to 1 says, so that what was refused together does not come back together.
    """
    jitter = random.random() if jitter is None else jitter  # noqa: S311
    # Beyond this power every delay is the longest, and a timedelta would overflow.
    base = min(FIRST * 2.0 ** min(attempt - 1, 10), LONGEST)
    return base * (1 + jitter / 10)
