"""Latency trackers: time spent in the layers of a request, for the audit log and the request log."""

from __future__ import annotations

from contextvars import ContextVar
from time import perf_counter
from types import TracebackType
from typing import Final

#: The layers, named as in the audit annotations, which omit the first.
ADMISSION: Final = "admission"
ETCD: Final = "etcd"
QUEUE: Final = "apf-queue-wait"
SERIALIZATION: Final = "serialize-response-object"
MUTATING_WEBHOOK: Final = "mutating-webhook"
VALIDATING_WEBHOOK: Final = "validating-webhook"

#: The seconds spent per layer by the current request; L{None} when latency is not measured.
latencies: ContextVar[dict[str, float] | None] = ContextVar("latencies", default=None)


def add_latency(layer: str, seconds: float) -> None:
    """
    Add time to a layer of the current request, which the caller has measured.

    @param layer: The layer that the time is attributed to.
    @param seconds: The time.
    """
    times = latencies.get()
    if times is not None:
        times[layer] = times.get(layer, 0.0) + seconds


class LatencyTracker:
    """
    Measures the time within a C{with}.

    @ivar layer: The layer that the time is attributed to.
    @ivar concurrent: Whether several calls run concurrently: the maximum counts instead of the sum.
    """

    __slots__ = ("_began", "_concurrent", "_layer", "_times")

    def __init__(self, layer: str, *, concurrent: bool = False) -> None:
        self._layer = layer
        self._concurrent = concurrent
        self._times = latencies.get()

    def __enter__(self) -> LatencyTracker:
        if self._times is not None:
            self._began = perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        known = self._times
        if known is not None:
            took, before = perf_counter() - self._began, known.get(self._layer, 0.0)
            known[self._layer] = max(took, before) if self._concurrent else took + before
