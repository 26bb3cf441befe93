"""Tests for L{kubetwist.registry.coordination.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class RowTests(SynchronousTestCase):
    """Tests for rows of Leases and LeaseCandidates."""

    def test_lease(self) -> None:
        """A row has the holder, if there is one."""
        obj = made({"spec": {"holderIdentity": "a"}})
        self.assertEqual(cells("coordination.k8s.io", "Lease", obj, NOW), ["x", "a", "3m"])
        self.assertEqual(cells("coordination.k8s.io", "Lease", made(), NOW), ["x", "", "3m"])

    def test_candidate(self) -> None:
        """A row has the lease and the versions of a candidate."""
        obj = made({"spec": {"leaseName": "l", "binaryVersion": "1.36.0", "emulationVersion": "1.35.0"}})
        result = cells("coordination.k8s.io", "LeaseCandidate", obj, NOW)
        self.assertEqual(result, ["x", "l", "1.36.0", "1.35.0", "3m"])
