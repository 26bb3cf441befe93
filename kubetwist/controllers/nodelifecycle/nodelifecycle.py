"""
Marks nodes that no longer report, taints nodes by their conditions, and marks their pods unready.

The rate at which nodes get taints that evict pods depends on the state of their zone (L{zones}). If no node is ready,
no node gets them.

@see: kubernetes, C{pkg/controller/nodelifecycle/node_lifecycle_controller.go}.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from twisted.internet.interfaces import IDelayedCall

from ...api.errors import APIStatusError
from ...api.record import Record
from ...api.resource import GroupVersionKind, JSONObject
from ...api.times import format_time, seconds_since_epoch
from ...registry.stores import decoded_object
from ...storage.cache.window import DELETED
from ..machinery.context import ControllerContext
from ..machinery.controller import Controller
from ..machinery.events import NORMAL, WARNING
from ..workloads.pods import ENDED, condition_of
from .nodehealth import (
    MONITOR_INTERVAL,
    NodeHealthMonitor,
    grace_period,
    heartbeat_of,
    ready_status,
    unknown_conditions,
)
from .nodetaints import evicts_pods, updated_taints
from .zones import EvictionLimiter, EvictionRates, zone_of

_NODE: Final = GroupVersionKind("", "v1", "Node")
_POD: Final = GroupVersionKind("", "v1", "Pod")
_LEASES: Final = "kube-node-lease"


def pod_node(record: Record) -> tuple[str, ...]:
    """Return the name of the node of a pod, for an index."""
    name = record.fields.get("spec.nodeName")
    return (name,) if name else ()


class NodeLifecycleController(Controller[str]):
    """Maintains conditions and taints of nodes. The queue contains names of nodes."""

    name: ClassVar[str] = "node-lifecycle-controller"
    service_account: ClassVar[str] = "node-controller"
    workers: ClassVar[int] = 8

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        release = context.config.kubernetes_version if context.configured else ""
        self._monitor = NodeHealthMonitor(grace_period(release))
        self._recorder = context.recorder("node-controller")
        rates = EvictionRates.of(context.config.options.get) if context.configured else EvictionRates()
        self._limiter = EvictionLimiter(rates)
        self._check_call: IDelayedCall | None = None

    # --- lifecycle

    def register_handlers(self) -> None:
        """Register handlers for nodes and their Leases."""
        self._pods = self.watch("", "pods", _ignore)
        self._pods_by_node = self._pods.index("node", pod_node)
        self._nodes = self.watch("", "nodes", self._node_changed)
        self.watch("coordination.k8s.io", "leases", self._lease_changed)

    def _start_queue(self) -> None:
        super()._start_queue()
        if not self.stopped:
            self._check_call = self.clock.callLater(MONITOR_INTERVAL, self._check)

    async def stop(self) -> None:
        """See L{Controller.stop}."""
        if self._check_call is not None and self._check_call.active():
            self._check_call.cancel()
        await super().stop()

    # --- events

    def _lease_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if event_type != DELETED and record.namespace == _LEASES:
            self._monitor.renew(record.name, self.clock.seconds())

    def _node_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        name, now = record.name, self.clock.seconds()
        if event_type == DELETED:
            self._monitor.remove(name)
            self._requeue(self._limiter.remove_node(name, now))
            return
        node = decoded_object(record)
        created = node["metadata"].get("creationTimestamp")
        self._monitor.observe(name, seconds_since_epoch(created) if created else now, heartbeat_of(node), now)
        ready = ready_status(node)
        healthy = ready == "True" and not self._monitor.is_unhealthy(name)
        new = not self._limiter.has_node(name)
        self._requeue(self._limiter.set_node(name, zone_of(record.labels), healthy, now))
        if new and not healthy and evicts_pods(node):
            # An earlier run has tainted it.
            self._limiter.mark_admitted(name)
        if (ready and ready != "True") or updated_taints(node, now, evict=False) is not None:
            self.queue.add(name)

    def _requeue(self, names: Iterable[str]) -> None:
        """Check nodes again whose evictions may be permitted or forbidden now."""
        for name in names:
            self.queue.add(name)

    def _check(self) -> None:
        """Look for nodes that no longer report."""
        unhealthy, wait = self._monitor.check(self.clock.seconds())
        for name in unhealthy:
            self._requeue(self._limiter.set_unready(name, self.clock.seconds()))
        for name in unhealthy:
            self.queue.add(name)
        self._check_call = self.clock.callLater(wait, self._check)

    # --- work

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record = self._nodes.get("", key)
        if record is None:
            return
        try:
            node = await self._update_node(key, decoded_object(record))
            if ready_status(node) not in ("", "True"):
                await self._mark_pods(key)
        except APIStatusError as error:
            # The node was deleted.
            if error.code != 404:
                raise

    async def _update_node(self, name: str, node: JSONObject) -> JSONObject:
        """Update conditions and taints of a node, and return the stored node."""
        now = self.clock.seconds()

        def set_conditions(obj: JSONObject) -> None:
            conditions = unknown_conditions(obj, now) if self._monitor.is_unhealthy(name) else None
            if conditions is not None:
                obj["status"] = {**(obj.get("status") or {}), "conditions": conditions}

        def set_taints(obj: JSONObject) -> None:
            taints = updated_taints(obj, now, evict=self._limiter.is_admitted(name))
            if taints is not None:
                obj["spec"].pop("taints", None)
                if taints:
                    obj["spec"]["taints"] = taints

        if self._monitor.is_unhealthy(name) and unknown_conditions(node, now) is not None:
            was_ready = ready_status(node) == "True"
            node = decoded_object(await self.client.update_status("", "nodes", "", name, set_conditions))
            if was_ready and ready_status(node) != "True":
                message = f"Node {name} status is now: NodeNotReady"
                self._recorder.event(_NODE, node, NORMAL, "NodeNotReady", message)
        if ready_status(node) not in ("", "True"):
            wait = self._limiter.admit(name, now)
            if wait:
                self.queue.add_after(name, wait)
        if updated_taints(node, now, evict=self._limiter.is_admitted(name)) is not None:
            node = decoded_object(await self.client.update("", "nodes", "", name, set_taints))
        return node

    async def _mark_pods(self, node: str) -> None:
        """Set the condition C{Ready} of the pods of a node to false."""
        timestamp = format_time(self.clock.seconds())

        def change(obj: JSONObject) -> None:
            ready = condition_of(obj, "Ready")
            if ready is not None and ready.get("status") == "True":
                ready.update(status="False", lastTransitionTime=timestamp)

        for record in self._pods_by_node.get(node):
            if record.fields.get("status.phase") in ENDED:
                continue
            pod = decoded_object(record)
            if (condition_of(pod, "Ready") or {}).get("status") == "True":
                self._recorder.event(_POD, pod, WARNING, "NodeNotReady", "Node is not ready")
                meta = pod["metadata"]
                try:
                    await self.client.update_status("", "pods", record.namespace, record.name, change, uid=meta["uid"])
                except APIStatusError as error:
                    # The pod was deleted or replaced.
                    if error.code not in (404, 409):
                        raise
                await self.yield_to_reactor()


def _ignore(event_type: str, record: Record, old: Record | None) -> None:
    """Ignore an event: the pods are only indexed."""
