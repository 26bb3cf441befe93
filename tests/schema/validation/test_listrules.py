"""Tests for L{kubetwist.schema.validation.listrules}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.structural import Structural
from kubetwist.schema.validation.listrules import (
    validate_lists,
)
from tests.schema.structures import TEXT


class ListTests(SynchronousTestCase):
    """Tests for L{validate_lists}."""

    def test_sets(self) -> None:
        """The second of equal items in a set is reported."""
        schema = Structural({"properties": {"s": {"x-kubernetes-list-type": "set", "items": TEXT}}})
        causes = validate_lists({"s": ["a", "b", "a", "a"]}, schema)
        self.assertEqual([(cause.field, cause.message) for cause in causes], [("s[2]", 'Duplicate value: "a"')])

    def test_maps(self) -> None:
        """The second of items with equal keys is reported by its keys."""
        schema = Structural(
            {
                "properties": {
                    "m": {
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["k", "l"],
                        "items": {"properties": {}},
                    }
                }
            }
        )
        causes = validate_lists({"m": [{"k": 1, "l": 2, "v": 1}, {"k": 1}, {"l": 2, "k": 1}]}, schema)
        self.assertEqual(
            [(cause.field, cause.message) for cause in causes], [("m[2]", 'Duplicate value: {"k":1,"l":2}')]
        )
