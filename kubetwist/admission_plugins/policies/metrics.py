"""
Metrics of validating policies.

@see: kubernetes/apiserver, C{pkg/admission/plugin/policy/validating/metrics/metrics.go}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...metrics.registry import Histogram, MetricSnapshot

_LABELS: Final = ("policy", "policy_binding", "error_type", "enforcement_action")
_DURATION_BUCKETS: Final = (0.0000005, 0.001, 0.01, 0.1, 1.0)
#: Maximum number of label combinations; metrics of deleted policies and bindings are kept.
_MAX_SERIES: Final = 5000


class PolicyMetrics:
    """Durations of evaluations by policy, binding and result."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, str, str, str], Histogram] = {}

    def observe(self, policy: str, binding: str, error: str, action: str, took: float) -> None:
        """
        Record an evaluation of a policy for a request.

        @param policy: The name of the policy.
        @param binding: The name of the binding.
        @param error: The type of the error: C{"no_error"}, C{"invalid_error"} or C{"out_of_budget"}.
        @param action: C{"allow"}, or the enforced action in lower case: C{"deny"}, C{"warn"}, C{"audit"}.
        @param took: The duration in seconds.
        """
        labels = (policy, binding, error, action)
        seconds = self._seconds.get(labels)
        if seconds is None:
            if len(self._seconds) >= _MAX_SERIES:
                return
            seconds = self._seconds[labels] = Histogram(_DURATION_BUCKETS)
        seconds.observe(took)

    def collect(self) -> Iterator[MetricSnapshot]:
        """Return all metrics."""
        prefix = "apiserver_validating_admission_policy_check_"
        text = "Duration in seconds of validating admission policy checks."
        yield MetricSnapshot(f"{prefix}duration_seconds", "histogram", text, _LABELS, list(self._seconds.items()))
        counts = [(labels, float(seconds.count)) for labels, seconds in self._seconds.items()]
        yield MetricSnapshot(
            f"{prefix}total", "counter", "Number of validating admission policy checks.", _LABELS, counts
        )
