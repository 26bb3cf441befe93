"""Tests for L{kubetwist.registry.events.validation}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.events.validation import validate_new_event, validate_new_event_update
from tests.registry.strategytools import copy

EVENT: dict[str, Any] = {
    "metadata": {"name": "e", "namespace": "ns"},
    "involvedObject": {"kind": "Pod", "namespace": "ns", "name": "p"},
    "reason": "Started",
    "action": "Start",
    "type": "Normal",
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingComponent": "example.com/c",
    "reportingInstance": "c-1",
}


def fields(**parts: Any) -> list[str]:
    """Return the fields with errors of an event."""
    return [cause.field for cause in validate_new_event({**copy(EVENT), **parts})]


class CreationTests(SynchronousTestCase):
    """Tests for L{validate_new_event}."""

    def test_valid(self) -> None:
        """An event with all required fields is valid."""
        self.assertEqual(fields(), [])

    def test_deprecated_fields(self) -> None:
        """The fields of core/v1 events must not be set, and the event time is required."""
        self.assertEqual(fields(eventTime=None), ["eventTime"])
        for name, value in (("count", 2), ("firstTimestamp", "2026-01-01T00:00:00Z"), ("source", {"host": "n"})):
            self.assertEqual(fields(**{name: value}), [name])

    def test_type(self) -> None:
        """The type is Normal or Warning."""
        self.assertEqual(fields(type="Warning"), [])
        self.assertEqual(fields(type="Odd"), ["type"])

    def test_series(self) -> None:
        """A series has at least two events, and a time."""
        self.assertEqual(fields(series={"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}), [])
        self.assertEqual(fields(series={"count": 1}), ["series.count", "series.lastObservedTime"])


class UpdateTests(SynchronousTestCase):
    """Tests for L{validate_new_event_update}."""

    def test_series_only(self) -> None:
        """Only the series may change."""
        series = {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}
        self.assertEqual(validate_new_event_update({**copy(EVENT), "series": series}, copy(EVENT)), [])
        for name, value in (("action", "Stop"), ("reportingInstance", "c-2")):
            errors = validate_new_event_update({**copy(EVENT), name: value}, copy(EVENT))
            self.assertEqual([cause.field for cause in errors], [name])

    def test_name_of_controller(self) -> None:
        """Errors name the component as in this group."""
        errors = validate_new_event_update({**copy(EVENT), "reportingComponent": "example.com/d"}, copy(EVENT))
        self.assertEqual([cause.field for cause in errors], ["reportingController"])
