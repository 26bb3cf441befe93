"""
Scheduling decisions: chooses a node for a pod, considering the existing pods. No I/O.

Rules about a pod and a node alone are in L{nodeselection}.

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
    term_matches,
    tolerated,
    untolerated_taint,
)

_BILLION: Final = 10**9
#: Default requests of pods without requests, for scoring (Go: DefaultMilliCPURequest, DefaultMemoryRequest).
DEFAULT_REQUESTS: Final = {"cpu": _BILLION // 10, "memory": 200 * 2**20 * _BILLION}
_UNSCHEDULABLE: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_EFFECTS: Final = (NO_SCHEDULE, NO_EXECUTE)
#: Protocol, address and number of a host port.
Port = tuple[str, str, int]
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


@frozen
class AffinityTerm:
    """
    A term of pod affinity or anti-affinity.

    @ivar topology: The topology key: a label of nodes.
    @ivar namespaces: The namespaces of the pods; L{None} for all.
    """

    selector: LabelSelector
    topology: str
    namespaces: frozenset[str] | None

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether a pod matches the term."""
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(labels)


@frozen
class PodInfo:
    """
    The parts of a pod that matter for scheduling (scheduler framework: PodInfo).

    @ivar requests: Requested resources by name, in billionths.
    @ivar ports: Host ports.
    @ivar required_anti_affinity: Terms of required anti-affinity.
    """

    key: str
    namespace: str
    labels: Mapping[str, str]
    spec: JSONObject
    requests: Mapping[str, int]
    ports: frozenset[Port]
    required_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    terminating: bool = False


def new_pod_info(key: str, pod: JSONObject) -> PodInfo:
    """Parse a pod."""
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
        pod_selector = NOTHING if selector is None else label_selector_from_object(selector)
        namespaces: frozenset[str] | None = frozenset(term.get("namespaces") or ())
        if term.get("namespaceSelector") is not None:
            # Only the empty namespace selector is supported. A selector with labels matches all namespaces.
            namespaces = None
        elif not namespaces:
            namespaces = frozenset((namespace,))
        yield AffinityTerm(pod_selector, term["topologyKey"], namespaces)


@define(eq=False)
class NodeInfo:
    """
    A node and its pods (scheduler framework: NodeInfo).

    @ivar pods: Pods by key.
    @ivar pods_with_required_anti_affinity: The pods with required anti-affinity.
    @ivar requested: Sum of the requests of the pods, in billionths.
    @ivar non_zero_requested: The same with defaults for pods without requests.
    """

    name: str
    node: JSONObject = field(factory=dict)
    labels: Mapping[str, str] = field(factory=dict)
    allocatable: Mapping[str, int] = field(factory=dict)
    taints: Sequence[JSONObject] = ()
    pods: dict[str, PodInfo] = field(factory=dict)
    pods_with_required_anti_affinity: dict[str, PodInfo] = field(factory=dict)
    requested: Counter[str] = field(factory=Counter)
    non_zero_requested: Counter[str] = field(factory=Counter)
    exists: bool = False

    def set_node(self, node: JSONObject) -> None:
        """Set the node object after it was added or updated."""
        self.exists = True
        self.node = node
        self.labels = node["metadata"].get("labels") or {}
        status = node.get("status") or {}
        resources = amounts(status.get("allocatable") or status.get("capacity"))
        self.allocatable = {name: amount.nanos for name, amount in resources.items()}
        spec = node.get("spec") or {}
        taints = list(spec.get("taints") or ())
        if spec.get("unschedulable") and not any(one["key"] == _UNSCHEDULABLE["key"] for one in taints):
            taints.append(_UNSCHEDULABLE)
        self.taints = taints

    def add(self, pod: PodInfo) -> None:
        """Add a pod to the node."""
        self.remove(pod.key)
        self.pods[pod.key] = pod
        if pod.required_anti_affinity:
            self.pods_with_required_anti_affinity[pod.key] = pod
        self.requested.update(pod.requests)
        self.non_zero_requested.update(
            {name: pod.requests.get(name) or default for name, default in DEFAULT_REQUESTS.items()}
        )

    def remove(self, key: str) -> None:
        """Remove a pod from the node."""
        pod = self.pods.pop(key, None)
        if pod is not None:
            self.pods_with_required_anti_affinity.pop(key, None)
            self.requested.subtract(pod.requests)
            self.non_zero_requested.subtract(
                {name: pod.requests.get(name) or default for name, default in DEFAULT_REQUESTS.items()}
            )


@define(eq=False)
class ScheduleResult:
    """
    The result of scheduling a pod.

    @ivar node: The name of the node; C{""} if none fits.
    @ivar message: The reason if no node fits.
    """

    node: str = ""
    message: str = ""


def schedule_pod(pod: PodInfo, nodes: Sequence[NodeInfo]) -> ScheduleResult:
    """
    Choose a node for a pod.

    @param pod: The pod.
    @param nodes: All nodes.
    """
    if not nodes:
        return ScheduleResult(message="no nodes available to schedule pods")
    state = InterPodState(pod, nodes)
    reason_counts: Counter[str] = Counter()
    unresolvable_count = 0
    fitting: list[NodeInfo] = []
    for node in nodes:
        reasons, unresolvable = filter_node(pod, node) or state.filter_node(node)
        if reasons:
            reason_counts.update(reasons)
            unresolvable_count += unresolvable
        else:
            fitting.append(node)
    if fitting:
        best = min(fitting, key=lambda node: node_score(pod, node))
        return ScheduleResult(best.name)
    total = len(nodes)
    reasons_text = ", ".join(sorted(f"{count} {reason}" for reason, count in reason_counts.items()))
    preemption_reasons = []
    if total > unresolvable_count:
        preemption_reasons.append(f"{total - unresolvable_count} No preemption victims found for incoming pod")
    if unresolvable_count:
        preemption_reasons.append(f"{unresolvable_count} Preemption is not helpful for scheduling")
    preemption = f"preemption: 0/{total} nodes are available: {', '.join(sorted(preemption_reasons))}."
    if pod.spec.get("preemptionPolicy") == "Never":
        preemption = "preemption: not eligible due to preemptionPolicy=Never."
    return ScheduleResult(message=f"0/{total} nodes are available: {reasons_text}. {preemption}")


#: The reason why a node does not fit, and whether preemption of its pods cannot help.
Refusal = tuple[Sequence[str], bool]
_NO_REFUSAL: Final[Refusal] = ((), False)


def filter_node(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    """Return the reason why a node does not fit, regardless of other nodes; L{None} if it fits."""
    for taint in node.taints:
        if taint["effect"] != "PreferNoSchedule" and not tolerated(pod.spec.get("tolerations") or (), taint):
            if taint["key"] == _UNSCHEDULABLE["key"]:
                return ("node(s) were unschedulable",), True
            return ("node(s) had untolerated taint(s)",), True
    if not node_is_selected(pod.spec, node.name, node.labels):
        return ("node(s) didn't match Pod's node affinity/selector",), True
    if pod.ports and any(
        _conflict(port, other_port) for one in node.pods.values() for port in pod.ports for other_port in one.ports
    ):
        return ("node(s) didn't have free ports for the requested pod ports",), False
    return _insufficient_resources(pod, node)


def _insufficient_resources(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    reasons, unresolvable = [], False
    if len(node.pods) + 1 > node.allocatable.get("pods", 0) // _BILLION:
        reasons.append("Too many pods")
    for name, amount in pod.requests.items():
        allocatable = node.allocatable.get(name, 0)
        if amount > 0 and amount > allocatable - node.requested[name]:
            reasons.append(f"Insufficient {name}")
            unresolvable = unresolvable or amount > allocatable
    return (reasons, unresolvable) if reasons else None


def _conflict(port: Port, other: Port) -> bool:
    protocol, address, number = port
    other_protocol, other_address, other_number = other
    same = protocol == other_protocol and number == other_number
    return same and (address == other_address or "0.0.0.0" in (address, other_address))


class InterPodState:
    """State of inter-pod affinity and topology spread over all nodes (scheduler framework: CycleState)."""

    def __init__(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> None:
        self._pod = pod
        #: For each affinity term, the values of the topology label of nodes with matching pods.
        self._affinity_topologies: list[set[str]] = []
        self._anti_affinity_topologies: list[set[str]] = []
        #: Labels and values of topologies with pods whose anti-affinity excludes this pod.
        self._excluded_topologies: set[tuple[str, str]] = set()
        self._is_first_of_group = False
        self._spread: list[tuple[JSONObject, LabelSelector, Counter[str]]] = []
        if pod.required_affinity:
            self._affinity_topologies = [self._matching_topologies(term, nodes) for term in pod.required_affinity]
            # The first pod of a group with affinity to itself may run on any node.
            self._is_first_of_group = not any(self._affinity_topologies) and all(
                term.matches(pod.namespace, pod.labels) for term in pod.required_affinity
            )
        if pod.required_anti_affinity:
            self._anti_affinity_topologies = [
                self._matching_topologies(term, nodes) for term in pod.required_anti_affinity
            ]
        for node in nodes:
            for other in node.pods_with_required_anti_affinity.values():
                for term in other.required_anti_affinity:
                    if term.topology in node.labels and term.matches(pod.namespace, pod.labels):
                        self._excluded_topologies.add((term.topology, node.labels[term.topology]))
        for constraint in pod.spec.get("topologySpreadConstraints") or ():
            if constraint.get("whenUnsatisfiable") == "DoNotSchedule":
                self._spread.append(self._spread_counts(constraint, nodes))

    def _matching_topologies(self, term: AffinityTerm, nodes: Sequence[NodeInfo]) -> set[str]:
        return {
            node.labels[term.topology]
            for node in nodes
            if term.topology in node.labels
            and any(term.matches(other.namespace, other.labels) for other in node.pods.values())
        }

    def _spread_counts(
        self, constraint: JSONObject, nodes: Sequence[NodeInfo]
    ) -> tuple[JSONObject, LabelSelector, Counter[str]]:
        pod, key = self._pod, constraint["topologyKey"]
        selector_fields = dict(constraint.get("labelSelector") or {})
        for label in constraint.get("matchLabelKeys") or ():
            if label in pod.labels:
                expression = {"key": label, "operator": "In", "values": [pod.labels[label]]}
                selector_fields["matchExpressions"] = [*(selector_fields.get("matchExpressions") or ()), expression]
        selector = label_selector_from_object(selector_fields) if selector_fields else EVERYTHING
        counts: Counter[str] = Counter()
        for node in nodes:
            if key not in node.labels or not self._is_eligible(constraint, node):
                continue
            counts[node.labels[key]] += sum(
                other.namespace == pod.namespace and not other.terminating and selector.matches(other.labels)
                for other in node.pods.values()
            )
        return constraint, selector, counts

    def _is_eligible(self, constraint: JSONObject, node: NodeInfo) -> bool:
        """Return whether a node counts for a topology spread constraint."""
        if (constraint.get("nodeAffinityPolicy") or "Honor") == "Honor" and not node_is_selected(
            self._pod.spec, node.name, node.labels
        ):
            return False
        if constraint.get("nodeTaintsPolicy") == "Honor":
            tolerations = self._pod.spec.get("tolerations") or ()
            return all(one["effect"] == "PreferNoSchedule" or tolerated(tolerations, one) for one in node.taints)
        return True

    def filter_node(self, node: NodeInfo) -> Refusal:
        """Return the reasons why a node does not fit."""
        pod = self._pod
        for constraint, selector, counts in self._spread:
            key = constraint["topologyKey"]
            message = "node(s) didn't match pod topology spread constraints"
            if key not in node.labels:
                return (f"{message} (missing required label)",), True
            min_count = min(counts.values(), default=0)
            domains = constraint.get("minDomains")
            if domains and len(counts) < domains:
                min_count = 0
            count = counts[node.labels[key]] + selector.matches(pod.labels)
            if count - min_count > constraint["maxSkew"]:
                return (message,), False
        for term, topologies in zip(pod.required_affinity, self._affinity_topologies, strict=True):
            topology = node.labels.get(term.topology)
            if topology is None or (topology not in topologies and not self._is_first_of_group):
                return ("node(s) didn't match pod affinity rules",), True
        for term, topologies in zip(pod.required_anti_affinity, self._anti_affinity_topologies, strict=True):
            if node.labels.get(term.topology) in topologies:
                return ("node(s) didn't match pod anti-affinity rules",), False
        if any(node.labels.get(key) == value for key, value in self._excluded_topologies):
            return ("node(s) didn't satisfy existing pods anti-affinity rules",), False
        return _NO_REFUSAL


def node_score(pod: PodInfo, node: NodeInfo) -> tuple[bool, int, float, int, str]:
    """Return the sort key of a node. The smallest is the best."""
    has_untolerated_taint = (
        untolerated_taint(node.taints, pod.spec.get("tolerations") or (), ("PreferNoSchedule",)) is not None
    )
    affinity = (pod.spec.get("affinity") or {}).get("nodeAffinity") or {}
    preferred = sum(
        one["weight"]
        for one in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        if term_matches(one["preference"], node.name, node.labels)
    )
    shares = []
    for name, default in DEFAULT_REQUESTS.items():
        allocatable = node.allocatable.get(name, 0)
        requested = pod.requests.get(name) or default
        shares.append((node.non_zero_requested[name] + requested) / allocatable if allocatable else 1.0)
    return has_untolerated_taint, -preferred, sum(shares), len(node.pods), node.name
