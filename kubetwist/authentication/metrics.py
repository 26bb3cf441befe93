"""Metrics of token authenticators that cache their results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ..metrics.registry import (
    Histogram,
    MetricSnapshot,
)

_DURATION_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_STATUS: Final = ("status",)
_USES: Final = {
    "valid_tokens": "Cumulative valid projected service account tokens used",
    "stale_tokens": "Cumulative stale projected service account tokens used",
    "legacy_tokens": "Cumulative legacy service account tokens used",
    "legacy_auto_token_uses": "Cumulative auto-generated legacy tokens used",
    "legacy_manual_token_uses": "Cumulative manually created legacy tokens used",
    "invalid_legacy_auto_token_uses": "Cumulative invalid auto-generated legacy tokens used",
}


class TokenMetrics:
    """
    Metrics of one token authenticator.

    @ivar hits: Histogram of durations of cache hits, in seconds.
    @ivar misses: Histogram of durations of cache misses, in seconds.
    @ivar fetched: Number of token authentications on a cache miss by status: C{"ok"}, C{"error"}.
    @ivar in_flight: Number of token authentications in flight.
    @ivar uses: Number of uses of service account tokens by type of token.
    """

    def __init__(self) -> None:
        self.hits = Histogram(_DURATION_BUCKETS)
        self.misses = Histogram(_DURATION_BUCKETS)
        self.fetched = {"ok": 0, "error": 0}
        self.in_flight = 0
        self.uses: dict[str, int] = {}

    def observe_lookup(self, hit: bool, took: float, fetched: str = "") -> None:
        """
        Record a token authentication.

        @param hit: Whether the result was cached.
        @param took: The duration in seconds.
        @param fetched: The status of a cache miss, C{"ok"} or C{"error"}; C{""} if it was counted elsewhere.
        """
        (self.hits if hit else self.misses).observe(took)
        if fetched:
            self.fetched[fetched] += 1

    def count(self, use: str) -> None:
        """Count the use of a service account token, by type of token."""
        self.uses[use] = self.uses.get(use, 0) + 1


def token_metrics(authenticators: Iterable[TokenMetrics]) -> Iterator[MetricSnapshot]:
    """Yield the metrics of all token authenticators, added up; nothing without authenticators."""
    metrics = list(authenticators)
    if not metrics:
        return
    prefix = "authentication_token_cache_"
    lookups = {"hit": _sum(one.hits for one in metrics), "miss": _sum(one.misses for one in metrics)}
    text = "Duration of token authentications in seconds, by status of the cache (hit, miss)."
    seconds = [((status,), one) for status, one in lookups.items()]
    yield MetricSnapshot(f"{prefix}request_duration_seconds", "histogram", text, _STATUS, seconds)
    counts = [((status,), float(one.count)) for status, one in lookups.items()]
    text = "Number of token authentications, by status of the cache (hit, miss)."
    yield MetricSnapshot(f"{prefix}request_total", "counter", text, _STATUS, counts)
    text = "Number of token authentications on a cache miss, by status (ok, error)."
    fetched = [((status,), float(sum(one.fetched[status] for one in metrics))) for status in ("ok", "error")]
    yield MetricSnapshot(f"{prefix}fetch_total", "counter", text, _STATUS, fetched)
    text = "Number of token authentications in flight."
    in_flight = [(("in_flight",), float(sum(one.in_flight for one in metrics)))]
    yield MetricSnapshot(f"{prefix}active_fetch_count", "gauge", text, _STATUS, in_flight)
    for use, text in _USES.items():
        count = float(sum(one.uses.get(use, 0) for one in metrics))
        yield MetricSnapshot(f"serviceaccount_{use}_total", "counter", text, (), [((), count)])


def _sum(histograms: Iterable[Histogram]) -> Histogram:
    total = Histogram(_DURATION_BUCKETS)
    for one in histograms:
        total.counts = [before + added for before, added in zip(total.counts, one.counts, strict=True)]
        total.sum += one.sum
    return total
