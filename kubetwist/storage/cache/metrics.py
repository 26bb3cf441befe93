"""Metrics of one watch cache, and of the storage behind it."""

from __future__ import annotations

from typing import Final

from ...metrics.registry import Histogram

#: Histogram bounds of the waits of readers, in seconds.
_WAITS: Final = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0)
#: Histogram bounds of the durations of storage requests, in seconds.
REQUEST_SECONDS: Final = (
    *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0),
    *(4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0),
)


class CacheMetrics:
    """
    The counters of one watch cache.

    @ivar lists: Lists answered by the cache; C{returned} counts their records, C{fetched} the visited records.
    @ivar stored_lists: Lists answered by the storage, with the fills of the cache; likewise.
    @ivar encodings: The number of encoded forms that records keep beside their JSON; C{encoded_bytes} is their size.
    @ivar dispatched: Events that were sent to watches.
    @ivar unreadable: Values that could not be decoded.
    @ivar waits: Seconds that readers waited until the cache had their revision.
    @ivar requests: Durations of storage requests in seconds, by operation: C{"create"}, C{"update"}, C{"delete"},
        C{"get"} and C{"list"}.
    @ivar failures: The number of failed storage requests, likewise.
    """

    __slots__ = (
        *("dispatched", "encoded_bytes", "encodings", "failures", "fetched", "lists", "requests", "returned"),
        *("stored_evaluated", "stored_fetched", "stored_lists", "stored_returned", "unreadable", "waits"),
    )

    def __init__(self) -> None:
        self.dispatched = self.lists = self.fetched = self.returned = self.unreadable = 0
        self.stored_lists = self.stored_fetched = self.stored_evaluated = self.stored_returned = 0
        self.waits = Histogram(_WAITS)
        self.encodings = self.encoded_bytes = 0
        self.requests: dict[str, Histogram] = {}
        self.failures: dict[str, int] = {}

    def observe_backend_request(self, operation: str, took: float, failed: bool = False) -> None:
        """Count a storage request that has ended."""
        seconds = self.requests.get(operation)
        if seconds is None:
            seconds = self.requests[operation] = Histogram(REQUEST_SECONDS)
        seconds.observe(took)
        if failed:
            self.failures[operation] = self.failures.get(operation, 0) + 1


class KeptEncodings(dict[object, bytes]):
    """The encoded forms of one record, by encoder; they are counted as long as they exist."""

    __slots__ = ("_metrics",)

    def __init__(self, metrics: CacheMetrics) -> None:
        """@param metrics: The counters of the record's cache."""
        super().__init__()
        self._metrics = metrics

    def __setitem__(self, key: object, encoded: bytes) -> None:
        former = self.get(key)
        super().__setitem__(key, encoded)
        self._metrics.encodings += former is None
        self._metrics.encoded_bytes += len(encoded) - len(former or b"")

    def __del__(self) -> None:
        self._metrics.encodings -= len(self)
        self._metrics.encoded_bytes -= sum(map(len, self.values()))
