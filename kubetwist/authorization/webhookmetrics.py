"""Metrics of authorization webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..metrics.registry import (
    Histogram,
    MetricSnapshot,
)

_DURATION_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LABELS: Final = ("name", "result")
_PREFIX: Final = "apiserver_authorization_webhook_"


class WebhookMetrics:
    """Metrics of all authorization webhooks by name. They are kept when the configuration is reloaded."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, str], Histogram] = {}
        self._opened: dict[tuple[str, str], int] = {}

    def observe(self, name: str, result: str, took: float, *, ignored: bool = False) -> None:
        """
        Count a call.

        @param result: C{"success"}, C{"timeout"}, C{"error"} or C{"canceled"}.
        @param took: Duration in seconds.
        @param ignored: Whether the call failed and the webhook had no opinion (fail open).
        """
        key = (name, result)
        seconds = self._seconds.get(key)
        if seconds is None:
            seconds = self._seconds[key] = Histogram(_DURATION_BUCKETS)
        seconds.observe(took)
        if ignored:
            self._opened[key] = self._opened.get(key, 0) + 1

    def collect(self) -> Iterator[MetricSnapshot]:
        """Yield all metrics."""
        seconds = list(self._seconds.items())
        counts = [(key, float(one.count)) for key, one in seconds]
        yield MetricSnapshot(
            f"{_PREFIX}evaluations_total", "counter", "Number of requests to authorization webhooks.", _LABELS, counts
        )
        text = "Duration of requests to authorization webhooks in seconds."
        yield MetricSnapshot(f"{_PREFIX}duration_seconds", "histogram", text, _LABELS, seconds)
        opened = [(key, float(count)) for key, count in self._opened.items()]
        text = "Number of authorization requests for which the webhook failed and had no opinion (fail open)."
        yield MetricSnapshot(f"{_PREFIX}evaluations_fail_open_total", "counter", text, _LABELS, opened)
