"""Tests for L{kubetwist.controllers.aggregation.availablecondition}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api import times
from kubetwist.controllers.aggregation.apiservices import Condition
from kubetwist.controllers.aggregation.availablecondition import with_condition


class ConditionTests(SynchronousTestCase):
    """Tests for L{with_condition}."""

    def setUp(self) -> None:
        """Stop the clock."""
        self.patch(times, "now", lambda: "NOW")
        self.other: dict[str, Any] = {"type": "Other", "status": "True"}

    def test_new(self) -> None:
        """A new condition is appended. An empty message is omitted."""
        self.assertEqual(
            with_condition([self.other], Condition("False", "R", "")),
            [self.other, {"type": "Available", "status": "False", "lastTransitionTime": "NOW", "reason": "R"}],
        )

    def test_time(self) -> None:
        """The transition time changes with the status, not with the message."""
        old = {"type": "Available", "status": "True", "lastTransitionTime": "OLD", "reason": "A", "message": "a"}
        for status, time in (("True", "OLD"), ("False", "NOW")):
            found = with_condition([old, self.other], Condition(status, "B", "b"))
            result = {"type": "Available", "status": status, "lastTransitionTime": time, "reason": "B", "message": "b"}
            self.assertEqual(found, [result, self.other])

    def test_first(self) -> None:
        """Of two conditions Available, the first one is updated."""
        old = {"type": "Available", "status": "False"}
        found = with_condition([old, old], Condition("True", "", ""))
        self.assertEqual([one["status"] for one in found], ["True", "False"])
