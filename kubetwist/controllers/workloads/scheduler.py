"""
A scheduler for tests and small clusters: binds each pod to the fitting node with the most free resources.

It does not preempt pods, and ignores volumes and devices.

@see: kubernetes, C{pkg/scheduler}.
"""

from __future__ import annotations

from typing import ClassVar, Final

from twisted.internet.interfaces import IDelayedCall

from ...api.errors import APIStatusError
from ...api.options import CreateOptions
from ...api.record import Record
from ...api.requestscope import RequestScope
from ...api.resource import GroupVersionKind, JSONObject
from ...api.times import format_time
from ...registry.core.pod.binding import PodBinding
from ...registry.stores import decoded_object
from ...storage.cache.window import DELETED
from ..machinery.context import ControllerContext
from ..machinery.controller import Controller
from ..machinery.events import (
    NORMAL,
    WARNING,
)
from .noderanking import NodeRanking
from .pods import ENDED, condition_of
from .scheduling import (
    NodeInfo,
    new_pod_info,
)

_POD: Final = GroupVersionKind("", "v1", "Pod")
SCHEDULER: Final = "default-scheduler"
#: Seconds between two attempts to schedule unschedulable pods.
_RETRY_INTERVAL: Final = 1.0


class Scheduler(Controller[str]):
    """Binds pods to nodes. The queue contains keys of pods."""

    name: ClassVar[str] = "kube-scheduler"
    service_account: ClassVar[str] = "system:kube-scheduler"
    field_manager: ClassVar[str] = "kube-scheduler"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._node_infos: dict[str, NodeInfo] = {}
        self._ranking = NodeRanking()
        #: The node of each pod, by pod key.
        self._pod_nodes: dict[str, str] = {}
        #: Keys of pods that changed since the last binding.
        self._dirty: dict[str, Record | None] = {}
        #: Unschedulable pods, by key, and the reason.
        self._unschedulable: dict[str, str] = {}
        self._retry: IDelayedCall | None = None
        self._retried = 0.0
        self._recorder = context.recorder(SCHEDULER)

    def register_handlers(self) -> None:
        """Register handlers for nodes and pods."""
        self._nodes = self.watch("", "nodes", self._node_changed)
        self._pods = self.watch("", "pods", self._pod_changed)
        self._binding = PodBinding(self.context.stores.get("", "pods"))

    async def stop(self) -> None:
        """See L{Controller.stop}."""
        if self._retry is not None and self._retry.active():
            self._retry.cancel()
        await super().stop()

    # --- events

    def _node_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        node_info = self._node_infos.setdefault(record.name, NodeInfo(record.name))
        if event_type == DELETED:
            node_info.exists = False
            self._ranking.update(node_info)
            if not node_info.pods:
                del self._node_infos[record.name]
            return
        node_info.set_node(decoded_object(record))
        self._ranking.update(node_info)
        self._schedule_retry()

    def _pod_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        key = record.key
        fields = record.fields
        if event_type == DELETED or fields.get("status.phase") in ENDED:
            self._unschedulable.pop(key, None)
            if key in self._pod_nodes or key in self._dirty:
                self._dirty[key] = None
                self._schedule_retry()
        elif fields.get("spec.nodeName"):
            self._dirty[key] = record
            self._unschedulable.pop(key, None)
            if old is None or not old.fields.get("spec.nodeName"):
                # Other pods may have affinity to it.
                self._schedule_retry()
        elif fields.get("spec.schedulerName") == SCHEDULER:
            self.queue.add(key)

    def _schedule_retry(self) -> None:
        """Schedule a retry of the unschedulable pods."""
        if self._unschedulable and (self._retry is None or not self._retry.active()) and not self.stopped:
            wait = max(0.0, self._retried + _RETRY_INTERVAL - self.clock.seconds())
            self._retry = self.clock.callLater(wait, self._retry_all)

    def _retry_all(self) -> None:
        self._retry = None
        self._retried = self.clock.seconds()
        for key in self._unschedulable:
            self.queue.add(key)

    def _apply_pod_changes(self) -> None:
        """Apply the pending pod changes to the nodes."""
        dirty, self._dirty = self._dirty, {}
        for key, record in dirty.items():
            old_node = self._pod_nodes.pop(key, None)
            if old_node is not None:
                node_info = self._node_infos[old_node]
                node_info.remove(key)
                self._ranking.update(node_info)
                if not node_info.exists and not node_info.pods:
                    del self._node_infos[old_node]
            if record is not None:
                pod = decoded_object(record)
                node = self._pod_nodes[key] = pod["spec"]["nodeName"]
                node_info = self._node_infos.setdefault(node, NodeInfo(node))
                node_info.add(new_pod_info(key, pod))
                self._ranking.update(node_info)

    # --- work

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record = self._pods.by_key(key)
        if record is None:
            return
        pod = decoded_object(record)
        spec = pod["spec"]
        if spec.get("nodeName") or "deletionTimestamp" in pod["metadata"] or spec.get("schedulingGates"):
            self._unschedulable.pop(key, None)
            return
        self._apply_pod_changes()
        result = self._ranking.schedule(new_pod_info(key, pod))
        if result.node:
            await self._bind(key, pod, result.node)
        else:
            known_message = self._unschedulable.get(key)
            self._unschedulable[key] = result.message
            if known_message != result.message:
                await self._set_unschedulable(key, pod, result.message)
        await self.yield_to_reactor()

    async def _bind(self, key: str, pod: JSONObject, node: str) -> None:
        meta = pod["metadata"]
        binding = {
            "metadata": {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]},
            "target": {"kind": "Node", "name": node},
        }
        scope = RequestScope(meta["namespace"], self.client.user, user_agent=self.field_manager)
        try:
            await self._binding.create_named(
                scope, meta["name"], binding, CreateOptions(field_manager=self.field_manager)
            )
        except APIStatusError as error:
            self._unschedulable.pop(key, None)
            if error.code in (404, 409):
                return
            self._recorder.event(_POD, pod, WARNING, "FailedScheduling", f"binding rejected: {error.message}")
            raise
        self._unschedulable.pop(key, None)
        message = f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}"
        self._recorder.event(_POD, pod, NORMAL, "Scheduled", message)

    async def _set_unschedulable(self, key: str, pod: JSONObject, message: str) -> None:
        """Set the condition PodScheduled to false, and record an event."""
        self._recorder.event(_POD, pod, WARNING, "FailedScheduling", message)
        meta = pod["metadata"]
        timestamp = format_time(self.clock.seconds())

        def change(obj: JSONObject) -> None:
            existing = condition_of(obj, "PodScheduled") or {}
            if obj["spec"].get("nodeName"):
                return
            conditions = [one for one in (obj["status"].get("conditions") or ()) if one["type"] != "PodScheduled"]
            was_unschedulable = existing.get("status") == "False"
            condition: JSONObject = {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": existing["lastTransitionTime"] if was_unschedulable else timestamp,
                "reason": "Unschedulable",
                "message": message,
            }
            if obj["metadata"].get("generation"):
                condition["observedGeneration"] = obj["metadata"]["generation"]
            obj["status"]["conditions"] = [*conditions, condition]

        try:
            await self.client.update_status("", "pods", meta["namespace"], meta["name"], change, uid=meta["uid"])
        except Exception:
            # The event is recorded again with the next attempt.
            del self._unschedulable[key]
            raise
