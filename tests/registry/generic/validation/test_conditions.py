"""Tests of L{kubetwist.registry.generic.validation.conditions}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import FieldError
from kubetwist.registry.generic.validation.conditions import conditions

GOOD: dict[str, Any] = {
    "type": "Ready",
    "status": "True",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "reason": "AllGood",
}


def fields(*found: dict[str, Any]) -> list[str]:
    """Return the fields of conditions with errors."""
    causes: list[FieldError] = []
    conditions(found, "c", causes)
    return [cause.field for cause in causes]


class ConditionTests(SynchronousTestCase):
    """Tests of L{conditions}."""

    def test_good(self) -> None:
        """A complete condition is valid."""
        self.assertEqual(fields(GOOD, {**GOOD, "type": "example.com/Other", "message": "x" * 32768}), [])

    def test_parts(self) -> None:
        """Each field is validated; missing fields are reported."""
        for part, field in (
            ({"type": ""}, "c[0].type"),
            ({"status": "Maybe"}, "c[0].status"),
            ({"observedGeneration": -1}, "c[0].observedGeneration"),
            ({"lastTransitionTime": None}, "c[0].lastTransitionTime"),
            ({"reason": ""}, "c[0].reason"),
            ({"reason": "not good"}, "c[0].reason"),
            ({"reason": "x" * 1025}, "c[0].reason"),
            ({"message": "x" * 32769}, "c[0].message"),
        ):
            self.assertEqual(set(fields({**GOOD, **part})), {field}, part)

    def test_twice(self) -> None:
        """The types of conditions must be unique."""
        self.assertEqual(fields(GOOD, GOOD), ["c[1].type"])
