"""
Build lists that need more than stored bytes in slices, between which the reactor serves other requests.

An encoder estimates the cost of a record, in bytes of JSON that are read; a slice ends when its cost reaches
L{AT_ONCE}. A short list, or one of records that are encoded already, is one slice and built immediately.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..api.record import Record
    from ..http.collaborators import WorkScheduler

#: Cost of a slice, about half a millisecond of work; it may be exceeded by one record.
AT_ONCE: Final = 16 * 1024

#: Builds a list: yields after each slice but the last, and returns the result.
Slices = Generator[None, None, list[bytes]]


def slices(
    records: Sequence[Record], show: Callable[[Record], bytes], cost: Callable[[Record], int], at_once: int = AT_ONCE
) -> Slices:
    """
    Encode records one after the other.

    @param cost: Returns the cost of a record.
    @return: A generator that encodes them in slices.
    """
    shown: list[bytes] = []
    spent = 0
    for record in records:
        if spent >= at_once:
            yield
            spent = 0
        spent += cost(record)
        shown.append(show(record))
    return shown


def first_slice(making: Slices) -> list[bytes] | None:
    """Build the first slice; L{None} if there are more, for L{other_slices}."""
    try:
        next(making)
    except StopIteration as end:
        made: list[bytes] = end.value
        return made
    return None


def made_at_once(making: Slices) -> list[bytes]:
    """Build all slices at once."""
    made = None
    while made is None:
        made = first_slice(making)
    return made


async def other_slices(making: Slices, scheduler: WorkScheduler | None) -> list[bytes]:
    """
    Build all remaining slices.

    @param scheduler: Schedules them; L{None} builds them at once.
    """
    while True:
        if scheduler is not None:
            await scheduler.wait_for_slot()
        made = first_slice(making)
        if made is not None:
            return made
