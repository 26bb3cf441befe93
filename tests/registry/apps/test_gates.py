"""Tests of feature gates of Deployments, ReplicaSets and StatefulSets."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.gatetools import create_errors, created, gated, update_errors, updated, with_status
from tests.registry.strategytools import CONTAINER

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
SPEC: dict[str, Any] = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}


class StatefulSetTests(SynchronousTestCase):
    """Tests of the fields of StatefulSets."""

    def test_max_unavailable(self) -> None:
        """C{maxUnavailable} has a default if its gate is enabled; otherwise it is dropped unless it is in use."""
        on, off = (gated("apps", "StatefulSet", MaxUnavailableStatefulSet=value) for value in (True, False))
        rolling = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}}
        self.assertEqual(created(on, spec=SPEC)["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], 1)
        self.assertNotIn("maxUnavailable", created(off, spec=SPEC)["spec"]["updateStrategy"]["rollingUpdate"])
        used = created(on, spec={**SPEC, **rolling})
        self.assertEqual(used["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], 2)
        unused = created(off, spec={**SPEC, **rolling})
        self.assertNotIn("maxUnavailable", unused["spec"]["updateStrategy"]["rollingUpdate"])
        kept = updated(off, used, spec={**SPEC, **rolling})
        self.assertEqual(kept["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], 2)

    def test_retention(self) -> None:
        """The retention policy has a default if its gate is enabled, and is dropped otherwise."""
        field = "persistentVolumeClaimRetentionPolicy"
        on, off = (gated("apps", "StatefulSet", (1, 31), StatefulSetAutoDeletePVC=value) for value in (True, False))
        used = created(on, spec=SPEC)
        self.assertEqual(used["spec"][field], {"whenDeleted": "Retain", "whenScaled": "Retain"})
        policy = {field: {"whenDeleted": "Delete", "whenScaled": "Retain"}}
        self.assertNotIn(field, created(off, spec=SPEC)["spec"])
        self.assertNotIn(field, created(off, spec={**SPEC, **policy})["spec"])
        self.assertEqual(updated(off, used, spec={**SPEC, **policy})["spec"][field], policy[field])

    def test_ordinals(self) -> None:
        """C{ordinals} are dropped if their gate is disabled, as in 1.26."""
        ordinals = {**SPEC, "ordinals": {"start": 1}}
        self.assertIn("ordinals", created(gated("apps", "StatefulSet"), spec=ordinals)["spec"])
        self.assertNotIn("ordinals", created(gated("apps", "StatefulSet", (1, 26)), spec=ordinals)["spec"])

    def test_recreate(self) -> None:
        """The update strategy C{Recreate} is valid if its gate is enabled, or if it is in use."""
        on, off = (gated("apps", "StatefulSet", (1, 37), StatefulSetRecreateStrategy=value) for value in (True, False))
        spec = {**SPEC, "updateStrategy": {"type": "Recreate"}}
        self.assertEqual(create_errors(on, spec=spec), [])
        [error] = create_errors(off, spec=spec)
        self.assertTrue(error.endswith("must be 'RollingUpdate' or 'OnDelete'"), error)
        self.assertEqual(update_errors(off, created(on, spec=spec), spec=spec), [])
        self.assertEqual(len(update_errors(off, created(on, spec=SPEC), spec=spec)), 1)


class StatusTests(SynchronousTestCase):
    """Tests of the fields of statuses."""

    def test_terminating_replicas(self) -> None:
        """C{terminatingReplicas} are dropped if their gate is disabled, unless the stored status has them."""
        for kind in ("Deployment", "ReplicaSet"):
            for enabled in (True, False):
                strategy = gated("apps", kind, DeploymentReplicaSetTerminatingReplicas=enabled)
                obj = created(strategy, spec=SPEC)
                status = {"replicas": 1, "terminatingReplicas": 0}
                self.assertEqual("terminatingReplicas" in with_status(strategy, obj, status)["status"], enabled)
                kept = with_status(strategy, {**obj, "status": {"terminatingReplicas": 1}}, status)
                self.assertEqual(kept["status"], status)
