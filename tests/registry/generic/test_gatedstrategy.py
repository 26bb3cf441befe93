"""Tests of L{kubetwist.registry.generic.gatedstrategy}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.registry.generic.gatedstrategy import GatedStrategy
from kubetwist.registry.generic.gates import GatedField, field_at

#: A gate that can be set in 1.36.
GATE = "HostnameOverride"


class _Example(GatedStrategy):
    """A kind with a field with a gate in its spec, and one in its status."""

    has_status = True
    gated_fields = (GatedField(gate=GATE, find=field_at("name")),)
    gated_status_fields = (GatedField(gate=GATE, find=field_at("status", "name")),)

    def gated_part(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Return the spec."""
        spec: dict[str, Any] = obj["spec"]
        return spec


class GatedStrategyTests(SynchronousTestCase):
    """Objects that are prepared with the gate enabled, and disabled."""

    def setUp(self) -> None:
        """Create both strategies."""
        self.on, self.off = (_Example().with_features(FeatureGates((1, 36), {GATE: value})) for value in (True, False))

    def obj(self, **status: Any) -> dict[str, Any]:
        """Return an object with the field of the spec."""
        return {"metadata": {"name": "x"}, "spec": {"name": "n"}, "status": status}

    def test_create(self) -> None:
        """The field of a new object is kept if the gate is enabled; the status is cleared."""
        for strategy, spec in ((self.on, {"name": "n"}), (self.off, {})):
            obj = self.obj(name="s")
            strategy.prepare_for_create(obj)
            self.assertEqual(obj["spec"], spec)
            self.assertNotIn("status", obj)

    def test_update(self) -> None:
        """The field is kept if the stored object uses it; the status is restored."""
        used, unused = self.obj(a=1), {**self.obj(a=1), "spec": {}}
        for old, spec in ((used, {"name": "n"}), (unused, {})):
            obj = self.obj(b=1)
            self.off.prepare_for_update(obj, old)
            self.assertEqual((obj["spec"], obj["status"]), (spec, {"a": 1}))

    def test_status(self) -> None:
        """The same for the field of the status."""
        for strategy, old, status in (
            (self.on, self.obj(), {"name": "s"}),
            (self.off, self.obj(), {}),
            (self.off, self.obj(name="t"), {"name": "s"}),
        ):
            obj = self.obj(name="s")
            strategy.prepare_for_status_update(obj, old)
            self.assertEqual(obj["status"], status)
