"""Tests for L{kubetwist.schema.validation.correlation}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.validation.conditions import Conditions
from kubetwist.schema.validation.correlation import CorrelatedObject

ITEM = {"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "string"}}}
MAP = {
    "type": "array",
    "items": ITEM,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}
LIST = {"type": "array", "items": ITEM}
SCHEMA = {"type": "object", "properties": {"map": MAP, "list": LIST, "text": {"type": "string"}}}


def correlated(value: Any, old: Any) -> CorrelatedObject:
    """Return the correlation of a new and an old object."""
    return CorrelatedObject(value, old, Conditions(SCHEMA))


class CorrelationTests(SynchronousTestCase):
    """Tests for L{CorrelatedObject}."""

    def test_fields(self) -> None:
        """A field is correlated if both objects have it and it has a schema."""
        found = correlated({"text": "a", "other": 1}, {"text": "b", "other": 1}).key("text")
        assert found is not None
        self.assertEqual((found.value, found.old), ("a", "b"))
        self.assertIsNone(correlated({"text": "a"}, {}).key("text"))
        self.assertIsNone(correlated({"other": 1}, {"other": 1}).key("other"))

    def test_items(self) -> None:
        """Items of a list of type map are correlated by their keys; items of other lists are not correlated."""
        new = {"map": [{"name": "b", "value": "2"}, {"name": "c"}, {"value": "x"}]}
        old = {"map": [{"name": "a"}, {"name": "b", "value": "1"}]}
        found = correlated(new, old).key("map")
        assert found is not None
        item = found.index(0)
        assert item is not None
        self.assertEqual(item.old, {"name": "b", "value": "1"})
        self.assertIsNone(found.index(1))
        self.assertIsNone(found.index(2))
        plain = correlated({"list": [{"name": "a"}]}, {"list": [{"name": "a"}]}).key("list")
        assert plain is not None
        self.assertIsNone(plain.index(0))

    def test_unchanged(self) -> None:
        """The order of a list of type map is ignored, the order of other lists counts."""
        one, other = {"name": "a"}, {"name": "b"}
        self.assertTrue(correlated({"map": [one, other]}, {"map": [other, one]}).unchanged)
        self.assertFalse(correlated({"list": [one, other]}, {"list": [other, one]}).unchanged)
        self.assertFalse(correlated({"map": [one]}, {"map": [one, other]}).unchanged)

    def test_types_matter(self) -> None:
        """A number that became a string, or a field without a schema, counts as changed."""
        self.assertFalse(correlated({"text": "1"}, {"text": 1}).unchanged)
        self.assertFalse(correlated({"unknown": 1}, {"unknown": 1}).unchanged)
