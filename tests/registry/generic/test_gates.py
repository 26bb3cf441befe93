"""Tests of L{kubetwist.registry.generic.gates}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.registry.generic.gates import ITEMS, DisabledFields, GatedField, field_at, fields_of, never, not_empty

#: A gate that exists since 1.34, and is enabled by default since 1.35.
GATE = "HostnameOverride"


class FindTests(SynchronousTestCase):
    """Tests of the functions that find fields."""

    def test_paths(self) -> None:
        """A field is found in all items of lists; missing or null parts of the path have none."""
        obj: dict[str, Any] = {"a": [{"b": {"c": 0}}, {"b": None}, {}, {"b": {"c": None}}, {"b": {"c": 1}}]}
        find = field_at("a", ITEMS, "b", "c")
        self.assertEqual([holder[name] for holder, name in find(obj)], [0, 1])
        for empty in ({}, {"a": None}, {"a": []}):
            self.assertEqual(list(find(empty)), [])

    def test_several(self) -> None:
        """Functions are combined."""
        find = fields_of(field_at("a"), field_at("b"))
        self.assertEqual([name for _, name in find({"a": 1, "b": 2, "c": 3})], ["a", "b"])
        self.assertTrue(not_empty(find)({"a": [], "b": [1]}))
        self.assertFalse(not_empty(find)({"a": [], "b": 0}))


class DisabledFieldsTests(SynchronousTestCase):
    """Tests of L{DisabledFields}."""

    def dropped(self, gated: GatedField, features: FeatureGates, old: dict[str, Any] | None = None) -> bool:
        """Return whether a field is dropped from an object."""
        obj = {"a": 1}
        DisabledFields((gated,), features).drop(obj, old)
        return "a" not in obj

    def test_gate(self) -> None:
        """The field of a disabled gate is dropped, unless the stored object has it."""
        field = GatedField(gate=GATE, find=field_at("a"))
        self.assertFalse(self.dropped(field, FeatureGates((1, 35))))
        off = FeatureGates((1, 35), {GATE: False})
        self.assertTrue(self.dropped(field, off))
        self.assertTrue(self.dropped(field, off, {}))
        self.assertFalse(self.dropped(field, off, {"a": 2}))
        self.assertTrue(self.dropped(GatedField(gate=GATE, find=field_at("a"), in_use=never), off, {"a": 2}))

    def test_releases(self) -> None:
        """A rule has its releases; releases before the gate have no rule."""
        field = GatedField(gate=GATE, find=field_at("a"))
        self.assertFalse(self.dropped(field, FeatureGates((1, 33))))
        self.assertTrue(self.dropped(field, FeatureGates((1, 34))))
        self.assertTrue(self.dropped(field, FeatureGates((1, 36), emulated=(1, 33))))
        off = FeatureGates((1, 35), {GATE: False})
        self.assertFalse(self.dropped(GatedField(gate=GATE, find=field_at("a"), since=(1, 36)), off))
        self.assertFalse(self.dropped(GatedField(gate=GATE, find=field_at("a"), until=(1, 34)), off))

    def test_own_rule(self) -> None:
        """A field may have a function that drops it."""
        obj = {"a": 1, "b": 2}
        field = GatedField(gate=GATE, find=field_at("a"), drop=lambda obj: obj.update(a=0))
        DisabledFields((field,), FeatureGates((1, 34))).drop(obj)
        self.assertEqual(obj, {"a": 0, "b": 2})
