"""
Metrics of pod security evaluations.

@see: kubernetes/pod-security-admission, C{metrics/metrics.go}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...metrics.registry import MetricSnapshot
from .levels import LATEST, PRIVILEGED, LevelVersion

_LABELS: Final = (
    *("decision", "policy_level", "policy_version", "mode"),
    *("request_operation", "resource", "subresource", "ocp_namespace"),
)


class PodSecurityMetrics:
    """Counters of evaluations, exemptions and errors."""

    def __init__(self, newest: int) -> None:
        """
        @param newest: The minor version of the release: evaluations by a later one are counted as C{"future"},
            since labels of namespaces may contain any version.
        """
        self._newest = newest
        self._evaluations: dict[tuple[str, ...], int] = {}
        self._exemptions: dict[tuple[str, ...], int] = {}

    def evaluated(
        self, mode: str, level_version: LevelVersion, allowed: bool, request_labels: tuple[str, str, str]
    ) -> None:
        """
        Count an evaluation.

        @param mode: C{"enforce"}, C{"audit"} or C{"warn"}.
        @param level_version: The level and version of the policy.
        @param allowed: Whether there was no violation.
        @param request_labels: The operation, C{"pod"} or C{"controller"}, and the subresource.
        """
        version = LATEST
        if level_version.minor is not None and level_version.level != PRIVILEGED:
            version = f"v1.{level_version.minor}" if level_version.minor <= self._newest else "future"
        # The last label is used by OpenShift only; for Prometheus, an empty label is the same as an absent one.
        labels = ("allow" if allowed else "deny", level_version.level, version, mode, *request_labels, "")
        self._evaluations[labels] = self._evaluations.get(labels, 0) + 1

    def exempted(self, request_labels: tuple[str, str, str]) -> None:
        """Count a request that is exempt."""
        self._exemptions[request_labels] = self._exemptions.get(request_labels, 0) + 1

    def collect(self) -> Iterator[MetricSnapshot]:
        """Return all metrics."""
        values = [(labels, float(count)) for labels, count in self._evaluations.items()]
        yield MetricSnapshot(
            "pod_security_evaluations_total",
            "counter",
            "Number of policy evaluations that occurred, not counting ignored or exempt requests.",
            _LABELS,
            values,
        )
        values = [(labels, float(count)) for labels, count in self._exemptions.items()]
        text = "Number of exempt requests, not counting ignored or out of scope requests."
        yield MetricSnapshot("pod_security_exemptions_total", "counter", text, _LABELS[4:7], values)
