"""Metrics that tests set, and the pods that they are of."""

from __future__ import annotations

from typing import Any

from kubetwist.api.selectors import LabelSelector
from kubetwist.api.times import format_time
from kubetwist.controllers.autoscaling.metricsclient import MetricTarget
from kubetwist.controllers.autoscaling.samples import MetricsError, Sample

#: The current time of the tests, POSIX.
NOW = 1_800_000_000.0


class FakeMetrics:
    """
    Metrics for L{kubetwist.controllers.autoscaling.metricsclient.IMetrics}.

    @ivar usage: Thousandths, by name of the pod, of every resource; L{None} is an error.
    @ivar custom: Thousandths by name of a metric.
    @ivar targets: The objects whose metrics were read.
    @ivar containers: The containers whose usage was read.
    """

    def __init__(self, now: float = NOW) -> None:
        self.now = now
        self.usage: dict[str, int] | None = {}
        self.custom: dict[str, int] = {}
        self.targets: list[MetricTarget] = []
        self.containers: list[str] = []

    def _samples(self) -> dict[str, Sample]:
        if self.usage is None:
            raise MetricsError("no metrics")
        return {name: Sample(value, self.now, 15.0) for name, value in self.usage.items()}

    def _value(self, metric: str) -> int:
        if metric not in self.custom:
            raise MetricsError(f"no metric {metric}")
        return self.custom[metric]

    async def resource(
        self, resource: str, namespace: str, selector: LabelSelector, container: str = ""
    ) -> dict[str, Sample]:
        """Return the usage."""
        self.containers.append(container)
        return self._samples()

    async def pods(
        self, metric: str, namespace: str, selector: LabelSelector, metric_selector: LabelSelector
    ) -> dict[str, Sample]:
        """Return the usage."""
        self._value(metric)
        return self._samples()

    async def object(self, metric: str, target: MetricTarget, metric_selector: LabelSelector) -> int:
        """Return a custom metric."""
        self.targets.append(target)
        return self._value(metric)

    async def external(self, metric: str, namespace: str, metric_selector: LabelSelector) -> list[int]:
        """Return a custom metric in two parts."""
        return [self._value(metric) - 1, 1]


def pod(
    name: str,
    *,
    phase: str = "Running",
    ready: bool | None = True,
    started: float = -3600.0,
    changed: float = -3500.0,
    request: str = "1",
    **meta: Any,
) -> Any:
    """
    Return a pod.

    @param name: Its name.
    @param phase: Its phase.
    @param ready: The condition Ready; L{None} for none.
    @param started: Seconds from now to its start.
    @param changed: Seconds from now to the last change of the condition.
    @param request: The CPU that its container requests; C{""} for none.
    @param meta: Further metadata.
    """
    status: dict[str, Any] = {"phase": phase, "startTime": format_time(NOW + started)}
    if ready is not None:
        stamp = format_time(NOW + changed)
        status["conditions"] = [{"type": "Ready", "status": str(ready), "lastTransitionTime": stamp}]
    container: dict[str, Any] = {"name": "c", "image": "c"}
    if request:
        container["resources"] = {"requests": {"cpu": request}}
    return {"metadata": {"name": name, **meta}, "spec": {"containers": [container]}, "status": status}
