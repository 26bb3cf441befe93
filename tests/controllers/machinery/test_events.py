"""Tests for L{kubetwist.controllers.machinery.events}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.api.resource import GroupVersionKind
from kubetwist.controllers.machinery.events import (
    BURST,
    NORMAL,
    REFILL_INTERVAL,
    WARNING,
    EventRecorder,
)
from tests.controllers.harness import START, ControllerTestCase

JOB = GroupVersionKind("batch", "v1", "Job")


class EventRecorderTests(ControllerTestCase):
    """Recorded events."""

    resources = ("events", "namespaces")

    def setUp(self) -> None:
        """Create a recorder."""
        super().setUp()
        self.recorder: EventRecorder = self.context.recorder("job-controller")

    def record(self, message: str, reason: str = "Started", name: str = "one", type: str = NORMAL) -> None:
        """Record an event."""
        obj = {"metadata": {"name": name, "namespace": "default", "uid": f"u-{name}", "resourceVersion": "7"}}
        self.recorder.event(JOB, obj, type, reason, message)
        self.settle()

    def events(self) -> list[Any]:
        """Return the events, the oldest first."""
        found = [self.find("events", name, "default") for name in self.names("events")]
        return sorted(found, key=lambda event: event["metadata"]["name"])

    def test_event(self) -> None:
        """An event has the object, the component, the time and the type."""
        self.assertIs(self.context.recorder("job-controller"), self.recorder)
        self.record("it runs", type=WARNING)
        [event] = self.events()
        about = event["involvedObject"]
        self.assertEqual(
            about,
            {
                "kind": "Job",
                "namespace": "default",
                "name": "one",
                "uid": "u-one",
                "apiVersion": "batch/v1",
                "resourceVersion": "7",
            },
        )
        self.assertTrue(event["metadata"]["name"].startswith("one."))
        self.assertEqual(
            (event["type"], event["reason"], event["message"], event["count"], event["source"]),
            ("Warning", "Started", "it runs", 1, {"component": "job-controller"}),
        )
        self.assertEqual(event["firstTimestamp"], event["lastTimestamp"])

    def test_cluster_scoped(self) -> None:
        """Events about cluster-scoped objects are in the namespace default."""
        self.recorder.event(GroupVersionKind("", "v1", "Node"), {"metadata": {"name": "n"}}, NORMAL, "Ready", "yes")
        self.settle()
        self.assertEqual(self.names("events", "default")[0][:2], "n.")

    def test_counted(self) -> None:
        """A repeated event increments the count. A deleted event is created again."""
        for seconds in (0, 10, 20):
            self.clock.advance(seconds)
            self.record("it runs")
        [event] = self.events()
        self.assertEqual(event["count"], 3)
        self.assertGreater(event["lastTimestamp"], event["firstTimestamp"])
        self.remove("events", event["metadata"]["name"], "default")
        self.record("it runs")
        [event] = self.events()
        self.assertEqual(event["count"], 1)
        self.record("it ends")
        self.record("it runs", name="two")
        self.assertEqual(len(self.events()), 3)

    def test_aggregated(self) -> None:
        """Events that differ only in their messages are aggregated after the first ten."""
        for number in range(14):
            self.record(f"pod {number}")
            self.clock.advance(1)
        events = self.events()
        self.assertEqual(len(events), 11)
        self.assertEqual(events[-1]["message"], "(combined from similar events): pod 13")
        self.assertEqual(events[-1]["count"], 4)
        self.clock.advance(601)
        self.record("pod 14")
        self.assertEqual(self.events()[-1]["message"], "pod 14")

    def test_rate_limit(self) -> None:
        """Events are rate limited per object: a burst, then one in five minutes."""
        for _ in range(BURST + 10):
            self.record("it runs")
        self.assertEqual(self.events()[0]["count"], BURST)
        self.record("it runs", name="two")
        self.assertEqual(len(self.events()), 2)
        self.clock.advance(REFILL_INTERVAL)
        self.record("it runs")
        self.record("it runs")
        self.assertEqual(self.events()[0]["count"], BURST + 1)

    def test_long(self) -> None:
        """Long messages are truncated."""
        self.record("x" * 2000)
        self.assertEqual(self.events()[0]["message"], "x" * 1021 + "...")

    def test_failed_write(self) -> None:
        """An event that cannot be written is dropped."""
        self.backend.fails = lambda number: True
        self.record("it runs")
        self.backend.fails = lambda number: False
        self.assertEqual(self.events(), [])
        self.record("it runs")
        self.assertEqual(len(self.events()), 1)
        self.assertEqual(self.clock.seconds(), START)

    def test_stop(self) -> None:
        """After stop, no events are recorded."""
        self.successResultOf(Deferred.fromCoroutine(self.context.stop()))
        self.record("it runs")
        self.assertEqual(self.names("events"), [])
