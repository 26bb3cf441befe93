"""Tests of L{kubetwist.registry.core.event.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class EventTests(SynchronousTestCase):
    """Tests of rows of Events."""

    def test_event(self) -> None:
        """A row contains the first and last time of the event; those of its series have precedence."""
        obj = made(
            {
                "type": "Normal",
                "reason": "Started",
                "message": " up\n",
                "count": 4,
                "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
                "source": {"component": "kubelet", "host": "n1"},
                "firstTimestamp": "2026-01-01T00:00:00Z",
                "lastTimestamp": "2026-01-01T00:02:00Z",
            }
        )
        expected = ["60s", "Normal", "Started", "pod/p", "spec", "kubelet, n1", "up", "3m", 4, "x"]
        self.assertEqual(cells("", "Event", obj, NOW), expected)
        obj["series"] = {"count": 9, "lastObservedTime": "2026-01-01T00:02:30.5Z"}
        self.assertEqual([cells("", "Event", obj, NOW)[column] for column in (0, 8)], ["29s", 9])

    def test_event_of_both_groups(self) -> None:
        """An event has the same row in both groups."""
        obj = made(
            {
                "apiVersion": "events.k8s.io/v1",
                "regarding": {"kind": "Node"},
                "note": "hot",
                "reportingController": "thermo",
                "eventTime": "2026-01-01T00:02:00.000001Z",
            }
        )
        self.assertEqual(
            cells("events.k8s.io", "Event", obj, NOW),
            ["59s", "", "", "node", "", "thermo", "hot", "59s", 1, "x"],
        )
