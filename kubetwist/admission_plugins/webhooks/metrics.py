"""
Metrics of the webhook calls of one plugin.

@see: kubernetes/apiserver, C{pkg/admission/metrics/metrics.go}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...metrics.registry import Histogram, MetricSnapshot

_DURATION_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0)
#: Maximum value of the label C{code}; greater status codes are reported as this.
_MAX_CODE: Final = 600
#: Maximum number of label combinations; metrics of deleted webhooks are kept.
_MAX_SERIES: Final = 2000
_CALL: Final = ("name", "type", "operation")


class WebhookMetrics:
    """Metrics of webhook calls."""

    def __init__(self, kind: str) -> None:
        """
        @param kind: The value of the label C{type}: C{"admit"} or C{"validating"}.
        """
        self._kind = kind
        self._seconds: dict[tuple[str, str, str, str], Histogram] = {}
        self._requests: dict[tuple[str, str, str, str, str], int] = {}
        self._rejections: dict[tuple[str, str, str, str, str], int] = {}
        self._open: dict[tuple[str, str], int] = {}

    def observe(self, name: str, operation: str, took: float, code: int, error: str) -> None:
        """
        Record a call.

        @param name: The name of the webhook.
        @param operation: The operation of the request.
        @param took: The duration in seconds.
        @param code: The status code of the response; 200 if it allows the request.
        @param error: C{""} if allowed, C{"no_error"} if denied, otherwise the type of the error.
        """
        rejected = "true" if error else "false"
        labels = (name, self._kind, operation, rejected)
        seconds = self._seconds.get(labels)
        if seconds is None:
            if len(self._seconds) >= _MAX_SERIES:
                return
            seconds = self._seconds[labels] = Histogram(_DURATION_BUCKETS)
        seconds.observe(took)
        code_label = str(min(code, _MAX_CODE))
        request = (name, self._kind, operation, code_label, rejected)
        self._requests[request] = self._requests.get(request, 0) + 1
        if error:
            rejection = (name, self._kind, operation, error, code_label if error == "no_error" else "0")
            self._rejections[rejection] = self._rejections.get(rejection, 0) + 1

    def failed_open(self, name: str) -> None:
        """Count a request that was admitted because a call failed."""
        labels = (name, self._kind)
        if labels in self._open or len(self._open) < _MAX_SERIES:
            self._open[labels] = self._open.get(labels, 0) + 1

    def collect(self) -> Iterator[MetricSnapshot]:
        """Return all metrics."""
        prefix = "apiserver_admission_webhook_"
        yield MetricSnapshot(
            f"{prefix}admission_duration_seconds",
            "histogram",
            "Duration in seconds of admission webhooks.",
            (*_CALL, "rejected"),
            list(self._seconds.items()),
        )
        for name, text, labels, counts in (
            ("request_total", "Number of admission webhook requests.", (*_CALL, "code", "rejected"), self._requests),
            (
                "rejection_count",
                "Number of requests rejected by admission webhooks.",
                (*_CALL, "error_type", "rejection_code"),
                self._rejections,
            ),
            (
                "fail_open_count",
                "Number of admission webhook failures that were ignored (fail open).",
                ("name", "type"),
                self._open,
            ),
        ):
            values: list[tuple[tuple[str, ...], float]] = [(tuple(key), float(count)) for key, count in counts.items()]
            yield MetricSnapshot(f"{prefix}{name}", "counter", text, labels, values)
