"""The container of the stores of a server, with reads of their objects from the watch caches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import orjson

from twisted.internet.defer import Deferred, FirstError, gatherResults

from ..api.errors import APIStatusError
from ..api.frozen import frozen
from ..api.record import Record
from ..api.resource import JSONObject
from ..storage.cache.watchcache import WatchCache
from ..storage.errors import StorageUnavailable
from .generic.resourceinfo import ResourceInfo
from .generic.store import Store

if TYPE_CHECKING:
    from .customresources.served import ServedResource


#: The resources whose caches, if they are large, are filled when they are needed. No code reads these caches without
#: waiting for them.
FILLED_ON_DEMAND: Final = frozenset(
    [
        ("", "configmaps"),
        ("", "events"),
        ("apps", "controllerrevisions"),
        ("apps", "replicasets"),
        ("batch", "jobs"),
        ("events.k8s.io", "events"),
    ]
)


def decoded_object(record: Record) -> JSONObject:
    """Return the decoded, immutable object of a record; cached in the record."""
    views = record.views
    if views is None:
        views = record.views = {}
    obj: JSONObject | None = views.get(frozen)
    if obj is None:
        obj = views[frozen] = frozen(orjson.loads(record.item))
    return obj


class Stores:
    """
    The stores of a server, by group and resource.

    The container is created empty: L{kubetwist.registry.assembly.ResourceRegistry} adds the stores of built-in
    resources, and L{kubetwist.resources.customresources.CustomResources} those of custom resources. Components that
    read objects later, such as authorizers, are constructed with it before.

    @ivar infos: All built-in resources, including those without objects.
    @ivar custom: The served custom resources, by the names of their CustomResourceDefinitions.
    """

    def __init__(self) -> None:
        self.infos: dict[tuple[str, str], ResourceInfo] = {}
        self.custom: dict[str, ServedResource] = {}
        self._stores: dict[tuple[str, str], Store] = {}

    def add(self, info: ResourceInfo, store: Store | None) -> None:
        """
        Add a built-in resource.

        @param store: The store of the resource; L{None} for a resource without objects.
        """
        self.infos[info.group, info.resource] = info
        if store is not None:
            self._stores[info.group, info.resource] = store

    def get(self, group: str, resource: str) -> Store:
        """
        Return the store of a resource.

        @raise KeyError: The resource is not served, or has no objects.
        """
        return self._stores[group, resource]

    def find(self, group: str, resource: str) -> Store | None:
        """Return the store of a resource; L{None} if --runtime-config disables it."""
        return self._stores.get((group, resource))

    def __iter__(self) -> Iterator[Store]:
        return iter(self._stores.values())

    def get_copy(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """
        Return a copy of an object; L{None} if it does not exist.

        @param namespace: The namespace of the object; C{""} for cluster-scoped resources.
        @param name: The name of the object.
        """
        store = self.find_cached(group, resource)
        if store is None:
            return None
        record = store.cache.get(store.cache_key(namespace, name))
        return None if record is None else orjson.loads(record.item)

    def get_decoded(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """
        Return the decoded, immutable object that all callers share; L{None} if it does not exist.

        @param namespace: The namespace of the object; C{""} for cluster-scoped resources.
        @param name: The name of the object.
        """
        store = self.find_cached(group, resource)
        if store is None:
            return None
        record = store.cache.get(store.cache_key(namespace, name))
        return None if record is None else decoded_object(record)

    def sizes(self, group: str, resource: str) -> tuple[int, int] | None:
        """Return the number and the average size in bytes of the objects of a resource; L{None} without a cache."""
        store = self.find_cached(group, resource)
        return None if store is None else store.cache.sizes()

    def count_watches(self, group: str, resource: str, namespace: str, name: str) -> int:
        """
        Return the number of watches of this server that receive the events of an object.

        @param group: The group of the resource.
        @param resource: The resource.
        @param namespace: The namespace of the object; C{""} for none.
        @param name: The name of the object; C{""} if it has none yet.
        """
        store = self.find_cached(group, resource)
        return 0 if store is None else store.cache.count_watches(store.cache_key(namespace, name))

    def release_memory(self) -> None:
        """Drop the joined forms of objects, which caches keep for lists."""
        for store in self:
            store.cache.forms.clear()
        for served in self.custom.values():
            if served.ready:
                served.cache.forms.clear()

    def cache(self, group: str, resource: str) -> WatchCache | None:
        """Return the cache of a resource; L{None} if it does not exist, or is not filled yet."""
        store = self.find_cached(group, resource)
        return None if store is None else store.cache

    def list_copies(self, group: str, resource: str, namespace: str = "") -> list[JSONObject]:
        """See L{kubetwist.api.admission.AdmissionContext.list_copies}."""
        return [orjson.loads(record.item) for record in self.records(group, resource, namespace)]

    def list_decoded(self, group: str, resource: str, namespace: str = "") -> list[JSONObject]:
        """See L{kubetwist.api.admission.AdmissionContext.list_decoded}."""
        return [decoded_object(record) for record in self.records(group, resource, namespace)]

    def list_lazy(self, group: str, resource: str, namespace: str = "") -> list[Callable[[], JSONObject]]:
        """See L{kubetwist.api.admission.AdmissionContext.list_lazy}."""
        return [partial(orjson.loads, record.item) for record in self.records(group, resource, namespace)]

    def resources_for_kind(self, group: str, version: str, kind: str) -> list[tuple[str, bool]]:
        """See L{kubetwist.api.admission.AdmissionContext.resources_for_kind}."""
        resources = [
            (store.info.resource, store.info.namespaced)
            for store in self._stores.values()
            if store.info.group == group and store.info.kind == kind and version in store.info.versions
        ]
        # CRDs are large, and most are of other groups: skip those before decoding them.
        encoded_group = orjson.dumps(group)
        for record in self.records("apiextensions.k8s.io", "customresourcedefinitions", ""):
            if encoded_group not in record.item:
                continue
            crd = decoded_object(record)
            spec, names = crd.get("spec") or {}, (crd.get("status") or {}).get("acceptedNames") or {}
            served = any(
                served_version["name"] == version and served_version.get("served")
                for served_version in spec.get("versions") or ()
            )
            if spec.get("group") == group and names.get("kind") == kind and served:
                resources.append((names["plural"], spec.get("scope") == "Namespaced"))
        return resources

    async def ensure_cached(self, group: str, resource: str) -> bool:
        """See L{kubetwist.api.admission.AdmissionContext.ensure_cached}."""
        store = self._stores.get((group, resource))
        if store is not None:
            await store.cache.on_demand.ensure()
            return True
        served = self.custom.get(f"{resource}.{group}")
        if served is not None:
            await served.start()
        return served is not None

    async def any_stored(self, info: ResourceInfo, namespace: str = "") -> bool:
        """Return whether a custom resource has an object, without filling its cache."""
        served = self.custom.get(str(info.group_resource))
        return served is not None and await served.any_stored(namespace)

    def find_cached(self, group: str, resource: str) -> Store | None:
        """Return the store of a built-in resource, or of a custom resource whose cache is filled; else L{None}."""
        store = self._stores.get((group, resource))
        if store is not None or not self.custom:
            return store
        served = self.custom.get(f"{resource}.{group}")
        return served.main if served is not None and served.ready else None

    def records(self, group: str, resource: str, namespace: str = "") -> list[Record]:
        """
        Return the records of the objects of a resource; nothing if it does not exist.

        @param namespace: The namespace; C{""} for all.
        """
        store = self.find_cached(group, resource)
        if store is None:
            return []
        cache = store.cache
        if cache.empty:
            return []
        return cache.list(f"{namespace}/" if namespace and store.info.namespaced else "").records

    async def start(self) -> None:
        """
        Fill the caches of all built-in resources, except large ones of L{FILLED_ON_DEMAND}; then the stores can serve
        requests.

        @raise StorageUnavailable: The storage cannot be read.
        """
        caches = {store.cache: resource in FILLED_ON_DEMAND for resource, store in self._stores.items()}
        starts = [Deferred.fromCoroutine(cache.start(on_demand=on_demand)) for cache, on_demand in caches.items()]
        try:
            await gatherResults(starts, consumeErrors=True)
        except FirstError as error:
            # All caches read the same backend: the first error is enough.
            error.subFailure.raiseException()
        for store in self._stores.values():
            try:
                store.on_cache_synced()
            except APIStatusError as error:
                raise StorageUnavailable(error.message) from error

    def stop(self) -> None:
        """Stop the watches of the backend, and all watches of clients for built-in resources."""
        for cache in dict.fromkeys(store.cache for store in self._stores.values()):
            cache.stop()
