"""Tests for L{kubetwist.controllers.autoscaling.samples}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis.strategies import integers

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.autoscaling.samples import (
    MetricsError,
    Sample,
    Tolerances,
    Usage,
    average_usage,
    count_ready,
    group_pods,
    milli_quantity,
    milli_value,
    pod_requests,
    quotient,
    utilization_usage,
)
from tests.controllers.autoscaling.fakemetrics import NOW, pod


class GroupTests(SynchronousTestCase):
    """Tests for L{group_pods}."""

    def group(self, one: Any, resource: str = "cpu", sampled: float | None = 0.0) -> str:
        """Return the group of a pod with a sample of a window of 15 seconds."""
        samples = {} if sampled is None else {"a": Sample(1, NOW + sampled, 15.0)}
        groups = group_pods([one], samples, resource, NOW)
        if groups.ready:
            return "ready"
        return next(name for name in ("unready", "missing", "ignored") if getattr(groups, name))

    def test_state(self) -> None:
        """Deleted and failed pods are ignored, pending ones are not ready, and running ones need a sample."""
        self.assertEqual(self.group(pod("a")), "ready")
        self.assertEqual(self.group(pod("a", deletionTimestamp="2020-01-01T00:00:00Z")), "ignored")
        self.assertEqual(self.group(pod("a", phase="Failed")), "ignored")
        self.assertEqual(self.group(pod("a", phase="Pending")), "unready")
        self.assertEqual(self.group(pod("a"), sampled=None), "missing")

    def test_start(self) -> None:
        """In the first five minutes the pod must have been ready for the window of its CPU sample."""
        self.assertEqual(self.group(pod("a", started=-60, changed=-16)), "ready")
        self.assertEqual(self.group(pod("a", started=-60, changed=-14)), "unready")
        self.assertEqual(self.group(pod("a", started=-60, changed=-50, ready=False)), "unready")
        self.assertEqual(self.group(pod("a", started=-60, changed=-14), "memory"), "ready")
        self.assertEqual(self.group(pod("a", ready=None)), "unready")

    def test_never_ready(self) -> None:
        """Later on the CPU of an unready pod counts, unless it has never been ready."""
        self.assertEqual(self.group(pod("a", started=-400, changed=-100, ready=False)), "ready")
        self.assertEqual(self.group(pod("a", started=-400, changed=-390, ready=False)), "unready")


class RequestTests(SynchronousTestCase):
    """Tests for L{pod_requests}."""

    def test_containers(self) -> None:
        """Requests of containers and sidecars are added; of one container if it is named."""
        one = pod("a", request="250m")
        one["spec"]["containers"].append({"name": "d", "resources": {"requests": {"cpu": "1"}}})
        sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}}
        one["spec"]["initContainers"] = [{"name": "i"}, sidecar]
        self.assertEqual(pod_requests([one], "", "cpu"), {"a": 3250})
        self.assertEqual(pod_requests([one], "d", "cpu"), {"a": 1000})
        self.assertEqual(pod_requests([one], "x", "cpu"), {"a": 0})

    def test_missing(self) -> None:
        """A container without a request is an error."""
        with self.assertRaises(MetricsError) as caught:
            pod_requests([pod("a", request="")], "", "cpu")
        self.assertEqual(str(caught.exception), "missing request for cpu in container c of Pod a")

    def test_pod_level(self) -> None:
        """Requests of the pod itself replace the requests of its containers."""
        one = pod("a")
        one["spec"]["resources"] = {"requests": {"cpu": "4"}}
        self.assertEqual(pod_requests([one], "", "cpu"), {"a": 4000})
        self.assertEqual(pod_requests([one], "c", "cpu"), {"a": 1000})
        with self.assertRaisesRegex(MetricsError, "missing pod-level request for memory in Pod a"):
            pod_requests([one], "", "memory")


class UsageTests(SynchronousTestCase):
    """Tests for the ratios of usage and target."""

    def test_utilization(self) -> None:
        """The utilization is computed for all pods together; samples of unknown pods do not count."""
        samples = {"a": Sample(300), "b": Sample(500), "x": Sample(9999)}
        usage = utilization_usage(samples, {"a": 1000, "b": 1000, "c": 1000}, 50)
        self.assertEqual(usage, Usage(0.8, 400, 40))
        with self.assertRaisesRegex(MetricsError, "no metrics returned matched known pods"):
            utilization_usage(samples, {"c": 1000}, 50)

    def test_average(self) -> None:
        """The average is compared with the target."""
        self.assertEqual(average_usage({"a": Sample(300), "b": Sample(501)}, 200), Usage(2.0, 400))

    def test_ready(self) -> None:
        """Running and ready pods are counted."""
        pods = [pod("a"), pod("b", ready=False), pod("c", phase="Pending"), pod("d", ready=None)]
        self.assertEqual(count_ready(pods), 1)
        with self.assertRaisesRegex(MetricsError, "no pods returned by selector"):
            count_ready([])

    def test_tolerances(self) -> None:
        """A ratio may differ from 1 in each direction by a tolerance."""
        tolerances = Tolerances(0.2, 0.05)
        self.assertEqual([tolerances.include(one) for one in (0.79, 0.8, 1.04, 1.06)], [False, True, True, False])

    def test_quantities(self) -> None:
        """Quantities are converted to thousandths, rounded up, and back."""
        self.assertEqual([milli_value(one) for one in ("250m", "2", 3, "1Ki", "1n")], [250, 2000, 3000, 1024000, 1])
        self.assertEqual([milli_quantity(one) for one in (0, 250, 2000, 1_024_000)], ["0", "250m", "2", "1024"])

    @given(integers(-(10**9), 10**9), integers(-(10**6), 10**6).filter(bool))
    def test_quotient(self, dividend: int, divisor: int) -> None:
        """A quotient is the integer next to the exact one in the direction of zero."""
        self.assertEqual(quotient(dividend, divisor), int(dividend / divisor))
