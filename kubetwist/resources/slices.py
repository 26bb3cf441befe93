"""
Encodes lists in slices, between which the reactor serves other requests.

An encoder estimates the cost of a record, in bytes of JSON that are read; a slice ends when its cost reaches
L{MAX_SLICE_COST}. A short list, or a list of cached items, is one slice and encoded immediately.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..api.record import Record, RecordBlock
    from ..http.collaborators import WorkScheduler

#: Cost of a slice, about half a millisecond of work; it may be exceeded by one record.
MAX_SLICE_COST: Final = 16 * 1024

#: Cost of items that a block keeps.
KEPT_COST: Final = 64

#: Encodes a list: yields after each slice but the last, and returns the encoded items.
Slices = Generator[None, None, list[bytes]]


def slices(
    records: Sequence[Record],
    encode: Callable[[Record], bytes],
    cost: Callable[[Record], int],
    max_cost: int = MAX_SLICE_COST,
) -> Slices:
    """
    Encode records one after the other.

    @param encode: Encodes a record.
    @param cost: Returns the cost of a record, in bytes of JSON that are read.
    @param max_cost: Cost at which a slice ends, in the same unit.
    @return: A generator that encodes one slice per step.
    """
    encoded: list[bytes] = []
    slice_cost = 0
    for record in records:
        if slice_cost >= max_cost:
            yield
            slice_cost = 0
        slice_cost += cost(record)
        encoded.append(encode(record))
    return encoded


def joined_slices(
    blocks: Sequence[RecordBlock], form: object, encode: Callable[[Record], bytes], cost: Callable[[Record], int]
) -> Slices:
    """
    Encode records as L{slices} does; the items of a block are joined with commas if the block keeps them.

    @param blocks: The records.
    @param form: The key of the joined items in a block.
    @param encode: Encodes a record.
    @param cost: Returns the cost of a record, in bytes of JSON that are read.
    """
    encoded: list[bytes] = []
    slice_cost = 0
    for block in blocks:
        if slice_cost >= MAX_SLICE_COST:
            yield
            slice_cost = 0
        joined = block.get(form)
        if joined is None:
            items: list[bytes] = []
            for record in block.records:
                if slice_cost >= MAX_SLICE_COST:
                    yield
                    slice_cost = 0
                slice_cost += cost(record)
                items.append(encode(record))
            size = sum(map(len, items))
            if not block.admits(form, size):
                encoded += items
                continue
            joined = b",".join(items)
            block.keep(form, joined, size)
        encoded.append(joined)
        slice_cost += KEPT_COST
    return encoded


def first_slice(generator: Slices) -> list[bytes] | None:
    """Encode one slice; return the whole list, or L{None} if further slices remain for L{remaining_slices}."""
    try:
        next(generator)
    except StopIteration as end:
        items: list[bytes] = end.value
        return items
    return None


def encode_at_once(generator: Slices) -> list[bytes]:
    """Encode all slices at once."""
    items = None
    while items is None:
        items = first_slice(generator)
    return items


async def remaining_slices(generator: Slices, scheduler: WorkScheduler | None) -> list[bytes]:
    """
    Encode all remaining slices.

    @param scheduler: Schedules them; L{None} encodes them at once.
    """
    while True:
        if scheduler is not None:
            await scheduler.wait_for_slot()
        items = first_slice(generator)
        if items is not None:
            return items
