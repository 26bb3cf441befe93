"""
Evicts pods that do not tolerate the C{NoExecute} taints of their nodes.

@see: kubernetes, C{pkg/controller/tainteviction/taint_eviction.go}.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ...api.errors import APIStatusError
from ...api.record import Record
from ...api.resource import GroupVersionKind, JSONObject
from ...api.times import format_time
from ...registry.stores import decoded_object
from ...storage.cache.window import DELETED
from ..machinery.context import ControllerContext
from ..machinery.controller import Controller
from ..machinery.events import NORMAL
from ..workloads.nodeselection import NO_EXECUTE
from .nodelifecycle import pod_node
from .nodetaints import eviction_delay

_POD: Final = GroupVersionKind("", "v1", "Pod")
_MARK: Final = b'"NoExecute"'


class TaintEvictionController(Controller[str]):
    """Deletes pods from nodes with taints that they do not tolerate. The queue contains keys of pods."""

    name: ClassVar[str] = "taint-eviction-controller"
    service_account: ClassVar[str] = "node-controller"
    workers: ClassVar[int] = 8

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._recorder = context.recorder(self.name)
        #: The taints of nodes that have some with the effect NoExecute.
        self._taints: dict[str, list[JSONObject]] = {}
        #: When pods with a pending eviction were first seen on a tainted node, by key.
        self._pending: dict[str, float] = {}

    def register_handlers(self) -> None:
        """Register handlers for nodes and pods."""
        self._pods = self.watch("", "pods", self._pod_changed)
        self._pods_by_node = self._pods.index("node", pod_node)
        self._nodes = self.watch("", "nodes", self._node_changed)

    def _pod_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if event_type == DELETED:
            self._pending.pop(record.key, None)
        elif record.fields.get("spec.nodeName") in self._taints:
            self.queue.add(record.key)

    def _node_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        taints: list[JSONObject] = []
        if event_type != DELETED and _MARK in record.item:
            spec = decoded_object(record).get("spec") or {}
            taints = [one for one in spec.get("taints") or () if one.get("effect") == NO_EXECUTE]
        if taints == self._taints.get(record.name, []):
            return
        if taints:
            self._taints[record.name] = taints
        else:
            del self._taints[record.name]
        for pod in self._pods_by_node.get(record.name):
            self.queue.add(pod.key)

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record = self._pods.by_key(key)
        if record is None:
            self._pending.pop(key, None)
            return
        pod = decoded_object(record)
        taints = self._taints.get(pod["spec"].get("nodeName") or "")
        delay = eviction_delay(taints, pod["spec"].get("tolerations") or ()) if taints else None
        if "deletionTimestamp" in pod["metadata"] or delay is None:
            if self._pending.pop(key, None) is not None and "deletionTimestamp" not in pod["metadata"]:
                message = f"Cancelling deletion of Pod {key}"
                self._recorder.event(_POD, pod, NORMAL, "TaintManagerEviction", message)
            return
        now = self.clock.seconds()
        wait = self._pending.setdefault(key, now) + delay - now
        if wait > 0:
            self.queue.add_after(key, wait)
            return
        await self._evict(record, pod)
        self._pending.pop(key, None)
        await self.yield_to_reactor()

    async def _evict(self, record: Record, pod: JSONObject) -> None:
        """Delete a pod, after stating the reason in its conditions."""
        meta = pod["metadata"]
        timestamp = format_time(self.clock.seconds())

        def change(obj: JSONObject) -> None:
            condition: JSONObject = {
                "type": "DisruptionTarget",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": timestamp,
                "reason": "DeletionByTaintManager",
                "message": "Taint manager: deleting due to NoExecute taint",
            }
            if obj["metadata"].get("generation"):
                condition["observedGeneration"] = obj["metadata"]["generation"]
            status = obj.setdefault("status", {})
            conditions = [one for one in status.get("conditions") or () if one["type"] != condition["type"]]
            status["conditions"] = [*conditions, condition]

        self._recorder.event(_POD, pod, NORMAL, "TaintManagerEviction", f"Marking for deletion Pod {record.key}")
        try:
            await self.client.update_status("", "pods", record.namespace, record.name, change, uid=meta["uid"])
            await self.client.delete("", "pods", record.namespace, record.name, uid=meta["uid"])
        except APIStatusError as error:
            # The pod was deleted or replaced.
            if error.code not in (404, 409):
                raise
