"""
Lists that are made of more than stored bytes, in slices: between them others have a turn of the reactor.

An encoder says what showing a record costs, in bytes of JSON that are read for it; records are shown until a slice has
cost L{AT_ONCE}. Lists of few, or of what was shown before, are one slice, and made at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Final

from ..storage.record import Record

if TYPE_CHECKING:
    from ..flowcontrol.turns import Turns

#: What a slice costs, about half a millisecond of work; it may cost more by one record.
AT_ONCE: Final = 16 * 1024

#: What makes a list: it yields after each slice but the last, and returns what was made.
Slices = Generator[None, None, list[bytes]]


def slices(
    records: Sequence[Record], show: Callable[[Record], bytes], cost: Callable[[Record], int], at_once: int = AT_ONCE
) -> Slices:
    """
    Show records one after the other.

    @param cost: What showing a record will cost.
    @return: What shows them, slice by slice.
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
    """Make the first slice; L{None} if there are more, for L{other_slices}."""
    try:
        next(making)
    except StopIteration as end:
        made: list[bytes] = end.value
        return made
    return None


def made_at_once(making: Slices) -> list[bytes]:
    """Make all slices at once."""
    made = None
    while made is None:
        made = first_slice(making)
    return made


async def other_slices(making: Slices, turns: Turns | None) -> list[bytes]:
    """
    Make all slices that are left.

    @param turns: In which they are made; L{None} makes them at once.
    """
    while True:
        if turns is not None:
            await turns.due()
        made = first_slice(making)
        if made is not None:
            return made
