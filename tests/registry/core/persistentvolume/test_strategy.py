"""Tests of L{kubetwist.registry.core.persistentvolume.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import defaulted, made


class StrategyTests(SynchronousTestCase):
    """Tests of the strategy of PersistentVolumes."""

    def test_defaults(self) -> None:
        """The defaults are the reclaim policy Retain and the volume mode Filesystem."""
        spec = defaulted("", "PersistentVolume", spec={"capacity": {"storage": "1.5"}})["spec"]
        self.assertEqual((spec["persistentVolumeReclaimPolicy"], spec["volumeMode"]), ("Retain", "Filesystem"))

    def test_pending(self) -> None:
        """A new volume has the phase Pending and the time of its transition."""
        obj = made(
            "",
            "PersistentVolume",
            metadata={"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"},
            status={"phase": "Bound"},
        )
        self.assertEqual(obj["status"], {"phase": "Pending", "lastPhaseTransitionTime": "2026-01-01T00:00:00Z"})

    def transition(self, before: dict[str, str], after: dict[str, str]) -> object:
        """Return the time of the last phase transition after an update."""
        obj = {"metadata": {"name": "x"}, "spec": {}, "status": dict(after)}
        old = {"metadata": {"name": "x"}, "spec": {}, "status": dict(before)}
        strategy_for("", "PersistentVolume").prepare_for_status_update(obj, old)
        return obj["status"].get("lastPhaseTransitionTime")

    def test_transitions(self) -> None:
        """The server sets the time of a phase transition, unless the client sets another."""
        old = {"phase": "Pending", "lastPhaseTransitionTime": "2020-01-01T00:00:00Z"}
        self.assertEqual(self.transition(old, {"phase": "Pending"}), "2020-01-01T00:00:00Z")
        self.assertGreater(str(self.transition(old, {"phase": "Bound"})), "2026-01-01")
        status = {"phase": "Bound", "lastPhaseTransitionTime": "2021-01-01T00:00:00Z"}
        self.assertEqual(self.transition(old, status), "2021-01-01T00:00:00Z")
