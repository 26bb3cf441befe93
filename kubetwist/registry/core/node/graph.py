"""
The graph of the node authorizer: the objects that the pods on a node refer to, and the volumes of their claims.

It is updated by watches of the caches, which the first request starts. Existing objects are read in slices, so that
thousands of pods do not block the reactor; requests wait until all are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import orjson

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from ....api.record import Record
from ....api.resource import JSONObject
from ....interfaces import IWatchSink
from ....storage.errors import StorageUnavailable
from ..pod.references import (
    MIRROR_ANNOTATION,
    claim_names,
    config_map_names,
    resource_claim_names,
    secret_names,
    volume_secrets,
)

if TYPE_CHECKING:
    from ...stores import Stores

#: A kind of object, its namespace and its name.
Vertex = tuple[str, str, str]

#: Number of objects that are read in one slice, which takes a few milliseconds.
BATCH_SIZE: Final = 50

_log = Logger()


class _VertexUse:
    """
    An object that pods refer to.

    @ivar nodes: The number of pods that refer to it, by node.
    """

    __slots__ = ("nodes", "vertex")

    def __init__(self, vertex: Vertex) -> None:
        self.vertex = vertex
        self.nodes: dict[str, int] = {}


class NodeGraph:
    """The graph of the node authorizer: the objects that each node may read (Go: C{auth/authorizer/node})."""

    def __init__(self, stores: Stores, reactor: IReactorTime) -> None:
        self._stores = stores
        self._reactor = reactor
        self._watches: list[Any] = []
        self._filling: Iterator[None] | None = None
        self._filled = False
        self._waiting: list[Deferred[None]] = []
        self._needed: dict[Vertex, _VertexUse] = {}
        #: The node of each pod, and the objects that it refers to, by the key of the pod.
        self._pods: dict[str, tuple[str, tuple[_VertexUse, ...]]] = {}
        #: The claim of each volume, and its secrets, by the name of the volume.
        self._volumes: dict[str, tuple[Vertex, frozenset[Vertex]]] = {}
        #: The names of the volumes of each secret.
        self._volume_secrets: dict[Vertex, set[str]] = {}
        #: The node of each object that belongs to one node, by kind and key.
        self._node_of: dict[tuple[str, str], str] = {}

    def __len__(self) -> int:
        return len(self._needed) + len(self._volumes) + len(self._node_of)

    def ready(self) -> Deferred[None] | None:
        """
        Start the watches of the caches unless they run.

        @return: Fires when all existing objects are read; L{None} if they are.
        @raise StorageUnavailable: The caches were never filled. The graph stays valid while a cache is refilled later.
        """
        if not self._watches:
            self._start_watches()
        if self._filling is None:
            return None
        waiting: Deferred[None] = Deferred()
        self._waiting.append(waiting)
        return waiting

    def needs(self, node: str, kind: str, namespace: str, name: str) -> bool:
        """
        Return whether an object belongs to a node, or pods on the node refer to it.

        @param node: The name of the node.
        @param kind: The resource of the object: C{"secrets"}.
        @param namespace: The namespace of the object.
        @param name: The name of the object.
        """
        if kind in _NODE_OBJECTS:
            key = f"{namespace}/{name}" if namespace else name
            return self._node_of.get((kind, key)) == node
        if kind == "pods":
            pod = self._pods.get(f"{namespace}/{name}")
            return pod is not None and pod[0] == node
        if kind == "persistentvolumes":
            return self._needs_volume(node, name)
        vertex = (kind, namespace, name)
        if self._needs(node, vertex):
            return True
        return any(self._needs_volume(node, volume) for volume in self._volume_secrets.get(vertex, ()))

    def pods_that_need(self, kind: str, namespace: str, name: str) -> Iterator[tuple[str, str]]:
        """
        Return the keys of the pods that refer to an object, directly or by a volume, each with its node.

        @param kind: The resource of the object: C{"secrets"}.
        """
        vertex = (kind, namespace, name)
        targets = {vertex}
        volumes = [name] if kind == "persistentvolumes" else self._volume_secrets.get(vertex, ())
        targets.update(self._volumes[volume][0] for volume in volumes if volume in self._volumes)
        needs = [need for target in targets if (need := self._needed.get(target)) is not None]
        if not needs:
            return
        for key, (node, needed) in list(self._pods.items()):
            if any(need in needed for need in needs):
                yield key, node

    def stop(self) -> None:
        """Stop the watches; the next request starts them again."""
        watches, self._watches = self._watches, []
        self._filling = None
        for watch in watches:
            watch.stop()
        # Waiting requests are retried, which starts the watches again.
        self._fire_waiting()

    def _needs(self, node: str, vertex: Vertex) -> bool:
        need = self._needed.get(vertex)
        return need is not None and node in need.nodes

    def _needs_volume(self, node: str, name: str) -> bool:
        volume = self._volumes.get(name)
        return volume is not None and self._needs(node, volume[0])

    # --- watches

    def _start_watches(self) -> None:
        stores = [(kind, store) for kind, group in _WATCHED if (store := self._stores.find(group, kind)) is not None]
        if not all(store.cache.ready for _, store in stores):
            if self._filled:
                return
            raise StorageUnavailable("node authorizer graph is not ready: watch caches are not synced")
        self._filled = False
        for derived in (
            self._needed,
            self._pods,
            self._volumes,
            self._volume_secrets,
            self._node_of,
        ):
            derived.clear()
        records_by_kind: list[tuple[str, Any, list[Record]]] = []
        for kind, store in stores:
            self._watches.append(store.cache.watch("", sink=_ChangeSink(self, kind)))
            records_by_kind.append((kind, store.cache, store.cache.list().records))
        self._filling = self._fill(records_by_kind)
        self._proceed(self._filling)

    def _fill(self, records_by_kind: Iterable[tuple[str, Any, list[Record]]]) -> Iterator[None]:
        for kind, cache, records in records_by_kind:
            for number, record in enumerate(records, 1):
                # Objects that changed since were passed on by the watches.
                if cache.get(record.key) is record:
                    self.changed(kind, record)
                if not number % BATCH_SIZE:
                    yield
        self._filling = None
        self._filled = True
        self._fire_waiting()

    def _proceed(self, filling: Iterator[None]) -> None:
        if filling is not self._filling:
            return
        try:
            next(filling, None)
        except Exception:
            _log.failure("cannot build the node authorizer graph")
            self.stop()
            return
        if self._filling is not None:
            self._reactor.callLater(0, self._proceed, filling)

    def _fire_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.callback(None)

    # --- changes

    def changed(self, kind: str, record: Record, deleted: bool = False) -> None:
        """Update the graph after an object was added, changed or deleted."""
        if kind in _NODE_OBJECTS:
            self._node_object_changed(kind, record, deleted)
        elif kind == "pods":
            # Pods without a node are not decoded.
            self._pod_changed(record, deleted or record.fields.get("spec.nodeName") == "")
        else:
            self._volume_changed(record, deleted)

    def _node_object_changed(self, kind: str, record: Record, deleted: bool) -> None:
        node = None if deleted else (orjson.loads(record.item).get("spec") or {}).get("nodeName")
        if node:
            self._node_of[kind, record.key] = node
        else:
            self._node_of.pop((kind, record.key), None)

    def _pod_changed(self, record: Record, deleted: bool) -> None:
        before = self._pods.pop(record.key, None)
        after = None if deleted else _pod_needs(orjson.loads(record.item))
        if after is not None:
            node, targets = after
            if before is not None and before[0] == node and {need.vertex for need in before[1]} == targets:
                self._pods[record.key] = before
                return
            self._pods[record.key] = node, tuple(self._add_need(vertex, node) for vertex in targets)
        if before is not None:
            node, needs = before
            for need in needs:
                self._remove_need(need, node)

    def _add_need(self, vertex: Vertex, node: str) -> _VertexUse:
        need = self._needed.get(vertex)
        if need is None:
            need = self._needed[vertex] = _VertexUse(vertex)
        need.nodes[node] = need.nodes.get(node, 0) + 1
        return need

    def _remove_need(self, need: _VertexUse, node: str) -> None:
        nodes = need.nodes
        nodes[node] -= 1
        if not nodes[node]:
            del nodes[node]
            if not nodes:
                del self._needed[need.vertex]

    def _volume_changed(self, record: Record, deleted: bool) -> None:
        before = self._volumes.pop(record.name, None)
        for secret in before[1] if before is not None else ():
            volumes = self._volume_secrets[secret]
            volumes.discard(record.name)
            if not volumes:
                del self._volume_secrets[secret]
        if deleted:
            return
        volume = orjson.loads(record.item)
        claim = (volume.get("spec") or {}).get("claimRef")
        if not claim:
            return
        target = ("persistentvolumeclaims", claim.get("namespace", ""), claim.get("name", ""))
        secrets = frozenset(("secrets", namespace, name) for namespace, name in volume_secrets(volume))
        self._volumes[record.name] = target, secrets
        for secret in secrets:
            self._volume_secrets.setdefault(secret, set()).add(record.name)


#: Resources whose objects belong to the node in C{spec.nodeName}.
_NODE_OBJECTS: Final = frozenset(("volumeattachments", "resourceslices", "podcertificaterequests"))

#: The watched resources, with their groups.
_WATCHED: Final = (
    ("pods", ""),
    ("persistentvolumes", ""),
    ("volumeattachments", "storage.k8s.io"),
    ("resourceslices", "resource.k8s.io"),
    ("podcertificaterequests", "certificates.k8s.io"),
)


@implementer(IWatchSink)
class _ChangeSink:
    """Watch sink that passes the events of one cache to the graph."""

    def __init__(self, graph: NodeGraph, kind: str) -> None:
        self._graph = graph
        self._kind = kind

    def send(self, event_type: str, record: Record, event: object) -> None:
        """See L{IWatchSink.send}."""
        self._graph.changed(self._kind, record, event_type == "DELETED")

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Ignore a bookmark."""

    def end(self, error: Exception | None) -> None:
        """Stop all watches, as the cache reloads; the next request starts them again."""
        self._graph.stop()


def _pod_needs(pod: JSONObject) -> tuple[str, set[Vertex]] | None:
    """Return the node of a pod, and the objects that the node needs for it; L{None} for a pod without a node."""
    meta, spec = pod["metadata"], pod.get("spec") or {}
    node = spec.get("nodeName")
    if not node:
        return None
    if MIRROR_ANNOTATION in (meta.get("annotations") or {}):
        # A kubelet must not gain access to objects by a mirror pod that it creates.
        return node, set()
    namespace = meta["namespace"]
    targets: list[Vertex] = [("secrets", namespace, name) for name in secret_names(pod)]
    targets += [("configmaps", namespace, name) for name in config_map_names(pod)]
    targets += [("persistentvolumeclaims", namespace, name) for name in claim_names(pod)]
    targets += [("resourceclaims", namespace, name) for name in resource_claim_names(pod)]
    if spec.get("serviceAccountName"):
        targets.append(("serviceaccounts", namespace, spec["serviceAccountName"]))
    return node, set(targets)
