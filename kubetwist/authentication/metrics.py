"""What is counted of tokens, by those who remember them."""

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
    "valid_tokens": "Uses of tokens that are not to be replaced yet.",
    "stale_tokens": "Uses of tokens after they should have been replaced.",
    "legacy_tokens": "Uses of tokens that stand in secrets.",
    "legacy_auto_token_uses": "Uses of those that nobody has asked for.",
    "legacy_manual_token_uses": "Uses of those that somebody has asked for.",
    "invalid_legacy_auto_token_uses": "Uses of those that are not to be used any more.",
}


class TokenMetrics:
    """
    Metrics of one token authenticator.

    @ivar hits: Histogram of durations of cache hits, in seconds.
    @ivar misses: Histogram of durations of cache misses, in seconds.
    @ivar fetched: Number of token authentications on a cache miss by status: C{"ok"}, C{"error"}.
    @ivar asking: Number of token authentications in flight.
    @ivar uses: Number of uses of service account tokens by type of token.
    """

    def __init__(self) -> None:
        self.hits = Histogram(_DURATION_BUCKETS)
        self.misses = Histogram(_DURATION_BUCKETS)
        self.fetched = {"ok": 0, "error": 0}
        self.asking = 0
        self.uses: dict[str, int] = {}

    def looked_up(self, hit: bool, took: float, fetched: str = "") -> None:
        """A token came."""
        (self.hits if hit else self.misses).observe(took)
        if fetched:
            self.fetched[fetched] += 1

    def count(self, use: str) -> None:
        """A token of a service account was used."""
        self.uses[use] = self.uses.get(use, 0) + 1


def token_metrics(tallies: Iterable[TokenMetrics]) -> Iterator[MetricSnapshot]:
    """All of them together."""
    tallies = list(tallies)
    if not tallies:
        return
    prefix = "authentication_token_cache_"
    found = {"hit": _sum(one.hits for one in tallies), "miss": _sum(one.misses for one in tallies)}
    text = "How long it took to find out whose a token is, by whether it was known."
    seconds = [((status,), one) for status, one in found.items()]
    yield MetricSnapshot(f"{prefix}request_duration_seconds", "histogram", text, _STATUS, seconds)
    counts = [((status,), float(one.count)) for status, one in found.items()]
    yield MetricSnapshot(f"{prefix}request_total", "counter", "Tokens, by whether they were known.", _STATUS, counts)
    text = "Number of token authentications on a cache miss, by status (ok, error)."
    fetched = [((status,), float(sum(one.fetched[status] for one in tallies))) for status in ("ok", "error")]
    yield MetricSnapshot(f"{prefix}fetch_total", "counter", text, _STATUS, fetched)
    text = "Tokens that are being found out about."
    asking = [(("in_flight",), float(sum(one.asking for one in tallies)))]
    yield MetricSnapshot(f"{prefix}active_fetch_count", "gauge", text, _STATUS, asking)
    for use, text in _USES.items():
        count = float(sum(one.uses.get(use, 0) for one in tallies))
        yield MetricSnapshot(f"serviceaccount_{use}_total", "counter", text, (), [((), count)])


def _sum(parts: Iterable[Histogram]) -> Histogram:
    whole = Histogram(_DURATION_BUCKETS)
    for one in parts:
        whole.counts = [mine + more for mine, more in zip(whole.counts, one.counts, strict=True)]
        whole.sum += one.sum
    return whole
