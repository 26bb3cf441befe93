"""
The number of replicas that a metric demands, without I/O.

@see: kubernetes, C{pkg/controller/podautoscaler/replica_calculator.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, isfinite
from typing import Final

from attrs import evolve, frozen

from ...api.resource import JSONObject
from .samples import (
    MetricsError,
    Sample,
    Tolerances,
    Usage,
    average_usage,
    count_ready,
    group_pods,
    pod_requests,
    utilization_usage,
)

_MAX_REPLICAS: Final = (1 << 31) - 1


@frozen
class Proposal:
    """
    The number of replicas that a metric demands.

    @ivar replicas: The number.
    @ivar value: The current value of the metric in thousandths, an average or a total as the target states it.
    @ivar utilization: The usage in per cent of the requests; L{None} if the target is no utilization.
    """

    replicas: int
    value: int
    utilization: int | None = None


@frozen
class Target:
    """
    What is scaled.

    @ivar replicas: Its desired number of replicas.
    @ivar pods: Its pods, found by its selector.
    @ivar tolerances: By how much the usage may differ from the target of a metric.
    @ivar now: The current time, POSIX.
    """

    replicas: int
    pods: Sequence[JSONObject]
    tolerances: Tolerances
    now: float

    def utilization_replicas(
        self, samples: Mapping[str, Sample], target: int, resource: str, container: str = ""
    ) -> Proposal:
        """
        Return the replicas for a target in per cent of the requests (Go: C{GetResourceReplicas}).

        @param samples: The usage of the resource by name of the pod.
        @param target: The target in per cent.
        @param resource: The name of the resource.
        @param container: The name of the container that counts; C{""} for all.
        @raise MetricsError: There are no pods, no samples or no requests.
        """
        self._require_pods()
        requests: dict[str, int] = {}

        def measure(samples: Mapping[str, Sample]) -> Usage:
            if not requests:
                requests.update(pod_requests(self.pods, container, resource))
            return utilization_usage(samples, requests, target)

        def assume(name: str) -> int:
            # A pod without a sample is assumed to use what it requests, or more if the target is more.
            return requests[name] * max(100, target) // 100

        return self._replicas(samples, resource, measure, assume)

    def average_replicas(self, samples: Mapping[str, Sample], target: int, resource: str = "") -> Proposal:
        """
        Return the replicas for a target in units of the metric (Go: C{calcPlainMetricReplicas}).

        @param samples: The metric by name of the pod.
        @param target: The target of the average, in thousandths.
        @param resource: The name of the resource; C{""} for other metrics.
        @raise MetricsError: There are no pods or no samples.
        """
        self._require_pods()
        return self._replicas(samples, resource, lambda samples: average_usage(samples, target), lambda name: target)

    def value_replicas(self, value: int, target: int) -> Proposal:
        """
        Return the replicas for a target of a total (Go: C{getUsageRatioReplicaCount}).

        @param value: The value of the metric in thousandths.
        @param target: The target in thousandths.
        @raise MetricsError: There are no pods.
        """
        ratio = value / target
        if not self.replicas:
            return Proposal(_rounded_up(ratio), value)
        if self.tolerances.include(ratio):
            return Proposal(self.replicas, value)
        try:
            ready = count_ready(self.pods)
        except MetricsError as error:
            raise MetricsError(f"unable to calculate ready pods: {error}") from error
        return Proposal(_rounded_up(ratio * ready), value)

    def share_replicas(self, value: int, target: int, current: int) -> Proposal:
        """
        Return the replicas for a target of a total divided by the replicas (Go: C{GetExternalPerPodMetricReplicas}).

        @param value: The value of the metric in thousandths.
        @param target: The target of the share of a pod, in thousandths.
        @param current: The observed number of replicas.
        """
        within = current and self.tolerances.include(value / (target * current))
        replicas = current if within else _rounded_up(value / target)
        return Proposal(replicas, ceil(value / current) if current else value)

    def _require_pods(self) -> None:
        if not self.pods:
            raise MetricsError("no pods returned by selector while calculating replica count")

    def _replicas(
        self,
        samples: Mapping[str, Sample],
        resource: str,
        measure: Callable[[Mapping[str, Sample]], Usage],
        assume: Callable[[str], int],
    ) -> Proposal:
        """
        Return the replicas for an average of pods.

        @param measure: Returns the usage for samples.
        @param assume: Returns the value of a pod without a sample while the usage is low.
        """
        groups = group_pods(self.pods, samples, resource, self.now)
        counted = {
            name: sample
            for name, sample in samples.items()
            if name not in groups.ignored and name not in groups.unready
        }
        if not counted:
            raise MetricsError("did not receive metrics for targeted pods (pods might be unready)")
        usage = measure(counted)
        same = Proposal(self.replicas, usage.average, usage.utilization)
        idle_unready = groups.unready if usage.ratio > 1.0 else frozenset()
        if not idle_unready and not groups.missing:
            if self.tolerances.include(usage.ratio):
                return same
            return evolve(same, replicas=_rounded_up(usage.ratio * groups.ready))
        # Pods without usable samples dampen the change.
        for name in groups.missing:
            if usage.ratio < 1.0:
                counted[name] = Sample(assume(name))
            elif usage.ratio > 1.0:
                counted[name] = Sample(0)
        for name in idle_unready:
            counted[name] = Sample(0)
        ratio = measure(counted).ratio
        if self.tolerances.include(ratio) or (usage.ratio < 1.0 < ratio) or (usage.ratio > 1.0 > ratio):
            return same
        replicas = _rounded_up(ratio * len(counted))
        if (ratio < 1.0 and replicas > self.replicas) or (ratio > 1.0 and replicas < self.replicas):
            return same
        return evolve(same, replicas=replicas)


def _rounded_up(replicas: float) -> int:
    return min(ceil(replicas), _MAX_REPLICAS) if isfinite(replicas) else _MAX_REPLICAS
