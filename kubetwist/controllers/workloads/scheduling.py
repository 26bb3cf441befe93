"""
On which of several nodes a pod is best, with the pods that are there already: the scheduler's decisions, no work.

What pods and nodes say about each other alone is in L{nodeselection}.

@see: kubernetes, C{pkg/scheduler/framework/plugins}.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import define, field, frozen

from ...api.resource import JSONObject
from ...api.selectors import (
    EVERYTHING,
    NOTHING,
    LabelSelector,
    label_selector_from_object,
)
from ...registry.core.pod.resources import amounts, pod_resources
from .nodeselection import (
    NO_EXECUTE,
    NO_SCHEDULE,
    node_is_selected,
    term_holds,
    tolerated,
    untolerated_taint,
)

_BILLION: Final = 10**9
#: What is assumed, when nodes are compared, of a pod that does not say what it needs.
_ASSUMED: Final = {"cpu": _BILLION // 10, "memory": 200 * 2**20 * _BILLION}
_UNSCHEDULABLE: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_EFFECTS: Final = (NO_SCHEDULE, NO_EXECUTE)
#: Protocol, address, number.
Port = tuple[str, str, int]
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


@frozen
class AffinityTerm:
    """
    Which pods another one wants to be near, or far from.

    @ivar topology: The label of nodes that says what near is.
    @ivar namespaces: Where those pods are; L{None} for everywhere.
    """

    selector: LabelSelector
    topology: str
    namespaces: frozenset[str] | None

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether a pod is one of those."""
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(labels)


@frozen
class PodInfo:
    """
    What matters of a pod to the scheduler.

    @ivar requests: By name, in billionths.
    @ivar ports: Of hosts.
    @ivar required_anti_affinity: Which pods it must not be near.
    """

    key: str
    namespace: str
    labels: Mapping[str, str]
    spec: JSONObject
    requests: Mapping[str, int]
    ports: frozenset[Port]
    wanted: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    terminating: bool = False


def needs_of(key: str, pod: JSONObject) -> PodInfo:
    """Read a pod."""
    spec, meta = pod["spec"], pod["metadata"]
    namespace = meta["namespace"]
    labels = meta.get("labels") or {}
    ports = set()
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                ports.add((port.get("protocol") or "TCP", port.get("hostIP") or "0.0.0.0", port["hostPort"]))
    affinity = spec.get("affinity") or {}
    return PodInfo(
        key,
        namespace,
        labels,
        spec,
        {name: amount.nanos for name, amount in pod_resources(spec, "requests").items()},
        frozenset(ports),
        tuple(_terms(affinity.get("podAffinity"), namespace, labels)),
        tuple(_terms(affinity.get("podAntiAffinity"), namespace, labels)),
        "deletionTimestamp" in meta,
    )


def _terms(affinity: JSONObject | None, namespace: str, labels: Mapping[str, str]) -> Iterable[AffinityTerm]:
    for term in (affinity or {}).get(_REQUIRED) or ():
        selector = dict(term.get("labelSelector") or {}) if term.get("labelSelector") is not None else None
        for name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            for label in term.get(name) or ():
                if selector is not None and label in labels:
                    expression = {"key": label, "operator": operator, "values": [labels[label]]}
                    selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), expression]
        matched = NOTHING if selector is None else label_selector_from_object(selector)
        spaces: frozenset[str] | None = frozenset(term.get("namespaces") or ())
        if term.get("namespaceSelector") is not None:
            # Only the empty one is common; those that select by labels are taken for all namespaces.
            spaces = None
        elif not spaces:
            spaces = frozenset((namespace,))
        yield AffinityTerm(matched, term["topologyKey"], spaces)


@define(eq=False)
class NodeInfo:
    """
    A node, and what runs there.

    @ivar pods: By key.
    @ivar pods_with_required_anti_affinity: Those of them that do not want others near.
    @ivar used: What they request together, in billionths.
    @ivar counted: The same, with something assumed for those that do not say.
    """

    name: str
    node: JSONObject = field(factory=dict)
    labels: Mapping[str, str] = field(factory=dict)
    allocatable: Mapping[str, int] = field(factory=dict)
    taints: Sequence[JSONObject] = ()
    pods: dict[str, PodInfo] = field(factory=dict)
    pods_with_required_anti_affinity: dict[str, PodInfo] = field(factory=dict)
    used: Counter[str] = field(factory=Counter)
    counted: Counter[str] = field(factory=Counter)
    known: bool = False

    def take(self, node: JSONObject) -> None:
        """The node is there, or has changed."""
        self.known = True
        self.node = node
        self.labels = node["metadata"].get("labels") or {}
        status = node.get("status") or {}
        said = amounts(status.get("allocatable") or status.get("capacity"))
        self.allocatable = {name: amount.nanos for name, amount in said.items()}
        spec = node.get("spec") or {}
        taints = list(spec.get("taints") or ())
        if spec.get("unschedulable") and not any(one["key"] == _UNSCHEDULABLE["key"] for one in taints):
            taints.append(_UNSCHEDULABLE)
        self.taints = taints

    def add(self, pod: PodInfo) -> None:
        """A pod runs here."""
        self.remove(pod.key)
        self.pods[pod.key] = pod
        if pod.required_anti_affinity:
            self.pods_with_required_anti_affinity[pod.key] = pod
        self.used.update(pod.requests)
        self.counted.update({name: pod.requests.get(name) or least for name, least in _ASSUMED.items()})

    def remove(self, key: str) -> None:
        """It does no more."""
        pod = self.pods.pop(key, None)
        if pod is not None:
            self.pods_with_required_anti_affinity.pop(key, None)
            self.used.subtract(pod.requests)
            self.counted.subtract({name: pod.requests.get(name) or least for name, least in _ASSUMED.items()})


@define(eq=False)
class ScheduleResult:
    """
    Where a pod goes.

    @ivar node: Its name; C{""} for nowhere.
    @ivar message: Why nowhere.
    """

    node: str = ""
    message: str = ""


def schedule_pod(pod: PodInfo, nodes: Sequence[NodeInfo]) -> ScheduleResult:
    """Choose a node for a pod."""
    if not nodes:
        return ScheduleResult(message="no nodes available to schedule pods")
    surroundings = InterPodState(pod, nodes)
    why: Counter[str] = Counter()
    unresolvable_count = 0
    fitting: list[NodeInfo] = []
    for node in nodes:
        reasons, unresolvable = filter_node(pod, node) or surroundings.filter_node(node)
        if reasons:
            why.update(reasons)
            unresolvable_count += unresolvable
        else:
            fitting.append(node)
    if fitting:
        best = min(fitting, key=lambda node: _score(pod, node))
        return ScheduleResult(best.name)
    total = len(nodes)
    reasons_text = ", ".join(sorted(f"{count} {reason}" for reason, count in why.items()))
    helpless = []
    if total > unresolvable_count:
        helpless.append(f"{total - unresolvable_count} No preemption victims found for incoming pod")
    if unresolvable_count:
        helpless.append(f"{unresolvable_count} Preemption is not helpful for scheduling")
    preemption = f"preemption: 0/{total} nodes are available: {', '.join(sorted(helpless))}."
    if pod.spec.get("preemptionPolicy") == "Never":
        preemption = "preemption: not eligible due to preemptionPolicy=Never."
    return ScheduleResult(message=f"0/{total} nodes are available: {reasons_text}. {preemption}")


#: Why a node will not do, and whether that is so even if all pods there went.
Refusal = tuple[Sequence[str], bool]
_NO_REFUSAL: Final[Refusal] = ((), False)


def filter_node(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    """Return what speaks against a node, seen by itself."""
    for taint in node.taints:
        if taint["effect"] != "PreferNoSchedule" and not tolerated(pod.spec.get("tolerations") or (), taint):
            if taint["key"] == _UNSCHEDULABLE["key"]:
                return ("node(s) were unschedulable",), True
            return ("node(s) had untolerated taint(s)",), True
    if not node_is_selected(pod.spec, node.name, node.labels):
        return ("node(s) didn't match Pod's node affinity/selector",), True
    if pod.ports and any(
        _conflict(mine, other) for one in node.pods.values() for mine in pod.ports for other in one.ports
    ):
        return ("node(s) didn't have free ports for the requested pod ports",), False
    return _insufficient_resources(pod, node)


def _insufficient_resources(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    reasons, unresolvable = [], False
    if len(node.pods) + 1 > node.allocatable.get("pods", 0) // _BILLION:
        reasons.append("Too many pods")
    for name, amount in pod.requests.items():
        there = node.allocatable.get(name, 0)
        if amount > 0 and amount > there - node.used[name]:
            reasons.append(f"Insufficient {name}")
            unresolvable = unresolvable or amount > there
    return (reasons, unresolvable) if reasons else None


def _conflict(mine: Port, other: Port) -> bool:
    protocol, address, number = mine
    other_protocol, other_address, other_number = other
    same = protocol == other_protocol and number == other_number
    return same and (address == other_address or "0.0.0.0" in (address, other_address))


class InterPodState:
    """What speaks for or against a node because of the pods on other nodes: affinity, and the spread over zones."""

    def __init__(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> None:
        self._pod = pod
        #: Per wanted term: values of its label where there are such pods.
        self._near: list[set[str]] = []
        self._far: list[set[str]] = []
        #: Labels of nodes, with values, where pods are that do not want this one near.
        self._hostile: set[tuple[str, str]] = set()
        self._first = False
        self._spread: list[tuple[JSONObject, LabelSelector, Counter[str]]] = []
        if pod.wanted:
            self._near = [self._places(term, nodes) for term in pod.wanted]
            # The first of a group that wants to be together may be anywhere.
            self._first = not any(self._near) and all(term.matches(pod.namespace, pod.labels) for term in pod.wanted)
        if pod.required_anti_affinity:
            self._far = [self._places(term, nodes) for term in pod.required_anti_affinity]
        for node in nodes:
            for other in node.pods_with_required_anti_affinity.values():
                for term in other.required_anti_affinity:
                    if term.topology in node.labels and term.matches(pod.namespace, pod.labels):
                        self._hostile.add((term.topology, node.labels[term.topology]))
        for constraint in pod.spec.get("topologySpreadConstraints") or ():
            if constraint.get("whenUnsatisfiable") == "DoNotSchedule":
                self._spread.append(self._counted(constraint, nodes))

    def _places(self, term: AffinityTerm, nodes: Sequence[NodeInfo]) -> set[str]:
        return {
            node.labels[term.topology]
            for node in nodes
            if term.topology in node.labels
            and any(term.matches(other.namespace, other.labels) for other in node.pods.values())
        }

    def _counted(
        self, constraint: JSONObject, nodes: Sequence[NodeInfo]
    ) -> tuple[JSONObject, LabelSelector, Counter[str]]:
        pod, key = self._pod, constraint["topologyKey"]
        described = dict(constraint.get("labelSelector") or {})
        for label in constraint.get("matchLabelKeys") or ():
            if label in pod.labels:
                expression = {"key": label, "operator": "In", "values": [pod.labels[label]]}
                described["matchExpressions"] = [*(described.get("matchExpressions") or ()), expression]
        selector = label_selector_from_object(described) if described else EVERYTHING
        counts: Counter[str] = Counter()
        for node in nodes:
            if key not in node.labels or not self._eligible(constraint, node):
                continue
            counts[node.labels[key]] += sum(
                other.namespace == pod.namespace and not other.terminating and selector.matches(other.labels)
                for other in node.pods.values()
            )
        return constraint, selector, counts

    def _eligible(self, constraint: JSONObject, node: NodeInfo) -> bool:
        """Return whether a node counts when pods are spread."""
        if (constraint.get("nodeAffinityPolicy") or "Honor") == "Honor" and not node_is_selected(
            self._pod.spec, node.name, node.labels
        ):
            return False
        if constraint.get("nodeTaintsPolicy") == "Honor":
            tolerations = self._pod.spec.get("tolerations") or ()
            return all(one["effect"] == "PreferNoSchedule" or tolerated(tolerations, one) for one in node.taints)
        return True

    def filter_node(self, node: NodeInfo) -> Refusal:
        """Return what speaks against a node."""
        pod = self._pod
        for constraint, selector, counts in self._spread:
            key = constraint["topologyKey"]
            text = "node(s) didn't match pod topology spread constraints"
            if key not in node.labels:
                return (f"{text} (missing required label)",), True
            least = min(counts.values(), default=0)
            domains = constraint.get("minDomains")
            if domains and len(counts) < domains:
                least = 0
            here = counts[node.labels[key]] + selector.matches(pod.labels)
            if here - least > constraint["maxSkew"]:
                return (text,), False
        for term, places in zip(pod.wanted, self._near, strict=True):
            there = node.labels.get(term.topology)
            if there is None or (there not in places and not self._first):
                return ("node(s) didn't match pod affinity rules",), True
        for term, places in zip(pod.required_anti_affinity, self._far, strict=True):
            if node.labels.get(term.topology) in places:
                return ("node(s) didn't match pod anti-affinity rules",), False
        if any(node.labels.get(key) == value for key, value in self._hostile):
            return ("node(s) didn't satisfy existing pods anti-affinity rules",), False
        return _NO_REFUSAL


def _score(pod: PodInfo, node: NodeInfo) -> tuple[bool, int, float, int, str]:
    """Return what to compare nodes by: the smallest is best."""
    unwelcome = untolerated_taint(node.taints, pod.spec.get("tolerations") or (), ("PreferNoSchedule",)) is not None
    affinity = (pod.spec.get("affinity") or {}).get("nodeAffinity") or {}
    preferred = sum(
        one["weight"]
        for one in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        if term_holds(one["preference"], node.name, node.labels)
    )
    shares = []
    for name, least in _ASSUMED.items():
        there = node.allocatable.get(name, 0)
        wanted = pod.requests.get(name) or least
        shares.append((node.counted[name] + wanted) / there if there else 1.0)
    return unwelcome, -preferred, sum(shares), len(node.pods), node.name
