"""Tests of L{kubetwist.registry.core.event.conversion}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.event.conversion import CORE, EVENTS
from kubetwist.registry.generic.conversion import convert


class EventTests(SynchronousTestCase):
    """Tests of conversion between both groups."""

    def test_names(self) -> None:
        """The fields involvedObject, message and count are regarding, note and deprecatedCount in events.k8s.io."""
        core = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "e"},
            "involvedObject": {"name": "p"},
            "message": "up",
            "count": 3,
            "reason": "Started",
            "source": {"component": "kubelet"},
            "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": None,
            "eventTime": None,
            "reportingComponent": "",
            "reportingInstance": "",
        }
        event = convert(core, CORE, EVENTS)
        self.assertEqual(
            event,
            {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": {"name": "e"},
                "regarding": {"name": "p"},
                "note": "up",
                "deprecatedCount": 3,
                "reason": "Started",
                "deprecatedSource": {"component": "kubelet"},
                "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
                "deprecatedLastTimestamp": None,
                "eventTime": None,
            },
        )
        self.assertEqual(convert(event, EVENTS, CORE), core)

    def test_newer_zero_values(self) -> None:
        """An event of events.k8s.io includes empty structs and times."""
        core = convert({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}}, EVENTS, CORE)
        event = convert(core, CORE, EVENTS)
        for name, value in (("regarding", {}), ("deprecatedSource", {}), ("deprecatedLastTimestamp", None)):
            self.assertEqual(event[name], value)
        self.assertNotIn("reportingController", event)

    def test_core_zero_values(self) -> None:
        """A core event includes empty structs and times."""
        event = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}}
        core = convert(event, EVENTS, CORE)
        self.assertEqual((core["source"], core["lastTimestamp"], core["reportingComponent"]), ({}, None, ""))
        core["source"]["component"] = "x"
        self.assertEqual(convert(event, EVENTS, CORE)["source"], {})
