"""
Samples of the metrics of pods, and what they say about a target: ratios of usage and target, without I/O.

All amounts are integers in thousandths, as in the reference.

@see: kubernetes, C{pkg/controller/podautoscaler/replica_calculator.go} and C{metrics/utilization.go}.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import frozen

from ...api.jsontypes import JSONValue
from ...api.quantity import Quantity
from ...api.resource import JSONObject
from ...api.times import seconds_since_epoch
from ..workloads.pods import condition_of, phase_of

#: Seconds after the start of a pod in which samples of its CPU are used only if it was ready for all of their window.
CPU_INITIALIZATION_PERIOD: Final = 300.0
#: Seconds after the start of a pod; if it became unready within these, it has never been ready.
INITIAL_READINESS_DELAY: Final = 30.0
#: By how much the ratio of usage and target may differ from 1 without a change of replicas.
DEFAULT_TOLERANCE: Final = 0.1


class MetricsError(Exception):
    """A number of replicas cannot be computed. The message is the one of the reference."""


@frozen
class Sample:
    """
    The metric of a pod.

    @ivar value: The amount in thousandths.
    @ivar timestamp: The end of the interval in which it was measured, POSIX.
    @ivar window: The length of the interval, in seconds.
    """

    value: int
    timestamp: float = 0.0
    window: float = 0.0


@frozen
class Tolerances:
    """By how much the ratio of usage and target may be lower and higher than 1 without a change of replicas."""

    down: float = DEFAULT_TOLERANCE
    up: float = DEFAULT_TOLERANCE

    def include(self, ratio: float) -> bool:
        """Return whether a ratio is within the tolerances."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


def milli_value(quantity: JSONValue) -> int:
    """
    Return a quantity in thousandths, rounded up.

    @param quantity: Its text or number.
    @raise ValueError: It is no quantity.
    """
    return Quantity.parse(quantity).scaled_value(-3)


def milli_quantity(thousandths: int) -> str:
    """Return the text of a quantity in thousandths: C{"250m"}."""
    return str(Quantity(thousandths * 1_000_000))


@frozen
class PodGroups:
    """
    The pods of a target, by the use of their samples.

    @ivar ready: Number of pods whose samples count.
    @ivar unready: Names of pods whose samples do not count yet.
    @ivar missing: Names of pods without a sample.
    @ivar ignored: Names of pods that are deleted or have failed.
    """

    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


def group_pods(pods: Iterable[JSONObject], samples: Mapping[str, Sample], resource: str, now: float) -> PodGroups:
    """
    Group the pods of a target (Go: C{groupPods}).

    @param pods: The pods.
    @param samples: The samples by name of the pod.
    @param resource: The name of the resource, C{""} for other metrics. Samples of C{cpu} have further conditions.
    @param now: The current time, POSIX.
    """
    ready = 0
    unready, missing, ignored = set(), set(), set()
    for pod in pods:
        name, phase = pod["metadata"]["name"], phase_of(pod)
        if "deletionTimestamp" in pod["metadata"] or phase == "Failed":
            ignored.add(name)
        elif phase == "Pending":
            unready.add(name)
        elif name not in samples:
            missing.add(name)
        elif resource == "cpu" and _is_initializing(pod, samples[name], now):
            unready.add(name)
        else:
            ready += 1
    return PodGroups(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def _is_initializing(pod: JSONObject, sample: Sample, now: float) -> bool:
    """Return whether the sample of a pod's CPU may be the one of its start."""
    condition, start = condition_of(pod, "Ready"), (pod.get("status") or {}).get("startTime")
    if condition is None or not start:
        return True
    started = seconds_since_epoch(start)
    changed = condition.get("lastTransitionTime")
    changed_at = seconds_since_epoch(changed) if changed else 0.0
    is_unready = condition.get("status") == "False"
    if started + CPU_INITIALIZATION_PERIOD > now:
        return is_unready or sample.timestamp < changed_at + sample.window
    return is_unready and started + INITIAL_READINESS_DELAY > changed_at


def pod_requests(pods: Iterable[JSONObject], container: str, resource: str) -> dict[str, int]:
    """
    Return the requests of pods in thousandths, by name of the pod (Go: C{calculatePodRequests}).

    @param pods: The pods.
    @param container: The name of the container that counts; C{""} for all.
    @param resource: The name of the resource.
    @raise MetricsError: A container has no request.
    """
    return {pod["metadata"]["name"]: _pod_request(pod, container, resource) for pod in pods}


def _pod_request(pod: JSONObject, container: str, resource: str) -> int:
    spec, name = pod["spec"], pod["metadata"]["name"]
    pod_level = (spec.get("resources") or {}).get("requests") or {}
    if not container and pod_level:
        if resource not in pod_level:
            raise MetricsError(f"missing pod-level request for {resource} in Pod {name}")
        return milli_value(pod_level[resource])
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    total = 0
    for one in (*(spec.get("containers") or ()), *sidecars):
        if container and one["name"] != container:
            continue
        request = ((one.get("resources") or {}).get("requests") or {}).get(resource)
        if request is None:
            raise MetricsError(f"missing request for {resource} in container {one['name']} of Pod {name}")
        total += milli_value(request)
    return total


@frozen
class Usage:
    """
    The usage of the pods of a target.

    @ivar ratio: The usage divided by the target.
    @ivar average: The average usage of a pod in thousandths.
    @ivar utilization: The usage in per cent of the requests; L{None} if the target is no utilization.
    """

    ratio: float
    average: int
    utilization: int | None = None


def utilization_usage(samples: Mapping[str, Sample], requests: Mapping[str, int], target: int) -> Usage:
    """
    Return the usage of a resource in comparison with its requests (Go: C{GetResourceUtilizationRatio}).

    @param samples: The samples by name of the pod. Samples without requests do not count.
    @param requests: The requests in thousandths by name of the pod.
    @param target: The target in per cent.
    @raise MetricsError: No sample is of a pod with requests.
    """
    known = [name for name in samples if name in requests]
    used, requested = sum(samples[name].value for name in known), sum(requests[name] for name in known)
    if not requested:
        raise MetricsError("no metrics returned matched known pods")
    utilization = quotient(used * 100, requested)
    return Usage(utilization / target, quotient(used, len(known)), utilization)


def average_usage(samples: Mapping[str, Sample], target: int) -> Usage:
    """
    Return the average of a metric in comparison with a target (Go: C{GetMetricUsageRatio}).

    @param samples: The samples by name of the pod; there is at least one.
    @param target: The target in thousandths.
    """
    average = quotient(sum(sample.value for sample in samples.values()), len(samples))
    return Usage(average / target, average)


def count_ready(pods: Sequence[JSONObject]) -> int:
    """
    Return the number of pods that are running and ready.

    @raise MetricsError: There are no pods.
    """
    if not pods:
        raise MetricsError("no pods returned by selector while calculating replica count")
    ready = 0
    for pod in pods:
        condition = condition_of(pod, "Ready")
        ready += phase_of(pod) == "Running" and condition is not None and condition.get("status") == "True"
    return ready


def quotient(dividend: int, divisor: int) -> int:
    """Return a quotient of integers, rounded to zero as in Go."""
    result = abs(dividend) // abs(divisor)
    return result if (dividend < 0) == (divisor < 0) else -result
