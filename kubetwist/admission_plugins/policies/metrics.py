"""
Metrics of the checks of validating policies.

@see: kubernetes/apiserver, C{pkg/admission/plugin/policy/validating/metrics/metrics.go}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...metrics.registry import Histogram, MetricSnapshot

_LABELS: Final = ("policy", "policy_binding", "error_type", "enforcement_action")
_DURATION_BUCKETS: Final = (0.0000005, 0.001, 0.01, 0.1, 1.0)
#: Policies and bindings come and go, and this is for ever.
_MAX_POLICIES: Final = 5000


class PolicyMetrics:
    """The duration of checks by their result."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, str, str, str], Histogram] = {}

    def checked(self, policy: str, binding: str, error: str, action: str, took: float) -> None:
        """
        Count an evaluation of a policy for a request.

        @param error: C{"no_error"}, or why it could not say anything.
        @param action: C{"allow"}, or what its binding has done about it.
        """
        labels = (policy, binding, error, action)
        seconds = self._seconds.get(labels)
        if seconds is None:
            if len(self._seconds) >= _MAX_POLICIES:
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
