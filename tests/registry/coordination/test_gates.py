"""Tests of feature gates of Leases."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.gatetools import created, gated, updated


class GateTests(SynchronousTestCase):
    """Fields of coordinated leader election."""

    def test_fields(self) -> None:
        """Each field is kept if the gate is enabled or it is in use, and dropped otherwise."""
        spec = {"strategy": "OldestEmulationVersion", "preferredHolder": "a"}
        on, off = (gated("coordination.k8s.io", "Lease", CoordinatedLeaderElection=value) for value in (True, False))
        used, unused = created(on, spec=spec), created(off, spec=spec)
        self.assertEqual((used["spec"], unused["spec"]), (spec, {}))
        self.assertEqual(updated(off, used, spec=spec)["spec"], spec)
        one = created(on, spec={"preferredHolder": "a"})
        self.assertEqual(updated(off, one, spec=spec)["spec"], {"preferredHolder": "a"})
