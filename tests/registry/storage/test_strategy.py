"""Tests for L{kubetwist.registry.storage.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import change_problems, copy, defaulted, made, status_problems, warnings_for

G = "storage.k8s.io"


class StorageClassTests(SynchronousTestCase):
    """Tests for the strategy of StorageClasses."""

    def test_defaults(self) -> None:
        """The default reclaim policy is Delete, and the default binding mode is Immediate."""
        obj = defaulted(G, "StorageClass")
        self.assertEqual((obj["reclaimPolicy"], obj["volumeBindingMode"]), ("Delete", "Immediate"))
        self.assertEqual(defaulted(G, "StorageClass", reclaimPolicy="Retain")["reclaimPolicy"], "Retain")


class CSIDriverTests(SynchronousTestCase):
    """Tests for the strategy of CSIDrivers."""

    def test_defaults(self) -> None:
        """By default a driver attaches volumes, and has persistent ones."""
        spec = defaulted(G, "CSIDriver", spec={"podInfoOnMount": True})["spec"]
        self.assertTrue(spec["attachRequired"] and spec["podInfoOnMount"])
        self.assertFalse(spec["storageCapacity"] or spec["requiresRepublish"] or spec["seLinuxMount"])
        self.assertEqual(spec["volumeLifecycleModes"], ["Persistent"])

    def test_gate(self) -> None:
        """A field of a disabled feature gate is dropped, unless the stored driver has it."""
        name = "preventPodSchedulingIfMissing"
        self.assertNotIn(name, made(G, "CSIDriver", spec={name: True})["spec"])
        for old, remaining in (({}, False), ({name: False}, True)):
            new = {"spec": {name: True}}
            strategy_for(G, "CSIDriver").prepare_for_update(new, {"spec": old})
            self.assertEqual(name in new["spec"], remaining)

    def test_tokens(self) -> None:
        """Token requests give a warning about tokens in attributes when they change."""
        tokens = {"tokenRequests": [{"audience": "a"}]}
        self.assertEqual(len(warnings_for(G, "CSIDriver", spec=tokens)), 1)
        self.assertEqual(warnings_for(G, "CSIDriver", spec={**tokens, "serviceAccountTokenInSecrets": False}), [])
        driver = made(G, "CSIDriver", spec=tokens)
        self.assertEqual(list(strategy_for(G, "CSIDriver").warnings(driver, copy(driver))), [])


class AttachmentTests(SynchronousTestCase):
    """Tests for the strategies of VolumeAttachments and CSINodes."""

    def test_status(self) -> None:
        """A new attachment is not attached, even if the client sets it."""
        self.assertEqual(made(G, "VolumeAttachment", status={"attached": True})["status"], {"attached": False})

    def test_structs(self) -> None:
        """Structs in Go are always encoded."""
        spec = defaulted(G, "VolumeAttachment")["spec"]
        self.assertEqual((spec["attacher"], spec["nodeName"], spec["source"]), ("", "", {}))
        self.assertEqual(defaulted(G, "CSINode")["spec"], {"drivers": None})

    def test_immutable_spec(self) -> None:
        """The spec of an attachment is immutable, also in an update of its status."""
        one, other = ({"spec": {"attacher": name, "nodeName": "n", "source": {}}} for name in "ab")
        errors = change_problems(G, "VolumeAttachment", one, other)
        self.assertIn("spec", [text.partition(":")[0] for text in errors])
        errors = status_problems(G, "VolumeAttachment", {**one, "status": {}}, {**other, "status": {}})
        self.assertIn("spec", [text.partition(":")[0] for text in errors])
