"""Nobody gets two messages in one second, whatever falls due together."""

from __future__ import annotations

from datetime import datetime, timedelta

APART = timedelta(seconds=6)
"""Meta lets one message in six seconds go to one number, beyond a short burst (error 131056)."""


class Spacing:
    """To whom this process wrote a moment ago."""

    def __init__(self) -> None:
        self._last: dict[str, datetime] = {}
        self._swept_at: datetime | None = None

    def turn(self, address: str, now: datetime) -> datetime:
        """When a message to the address may go: ``now``, which is then taken, or the next free moment."""
        self._sweep(now)
        last = self._last.get(address)
        if last is not None and now < last + APART <= now + APART:
            return last + APART
        self._last[address] = now
        return now

    def _sweep(self, now: datetime) -> None:
        if self._swept_at is None or abs(now - self._swept_at) > APART:
            self._last = {address: at for address, at in self._last.items() if abs(now - at) < APART}
            self._swept_at = now
