"""Tests of L{kubetwist.registry.core.event.validation} and the strategies of events."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for

NEW, OLD = "events.k8s.io", ""
TIME = "2026-01-01T00:00:00.000000Z"


def event(**parts: Any) -> dict[str, Any]:
    """Return a valid event of events.k8s.io."""
    obj = {
        "metadata": {"name": "e", "namespace": "ns"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "ns"},
        "eventTime": TIME,
        "reportingComponent": "example.com/c",
        "reportingInstance": "c-1",
        "action": "Kill",
        "reason": "Oom",
        "type": "Normal",
        **parts,
    }
    strategy_for(NEW, "Event").default(obj)
    return obj


def problems(group: str, obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    """Return the validation errors of an event in a group."""
    strategy = strategy_for(group, "Event")
    return list(map(str, strategy.validate(obj) if old is None else strategy.validate_update(obj, old)))


class EventTests(SynchronousTestCase):
    """Tests of events."""

    def test_good(self) -> None:
        """A complete event is valid in both groups."""
        for group in (NEW, OLD):
            self.assertEqual(problems(group, event()), [])
            self.assertEqual(problems(group, event(), event()), [])

    def test_names(self) -> None:
        """The name of a core event can be any path segment."""
        self.assertEqual(strategy_for(OLD, "Event").validate_name("A_b", False), [])
        self.assertNotEqual(strategy_for(OLD, "Event").validate_name("a/b", False), [])
        self.assertNotEqual(strategy_for(NEW, "Event").validate_name("A_b", False), [])

    def test_old(self) -> None:
        """For an event without eventTime only the namespace is validated."""
        bare = {"metadata": {"name": "e", "namespace": "ns"}, "involvedObject": {"namespace": "ns"}}
        self.assertEqual(problems(OLD, bare), [])
        mismatch = "does not match event.namespace"
        for namespace, about, fits in (
            ("ns", "other", False),
            ("ns", "", False),
            ("default", "", True),
            ("kube-system", "", False),
        ):
            obj = {"metadata": {"name": "e", "namespace": namespace}, "involvedObject": {"namespace": about}}
            expected = [] if fits else [f'involvedObject.namespace: Invalid value: "{about}": {mismatch}']
            self.assertEqual(problems(OLD, obj), expected)

    def test_with_a_time(self) -> None:
        """An event with eventTime may have another namespace, and needs a controller; errors omit long values."""
        self.assertEqual(problems(OLD, event(involvedObject={"namespace": "other"})), [])
        found = problems(OLD, event(reportingComponent="", action="", reason="x" * 129, message="x" * 1025))
        self.assertEqual(found[0], "reportingComponent: Required value")
        self.assertIn("action: Required value", found)
        self.assertIn('reason: Invalid value: "": can have at most 128 characters', found)
        self.assertIn('message: Invalid value: "": can have at most 1024 characters', found)
        self.assertEqual(problems(NEW, event(reportingComponent=""))[0], "reportingController: Required value")

    def test_newer(self) -> None:
        """Fields of core events are forbidden in events.k8s.io."""
        found = problems(
            NEW,
            event(
                eventTime=None,
                type="Odd",
                firstTimestamp="2026-01-01T00:00:00Z",
                count=1,
                source={"component": "c"},
                series={"count": 1},
            ),
        )
        self.assertEqual(
            found,
            [
                'series.count: Invalid value: "": should be at least 2',
                "series.lastObservedTime: Required value",
                "eventTime: Required value",
                'type: Invalid value: "": has invalid value: Odd',
                'firstTimestamp: Invalid value: "": needs to be unset',
                'count: Invalid value: "": needs to be unset',
                'source: Invalid value: "": needs to be unset',
            ],
        )

    def test_update(self) -> None:
        """In events.k8s.io only the series may change; in the core group all fields may."""
        new = event(
            series={"count": 2, "lastObservedTime": TIME},
            reason="Other",
            related={"kind": "Node"},
            source={"host": "h"},
        )
        self.assertEqual(problems(OLD, new, event()), [])
        found = problems(NEW, new, event())
        self.assertEqual([text.partition(":")[0] for text in found], ["reason", "source", "reason", "related"])
        self.assertEqual(found[1], 'source: Invalid value: {"Component":"","Host":"h"}: field is immutable')
        self.assertTrue(found[3].startswith('related: Invalid value: {"Kind":"Node","Namespace":"",'), found[3])
        self.assertEqual(problems(NEW, event(series={"count": 2, "lastObservedTime": TIME}), event()), [])
