"""
Collects transactions that arrive at about the same time, so that they share one sync of the disk.

A transaction that is written alone costs a statement, a sync and a wakeup of the reactor; eight together cost little
more. A lone writer must not wait: its transaction is handed on at once. With several writers, a group is
collected as long as every reactor turn adds to it, within bounds of time, number and size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from twisted.internet.interfaces import IDelayedCall

from ._expiry import Timer

T = TypeVar("T")

#: Seconds that the first item of a group waits at most, if the reactor turns are short.
MAX_DELAY: Final = 0.002
#: Maximum number of rows in a group, beyond the first of its items.
MAX_ROWS: Final = 64
#: Maximum size in bytes of a group, beyond the first of its items.
MAX_BYTES: Final = 1 << 20


class GroupCommit(Generic[T]):
    """
    Groups items, and hands each group on in the order of arrival.

    It is used in the reactor's thread only. The number of items per group adapts to the writers: if no earlier item is
    unfinished and the last group had one item, the next item is handed on at once.
    """

    __slots__ = ("_call", "_clock", "_group", "_rows", "_seen", "_send", "_since", "_size", "_together", "_unfinished")

    def __init__(self, clock: Timer, send: Callable[[list[T]], None]) -> None:
        """
        @param clock: Its C{callLater(0, ...)} calls in the next turn.
        @param send: Called with each group; L{finished} is called later with the number of its items.
        """
        self._clock = clock
        self._send = send
        self._group: list[T] = []
        self._rows = self._size = 0
        #: The time at which the first item of the group arrived.
        self._since = 0.0
        #: The number of items at the last turn.
        self._seen = 0
        #: Whether the last group had several items.
        self._together = False
        self._unfinished = 0
        self._call: IDelayedCall | None = None

    def add(self, item: T, rows: int = 1, size: int = 0) -> None:
        """
        Add an item to the group.

        @param item: The item.
        @param rows: The number of rows that it writes.
        @param size: Their size in bytes.
        """
        group = self._group
        group.append(item)
        self._rows += rows
        self._size += size
        if len(group) == 1:
            if not (self._unfinished or self._together):
                self.flush()
                return
            self._since = self._clock.seconds()
            self._seen = 0
            self._call = self._clock.callLater(0, self._turn)
        if self._rows >= MAX_ROWS or self._size >= MAX_BYTES:
            self.flush()

    def _turn(self) -> None:
        self._call = None
        # The first call comes in the turn in which the group began, before further requests are read.
        if len(self._group) == self._seen or self._clock.seconds() - self._since >= MAX_DELAY:
            self.flush()
        else:
            self._seen = len(self._group)
            self._call = self._clock.callLater(0, self._turn)

    def flush(self) -> None:
        """Hand the group on."""
        group = self._take()
        if group:
            self._together = len(group) > 1
            self._unfinished += len(group)
            self._send(group)

    def _take(self) -> list[T]:
        group, self._group = self._group, []
        self._rows = self._size = 0
        if self._call is not None:
            self._call.cancel()
            self._call = None
        return group

    def finished(self, items: int) -> None:
        """Handle that the oldest items that were handed on are finished."""
        self._unfinished -= items

    def discard(self) -> None:
        """Forget the group, and all unfinished items: they have failed."""
        self._take()
        self._unfinished = 0
