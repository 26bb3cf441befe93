"""What C{/metrics/slis} tells: how often the checks of the health paths have passed."""

from __future__ import annotations

from .registry import Registry


class HealthMetrics:
    """Counts what comes of checks."""

    def __init__(self, registry: Registry) -> None:
        self._state = registry.gauge(
            "kubernetes_healthcheck", "Whether a check has passed the last time: 1, or 0.", ("name", "type")
        )
        self._total = registry.counter(
            "kubernetes_healthchecks_total", "Checks, by what came of them.", ("name", "status", "type")
        )

    def checked(self, name: str, path: str, passed: bool) -> None:
        """
        Count one.

        @param path: C{"readyz"}.
        """
        self._state.with_label_values(name, path).value = 1.0 if passed else 0.0
        self._total.with_label_values(name, "success" if passed else "error", path).value += 1
