"""
Go's stable sort, for comparisons that are not a strict weak order.

A sort by a comparison that is not transitive depends on the algorithm. The reference has such a comparison, and uses
Go's C{sort.SliceStable}: insertion sort of blocks of 20, which SymMerge (Kim and Kutzner, "Stable Minimum Storage
Merging by Symmetric Comparisons", 2004) then merges in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

_BLOCK = 20


def stable_sort(items: list[_T], less: Callable[[_T, _T], bool]) -> None:
    """
    Sort a list in place, as Go does.

    @param less: Returns whether the first item is before the second; any function.
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
    """Exchange the adjacent runs C{items[low:middle]} and C{items[middle:high]}."""
    items[low:high] = items[middle:high] + items[low:middle]


def _merge(items: list[_T], low: int, middle: int, high: int, less: Callable[[_T, _T], bool]) -> None:
    """Merge the adjacent sorted runs C{items[low:middle]} and C{items[middle:high]} by C{less}."""
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
