"""
Decisions of the DaemonSet controller: which nodes need pods, and how to update them. No I/O.

@see: kubernetes, C{pkg/controller/daemon/daemon_controller.go}, C{update.go}, C{util/daemonset_util.go}.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from attrs import define, field, frozen

from ...api.resource import JSONObject
from .history import REVISION_LABEL
from .nodeselection import NAME_FIELD, NO_EXECUTE, NO_SCHEDULE, node_is_selected, untolerated_taint
from .pods import available_in, from_template, is_ready, is_terminal
from .rollout import scaled_value

#: The label of pods with the generation of the template.
GENERATION_LABEL: Final = "pod-template-generation"
_GENERATION: Final = "deprecated.daemonset.template.generation"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_TAINTS: Final = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
_HOST_TAINTS: Final = (("node.kubernetes.io/network-unavailable", NO_SCHEDULE),)


@frozen
class Fit:
    """
    Whether pods of a DaemonSet belong on a node (Go: NodeShouldRunDaemonPod).

    @ivar should_run: Whether a pod should be created there.
    @ivar should_continue_running: Whether an existing pod may continue running there.
    """

    should_run: bool
    should_continue_running: bool


NO_FIT: Final = Fit(False, False)


def daemon_tolerations(spec: JSONObject) -> list[JSONObject]:
    """Return the tolerations in a pod's spec, with the tolerations of all daemon pods added."""
    tolerations = list(spec.get("tolerations") or ())
    for key, effect in _TAINTS + (_HOST_TAINTS if spec.get("hostNetwork") else ()):
        daemon_toleration = {"key": key, "operator": "Exists", "effect": effect}
        for index, one in enumerate(tolerations):
            if all(
                (one.get(name) or "") == daemon_toleration.get(name, "")
                for name in ("key", "operator", "effect", "value")
            ):
                # Without tolerationSeconds, so that the pod is never evicted.
                tolerations[index] = daemon_toleration
                break
        else:
            tolerations.append(daemon_toleration)
    return tolerations


def target_node(pod: JSONObject) -> str | None:
    """Return the node of a pod, or the node that it must be scheduled to."""
    name: str | None = pod["spec"].get("nodeName")
    if name:
        return name
    required = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for one in term.get("matchFields") or ():
            if one.get("key") == NAME_FIELD and one.get("operator") == "In":
                values: Sequence[str] = one.get("values") or ()
                return values[0] if len(values) == 1 else None
    return None


def group_by_node(pods: Sequence[JSONObject]) -> dict[str, list[JSONObject]]:
    """Return the pods by node, without deleted pods that have terminated."""
    by_node: dict[str, list[JSONObject]] = {}
    for pod in pods:
        if "deletionTimestamp" in pod["metadata"] and is_terminal(pod):
            continue
        name = pod["spec"].get("nodeName") or target_node(pod)
        if name is not None:
            by_node.setdefault(name, []).append(pod)
    return by_node


def pod_order(pod: JSONObject) -> tuple[bool, str, str]:
    """Return the sort key of the pods of a node. The first pod is the one that counts."""
    meta = pod["metadata"]
    return not pod["spec"].get("nodeName"), meta.get("creationTimestamp") or "", meta["name"]


def revision_hash(obj: JSONObject) -> str:
    """Return the revision hash of a pod or ControllerRevision."""
    return (obj["metadata"].get("labels") or {}).get(REVISION_LABEL) or ""


class DaemonPlan:
    """
    The parsed spec of a DaemonSet, for decisions about many nodes.

    @ivar surge: Whether a node may have two pods during an update.
    @ivar rolling: Whether the update strategy is RollingUpdate, not OnDelete.
    """

    def __init__(self, obj: JSONObject) -> None:
        self._template: JSONObject = obj["spec"]["template"]
        self._spec: JSONObject = self._template.get("spec") or {}
        self._tolerations = daemon_tolerations(self._spec)
        self._generation = (obj["metadata"].get("annotations") or {}).get(_GENERATION) or ""
        self._min_ready = obj["spec"].get("minReadySeconds") or 0
        strategy = obj["spec"].get("updateStrategy") or {}
        self.rolling = strategy.get("type", "RollingUpdate") == "RollingUpdate"
        self._bounds = (strategy.get("rollingUpdate") or {}) if self.rolling else {}
        self.surge = scaled_value(self._bounds.get("maxSurge"), 1, True) > 0

    def node_should_run(self, node: JSONObject) -> Fit:
        """Return whether pods belong on a node."""
        meta, name = node["metadata"], self._spec.get("nodeName")
        if name and name != meta["name"]:
            return NO_FIT
        if not node_is_selected(self._spec, meta["name"], meta.get("labels") or {}):
            return NO_FIT
        taints = (node.get("spec") or {}).get("taints") or ()
        if untolerated_taint(taints, self._tolerations, (NO_SCHEDULE, NO_EXECUTE)) is None:
            return Fit(True, True)
        return Fit(False, untolerated_taint(taints, self._tolerations, (NO_EXECUTE,)) is None)

    def max_surge_and_unavailable(self, desired: int) -> tuple[int, int]:
        """
        Return maxSurge and maxUnavailable as numbers of pods.

        @param desired: The number of nodes that should run a pod.
        """
        surge = scaled_value(self._bounds.get("maxSurge"), desired, True)
        unavailable = scaled_value(self._bounds.get("maxUnavailable"), desired, True)
        # With both 0 an update could not progress.
        return surge, unavailable if surge or unavailable else 1

    def pod(self, node: str, revision: str, owner: JSONObject, prefix: str, namespace: str) -> JSONObject:
        """
        Return a new pod, which the scheduler binds to a node. Parts are shared with the template.

        @param node: The name of the node.
        @param revision: The hash of the current template.
        @param owner: The controller reference to the DaemonSet.
        @param prefix: The prefix of the pod's name.
        @param namespace: The namespace of the pod.
        """
        new = from_template(self._template, owner, prefix, namespace)
        labels = {**(new["metadata"].get("labels") or {}), REVISION_LABEL: revision}
        if self._generation.isdecimal():
            labels[GENERATION_LABEL] = self._generation
        new["metadata"]["labels"] = labels
        term = {"matchFields": [{"key": NAME_FIELD, "operator": "In", "values": [node]}]}
        affinity = self._spec.get("affinity") or {}
        on_node = {**(affinity.get("nodeAffinity") or {}), _REQUIRED: {"nodeSelectorTerms": [term]}}
        new["spec"] = {
            **self._spec,
            "affinity": {**affinity, "nodeAffinity": on_node},
            "tolerations": self._tolerations,
        }
        return new

    def wait(self, pod: JSONObject, now: float) -> float | None:
        """See L{available_in}."""
        return available_in(pod, self._min_ready, now)

    def available(self, pod: JSONObject, now: float) -> bool:
        """Return whether a pod is available: it has been ready for C{minReadySeconds}."""
        return self.wait(pod, now) == 0


@define
class NodeStep:
    """
    The changes of the pods on a node.

    @ivar create: Whether to create a pod, if all terminated pods are deleted.
    @ivar delete: Pods to delete.
    @ivar terminated: Terminated pods to delete after their backoff.
    """

    create: bool = False
    delete: list[JSONObject] = field(factory=list)
    terminated: list[JSONObject] = field(factory=list)


def pods_should_be_on_node(
    plan: DaemonPlan, node_should_run: Fit, pods: Sequence[JSONObject], revision: str, now: float
) -> NodeStep:
    """
    Return the changes of the pods on a node, apart from updates (Go: podsShouldBeOnNode).

    @param plan: The DaemonSet.
    @param node_should_run: Whether pods belong on the node.
    @param pods: The pods on the node.
    @param revision: The hash of the current template.
    @param now: The current time, POSIX.
    """
    if not pods:
        return NodeStep(node_should_run.should_run)
    not_deleted = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    if not node_should_run.should_continue_running:
        return NodeStep(delete=not_deleted)
    terminated = [pod for pod in not_deleted if is_terminal(pod)]
    running = sorted((pod for pod in not_deleted if not is_terminal(pod)), key=pod_order)
    if not plan.surge:
        return NodeStep(delete=running[1:], terminated=terminated)
    if not running:
        return NodeStep(node_should_run.should_run, terminated=terminated)
    new = next((pod for pod in running if revision_hash(pod) == revision), None)
    old = next((pod for pod in running if revision_hash(pod) != revision), None)
    delete = [pod for pod in running if pod is not new and pod is not old]
    if new is not None and old is not None and (not is_ready(old) or plan.available(new, now)):
        delete.append(old)
    return NodeStep(delete=delete, terminated=terminated)


def find_updated_pods_on_node(
    pods: Sequence[JSONObject], revision: str
) -> tuple[JSONObject | None, JSONObject | None] | None:
    """Return the new and the old pod on a node; L{None} if there are several of either."""
    not_deleted = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    new = [pod for pod in not_deleted if revision_hash(pod) == revision]
    old = [pod for pod in not_deleted if revision_hash(pod) != revision]
    if len(new) > 1 or len(old) > 1:
        return None
    return new[0] if new else None, old[0] if old else None


def rolling_update(
    plan: DaemonPlan,
    fits: Mapping[str, Fit],
    pods: Mapping[str, Sequence[JSONObject]],
    revision: str,
    now: float,
) -> tuple[list[JSONObject], list[str]]:
    """
    Return the next step of an update (Go: rollingUpdate).

    @param plan: The DaemonSet.
    @param fits: All nodes, by name.
    @param pods: The pods by node.
    @param revision: The hash of the current template.
    @param now: The current time, POSIX.
    @return: Pods to delete, and nodes to create a pod on.
    """
    eligible = [name for name, node_should_run in fits.items() if node_should_run.should_run]
    surge, unavailable = plan.max_surge_and_unavailable(len(eligible))
    pods_by_node = {**dict.fromkeys(eligible, ()), **pods}
    if surge:
        return _surge(plan, fits, pods_by_node, revision, now, (surge, len(eligible)))
    return _replace(plan, pods_by_node, revision, now, unavailable), []


def _replace(
    plan: DaemonPlan, pods: Mapping[str, Sequence[JSONObject]], revision: str, now: float, max_unavailable: int
) -> list[JSONObject]:
    """Return the old pods to delete: all unavailable ones, and available ones up to maxUnavailable."""
    unavailable = 0
    unavailable_pods: list[JSONObject] = []
    candidates: list[JSONObject] = []
    for node_pods in pods.values():
        pair = find_updated_pods_on_node(node_pods, revision)
        if pair is None or (pair[0] is None) == (pair[1] is None):
            unavailable += 1
            continue
        new, old = pair
        if new is not None:
            unavailable += not plan.available(new, now)
        elif old is not None and plan.available(old, now):
            candidates.append(old)
        elif old is not None:
            unavailable += 1
            unavailable_pods.append(old)
    return unavailable_pods + candidates[: max(0, max_unavailable - unavailable)]


def _surge(
    plan: DaemonPlan,
    fits: Mapping[str, Fit],
    pods: Mapping[str, Sequence[JSONObject]],
    revision: str,
    now: float,
    limits: tuple[int, int],
) -> tuple[list[JSONObject], list[str]]:
    """
    Return the old pods to delete whose new pods are available, and the nodes to create new pods on.

    @param limits: maxSurge, and the number of nodes that should run a pod.
    """
    surge, desired = limits
    surging = available = 0
    delete: list[JSONObject] = []
    misplaced: list[JSONObject] = []
    unavailable_nodes: list[str] = []
    candidates: list[str] = []
    for name, node_pods in pods.items():
        pair = find_updated_pods_on_node(node_pods, revision)
        if pair is None:
            surging += 1
            continue
        new, old = pair
        counted_pod = old if old is not None else new
        is_available = counted_pod is not None and plan.available(counted_pod, now)
        available += is_available
        if old is None:
            continue
        if new is not None:
            if plan.available(new, now):
                delete.append(old)
            else:
                surging += 1
        elif not fits.get(name, NO_FIT).should_run:
            (misplaced if is_available else delete).append(old)
        else:
            (candidates if is_available else unavailable_nodes).append(name)
    # Misplaced pods are deleted only as pods on other nodes become available.
    delete += misplaced[: max(0, available - desired)]
    return delete, unavailable_nodes + candidates[: max(0, surge - surging)]


class FailureBackoff:
    """Exponential backoff before failed pods are replaced."""

    INITIAL_DELAY: Final = 1.0
    MAX_DELAY: Final = 900.0

    def __init__(self) -> None:
        #: Time and delay of the last failure by key, the least recent first.
        self._failures: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def remaining(self, key: Hashable, now: float) -> float:
        """Return the remaining seconds of the backoff."""
        at, delay = self._failures.get(key, (now, 0.0))
        return max(0.0, at + delay - now)

    def failed(self, key: Hashable, now: float) -> None:
        """Note a failure, which doubles the backoff."""
        while self._failures and next(iter(self._failures.values()))[0] + 2 * self.MAX_DELAY < now:
            self._failures.popitem(last=False)
        previous = self._failures.pop(key, None)
        self._failures[key] = now, min(previous[1] * 2, self.MAX_DELAY) if previous is not None else self.INITIAL_DELAY
