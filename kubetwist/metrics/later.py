"""Values that are looked at when they are written down, which is in a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .registry import Distribution

Values = Iterable[tuple[tuple[str, ...], "float | Distribution"]]


class Later:
    """
    The values of a L{Reading<kubetwist.metrics.registry.Reading>} of many parts, each of which keeps plain numbers.

    What is looked at must bear being changed meanwhile: numbers and histograms do, and so does C{list} of a dictionary.
    """

    __slots__ = ("_look",)

    def __init__(self, look: Callable[[], Values]) -> None:
        self._look = look

    def __iter__(self) -> Iterator[tuple[tuple[str, ...], float | Distribution]]:
        return iter(self._look())
