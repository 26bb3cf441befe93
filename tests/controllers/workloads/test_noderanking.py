"""Tests for L{kubetwist.controllers.workloads.noderanking}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis.strategies import integers, lists, sampled_from, tuples

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.workloads.noderanking import NodeRanking
from kubetwist.controllers.workloads.scheduling import NodeInfo, node_score, schedule_pod
from tests.controllers.workloads.test_scheduling import near, node, pod_info

PREFERRED = {
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}}
    ]
}


def named(*names: str) -> dict[str, Any]:
    """Return the affinity of a pod to nodes by name, as the pods of DaemonSets have it."""
    fields = [{"key": "metadata.name", "operator": "In", "values": list(names)}]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


#: Parts of pods: plain ones, and with rules about nodes and other pods.
SPECS: list[dict[str, Any]] = [
    {},
    {"nodeSelector": {"zone": "a"}},
    {"affinity": named("n1", "n4", "other")},
    {"affinity": {"podAntiAffinity": near("x")}},
    {"affinity": {"podAffinity": near("x")}},
    {"affinity": {"nodeAffinity": PREFERRED}},
    {"tolerations": [{"operator": "Exists"}]},
]
AVOIDED = {"taints": [{"key": "k", "value": "v", "effect": "PreferNoSchedule"}]}
CLOSED = {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}


class NodeRankingTests(SynchronousTestCase):
    """The ranking chooses as a comparison of all nodes does."""

    def ranked(self, nodes: list[NodeInfo]) -> NodeRanking:
        """Return a ranking of nodes."""
        ranking = NodeRanking()
        for one in nodes:
            ranking.update(one)
        return ranking

    @given(lists(tuples(sampled_from(SPECS), sampled_from(["1", "500m", "3"]), integers(0, 7)), max_size=20))
    def test_same(self, steps: list[tuple[dict[str, Any], str, int]]) -> None:
        """The chosen node has the best score, and the reasons are the same; also after pods and nodes are removed."""
        nodes = [
            node(
                f"n{number}", "4" if number % 3 else "8", (AVOIDED, CLOSED, None)[min(number, 2)], zone="ab"[number % 2]
            )
            for number in range(6)
        ]
        ranking, places = self.ranked(nodes), []
        for number, (spec, cpu, removed) in enumerate(steps):
            pod = pod_info(f"p{number}", cpu, labels={"app": "x"}, **spec)
            existing = [one for one in nodes if one.exists]
            found, expected = ranking.schedule(pod), schedule_pod(pod, existing)
            self.assertEqual(found.message, expected.message)
            self.assertEqual(bool(found.node), bool(expected.node))
            by_name = {one.name: one for one in nodes}
            if found.node:
                chosen, best = by_name[found.node], by_name[expected.node]
                ours, theirs = node_score(pod, chosen), node_score(pod, best)
                self.assertEqual(ours[:2], theirs[:2])
                self.assertAlmostEqual(ours[2], theirs[2])
                chosen.add(pod)
                ranking.update(chosen)
                places.append((pod.key, chosen))
            if removed < len(places):
                key, place = places.pop(removed)
                place.remove(key)
                ranking.update(place)
            elif removed == 7 and number > 5:
                nodes[-1].exists = False
                ranking.update(nodes[-1])

    def test_changes(self) -> None:
        """A node is ranked by its current state, and left out when it does not exist."""
        small, large = node("a", "2"), node("b", "4")
        ranking = self.ranked([small, large])
        self.assertEqual(ranking.schedule(pod_info("p")).node, "b")
        large.add(pod_info("q", "4"))
        ranking.update(large)
        self.assertEqual(ranking.schedule(pod_info("p")).node, "a")
        small.exists = False
        ranking.update(small)
        self.assertIn("Insufficient cpu", ranking.schedule(pod_info("p")).message)
        large.exists = False
        ranking.update(large)
        self.assertEqual(ranking.schedule(pod_info("p")).message, "no nodes available to schedule pods")
