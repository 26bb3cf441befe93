"""
The order of nodes by free resources, so that a pod is scheduled without a look at each of a thousand nodes. No I/O.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable

from ...api.resource import JSONObject
from .nodeselection import named_nodes
from .scheduling import (
    DEFAULT_REQUESTS,
    InterPodState,
    NodeInfo,
    PodInfo,
    ScheduleResult,
    filter_node,
    node_score,
    schedule_pod,
)

#: The used share of a node, the number of its pods, and its name.
_Entry = tuple[float, int, str]


class NodeRanking:
    """
    All nodes, in classes of nodes with equal capacities and taints.

    In a class, the scores of nodes differ by their used share only, so the first node that fits is the best one.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, NodeInfo] = {}
        self._classes: dict[Hashable, list[_Entry]] = {}
        self._places: dict[str, tuple[Hashable, _Entry]] = {}

    def update(self, node: NodeInfo) -> None:
        """Rank a node that has changed; a node that does not exist is left out."""
        place = self._places.pop(node.name, None)
        if place is not None:
            entries = self._classes[place[0]]
            del entries[bisect_left(entries, place[1])]
            if not entries:
                del self._classes[place[0]]
        if not node.exists:
            self._nodes.pop(node.name, None)
            return
        self._nodes[node.name] = node
        place = self._places[node.name] = _class_of(node), (_used_share(node), len(node.pods), node.name)
        insort(self._classes.setdefault(place[0], []), place[1])

    def schedule(self, pod: PodInfo) -> ScheduleResult:
        """Choose a node for a pod, as L{kubetwist.controllers.workloads.scheduling.schedule_pod} does."""
        nodes = list(self._nodes.values())
        if not _prefers_nodes(pod.spec):
            best = self._find(pod, InterPodState(pod, nodes))
            if best is not None:
                return ScheduleResult(best.name)
        return schedule_pod(pod, nodes)

    def _find(self, pod: PodInfo, state: InterPodState) -> NodeInfo | None:
        names = named_nodes(pod.spec)
        if names is not None:
            groups: Iterable[Iterable[str]] = [(name,) for name in names if name in self._nodes]
        else:
            groups = ((name for _, _, name in entries) for entries in self._classes.values())
        fitting = []
        for group in groups:
            for name in group:
                node = self._nodes[name]
                if filter_node(pod, node) is None and not state.filter_node(node)[0]:
                    fitting.append(node)
                    break
        return min(fitting, key=lambda node: node_score(pod, node), default=None)


def _class_of(node: NodeInfo) -> Hashable:
    taints = tuple(
        (one["key"], one.get("value") or "") for one in node.taints if one.get("effect") == "PreferNoSchedule"
    )
    return tuple(node.allocatable.get(name, 0) for name in DEFAULT_REQUESTS), taints


def _used_share(node: NodeInfo) -> float:
    shares = ((node.non_zero_requested[name], node.allocatable.get(name, 0)) for name in DEFAULT_REQUESTS)
    return sum(used / allocatable if allocatable else 1.0 for used, allocatable in shares)


def _prefers_nodes(spec: JSONObject) -> bool:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    return bool(affinity.get("preferredDuringSchedulingIgnoredDuringExecution"))
