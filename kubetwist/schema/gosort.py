"""
Go's stable sort, for orders that are none.

A sort by a comparison that is not transitive has no defined result: what comes of it depends on the algorithm. The
reference has such a comparison, and Go's C{sort.SliceStable} below it: insertion sort of blocks of 20, which SymMerge
(Kim and Kutzner, "Stable Minimum Storage Merging by Symmetric Comparisons", 2004) then merges in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

_BLOCK = 20


def stable_sort(items: list[_T], less: Callable[[_T, _T], bool]) -> None:
    """
    Sort a list in place, as Go does.

    @param less: Whether the first item is to stand before the second; any function.
    """
    size = len(items)
    for low in range(0, size, _BLOCK):
        _insert(items, low, min(low + _BLOCK, size), less)
    block = _BLOCK
    while block < size:
        for low in range(0, size - block, 2 * block):
            _merge(items, low, low + block, min(low + 2 * block, size), less)
        block *= 2


def _insert(items: list[_T], low: int, high: int, less: Callable[[_T, _T], bool]) -> None:
    for place in range(low + 1, high):
        item = items[place]
        to = place
        while to > low and less(item, items[to - 1]):
            to -= 1
        if to < place:
            items.insert(to, items.pop(place))


def _rotate(items: list[_T], low: int, middle: int, high: int) -> None:
    """Exchange two runs that follow each other."""
    items[low:high] = items[middle:high] + items[low:middle]


def _merge(items: list[_T], low: int, middle: int, high: int, less: Callable[[_T, _T], bool]) -> None:
    """Merge two sorted runs that follow each other."""
    if middle - low == 1:
        left, right = middle, high
        while left < right:
            half = (left + right) // 2
            left, right = (half + 1, right) if less(items[half], items[low]) else (left, half)
        _rotate(items, low, middle, left)
        return
    if high - middle == 1:
        left, right = low, middle
        while left < right:
            half = (left + right) // 2
            left, right = (left, half) if less(items[middle], items[half]) else (half + 1, right)
        _rotate(items, left, middle, high)
        return
    centre = (low + high) // 2
    mirror = centre + middle
    start, end = (mirror - high, centre) if middle > centre else (low, middle)
    while start < end:
        half = (start + end) // 2
        start, end = (start, half) if less(items[mirror - 1 - half], items[half]) else (half + 1, end)
    end = mirror - start
    if start < middle < end:
        _rotate(items, start, middle, end)
    if low < start < centre:
        _merge(items, low, start, centre, less)
    if centre < end < high:
        _merge(items, centre, end, high, less)
