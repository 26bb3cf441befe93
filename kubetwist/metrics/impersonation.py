"""
Metrics of impersonation: its attempts, and the authorization checks that they need.

@see: kubernetes/apiserver, C{pkg/endpoints/filters/impersonation/metrics/metrics.go}.
"""

from __future__ import annotations

from typing import Final

from .registry import Counter, Family, Histogram, Registry, exponential

_PREFIX: Final = "apiserver_impersonation_"
_LABELS: Final = ("mode", "decision")
_SECONDS: Final = exponential(0.001, 2.0, 15)


class ImpersonationMetrics:
    """Counts the impersonations of one server, by mode and decision."""

    def __init__(self, registry: Registry) -> None:
        """
        @param registry: The registry of the metrics.
        """
        self._attempts = self._register(
            registry, "attempts", "impersonation attempts", "Latency of impersonation attempts in seconds"
        )
        self._checks = self._register(
            registry,
            "authorization_attempts",
            "authorization checks made by the impersonation handler",
            "Latency of authorization checks made by the impersonation handler in seconds",
        )

    @staticmethod
    def _register(registry: Registry, name: str, counted: str, timed: str) -> tuple[Family[Counter], Family[Histogram]]:
        by = "split by mode and decision."
        return (
            registry.counter(f"{_PREFIX}{name}_total", f"Total number of {counted} {by}", _LABELS),
            registry.histogram(f"{_PREFIX}{name}_duration_seconds", f"{timed} {by}", _SECONDS, _LABELS),
        )

    def allowed(self, mode: str, took: float) -> None:
        """
        Count an impersonation that is allowed.

        @param mode: The mode that allows it; C{""} for the legacy mode.
        @param took: Its duration in seconds.
        """
        _count(self._attempts, mode or "legacy", "allowed", took)

    def denied(self, took: float) -> None:
        """
        Count an impersonation that no mode allows.

        @param took: Its duration in seconds.
        """
        _count(self._attempts, "", "denied", took)

    def authorized(self, mode: str, allowed: bool, took: float) -> None:
        """
        Count a check of an authorizer.

        @param mode: The mode that needs it; C{""} for the legacy mode.
        @param allowed: Whether it is allowed.
        @param took: Its duration in seconds.
        """
        _count(self._checks, mode or "legacy", "allowed" if allowed else "denied", took)


def _count(families: tuple[Family[Counter], Family[Histogram]], mode: str, decision: str, took: float) -> None:
    counter, seconds = families
    counter.with_label_values(mode, decision).value += 1
    seconds.with_label_values(mode, decision).observe(took)
