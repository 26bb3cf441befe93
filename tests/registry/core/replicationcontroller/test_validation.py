"""Tests of L{kubetwist.registry.core.replicationcontroller.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import problems


class ReplicationControllerTests(SynchronousTestCase):
    """Tests of ReplicationControllers."""

    def test_replication_controller(self) -> None:
        """A ReplicationController needs a template."""
        self.assertEqual(
            problems("", "ReplicationController", spec={}),
            ["spec.selector: Required value", "spec.template: Required value"],
        )
