"""Drops the encoded forms of cached objects that no client has used for some time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from twisted.internet.interfaces import IDelayedCall

from ...api.record import Record
from .._expiry import Timer

#: Seconds without a use after which the encoded forms of a resource are dropped; twice as many at most.
IDLE_TIMEOUT: Final = 600.0


class EncodingExpiry:
    """
    The expiry of the encoded forms of one resource (L{Record.encodings}).

    A timer runs while there may be such forms.
    """

    def __init__(self, clock: Timer, records_after: Callable[[str], Sequence[Record]]) -> None:
        """
        @param records_after: Returns some records after a key, in key order; none after the last.
        """
        self._clock = clock
        self._records_after = records_after
        self._used = False
        self._stopped = False
        self._timer: IDelayedCall | None = None

    def mark_used(self) -> None:
        """Note that a client uses the encoded forms."""
        self._used = True
        if self._timer is None and not self._stopped:
            self._timer = self._clock.callLater(IDLE_TIMEOUT, self._check)

    def _check(self) -> None:
        if self._used:
            self._used = False
            self._timer = self._clock.callLater(IDLE_TIMEOUT, self._check)
        else:
            self._drop("")

    def _drop(self, after: str) -> None:
        """Drop the forms of some records, and schedule the next ones for a later iteration of the reactor."""
        records = self._records_after(after)
        for record in records:
            record.encodings = None
        self._timer = self._clock.callLater(0, self._drop, records[-1].key) if records else None
        if self._used and not records:
            self.mark_used()

    def stop(self) -> None:
        """Stop the timer, and start it no more."""
        self._stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
