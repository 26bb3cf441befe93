"""
Which objects which node needs: those that the pods on it name, and the volumes behind their claims.

Read from the watch caches and kept up to date one object at a time, from the first question on. What is there at that
moment is read in slices, so that thousands of pods do not hold up everybody else; questions wait for that.
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

#: Objects that are read in one go, when the graph is made: a few milliseconds' worth.
BATCH_SIZE: Final = 50

_log = Logger()


class _VertexUse:
    """
    An object that pods need.

    @ivar nodes: How many pods on which nodes.
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
        #: By key: the node of a pod, and what the pod needs.
        self._pods: dict[str, tuple[str, tuple[_VertexUse, ...]]] = {}
        #: By name: the claim that a volume is bound to, and its secrets.
        self._volumes: dict[str, tuple[Vertex, frozenset[Vertex]]] = {}
        #: By secret: of which volumes.
        self._volume_secrets: dict[Vertex, set[str]] = {}
        #: By kind and key: the node of what is about one node alone.
        self._node_of: dict[tuple[str, str], str] = {}

    def __len__(self) -> int:
        return len(self._needed) + len(self._volumes) + len(self._node_of)

    def ready(self) -> Deferred[None] | None:
        """
        Follow the caches from now on.

        @return: Fires when all that was there is known; L{None} when it is.
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
        Whether a node has to do with an object.

        @param kind: The plural.
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
        """The pods, by key, that lead to an object, each with its node; those that volumes lead to included."""
        vertex = (kind, namespace, name)
        wanted = {vertex}
        volumes = [name] if kind == "persistentvolumes" else self._volume_secrets.get(vertex, ())
        wanted.update(self._volumes[volume][0] for volume in volumes if volume in self._volumes)
        needs = [need for one in wanted if (need := self._needed.get(one)) is not None]
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
        self._answer()

    def _needs(self, node: str, vertex: Vertex) -> bool:
        need = self._needed.get(vertex)
        return need is not None and node in need.nodes

    def _needs_volume(self, node: str, name: str) -> bool:
        volume = self._volumes.get(name)
        return volume is not None and self._needs(node, volume[0])

    # --- following

    def _start_watches(self) -> None:
        found = [(kind, store) for kind, group in _FOLLOWED if (store := self._stores.find(group, kind)) is not None]
        if not all(store.cache.ready for _, store in found):
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
        there: list[tuple[str, Any, list[Record]]] = []
        for kind, store in found:
            self._watches.append(store.cache.watch("", sink=_ChangeSink(self, kind)))
            there.append((kind, store.cache, store.cache.list().records))
        self._filling = self._fill(there)
        self._proceed(self._filling)

    def _fill(self, there: Iterable[tuple[str, Any, list[Record]]]) -> Iterator[None]:
        for kind, cache, records in there:
            for number, record in enumerate(records, 1):
                # What has changed since has come to us already.
                if cache.get(record.key) is record:
                    self.changed(kind, record)
                if not number % BATCH_SIZE:
                    yield
        self._filling = None
        self._filled = True
        self._answer()

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

    def _answer(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.callback(None)

    # --- changes

    def changed(self, kind: str, record: Record, deleted: bool = False) -> None:
        """An object is there, is another, or is gone."""
        if kind in _NODE_OBJECTS:
            self._node_object_changed(kind, record, deleted)
        elif kind == "pods":
            # Nothing follows from a pod that is nowhere: it needs no decoding.
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
            node, wanted = after
            if before is not None and before[0] == node and {need.vertex for need in before[1]} == wanted:
                self._pods[record.key] = before
                return
            self._pods[record.key] = node, tuple(self._need(vertex, node) for vertex in wanted)
        if before is not None:
            node, needs = before
            for need in needs:
                self._need_no_more(need, node)

    def _need(self, vertex: Vertex, node: str) -> _VertexUse:
        need = self._needed.get(vertex)
        if need is None:
            need = self._needed[vertex] = _VertexUse(vertex)
        need.nodes[node] = need.nodes.get(node, 0) + 1
        return need

    def _need_no_more(self, need: _VertexUse, node: str) -> None:
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


#: Objects that concern the one node that their C{spec.nodeName} names.
_NODE_OBJECTS: Final = frozenset(("volumeattachments", "resourceslices", "podcertificaterequests"))

#: What is followed, with its group.
_FOLLOWED: Final = (
    ("pods", ""),
    ("persistentvolumes", ""),
    ("volumeattachments", "storage.k8s.io"),
    ("resourceslices", "resource.k8s.io"),
    ("podcertificaterequests", "certificates.k8s.io"),
)


@implementer(IWatchSink)
class _ChangeSink:
    """Passes on the changes of one cache."""

    def __init__(self, graph: NodeGraph, kind: str) -> None:
        self._graph = graph
        self._kind = kind

    def send(self, event_type: str, record: Record, event: object) -> None:
        """See L{IWatchSink.send}."""
        self._graph.changed(self._kind, record, event_type == "DELETED")

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Nothing changed."""

    def end(self, error: Exception | None) -> None:
        """The cache starts over: so do we, at the next question."""
        self._graph.stop()


def _pod_needs(pod: JSONObject) -> tuple[str, set[Vertex]] | None:
    """The node of a pod, and what the node needs for it; L{None} while it is nowhere."""
    meta, spec = pod["metadata"], pod.get("spec") or {}
    node = spec.get("nodeName")
    if not node:
        return None
    if MIRROR_ANNOTATION in (meta.get("annotations") or {}):
        # A kubelet must not be able to let itself see things by a pod that it makes.
        return node, set()
    namespace = meta["namespace"]
    found: list[Vertex] = [("secrets", namespace, name) for name in secret_names(pod)]
    found += [("configmaps", namespace, name) for name in config_map_names(pod)]
    found += [("persistentvolumeclaims", namespace, name) for name in claim_names(pod)]
    found += [("resourceclaims", namespace, name) for name in resource_claim_names(pod)]
    if spec.get("serviceAccountName"):
        found.append(("serviceaccounts", namespace, spec["serviceAccountName"]))
    return node, set(found)
