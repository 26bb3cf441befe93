"""Tests for L{kubetwist.registry.apps.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import CONTAINER, defaulted


class DefaultingTests(SynchronousTestCase):
    """Tests for the defaults of Deployments."""

    def test_deployment(self) -> None:
        """The default strategy is a rolling update of 25 %."""
        spec = defaulted("apps", "Deployment", spec={"template": {"spec": {"containers": [dict(CONTAINER)]}}})["spec"]
        rolling = {"maxUnavailable": "25%", "maxSurge": "25%"}
        self.assertEqual(spec["strategy"], {"type": "RollingUpdate", "rollingUpdate": rolling})
        self.assertEqual(
            (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]), (1, 10, 600)
        )

    def test_recreate(self) -> None:
        """The strategy Recreate has no rolling update."""
        spec = defaulted("apps", "Deployment", spec={"strategy": {"type": "Recreate"}})["spec"]
        self.assertEqual(spec["strategy"], {"type": "Recreate"})


class UpdateTests(SynchronousTestCase):
    """Tests for the preparation of updates of Deployments."""

    def test_main_keeps_status(self) -> None:
        """An update of the main resource keeps the status."""
        old = {"metadata": {}, "spec": {}, "status": {"replicas": 2}}
        obj = {"metadata": {}, "spec": {"replicas": 3}, "status": {"replicas": 9}}
        strategy_for("apps", "Deployment").prepare_for_update(obj, old)
        self.assertEqual(obj["status"], {"replicas": 2})

    def test_status_update(self) -> None:
        """An update of the status changes the status and annotations, but not labels."""
        old = {"metadata": {"labels": {"a": "1"}}, "spec": {"replicas": 1}}
        obj = {
            "metadata": {"labels": {"a": "2"}, "annotations": {"n": "1"}},
            "spec": {"replicas": 5},
            "status": {"replicas": 1},
        }
        strategy_for("apps", "Deployment").prepare_for_status_update(obj, old)
        self.assertEqual(
            obj,
            {
                "metadata": {"labels": {"a": "1"}, "annotations": {"n": "1"}},
                "spec": {"replicas": 1},
                "status": {"replicas": 1},
            },
        )
