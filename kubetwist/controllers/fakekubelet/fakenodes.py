"""
Simulated nodes: registers nodes, and does the work of a kubelet for their pods.

The status of a pod is computed in L{podstatus}.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import ClassVar, Final

from ...api.errors import APIStatusError
from ...api.record import Record
from ...api.resource import GroupVersionKind, JSONObject, UserInfo
from ...api.times import format_micro_time, format_time
from ...registry.core.node.kubelets import SIMULATED_RUNTIME_PREFIX
from ...registry.stores import decoded_object
from ...storage.cache.window import DELETED
from ..machinery.client import Client
from ..machinery.context import ControllerContext
from ..machinery.controller import Controller
from ..machinery.events import WARNING
from ..machinery.queue import WorkQueue
from ..workloads.pods import ENDED
from .evictions import EVICTION_INTERVAL, exceeded_limit, next_eviction, rejection
from .nodefaults import NO_FAULTS, NodeFaults, faults_of, read_faults
from .podstatus import PodAddresses, PodStatusSimulator, stop_wait

PREFIX: Final = "pretend-node-"
#: The label of simulated nodes.
LABEL: Final = "kubetwist.dev/pretend-node"
#: Maximum number of simulated nodes.
MAX_NODES: Final = 1000
LEASES: Final = "kube-node-lease"
#: Seconds between two renewals of a Lease, and duration of a Lease.
RENEW_INTERVAL: Final = 10.0
LEASE_DURATION: Final = 40
#: Seconds between two updates of a node's conditions.
HEARTBEAT_INTERVAL: Final = 300.0
_HOSTS: Final = IPv4Network("172.18.0.0/16")
_PODS: Final = IPv4Network("10.244.0.0/14")
_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNKNOWN: Final = b'"NodeStatusUnknown"'
_CAPACITY: Final = {
    "cpu": "8",
    "ephemeral-storage": "100Gi",
    "hugepages-1Gi": "0",
    "hugepages-2Mi": "0",
    "memory": "32Gi",
    "pods": "110",
}
_POD: Final = GroupVersionKind("", "v1", "Pod")


class FakeNode:
    """
    A simulated node.

    @ivar name: The name of the node.
    @ivar ip: The address of the node.
    @ivar network: The network of its pods' addresses.
    @ivar client: Writes as the user of the node's kubelet.
    """

    def __init__(self, context: ControllerContext, number: int) -> None:
        self.name = f"{PREFIX}{number}"
        self.ip = str(_HOSTS[number + 2])
        self.network = IPv4Network((int(_PODS.network_address) + 256 * number, 24))
        user = UserInfo(f"system:node:{self.name}", groups=("system:nodes", "system:authenticated"))
        self.client = Client(context, user, "kubelet")
        #: Addresses by pod key.
        self._addresses: dict[str, str] = {}
        self._used: set[str] = set()
        self._last = 0

    def address(self, key: str, reported: str | None) -> str:
        """
        Return the address of a pod, which is stable.

        @param reported: The address in its status.
        """
        assigned = self._addresses.get(key)
        if assigned is not None:
            return assigned
        if reported and reported not in self._used and _is_in_network(reported, self.network):
            return self._assign(key, reported)
        hosts = self.network.num_addresses - 3
        for _ in range(hosts):
            self._last = self._last % hosts + 1
            candidate = str(self.network[self._last + 1])
            if candidate not in self._used:
                return self._assign(key, candidate)
        raise APIStatusError(503, "ServiceUnavailable", f"node {self.name} has no more addresses for pods")

    def _assign(self, key: str, address: str) -> str:
        self._addresses[key] = address
        self._used.add(address)
        return address

    def release(self, key: str) -> None:
        """Release the address of a deleted pod."""
        address = self._addresses.pop(key, None)
        if address is not None:
            self._used.discard(address)

    def description(self) -> JSONObject:
        """Return the node object that is registered."""
        labels = {
            "beta.kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            LABEL: "true",
        }
        network = str(self.network)
        return {
            "metadata": {"name": self.name, "labels": labels},
            "spec": {"podCIDR": network, "podCIDRs": [network]},
        }

    def status(self, old_status: JSONObject, version: str, now: float, faults: NodeFaults = NO_FAULTS) -> JSONObject:
        """
        Return the status of the node.

        @param old_status: The stored status.
        @param version: The version of the kubelet.
        @param now: The current time.
        @param faults: The faults of the node.
        """
        old_conditions = {one["type"]: one for one in old_status.get("conditions") or ()}
        timestamp = format_time(now)
        conditions = []
        for kind, status, reason, message in faults.conditions():
            old = old_conditions.pop(kind, None)
            since = old["lastTransitionTime"] if old is not None and old.get("status") == status else timestamp
            conditions.append(
                {
                    "type": kind,
                    "status": status,
                    "lastHeartbeatTime": timestamp,
                    "lastTransitionTime": since,
                    "reason": reason,
                    "message": message,
                }
            )
        number = f"{int(IPv4Address(self.ip)):032x}"
        system = "-".join((number[:8], number[8:12], number[12:16], number[16:20], number[20:]))
        return {
            # Resources that other clients have added are kept.
            "capacity": {**(old_status.get("capacity") or {}), **_CAPACITY},
            "allocatable": {**(old_status.get("allocatable") or {}), **_CAPACITY},
            "conditions": [*old_conditions.values(), *conditions],
            "addresses": [{"type": "InternalIP", "address": self.ip}, {"type": "Hostname", "address": self.name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "machineID": number,
                "systemUUID": system,
                "bootID": system,
                "kernelVersion": "6.12.0",
                "osImage": "kubetwist simulated node",
                "containerRuntimeVersion": f"{SIMULATED_RUNTIME_PREFIX}1.0.0",
                "kubeletVersion": version,
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        }


def _is_in_network(address: str, network: IPv4Network) -> bool:
    try:
        return IPv4Address(address) in network
    except ValueError:
        return False


class FakeNodes(Controller[str]):
    """Maintains the simulated nodes and runs pods on them. The queue contains keys of pods."""

    name: ClassVar[str] = "pretend-nodes"
    service_account: ClassVar[str] = "node-controller"
    workers: ClassVar[int] = 20

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        options = context.config.options
        self._images = context.config.images
        self.nodes: dict[str, FakeNode] = {}
        for number in range(min(options["fake-nodes"], MAX_NODES)):
            node = FakeNode(context, number)
            self.nodes[node.name] = node
        self._version = f"v{context.config.kubernetes_version}.0"
        #: Time of the last update of the conditions, by node.
        self._last_heartbeat: dict[str, float] = {}
        #: Faults of nodes that have any.
        self._faults: dict[str, NodeFaults] = {}
        #: When the next pass of evictions is due, by node under pressure.
        self._next_eviction: dict[str, float] = {}
        self._recorder = context.recorder("kubelet")
        self._node_queue: WorkQueue[str] = WorkQueue(self.clock, self._work_node, workers=4)

    # --- lifecycle

    def register_handlers(self) -> None:
        """Register handlers for pods, nodes and Leases."""
        self._pods = self.watch("", "pods", self._pod_changed)
        self._pods_by_node = self._pods.index("node", _pod_node)
        self._leases = self.watch("coordination.k8s.io", "leases", self._lease_changed)
        self._nodes = self.watch("", "nodes", self._node_changed)

    def _handlers_ready(self) -> None:
        if self.stopped:
            return
        for name in self.nodes:
            self._node_queue.add(name)
        # Nodes above the current number, from an earlier start, would run no pods.
        for record in self._nodes.list():
            if record.labels.get(LABEL) == "true" and record.name not in self.nodes:
                self._node_queue.add(record.name)
        self._node_queue.start()
        super()._handlers_ready()

    async def stop(self) -> None:
        """See L{Controller.stop}."""
        await self._node_queue.stop()
        await super().stop()

    def _pod_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        name = record.fields.get("spec.nodeName")
        node = self.nodes.get(name or "")
        if node is None:
            if name and name.startswith(PREFIX) and event_type != DELETED:
                self.queue.add(record.key)
            return
        if event_type == DELETED:
            node.release(record.key)
        else:
            self.queue.add(record.key)

    def _node_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if record.name not in self.nodes:
            return
        faults = NO_FAULTS if event_type == DELETED else read_faults(record)
        if faults != self._faults.get(record.name, NO_FAULTS):
            self._set_faults(record.name, faults)
        elif not faults.lost and _UNKNOWN in record.item:
            # The status was found overdue.
            self._last_heartbeat.pop(record.name, None)
            self._node_queue.add(record.name)
        elif event_type == DELETED or _NOT_READY.encode() in record.item:
            self._node_queue.add(record.name)

    def _set_faults(self, name: str, faults: NodeFaults) -> None:
        """Set the faults of a node, and reconcile the node and its pods."""
        if faults == NO_FAULTS:
            self._faults.pop(name, None)
        else:
            self._faults[name] = faults
        if not faults.pressures:
            self._next_eviction.pop(name, None)
        # The next update posts the conditions.
        self._last_heartbeat.pop(name, None)
        self._node_queue.add(name)
        for record in self._pods_by_node.get(name):
            self.queue.add(record.key)

    def _is_lost(self, name: str) -> bool:
        return self._faults.get(name, NO_FAULTS).lost

    def _lease_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if event_type == DELETED and record.namespace == LEASES and record.name in self.nodes:
            self._node_queue.add(record.name)

    # --- nodes

    async def _work_node(self, name: str) -> None:
        try:
            await self._sync_node(name)
        except Exception as error:
            if not self._node_queue.num_requeues(name) and not self.stopped:
                self._log.warn("{name}: {node}: {error}", name=self.name, node=name, error=error)
            self._node_queue.add_rate_limited(name)
        else:
            self._node_queue.forget(name)

    async def _sync_node(self, name: str) -> None:
        node = self.nodes.get(name)
        if node is None:
            await self._delete_node(name)
            return
        if self._is_lost(name):
            return
        now = self.clock.seconds()
        record = self._nodes.get("", name)
        if record is None:
            self._last_heartbeat.pop(name, None)
            try:
                await node.client.create("", "nodes", node.description())
            except APIStatusError as error:
                if error.reason != "AlreadyExists":
                    raise
        if name not in self._last_heartbeat or self._last_heartbeat[name] + HEARTBEAT_INTERVAL <= now:
            await node.client.update_status(
                "", "nodes", "", name, lambda obj: obj.update(status=self._status(node, obj, now))
            )
            self._last_heartbeat[name] = now
        await self._untaint(name)
        await self._evict_pod(node, now)
        await self._renew(node, now)
        self._node_queue.add_after(name, RENEW_INTERVAL)

    def _status(self, node: FakeNode, obj: JSONObject, now: float) -> JSONObject:
        old_status = obj.get("status") or {}
        return {**old_status, **node.status(old_status, self._version, now, faults_of(obj))}

    async def _untaint(self, name: str) -> None:
        """Remove the taint not-ready of a new node: a simulated node is ready immediately."""
        record = self._nodes.get("", name)
        if record is None or not any(
            one["key"] == _NOT_READY for one in decoded_object(record)["spec"].get("taints") or ()
        ):
            return

        def change(obj: JSONObject) -> None:
            remaining = [one for one in obj["spec"].get("taints") or () if one["key"] != _NOT_READY]
            obj["spec"].pop("taints", None)
            if remaining:
                obj["spec"]["taints"] = remaining

        await self.client.update("", "nodes", "", name, change)

    async def _renew(self, node: FakeNode, now: float) -> None:
        record = self._nodes.get("", node.name)
        if record is None:
            return
        uid = decoded_object(record)["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": uid}
        spec = {
            "holderIdentity": node.name,
            "leaseDurationSeconds": LEASE_DURATION,
            "renewTime": format_micro_time(now),
        }
        group, resource = "coordination.k8s.io", "leases"
        if self._leases.get(LEASES, node.name) is None:
            meta = {"name": node.name, "namespace": LEASES, "ownerReferences": [owner]}
            await node.client.create(group, resource, {"metadata": meta, "spec": spec})
            return

        def change(obj: JSONObject) -> None:
            obj["metadata"]["ownerReferences"] = [owner]
            obj["spec"].update(spec)

        await node.client.update(group, resource, LEASES, node.name, change)

    async def _delete_node(self, name: str) -> None:
        """Delete a node above the current number, and its Lease."""
        for group, resource, namespace in (("", "nodes", ""), ("coordination.k8s.io", "leases", LEASES)):
            try:
                await self.client.delete(group, resource, namespace, name)
            except APIStatusError as error:
                if error.code != 404:
                    raise

    # --- pods

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record = self._pods.by_key(key)
        if record is None:
            return
        pod = decoded_object(record)
        name = pod["spec"].get("nodeName") or ""
        node = self.nodes.get(name)
        if node is None:
            # No kubelet deletes the pods of a removed node.
            if self._nodes.get("", name) is None:
                await self._delete(self.client, pod)
            return
        if self._is_lost(name):
            return
        meta = pod["metadata"]
        if "deletionTimestamp" in meta:
            await self._stop_pod(node, record, pod)
            return
        if (pod.get("status") or {}).get("phase") in ENDED:
            node.release(key)
            return
        pressures = self._faults.get(name, NO_FAULTS).pressures
        rejected = "" if (pod.get("status") or {}).get("startTime") else rejection(pod, pressures)
        message = rejected or exceeded_limit(pod, self._images)
        if message:
            await self._evict(node, pod, message)
            return
        simulator = PodStatusSimulator(pod, self._pod_addresses(node, key, pod), self.clock.seconds(), self._images)

        def change(obj: JSONObject) -> None:
            nonlocal simulator
            if "deletionTimestamp" not in obj["metadata"]:
                simulator = PodStatusSimulator(
                    obj, self._pod_addresses(node, key, obj), self.clock.seconds(), self._images
                )
                obj["status"] = simulator.status

        if simulator.status != pod.get("status"):
            await node.client.update_status("", "pods", record.namespace, record.name, change, uid=meta["uid"])
            for event in simulator.events:
                self._recorder.event(_POD, pod, event.type, event.reason, event.message, field_path=event.field_path)
        if simulator.wait is not None:
            self.queue.add_after(key, simulator.wait)

    async def _evict_pod(self, node: FakeNode, now: float) -> None:
        """Evict the next pod of a node under pressure, if a pass is due."""
        pressures = self._faults.get(node.name, NO_FAULTS).pressures
        due = self._next_eviction.get(node.name, now)
        if not pressures:
            return
        if now < due:
            self._node_queue.add_after(node.name, due - now)
            return
        pods = [
            decoded_object(one)
            for one in self._pods_by_node.get(node.name)
            if one.fields.get("status.phase") == "Running"
        ]
        running = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        eviction = next_eviction(running, pressures, self._images)
        if eviction is not None:
            self._next_eviction[node.name] = now + EVICTION_INTERVAL
            self._node_queue.add_after(node.name, EVICTION_INTERVAL)
            await self._evict(node, eviction.pod, eviction.message)

    async def _evict(self, node: FakeNode, pod: JSONObject, message: str) -> None:
        """
        Let a pod fail, because it is evicted or not admitted.

        @param message: The reason.
        """
        meta = pod["metadata"]
        addresses = self._pod_addresses(node, f"{meta['namespace']}/{meta['name']}", pod)

        def change(obj: JSONObject) -> None:
            obj["status"] = PodStatusSimulator(obj, addresses, self.clock.seconds(), self._images).evicted(message)

        self._recorder.event(_POD, pod, WARNING, "Evicted", message)
        try:
            await node.client.update_status("", "pods", meta["namespace"], meta["name"], change, uid=meta["uid"])
        except APIStatusError as error:
            # The pod was deleted or replaced.
            if error.code not in (404, 409):
                raise

    def _pod_addresses(self, node: FakeNode, key: str, pod: JSONObject) -> PodAddresses:
        if pod["spec"].get("hostNetwork"):
            return PodAddresses(node.ip, node.ip)
        return PodAddresses(node.ip, node.address(key, (pod.get("status") or {}).get("podIP")))

    async def _stop_pod(self, node: FakeNode, record: Record, pod: JSONObject) -> None:
        """Stop the containers of a deleted pod, then remove the pod."""
        wait = stop_wait(pod, self.clock.seconds(), self._images)
        if wait:
            self.queue.add_after(record.key, wait)
            return
        meta = pod["metadata"]
        status = pod.get("status") or {}
        if status.get("phase") not in ENDED and status.get("containerStatuses"):
            addresses = PodAddresses(status.get("hostIP") or node.ip, status.get("podIP") or node.ip)

            def change(obj: JSONObject) -> None:
                obj["status"] = PodStatusSimulator(obj, addresses, self.clock.seconds(), self._images).stopped()

            await node.client.update_status("", "pods", record.namespace, record.name, change, uid=meta["uid"])
        # A pod with finalizers remains. Its status is written once.
        if meta.get("deletionGracePeriodSeconds") != 0 or not meta.get("finalizers"):
            await self._delete(node.client, pod)
        node.release(record.key)

    async def _delete(self, client: Client, pod: JSONObject) -> None:
        meta = pod["metadata"]
        try:
            await client.delete("", "pods", meta["namespace"], meta["name"], uid=meta["uid"], grace=0)
        except APIStatusError as error:
            if error.code not in (404, 409):
                raise


def _pod_node(record: Record) -> tuple[str, ...]:
    """Return the name of the node of a pod, for an index."""
    name = record.fields.get("spec.nodeName")
    return (name,) if name else ()
