"""Values that are computed when metrics are rendered, in a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .registry import Histogram

Values = Iterable[tuple[tuple[str, ...], "float | Histogram"]]


class LazyValues:
    """
    The values of a L{MetricSnapshot<kubetwist.metrics.registry.MetricSnapshot>}, computed when they are iterated.

    They are iterated in a thread, so the function must tolerate concurrent changes. Reading counters and histograms
    does, and so does calling C{list} with a dictionary.
    """

    __slots__ = ("_compute",)

    def __init__(self, compute: Callable[[], Values]) -> None:
        self._compute = compute

    def __iter__(self) -> Iterator[tuple[tuple[str, ...], float | Histogram]]:
        return iter(self._compute())
