"""
The DaemonSet controller: runs a pod on every eligible node.

Decisions without I/O are in L{daemonpods}.

@see: kubernetes, C{pkg/controller/daemon/daemon_controller.go}, C{update.go}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from attrs import define

from ...api.errors import APIStatusError
from ...api.record import Record
from ...api.resource import (
    GroupVersionKind,
    JSONObject,
)
from ...api.selectors import label_selector_from_object
from ...registry.stores import decoded_object
from ..machinery.client import is_namespace_terminating_error
from ..machinery.controller import Controller
from ..machinery.events import (
    NORMAL,
    WARNING,
)
from ..machinery.metadata import controller_of
from .daemonpods import (
    NO_FIT,
    DaemonPlan,
    FailureBackoff,
    Fit,
    group_by_node,
    pod_order,
    pods_should_be_on_node,
    revision_hash,
    rolling_update,
)
from .history import (
    REVISION_LABEL,
    ControllerHistory,
)
from .pods import (
    ControllerRefManager,
    Owner,
    PodControl,
    is_ready,
    phase_of,
)

if TYPE_CHECKING:
    from ..machinery.informer import Informer

_KIND: Final = GroupVersionKind("apps", "v1", "DaemonSet")
#: Maximum number of pods that one sync creates, and that it deletes.
_BURST: Final = 250
#: Number of nodes that are processed between two yields to the reactor.
_YIELD_EVERY: Final = 50
#: With more nodes than this, syncs after pod events are delayed: seconds per node.
_COALESCE_ABOVE: Final = 100
_DELAY_PER_NODE: Final = 0.0004
#: Optional counters in the status, which are omitted if they are zero.
_OPTIONAL: Final = ("updatedNumberScheduled", "numberAvailable", "numberUnavailable")


@define
class _SyncContext:
    """
    State of one sync of a DaemonSet.

    @ivar revision: The hash of the current template.
    @ivar fits: All nodes, by name.
    @ivar pods: The pods of the DaemonSet, by node name.
    """

    owner: Owner
    plan: DaemonPlan
    revision: str
    fits: Mapping[str, Fit]
    pods: Mapping[str, Sequence[JSONObject]]


class DaemonSetController(Controller[str]):
    """Runs a pod on every eligible node. The queue contains keys of DaemonSets."""

    name: ClassVar[str] = "daemonset-controller"
    service_account: ClassVar[str] = "daemon-set-controller"
    workers: ClassVar[int] = 2

    def register_handlers(self) -> None:
        """Register handlers for DaemonSets, ControllerRevisions, pods and nodes."""
        #: The last written status counters, by uid.
        self._written_status: dict[str, Mapping[str, int]] = {}
        self._sets: Informer = self.watch("apps", "daemonsets", self._set_changed)
        self._nodes: Informer = self.watch("", "nodes", self._node_changed)
        revisions = self.watch("apps", "controllerrevisions", self._revision_changed)
        self._history = ControllerHistory(revisions, self.client, REVISION_LABEL)
        pods = self.watch("", "pods", self._dependent_changed)
        self._pods = ControllerRefManager(pods, self.client, "", "pods")
        self._control = PodControl(self.context, self.client, self.name)
        self._backoff = FailureBackoff()

    # --- events

    def _set_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        new = decoded_object(record)
        meta, status = new["metadata"], new.get("status") or {}
        if event_type == "DELETED":
            self._written_status.pop(meta["uid"], None)
        written = self._written_status.get(meta["uid"])
        if written is not None and old is not None and event_type == "MODIFIED":
            same_generation = meta.get("generation") == decoded_object(old)["metadata"].get("generation")
            if same_generation and all((status.get(name) or 0) == value for name, value in written.items()):
                # The event is from this controller's status update.
                return
        self.queue.add(record.key)

    def _dependent_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        owners = [one for one in (controller_of(record), controller_of(old) if old is not None else None) if one]
        for owner in owners:
            if owner["kind"] == _KIND.kind:
                nodes = len(self._nodes)
                self.queue.add_after(
                    f"{record.namespace}/{owner['name']}", nodes * _DELAY_PER_NODE if nodes > _COALESCE_ABOVE else 0
                )
        if not owners:
            # Any controller whose selector matches may adopt it.
            for candidate in self._sets.list(record.namespace):
                selector = label_selector_from_object(decoded_object(candidate)["spec"].get("selector") or {})
                if selector.matches(record.labels):
                    self.queue.add(candidate.key)

    def _revision_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        # This controller created the added ones.
        if event_type != "ADDED" or controller_of(record) is None:
            self._dependent_changed(event_type, record, old)

    def _node_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        node = decoded_object(record)
        old_node = decoded_object(old) if old is not None and event_type == "MODIFIED" else None
        if old_node is not None and _scheduling_fields(old_node) == _scheduling_fields(node):
            return
        for candidate in self._sets.list():
            plan = DaemonPlan(decoded_object(candidate))
            if plan.node_should_run(node) != (NO_FIT if old_node is None else plan.node_should_run(old_node)):
                self.queue.add(candidate.key)

    # --- sync

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record = self._sets.by_key(key)
        if record is None:
            return
        obj = decoded_object(record)
        spec = obj["spec"].get("selector") or {}
        owner = Owner(_KIND, obj, label_selector_from_object(spec))
        if not spec.get("matchLabels") and not spec.get("matchExpressions"):
            message = "This daemon set is selecting all pods. A non-empty selector is required."
            self._control.event(owner, WARNING, "SelectingAll", message)
            return
        if owner.deleted:
            # Its revisions may be deleted already, so its status cannot be computed.
            return
        try:
            revision, old = await self._revisions(owner)
        except APIStatusError as error:
            if is_namespace_terminating_error(error):
                return
            raise
        fits: dict[str, Fit] = {}
        plan = DaemonPlan(obj)
        for number, node in enumerate(self._nodes.list()):
            if not number % _YIELD_EVERY:
                await self.yield_to_reactor()
            fits[node.name] = plan.node_should_run(decoded_object(node))
        context = _SyncContext(owner, plan, revision, fits, group_by_node(self._pods.list_owned(owner)))
        failure = await self._sync_pods(context, old)
        await self._update_status(context)
        if failure is not None:
            raise failure

    def _can_adopt(self, owner: Owner) -> bool:
        record = self._sets.get(owner.namespace, owner.name)
        return record is not None and decoded_object(record)["metadata"]["uid"] == owner.uid

    async def _sync_pods(self, context: _SyncContext, old: Sequence[JSONObject]) -> APIStatusError | None:
        """Create and delete pods on all nodes, and return the error if that failed."""
        owner = context.owner
        try:
            context.pods = group_by_node(await self._pods.claim(owner, lambda: self._can_adopt(owner)))
            await self._manage(context)
            if context.plan.rolling:
                delete, nodes = rolling_update(
                    context.plan, context.fits, context.pods, context.revision, self.clock.seconds()
                )
                await self._apply(context, delete, nodes)
            if old:
                live_hashes = {revision_hash(pod) for pod in self._pods.list_owned(owner)}
                live = [one["metadata"]["name"] for one in old if revision_hash(one) in live_hashes]
                await self._history.truncate(owner, old, live, counted=True)
        except APIStatusError as error:
            return None if is_namespace_terminating_error(error) else error
        return None

    async def _revisions(self, owner: Owner) -> tuple[str, list[JSONObject]]:
        """Return the hash of the current template, and the revisions of other templates, the oldest first."""
        revisions = await self._history.claim(owner, lambda: self._can_adopt(owner))
        for index, one in enumerate(revisions):
            if not revision_hash(one):
                revisions[index] = await self._history.label(one, one["metadata"]["name"])
        old_collisions = (owner.obj.get("status") or {}).get("collisionCount") or 0
        newest, revisions, collisions = await self._history.get_or_create_current(owner, revisions, old_collisions)
        if collisions != old_collisions:
            await self._set_status(owner, {"collisionCount": collisions})
        other_revisions = [one for one in revisions if one["metadata"]["uid"] != newest["metadata"]["uid"]]
        same = [one for one in other_revisions if one.get("data") == newest.get("data")]
        if same:
            await self._dedup_history(owner, newest, same)
        return revision_hash(newest), [one for one in other_revisions if one.get("data") != newest.get("data")]

    async def _dedup_history(self, owner: Owner, newest: JSONObject, same: Sequence[JSONObject]) -> None:
        """Delete further revisions with the data of the newest one, and relabel their pods (Go: dedupCurHistories)."""
        names = {revision_hash(one) for one in same}
        for pod in self._pods.list_owned(owner):
            meta = pod["metadata"]
            if revision_hash(pod) in names:
                patch = {"metadata": {"labels": {REVISION_LABEL: revision_hash(newest)}}}
                await self.client.patch("", "pods", meta["namespace"], meta["name"], patch, uid=meta["uid"])
        await self._history.delete(same)

    async def _manage(self, context: _SyncContext) -> None:
        """Create missing pods, and delete surplus, misplaced and terminated ones."""
        now, pods = self.clock.seconds(), context.pods
        create: list[str] = []
        delete: list[JSONObject] = []
        for number, (name, fit) in enumerate(context.fits.items()):
            if not number % _YIELD_EVERY:
                await self.yield_to_reactor()
            step = pods_should_be_on_node(context.plan, fit, pods.get(name, ()), context.revision, now)
            delete += step.delete
            deletable = [pod for pod in step.terminated if self._should_delete_terminal(context.owner, name, pod, now)]
            delete += deletable
            if step.create and len(deletable) == len(step.terminated):
                create.append(name)
        for name, node_pods in pods.items():
            if name not in context.fits:
                # No scheduler and no kubelet will delete these pods.
                delete += [
                    pod
                    for pod in node_pods
                    if not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
                ]
        await self._apply(context, delete, create)

    def _should_delete_terminal(self, owner: Owner, node: str, pod: JSONObject, now: float) -> bool:
        """Return whether a terminated pod must be deleted now, and record an event."""
        meta, failed = pod["metadata"], phase_of(pod) == "Failed"
        if failed:
            observed_generation = (owner.obj.get("status") or {}).get("observedGeneration") or 0
            key = (owner.uid, observed_generation, node)
            remaining = self._backoff.remaining(key, now)
            if remaining:
                self.queue.add_after(f"{owner.namespace}/{owner.name}", remaining)
                return False
            self._backoff.failed(key, now)
        state, verb = ("failed", "kill") if failed else ("succeeded", "delete")
        message = f"Found {state} daemon pod {meta['namespace']}/{meta['name']} on node {node}, will try to {verb} it"
        event_type, reason = (WARNING, "FailedDaemonPod") if failed else (NORMAL, "SucceededDaemonPod")
        self._control.event(owner, event_type, reason, message)
        return True

    async def _apply(self, context: _SyncContext, delete: Sequence[JSONObject], nodes: Sequence[str]) -> None:
        """
        Delete pods, and create pods on nodes.

        @raise APIStatusError: A pod could not be created or deleted. A failed creation is not tried on further nodes.
        """
        if not delete and not nodes:
            return
        try:
            await self._write(context, delete, nodes)
        finally:
            context.pods = group_by_node(self._pods.list_owned(context.owner))
        if len(nodes) > _BURST or len(delete) > _BURST:
            self.queue.add(f"{context.owner.namespace}/{context.owner.name}")

    async def _write(self, context: _SyncContext, delete: Sequence[JSONObject], nodes: Sequence[str]) -> None:
        owner = context.owner
        failure: APIStatusError | None = None
        for name in nodes[:_BURST]:
            pod = context.plan.pod(name, context.revision, owner.reference(), f"{owner.name}-", owner.namespace)
            failure = await self._control.create(owner, pod)
            if failure is not None:
                break
            await self.yield_to_reactor()
        for pod in delete[:_BURST]:
            await self._control.delete(owner, pod)
            await self.yield_to_reactor()
        if failure is not None:
            raise failure

    # --- status

    async def _update_status(self, context: _SyncContext) -> None:
        """Update the status of a DaemonSet."""
        owner, plan, now = context.owner, context.plan, self.clock.seconds()
        counts = dict.fromkeys(
            (
                "desiredNumberScheduled",
                "currentNumberScheduled",
                "numberMisscheduled",
                "numberReady",
                "updatedNumberScheduled",
                "numberAvailable",
            ),
            0,
        )
        delays: list[float] = []
        for number, (name, fit) in enumerate(context.fits.items()):
            if not number % _YIELD_EVERY:
                await self.yield_to_reactor()
            node_pods = context.pods.get(name)
            counts["desiredNumberScheduled"] += fit.should_run
            if not node_pods:
                continue
            if not fit.should_run:
                counts["numberMisscheduled"] += 1
                continue
            first = min(node_pods, key=pod_order)
            counts["currentNumberScheduled"] += 1
            counts["numberReady"] += is_ready(first)
            counts["numberAvailable"] += plan.available(first, now)
            counts["updatedNumberScheduled"] += revision_hash(first) == context.revision
            delays += [wait for pod in node_pods if (wait := plan.wait(pod, now))]
        counts["numberUnavailable"] = counts["desiredNumberScheduled"] - counts["numberAvailable"]
        counts["observedGeneration"] = owner.obj["metadata"].get("generation") or 0
        await self._set_status(owner, counts)
        if delays:
            self.queue.add_after(f"{owner.namespace}/{owner.name}", min(delays))

    async def _set_status(self, owner: Owner, values: Mapping[str, int]) -> None:
        self._written_status[owner.uid] = values

        def change(live: JSONObject) -> None:
            status = live.setdefault("status", {})
            for name, value in values.items():
                if value or name not in _OPTIONAL:
                    status[name] = value
                else:
                    status.pop(name, None)

        await self.client.update_status("apps", "daemonsets", owner.namespace, owner.name, change, uid=owner.uid)


def _scheduling_fields(node: JSONObject) -> tuple[object, object]:
    """Return the fields of a node, besides its name, that scheduling of daemon pods depends on."""
    return node["metadata"].get("labels") or {}, (node.get("spec") or {}).get("taints") or []
