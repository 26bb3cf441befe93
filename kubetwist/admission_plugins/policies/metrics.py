"""
Metrics of validating and mutating policies.

@see: kubernetes/apiserver, C{pkg/admission/plugin/policy/validating/metrics/metrics.go} and
    C{pkg/admission/plugin/policy/mutating/metrics/metrics.go}.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ...metrics.registry import Histogram, MetricSnapshot

_LABELS: Final = ("policy", "policy_binding", "error_type")
_DURATION_BUCKETS: Final = (0.0000005, 0.001, 0.01, 0.1, 1.0)
#: Maximum number of label combinations; metrics of deleted policies and bindings are kept.
_MAX_SERIES: Final = 5000


class _CheckMetrics:
    """Durations of checks, by labels."""

    def __init__(self, kind: str, labels: Sequence[str]) -> None:
        """
        @param kind: C{"validating"} or C{"mutating"}.
        @param labels: The names of the labels.
        """
        self._kind = kind
        self._labels = labels
        self._seconds: dict[tuple[str, ...], Histogram] = {}

    def observe_labels(self, labels: tuple[str, ...], took: float) -> None:
        """
        Record a check.

        @param labels: The values of the labels.
        @param took: The duration in seconds.
        """
        seconds = self._seconds.get(labels)
        if seconds is None:
            if len(self._seconds) >= _MAX_SERIES:
                return
            seconds = self._seconds[labels] = Histogram(_DURATION_BUCKETS)
        seconds.observe(took)

    def collect(self) -> Iterator[MetricSnapshot]:
        """Return all metrics."""
        prefix, checks = f"apiserver_{self._kind}_admission_policy_check_", f"{self._kind} admission policy checks."
        text = f"Duration in seconds of {checks}"
        yield MetricSnapshot(f"{prefix}duration_seconds", "histogram", text, self._labels, list(self._seconds.items()))
        counts = [(labels, float(seconds.count)) for labels, seconds in self._seconds.items()]
        yield MetricSnapshot(f"{prefix}total", "counter", f"Number of {checks}", self._labels, counts)


class PolicyMetrics(_CheckMetrics):
    """Durations of evaluations of validating policies, by policy, binding and result."""

    def __init__(self) -> None:
        super().__init__("validating", (*_LABELS, "enforcement_action"))

    def observe(self, policy: str, binding: str, error: str, action: str, took: float) -> None:
        """
        Record an evaluation of a policy for a request.

        @param policy: The name of the policy.
        @param binding: The name of the binding.
        @param error: The type of the error: C{"no_error"}, C{"invalid_error"} or C{"out_of_budget"}.
        @param action: C{"allow"}, or the enforced action in lower case: C{"deny"}, C{"warn"}, C{"audit"}.
        @param took: The duration in seconds.
        """
        self.observe_labels((policy, binding, error, action), took)


class MutatingPolicyMetrics(_CheckMetrics):
    """Durations of mutations, by policy, binding and error."""

    def __init__(self) -> None:
        super().__init__("mutating", _LABELS)

    def observe(self, policy: str, binding: str, error: str, took: float) -> None:
        """
        Record a mutation of a request.

        @param policy: The name of the policy.
        @param binding: The name of the binding.
        @param error: The text of the error; C{""} for none.
        @param took: The duration in seconds.
        """
        self.observe_labels((policy, binding, error_type(error)), took)


def error_type(error: str) -> str:
    """Return the type of an error of a mutation by its text (C{mutating/errors.go}: C{ErrorType})."""
    if not error:
        return "no_error"
    if error.startswith("compilation"):
        return "compile_error"
    budget = "validation failed due to running out of cost budget"
    return "out_of_budget" if error.startswith(budget) else "invalid_error"
