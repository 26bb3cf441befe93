"""Tests for L{kubetwist.controllers.workloads.rollout}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubetwist.api.times import format_time
from kubetwist.controllers.workloads import rollout
from tests.controllers.harness import ControllerTestCase
from tests.controllers.workloads.deploymentvalues import LABELS

sized = st.integers(0, 60)


def deployment(replicas: int, surge: Any, unavailable: Any) -> Any:
    """Return a Deployment with a rolling update."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    return {"metadata": {"name": "web"}, "spec": {"replicas": replicas, "strategy": strategy}}


def replica_set(number: int, size: int, most: int) -> Any:
    """Return a ReplicaSet with a maximum size of its Deployment."""
    meta = {"name": f"web-{number}", "creationTimestamp": format_time(1000.0 + number)}
    return {"metadata": {**meta, "annotations": {rollout.MAXIMUM: str(most)}}, "spec": {"replicas": size}}


class ArithmeticTests(ControllerTestCase):
    """Computations of rollouts."""

    @given(sized, st.lists(st.integers(1, 30), min_size=2, max_size=6), st.integers(0, 5))
    def test_proportions(self, replicas: int, sizes: list[int], surge: int) -> None:
        """
        Proportional sizes add up to the allowed sum, or to more if the first set cannot shrink enough. None is
        negative.
        """
        sets = [replica_set(number, size, sum(sizes)) for number, size in enumerate(sizes)]
        shares = rollout.proportions(deployment(replicas, surge, 1), sets)
        self.assertEqual(len(shares), len(sets))
        self.assertTrue(all(share >= 0 for share in shares.values()))
        allowed = replicas + surge if replicas else 0
        if sum(shares.values()) != allowed:
            # As in kube-controller-manager, the rounding difference is subtracted from one set only.
            self.assertGreater(sum(shares.values()), allowed)
            self.assertIn(0, shares.values())

    @given(sized, st.integers(0, 100), st.integers(0, 100))
    def test_bounds(self, replicas: int, surge: int, unavailable: int) -> None:
        """A rollout can always progress: maxSurge or maxUnavailable is positive."""
        most, missing = rollout.max_surge_and_unavailable(deployment(replicas, f"{surge}%", f"{unavailable}%"))
        self.assertTrue(most + missing > 0 or not replicas)
        self.assertLessEqual(missing, replicas)

    @given(st.dictionaries(st.text(max_size=5), st.text(max_size=5)), st.integers(0, 3))
    def test_hash(self, annotations: dict[str, str], collisions: int) -> None:
        """A hash is a valid label value, and equal only for equal templates."""
        one = {"metadata": {"labels": LABELS, "annotations": annotations}, "spec": {}}
        made = rollout.template_hash(one, collisions)
        self.assertRegex(made, "^[b-df-hj-np-tv-z2-9]{1,10}$")
        self.assertEqual(made, rollout.template_hash(dict(reversed(one.items())), collisions))
        self.assertNotEqual(made, rollout.template_hash(one, collisions + 1))
