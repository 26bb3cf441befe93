"""All stores of a server: made from the table of kinds, started and stopped together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import orjson

from twisted.internet.defer import Deferred, gatherResults

from ..admission.chain import AdmissionChain
from ..api.resource import GroupResource, JSONObject
from ..interfaces import IStorageBackend
from ..storage.record import Record
from ..storage.watchcache import WatchCache
from .fieldselectors import selectable_fields
from .kinds import ResourceInfo
from .namespaces import NamespaceStore
from .store import Store
from .strategies import strategy_for

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorTime

#: Resources whose storage knows more than the generic store does.
SPECIAL: dict[tuple[str, str], Callable[..., Store]] = {
    ("", "namespaces"): NamespaceStore,
}


class Stores:
    """
    The store of every stored resource, and what they share.

    Resources that are stored at the same place (C{events} of two groups) share one cache. This is also what admission
    plugins see of the server: L{lookup}.
    """

    def __init__(
        self,
        backend: IStorageBackend,
        reactor: IReactorTime,
        *,
        prefix: str = "/registry/",
        event_ttl: float | None = 3600.0,
        windows: Mapping[GroupResource, Mapping[str, int]] | None = None,
    ) -> None:
        """
        @param prefix: Of all keys in the backend.
        @param event_ttl: Seconds that events are kept.
        @param windows: Limits of watch caches that differ from the usual ones, as arguments of L{WatchCache}.
        """
        self.backend = backend
        self.admission = AdmissionChain()
        self._reactor = reactor
        self._prefix = prefix
        self._event_ttl = event_ttl
        self._windows = windows or {}
        self._caches: dict[str, WatchCache] = {}
        #: By place: the store whose rules say how what is there is decoded.
        self._owners: dict[str, Store] = {}
        self._stores: dict[tuple[str, str], Store] = {}

    def add(self, infos: Iterable[ResourceInfo]) -> None:
        """Make a store for each resource that has objects."""
        for info in infos:
            if info.stored:
                self._stores[info.group, info.resource] = self._make(info)

    def _make(self, info: ResourceInfo) -> Store:
        place = info.key_prefix
        cache = self._caches.get(place)
        if cache is None:
            codec = partial(self._record, place)
            cache = self._caches[place] = WatchCache(
                self.backend,
                f"{self._prefix}{place}/",
                codec,
                self._reactor,
                **self._windows.get(info.group_resource, {}),
            )
        make = SPECIAL.get((info.group, info.resource), Store)
        store = make(
            info,
            strategy_for(info.group, info.kind),
            self.backend,
            cache,
            self.admission,
            self,
            selectable=selectable_fields(info.storage_group, info.resource),
            ttl=self._event_ttl if place == "events" else None,
            prefix=self._prefix,
        )
        self._owners.setdefault(place, store)
        return store

    def _record(self, place: str, key: str, value: bytes, revision: int) -> Record:
        return self._owners[place].record(key, value, revision)

    def get(self, group: str, resource: str) -> Store:
        """
        The store of a resource.

        @raise KeyError: The resource is not served, or has no objects.
        """
        return self._stores[group, resource]

    def __iter__(self) -> Iterator[Store]:
        return iter(self._stores.values())

    def use(self, admission: AdmissionChain) -> None:
        """Have all writes from now on pass this chain."""
        self.admission = admission
        for store in self._stores.values():
            store.admission = admission

    def lookup(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """See L{kubetwist.admission.attributes.AdmissionContext.lookup}."""
        store = self._stores.get((group, resource))
        if store is None:
            return None
        record = store.cache.get(store.key(namespace, name))
        return None if record is None else orjson.loads(record.item)

    async def start(self) -> None:
        """Load every cache; the stores serve from then on."""
        await gatherResults([Deferred.fromCoroutine(cache.start()) for cache in self._caches.values()])

    def stop(self) -> None:
        """Let go of the backend's watches, and end all watches of clients."""
        for cache in self._caches.values():
            cache.stop()
