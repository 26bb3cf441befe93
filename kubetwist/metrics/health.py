"""Metrics of C{/metrics/slis}: results of the health checks."""

from __future__ import annotations

from .registry import Registry


class HealthMetrics:
    """Counts the results of health checks."""

    def __init__(self, registry: Registry) -> None:
        self._state = registry.gauge(
            "kubernetes_healthcheck", "Result of the last health check: 1 if it passed, otherwise 0.", ("name", "type")
        )
        self._total = registry.counter(
            "kubernetes_healthchecks_total", "Number of health checks by result.", ("name", "status", "type")
        )

    def checked(self, name: str, path: str, passed: bool) -> None:
        """
        Count one result.

        @param name: Name of the check.
        @param path: Health path without slash, such as C{"readyz"}.
        @param passed: Whether the check has passed.
        """
        self._state.with_label_values(name, path).value = 1.0 if passed else 0.0
        self._total.with_label_values(name, "success" if passed else "error", path).value += 1
