"""Tests for L{kubetwist.controllers.workloads.daemonpods}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.workloads import daemonpods
from kubetwist.controllers.workloads.daemonpods import (
    DaemonPlan,
    FailureBackoff,
    Fit,
    daemon_tolerations,
    rolling_update,
)
from kubetwist.controllers.workloads.history import REVISION_LABEL
from tests.controllers.workloads.daemonsetcase import template


class PlanTests(SynchronousTestCase):
    """Decisions without I/O."""

    def test_tolerations(self) -> None:
        """A toleration with tolerationSeconds is replaced by an unlimited one."""
        short = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
        own = {"key": "a", "operator": "Exists"}
        made = daemon_tolerations({"tolerations": [own, {**short, "tolerationSeconds": 3}], "hostNetwork": True})
        self.assertEqual(made[:2], [own, short])
        self.assertEqual(len(made), 8)
        self.assertEqual(made[-1]["key"], "node.kubernetes.io/network-unavailable")

    def test_pod(self) -> None:
        """Required node affinity is replaced by the node. Preferred affinity is kept."""
        preferred = [{"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}]
        zones = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "Exists"}]}]}
        affinity = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": zones,
                "preferredDuringSchedulingIgnoredDuringExecution": preferred,
            },
            "podAntiAffinity": {},
        }
        plan = DaemonPlan({"metadata": {"name": "d"}, "spec": {"template": template(affinity=affinity)}})
        made = plan.pod("n", "h", {"uid": "u"}, "d-", "ns")
        self.assertEqual(daemonpods.target_node(made), "n")
        on_node = made["spec"]["affinity"]["nodeAffinity"]
        self.assertEqual(on_node["preferredDuringSchedulingIgnoredDuringExecution"], preferred)
        self.assertEqual(made["spec"]["affinity"]["podAntiAffinity"], {})
        self.assertNotIn("pod-template-generation", made["metadata"]["labels"])
        self.assertEqual(affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"], zones)

    def test_backoff(self) -> None:
        """Each failure doubles the backoff, up to 15 minutes. Old failures are forgotten."""
        backoff, now = FailureBackoff(), 0.0
        waits = []
        for _ in range(12):
            backoff.failed("k", now)
            waits.append(backoff.remaining("k", now))
            now += waits[-1]
            self.assertEqual(backoff.remaining("k", now), 0)
        self.assertEqual(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900])
        backoff.failed("other", now + 3000)
        backoff.failed("k", now + 3000)
        self.assertEqual(backoff.remaining("k", now + 3000), 1)

    @given(
        st.lists(st.tuples(st.sampled_from(["", "old", "new", "both"]), st.booleans(), st.booleans()), max_size=12),
        st.integers(0, 4),
        st.integers(0, 4),
    )
    def test_bounds(self, nodes: list[tuple[str, bool, bool]], surge: int, unavailable: int) -> None:
        """An update respects maxUnavailable and maxSurge."""
        rolling = {"maxSurge": surge, "maxUnavailable": 0 if surge else unavailable}
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        plan = DaemonPlan({"metadata": {"name": "d"}, "spec": {"template": template(), "updateStrategy": strategy}})

        def pod(name: str, works: bool) -> Any:
            conditions = [{"type": "Ready", "status": "True"}] if works else []
            meta = {"name": name, "labels": {REVISION_LABEL: name.split("-")[0]}}
            return {"metadata": meta, "spec": {}, "status": {"conditions": conditions}}

        pods, fits = {}, {}
        for number, (kind, old_works, new_works) in enumerate(nodes):
            name = f"n{number}"
            fits[name] = Fit(True, True)
            there = [pod(f"old-{number}", old_works)] if kind in ("old", "both") else []
            there += [pod(f"new-{number}", new_works)] if kind in ("new", "both") else []
            if there:
                pods[name] = there
        delete, create = rolling_update(plan, fits, pods, "new", 0.0)
        deleted = {one["metadata"]["name"] for one in delete}

        def works(name: str, left: bool) -> bool:
            return any(
                plan.available(one, 0.0) and not (left and one["metadata"]["name"] in deleted)
                for one in pods.get(name, ())
            )

        self.assertFalse([name for name in deleted if name.startswith("new")])
        before, after = sum(works(name, False) for name in fits), sum(works(name, True) for name in fits)
        least = len(fits) - (0 if surge else max(unavailable, 1))
        self.assertGreaterEqual(after, min(before, least))
        for name in create:
            self.assertEqual([one["metadata"]["labels"][REVISION_LABEL] for one in pods[name]], ["old"])
        beside = [name for name in create if works(name, False)]
        waiting = [name for name, there in pods.items() if len(there) == 2 and not plan.available(there[1], 0.0)]
        if beside:
            self.assertLessEqual(len(beside) + len(waiting), surge)
