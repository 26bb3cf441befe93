"""Tests for L{kubetwist.registry.core.persistentvolume.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import defaulted, made


class StrategyTests(SynchronousTestCase):
    """Tests for the strategy of PersistentVolumes."""

    def test_defaults(self) -> None:
        """A volume is retained, and has a file system."""
        spec = defaulted("", "PersistentVolume", spec={"capacity": {"storage": "1.5"}})["spec"]
        self.assertEqual((spec["persistentVolumeReclaimPolicy"], spec["volumeMode"]), ("Retain", "Filesystem"))

    def test_pending(self) -> None:
        """A new volume is pending since it was created."""
        obj = made(
            "",
            "PersistentVolume",
            metadata={"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"},
            status={"phase": "Bound"},
        )
        self.assertEqual(obj["status"], {"phase": "Pending", "lastPhaseTransitionTime": "2026-01-01T00:00:00Z"})

    def transition(self, before: dict[str, str], after: dict[str, str]) -> object:
        """The time of the last change of phase after an update."""
        obj = {"metadata": {"name": "x"}, "spec": {}, "status": dict(after)}
        old = {"metadata": {"name": "x"}, "spec": {}, "status": dict(before)}
        strategy_for("", "PersistentVolume").prepare_for_status_update(obj, old)
        return obj["status"].get("lastPhaseTransitionTime")

    def test_transitions(self) -> None:
        """The time of a change of phase is the server's, unless the client tells another one; else it stays."""
        old = {"phase": "Pending", "lastPhaseTransitionTime": "2020-01-01T00:00:00Z"}
        self.assertEqual(self.transition(old, {"phase": "Pending"}), "2020-01-01T00:00:00Z")
        self.assertGreater(str(self.transition(old, {"phase": "Bound"})), "2026-01-01")
        told = {"phase": "Bound", "lastPhaseTransitionTime": "2021-01-01T00:00:00Z"}
        self.assertEqual(self.transition(old, told), "2021-01-01T00:00:00Z")
