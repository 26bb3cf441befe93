"""Tests of L{kubetwist.flowcontrol.collectors}."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.flowcontrol.collectors import register_collectors
from kubetwist.flowcontrol.controller import FlowControl
from kubetwist.flowcontrol.scheduler import CooperativeScheduler
from kubetwist.http.requestinfo import request_info_of
from kubetwist.metrics.registry import Registry
from tests.metrics.reading import read

BOTH = (("flow_schema", "catch-all"), ("priority_level", "catch-all"))


class CollectorTests(SynchronousTestCase):
    """Metrics of priority and fairness."""

    def setUp(self) -> None:
        """Create the mandatory levels and a registry."""
        clock = Clock()
        self.flow = FlowControl(clock, 20, 15.0, CooperativeScheduler(clock))
        self.registry = Registry()
        register_collectors(self.flow, self.registry)

    def samples_of(self, name: str) -> dict[tuple[tuple[str, str], ...], float]:
        """Return the samples of a metric by labels."""
        return read(self.registry).get(f"apiserver_flowcontrol_{name}", {})

    def test_levels(self) -> None:
        """Each level has its limits; its current limit is between the lower and the upper one."""
        for name in ("nominal_limit_seats", "lower_limit_seats", "upper_limit_seats", "current_limit_seats"):
            self.assertEqual(
                {dict(labels)["priority_level"] for labels in self.samples_of(name)}, {"catch-all", "exempt"}, name
            )
        level = (("priority_level", "catch-all"),)
        self.assertLessEqual(self.samples_of("lower_limit_seats")[level], self.samples_of("current_limit_seats")[level])
        self.assertLessEqual(self.samples_of("current_limit_seats")[level], self.samples_of("upper_limit_seats")[level])

    def test_requests(self) -> None:
        """Requests are counted by flow schema and priority level, including those that did not wait."""
        metrics = self.flow.classify(UserInfo("u"), request_info_of(b"GET", b"/api/v1/pods")).metrics
        metrics.immediate_one_seat = 3
        metrics.rejected_queue_full = 2
        self.assertEqual(self.samples_of("dispatched_requests_total"), {BOTH: 3})
        self.assertEqual(self.samples_of("rejected_requests_total"), {(*BOTH, ("reason", "queue-full")): 2})
        waited = self.samples_of("request_wait_duration_seconds_count")
        self.assertEqual(list(waited.values()), [3])

    def test_nothing_rejected(self) -> None:
        """Reasons without rejected requests have no series."""
        self.flow.classify(UserInfo("u"), request_info_of(b"GET", b"/api/v1/pods"))
        self.assertEqual(self.samples_of("rejected_requests_total"), {})
