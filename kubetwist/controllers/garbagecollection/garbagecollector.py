"""
The garbage collector: deletes objects whose owners do not exist, and orphans or deletes the dependents of owners.

A graph of owner references (L{kubetwist.controllers.garbagecollection.ownergraph}) follows the watch caches. Objects
without owners are not decoded. Whether an owner exists is looked up in the caches, and before a dependent is deleted,
also in the storage backend.

@see: kubernetes, C{pkg/controller/garbagecollector}.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection
from functools import partial
from typing import ClassVar, Final, NamedTuple

import orjson
from attrs import define, frozen

from twisted.internet.interfaces import IDelayedCall

from ...api.errors import APIStatusError
from ...api.record import Record
from ...api.resource import GroupResource, GroupVersionKind, JSONObject
from ...registry.generic.deletion import FOREGROUND, ORPHAN
from ...registry.generic.resourceinfo import ResourceInfo
from ...registry.generic.store import Store
from ...storage.cache.window import DELETED
from ...storage.errors import KeyNotFound
from ..machinery.controller import Controller
from ..machinery.events import WARNING
from ..machinery.informer import Informer
from ..machinery.parallel import parallelize
from .ownergraph import Node, ObjectKey, OwnerGraph, Reference

#: Resources that the garbage collector ignores.
IGNORED: Final = frozenset({GroupResource("", "events"), GroupResource("events.k8s.io", "events")})
#: Maximum number of cached absent owners.
ABSENT_OWNER_CACHE_SIZE: Final = 500
#: Seconds until foreground and orphan deletion proceed although some dependents may be unknown.
SYNC_TIMEOUT: Final = 30.0
#: Seconds until an object is processed again because the graph is incomplete.
RETRY_DELAY: Final = 0.1
#: Seconds in which changes of the served resources are coalesced.
COALESCE_DELAY: Final = 0.05
#: Byte patterns in the JSON of objects with owners, and of objects that are being deleted. Further objects may contain
#: them; a match means that the object must be decoded.
_OWNED: Final = b'"ownerReferences":['
_DELETED: Final = b'"deletionTimestamp":"'


@frozen
class _ScanResource:
    """Task: add all objects of a resource to the graph."""

    resource: GroupResource


@frozen
class _ProbeResource:
    """Task: check whether a custom resource has objects."""

    resource: GroupResource


@frozen
class _EnqueueDependents:
    """Task: enqueue all dependents of a uid."""

    uid: str


#: The keys of the queue: an object, or a task.
_Task = ObjectKey | _ScanResource | _ProbeResource | _EnqueueDependents


class _Kind(NamedTuple):
    """The resource of the kind in an owner reference."""

    resource: GroupResource
    namespaced: bool


@define(eq=False)
class _Monitor:
    """
    A watched resource.

    @ivar scanned: Whether the initial objects are in the graph.
    """

    info: ResourceInfo
    informer: Informer
    scanned: bool = False


class _NamespacedOwnerOfClusterScoped(Exception):
    """The owner reference of a cluster-scoped object has a namespaced kind."""


def _uid_view() -> None:
    """The cache key of a uid in C{Record.views}."""


def _uid(record: Record) -> str:
    """Return the uid of an owner."""
    views = record.views
    if views is None:
        views = record.views = {}
    uid: str | None = views.get(_uid_view)
    if uid is None:
        uid = views[_uid_view] = orjson.loads(record.item)["metadata"].get("uid") or ""
    return uid


class GarbageCollector(Controller[_Task]):
    """Deletes or orphans dependents. Keys are objects and tasks."""

    name: ClassVar[str] = "garbage-collector-controller"
    service_account: ClassVar[str] = "generic-garbage-collector"
    workers: ClassVar[int] = 10

    def register_handlers(self) -> None:
        """Register handlers for all resources that are served, now and later."""
        self.graph = OwnerGraph()
        self._monitors: dict[GroupResource, _Monitor] = {}
        #: Custom resources without objects, which are not cached and need no handler.
        self._empty_resources: set[GroupResource] = set()
        self._probing: set[GroupResource] = set()
        self._kinds: dict[tuple[str, str], _Kind | None] = {}
        #: Absent owners, and whether an object with their uid exists in another namespace.
        self._absent_owners: OrderedDict[tuple[Reference, str], bool] = OrderedDict()
        #: Keys of objects with owners of unknown kinds.
        self._unmapped: set[ObjectKey] = set()
        self._call: IDelayedCall | None = None
        self._sync_deadline = self.clock.seconds() + SYNC_TIMEOUT
        self.context.on_resources_changed(self._resources_changed)
        self._watch_resources()

    async def stop(self) -> None:
        """See L{Controller.stop}."""
        if self._call is not None and self._call.active():
            self._call.cancel()
        await super().stop()

    # --- resources

    def _resources_changed(self) -> None:
        # Many definitions may change at once.
        if self._call is None and not self.stopped:
            self._call = self.clock.callLater(COALESCE_DELAY, self._watch_resources)

    def _watch_resources(self) -> None:
        self._call = None
        self._kinds.clear()
        served = {info.group_resource: info for info in self.context.resources()}
        for resource in [one for one in self._monitors if one not in served]:
            del self._monitors[resource]
        self._empty_resources &= served.keys()
        self._probing &= served.keys()
        for resource, info in served.items():
            if resource in IGNORED:
                continue
            if self.context.is_cached(*resource):
                self._empty_resources.discard(resource)
                self._probing.discard(resource)
                self._monitor(info)
            elif (
                resource not in self._monitors
                and resource not in self._empty_resources
                and resource not in self._probing
            ):
                self._probing.add(resource)
                self._sync_deadline = self.clock.seconds() + SYNC_TIMEOUT
                self.queue.add(_ProbeResource(resource))
        unmapped, self._unmapped = self._unmapped, set()
        for object_key in unmapped:
            self.queue.add(object_key)

    def _monitor(self, info: ResourceInfo) -> None:
        informer = self.context.informer(info.group, info.resource)
        monitor = self._monitors.get(info.group_resource)
        if monitor is not None and monitor.informer is informer:
            return
        self._monitors[info.group_resource] = _Monitor(info, informer)

        def begin(result: None = None) -> None:
            if not self.stopped:
                changed = partial(self._changed, info.group_resource)
                self._registrations.append(informer.add_event_handler(changed, initial=False))
                self.queue.add(_ScanResource(info.group_resource))

        if informer.ready:
            begin()
        else:
            self._sync_deadline = self.clock.seconds() + SYNC_TIMEOUT
            informer.synced.addCallback(begin)

    async def _probe(self, resource: GroupResource) -> None:
        """Watch a custom resource if it has objects. An empty one is not cached."""
        info = next((info for info in self.context.resources() if info.group_resource == resource), None)
        if info is None or resource not in self._probing:
            return
        has_objects = await self.context.stores.any_stored(info)
        if resource not in self._probing:
            return
        self._probing.discard(resource)
        if has_objects:
            self._monitor(info)
        else:
            self._empty_resources.add(resource)

    async def _scan(self, resource: GroupResource) -> None:
        monitor = self._monitors.get(resource)
        if monitor is None:
            return
        for record in monitor.informer.iterate():
            if _OWNED in record.item or _DELETED in record.item:
                current = monitor.informer.by_key(record.key)
                if current is not None:
                    object_key = ObjectKey(resource, record.key)
                    self._update_graph(object_key, current)
                    # Enqueue known objects too: the resource may have been unserved for a while.
                    self.queue.add(object_key)
            await self.yield_to_reactor()
        monitor.scanned = True

    @property
    def _graph_synced(self) -> bool:
        """Whether all dependents are in the graph, or the timeout for that has passed."""
        if self.clock.seconds() >= self._sync_deadline:
            return True
        return not self._probing and all(monitor.scanned for monitor in self._monitors.values())

    # --- events

    def _changed(self, resource: GroupResource, event_type: str, record: Record, old: Record | None) -> None:
        if event_type == DELETED:
            if not self.graph.empty:
                self._remove_from_graph(ObjectKey(resource, record.key), record)
            return
        item = record.item
        object_key = ObjectKey(resource, record.key)
        if _OWNED in item or _DELETED in item or self.graph.node(object_key) is not None:
            self._update_graph(object_key, record)

    def _update_graph(self, object_key: ObjectKey, record: Record) -> None:
        graph = self.graph
        meta = orjson.loads(record.item)["metadata"]
        uid = meta.get("uid") or ""
        finalizers = meta.get("finalizers") or ()
        being_deleted = bool(meta.get("deletionTimestamp"))
        orphaning, deleting_dependents = ORPHAN in finalizers, FOREGROUND in finalizers
        owners = meta.get("ownerReferences")
        if owners or graph.node(object_key) is not None:
            fresh, unblocked = graph.put(
                object_key,
                uid,
                map(Reference.from_object, owners or ()),
                being_deleted=being_deleted,
                orphaning=orphaning,
                deleting_dependents=deleting_dependents,
            )
            if fresh:
                self.queue.add(object_key)
            self._enqueue_unblocked(unblocked)
        if being_deleted and orphaning:
            self.queue.add(object_key)
        elif being_deleted and deleting_dependents:
            if uid not in graph.waiting:
                graph.waiting[uid] = object_key
                self.queue.add(_EnqueueDependents(uid))
                self.queue.add(object_key)
        else:
            graph.waiting.pop(uid, None)

    def _remove_from_graph(self, object_key: ObjectKey, record: Record) -> None:
        uid = _uid(record)
        unblocked = self.graph.remove(object_key)[1]
        self.graph.waiting.pop(uid, None)
        if self.graph.has_dependents(uid):
            self.queue.add(_EnqueueDependents(uid))
        self._enqueue_unblocked(unblocked)

    def _enqueue_unblocked(self, unblocked: Collection[str]) -> None:
        """Enqueue owners in foreground deletion that no dependent blocks any more."""
        for uid in unblocked:
            object_key = self.graph.waiting.get(uid)
            if object_key is not None:
                self.queue.add(object_key)

    # --- sync

    async def sync(self, key: _Task) -> None:
        """See L{Controller.sync}."""
        match key:
            case ObjectKey():
                await self._attempt_to_delete(key)
            case _EnqueueDependents():
                for node in self.graph.dependents(key.uid):
                    self.queue.add(node.object_key)
                    await self.yield_to_reactor()
            case _ScanResource():
                await self._scan(key.resource)
            case _ProbeResource():
                await self._probe(key.resource)

    def _monitored(self, object_key: ObjectKey) -> tuple[ResourceInfo, Record] | None:
        """Return the resource and record of an object, or L{None} if the informer does not have it."""
        monitor = self._monitors.get(object_key.resource)
        record = None if monitor is None else monitor.informer.by_key(object_key.key)
        return None if monitor is None or record is None else (monitor.info, record)

    async def _attempt_to_delete(self, object_key: ObjectKey) -> None:
        self._unmapped.discard(object_key)
        monitored = self._monitored(object_key)
        if monitored is None:
            return
        info, record = monitored
        if _DELETED in record.item:
            meta = orjson.loads(record.item)["metadata"]
            if meta.get("deletionTimestamp"):
                await self._process_deleting_item(object_key, record, meta)
                return
        node = self.graph.node(object_key)
        if node is not None:
            await self._delete_or_remove_owners(info, record, node)

    async def _process_deleting_item(self, object_key: ObjectKey, record: Record, meta: JSONObject) -> None:
        """Process an object that is being deleted: orphan or delete its dependents first."""
        finalizers = meta.get("finalizers") or ()
        if ORPHAN not in finalizers and FOREGROUND not in finalizers:
            return
        if not self._graph_synced:
            self.queue.add_after(object_key, RETRY_DELAY)
            return
        uid = meta["uid"]
        if ORPHAN in finalizers:
            await self._orphan_dependents(uid)
            await self._change(object_key, uid, _without_finalizer(ORPHAN))
        elif not self.graph.has_blocking_dependents(uid):
            await self._change(object_key, uid, _without_finalizer(FOREGROUND))
        elif self.graph.in_blocking_cycle(uid):
            await self._change(object_key, uid, _clear_block_owner_deletion)

    async def _orphan_dependents(self, uid: str) -> None:
        """
        Remove an owner from the owner references of all its dependents.

        @raise APIStatusError: A dependent cannot be changed.
        """
        # The second pass is for dependents that were added during the first.
        for _ in range(2):
            dependents = self.graph.dependents(uid)
            errors = await parallelize(
                dependents,
                lambda node: self._change(node.object_key, node.uid, _without_owners({uid})),
                self.yield_to_reactor,
            )
            if errors:
                raise errors[0]

    async def _delete_or_remove_owners(self, info: ResourceInfo, record: Record, node: Node) -> None:
        """Delete an object without solid owners; otherwise remove its dangling and waiting owner references."""
        solid, dangling, waiting = False, set(), set()
        for reference in node.references:
            await self.yield_to_reactor()
            try:
                present = await self._owner_exists(reference, info, record, node)
            except _NamespacedOwnerOfClusterScoped:
                return
            if not present:
                dangling.add(reference.uid)
            elif reference.uid in self.graph.waiting:
                waiting.add(reference.uid)
            else:
                solid = True
        if solid:
            if dangling or waiting:
                await self._change(node.object_key, node.uid, _without_owners(dangling | waiting))
            return
        revision: int | None = record.revision
        if waiting and self.graph.has_dependents(node.uid):
            if any(one.uid in self.graph.waiting for one in self.graph.dependents(node.uid)):
                # A dependent waits for its dependents too, so there may be a cycle: unblock it.
                await self._change(node.object_key, node.uid, _clear_block_owner_deletion)
                revision = None
            policy = "Foreground"
        elif node.orphaning:
            policy = "Orphan"
        else:
            policy = "Foreground" if node.deleting_dependents else "Background"
        try:
            await self.client.delete(
                info.group,
                info.resource,
                record.namespace,
                record.name,
                uid=node.uid,
                revision=revision,
                propagation=policy,
            )
        except APIStatusError as error:
            if error.code != 404:
                raise

    async def _change(self, object_key: ObjectKey, uid: str, change: Callable[[JSONObject], None]) -> None:
        """Update an object. Do nothing if it was deleted."""
        monitored = self._monitored(object_key)
        if monitored is None:
            return
        info, record = monitored
        try:
            await self.client.update(info.group, info.resource, record.namespace, record.name, change, uid=uid)
        except APIStatusError as error:
            if error.code != 404:
                raise

    # --- owners

    async def _owner_exists(self, reference: Reference, info: ResourceInfo, record: Record, node: Node) -> bool:
        """
        Return whether an owner exists.

        @raise APIStatusError: The kind of the owner is unknown, which may change.
        @raise _NamespacedOwnerOfClusterScoped: The owner is namespaced and the dependent is not.
        """
        kind = self._kind(reference)
        if kind is None:
            self._unmapped.add(node.object_key)
            raise APIStatusError(404, "NotFound", f"no matches for {reference.kind} in {reference.api_version}")
        if kind.namespaced and not info.namespaced:
            raise _NamespacedOwnerOfClusterScoped
        namespace = record.namespace if kind.namespaced else ""
        cache_key = reference._replace(block_owner_deletion=False), namespace
        elsewhere = self._absent_owners.get(cache_key)
        if elsewhere is None:
            store = await self.context.store(*kind.resource)
            if kind.resource not in self._monitors and kind.resource not in IGNORED:
                # From now on deletions of owners of this kind must be watched.
                self._monitor(store.info)
            owner = store.cache.get(store.cache_key(namespace, reference.name))
            if owner is not None and _uid(owner) == reference.uid:
                return True
            if await _stored_uid(store, namespace, reference.name) == reference.uid:
                return True
            elsewhere = kind.namespaced and self._is_elsewhere(store, reference)
            self._absent_owners[cache_key] = elsewhere
            if len(self._absent_owners) > ABSENT_OWNER_CACHE_SIZE:
                self._absent_owners.popitem(last=False)
        else:
            self._absent_owners.move_to_end(cache_key)
        if elsewhere:
            self._record_event(reference, info, record, node)
        return False

    def _kind(self, reference: Reference) -> _Kind | None:
        key = reference.api_version, reference.kind
        if key not in self._kinds:
            group, _, version = reference.api_version.rpartition("/")
            resources = self.context.stores.resources_for_kind(group, version, reference.kind)
            kinds = [_Kind(GroupResource(group, plural), namespaced) for plural, namespaced in resources]
            served = [one for one in kinds if self.context.served(*one.resource)]
            if len(self._kinds) > ABSENT_OWNER_CACHE_SIZE:
                self._kinds.clear()
            self._kinds[key] = served[0] if served else None
        return self._kinds[key]

    def _is_elsewhere(self, store: Store, reference: Reference) -> bool:
        """Return whether the referenced owner exists in another namespace."""
        namespaces = self.context.stores.get("", "namespaces").cache.list().records
        candidates = (store.cache.get(f"{namespace.name}/{reference.name}") for namespace in namespaces)
        return any(candidate is not None and _uid(candidate) == reference.uid for candidate in candidates)

    def _record_event(self, reference: Reference, info: ResourceInfo, record: Record, node: Node) -> None:
        kind = GroupVersionKind(info.group, info.versions[0], info.kind)
        owner = (
            f"[{reference.api_version}/{reference.kind}, namespace: {record.namespace}, name: {reference.name}, "
            f"uid: {reference.uid}]"
        )
        involved = {"metadata": {"namespace": record.namespace, "name": record.name, "uid": node.uid}}
        message = f'ownerRef {owner} does not exist in namespace "{record.namespace}"'
        self.context.recorder(self.name).event(kind, involved, WARNING, "OwnerRefInvalidNamespace", message)


async def _stored_uid(store: Store, namespace: str, name: str) -> str | None:
    """Return the uid of an object in the storage backend, or L{None} if it does not exist."""
    key = store.cache_key(namespace, name)
    try:
        item = await store.backend.read(store.storage_key(key))
    except KeyNotFound:
        return None
    uid: str | None = store.decode_record(store.decode_value(key, item.value, item.revision))["metadata"].get("uid")
    return uid


def _without_finalizer(finalizer: str) -> Callable[[JSONObject], None]:
    def change(obj: JSONObject) -> None:
        meta = obj["metadata"]
        remaining = [one for one in meta.get("finalizers") or () if one != finalizer]
        if remaining:
            meta["finalizers"] = remaining
        else:
            meta.pop("finalizers", None)

    return change


def _without_owners(uids: Collection[str]) -> Callable[[JSONObject], None]:
    def change(obj: JSONObject) -> None:
        meta = obj["metadata"]
        remaining = [one for one in meta.get("ownerReferences") or () if one.get("uid") not in uids]
        if remaining:
            meta["ownerReferences"] = remaining
        else:
            meta.pop("ownerReferences", None)

    return change


def _clear_block_owner_deletion(obj: JSONObject) -> None:
    """Set C{blockOwnerDeletion} to false in all owner references of an object."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("blockOwnerDeletion"):
            owner["blockOwnerDeletion"] = False
