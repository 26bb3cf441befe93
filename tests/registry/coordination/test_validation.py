"""Tests for L{kubetwist.registry.coordination.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import copy, problems


class LeaseTests(SynchronousTestCase):
    """Tests for the validation of Leases."""

    def test_lease(self) -> None:
        """The duration of a Lease is positive."""
        self.assertEqual(
            problems("coordination.k8s.io", "Lease", spec={"leaseDurationSeconds": 0}),
            ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
        )


class ElectionTests(SynchronousTestCase):
    """Tests for Leases of coordinated leader election."""

    def test_elections(self) -> None:
        """New Leases have no strategy, but stored ones may be changed."""
        strategy = strategy_for("coordination.k8s.io", "Lease")
        given = {"metadata": {"name": "l"}, "spec": {"strategy": "OldestEmulationVersion", "preferredHolder": "h"}}
        lease = copy(given)
        strategy.prepare_for_create(lease)
        self.assertEqual(lease["spec"], {})
        again = copy(given)
        strategy.prepare_for_update(again, lease)
        self.assertEqual(again["spec"], {})
        strategy.prepare_for_update(changed := copy(given), {"spec": {"strategy": "x.y/z"}})
        self.assertEqual(changed["spec"], {"strategy": "OldestEmulationVersion"})
