"""Tests of feature gates of PersistentVolumes."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.gatetools import created, gated, update_errors, updated

KIND = ("", "PersistentVolume")
SPEC: dict[str, Any] = {
    "accessModes": ["ReadWriteOnce"],
    "capacity": {"storage": "1Gi"},
    "csi": {"driver": "d", "volumeHandle": "h"},
}


def affinity(value: str) -> dict[str, Any]:
    """Return the affinity to a node."""
    term = {"matchExpressions": [{"key": "k", "operator": "In", "values": [value]}]}
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}


class GateTests(SynchronousTestCase):
    """Tests of the fields and the validation."""

    def test_attributes_class(self) -> None:
        """The class of attributes is dropped and immutable if its gate is disabled."""
        name = "volumeAttributesClassName"
        on, off = (gated(*KIND, (1, 35), VolumeAttributesClass=value) for value in (True, False))
        spec = {**SPEC, name: "a"}
        used, unused = created(on, spec=spec), created(off, spec=spec)
        self.assertEqual(used["spec"][name], "a")
        self.assertNotIn(name, unused["spec"])
        self.assertIn(name, updated(off, used, spec=spec)["spec"])
        self.assertNotIn(name, updated(off, unused, spec=spec)["spec"])
        text = "update is forbidden when the VolumeAttributesClass feature gate is disabled"
        self.assertEqual(update_errors(on, used, spec={**SPEC, name: "b"}), [])
        self.assertEqual(update_errors(off, used, spec={**SPEC, name: "b"}), [f"spec.{name}: Forbidden: {text}"])

    def test_node_affinity(self) -> None:
        """The node affinity is mutable if its gate is enabled."""
        for enabled in (True, False):
            strategy = gated(*KIND, MutablePVNodeAffinity=enabled)
            old = created(strategy, spec={**SPEC, **affinity("a")})
            found = update_errors(strategy, old, spec={**SPEC, **affinity("b")})
            self.assertEqual([error.partition(":")[0] for error in found], [] if enabled else ["nodeAffinity"])
