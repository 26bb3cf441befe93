"""A served custom resource: its cache and stores, created at the first request for an object."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure

from ...api.decoding import decode_cbor
from ...api.documents import CBOR_MAGIC
from ...api.jsontypes import JSONValue
from ...api.record import (
    Record,
    StaleFormatRecord,
)
from ...schema.mismatch import DecodeError
from ...storage.cache.watchcache import WatchCache
from ..generic.caches import WatchCaches
from ..generic.environment import StoredResource, StoreEnvironment
from .codec import CustomCodec, OldVersionRecord, RenamedRecord
from .conversion import InFlightConversions
from .crd import CustomDefinition, CustomVersion
from .fieldmanager import CustomVersionConverter
from .store import CustomStore


def _ignore() -> None:
    """Do nothing."""


class ServedResource:
    """
    One custom resource.

    @ivar terminating: Whether the objects of the CRD are being deleted; no new ones may be created.
    @ivar codec: The codec of the storage version.
    @ivar versions: All versions, for field ownership.
    @ivar in_flight: Running conversions of its objects.
    """

    _log = Logger()

    def __init__(
        self,
        definition: CustomDefinition,
        environment: StoreEnvironment,
        caches: WatchCaches,
        in_thread: Callable[..., Deferred[JSONValue]] | None = None,
        *,
        terminating: bool = False,
        on_ready: Callable[[], object] = _ignore,
    ) -> None:
        """
        @param definition: The CRD.
        @param environment: The environment of the stores of custom resources.
        @param caches: Creates the cache of the objects.
        @param in_thread: Runs a function in a thread; without it everything runs in the reactor's thread.
        @param on_ready: Called when the cache is filled.
        """
        self._in_thread = in_thread
        self.definition = definition
        self.terminating = terminating
        self.codec = CustomCodec(definition.version(definition.storage_version))
        self.versions = CustomVersionConverter(definition)
        self.in_flight = InFlightConversions()
        self._environment = environment
        self._caches = caches
        self._on_ready = on_ready
        self._cache: WatchCache | None = None
        self._waiting: list[Deferred[None]] = []
        self._stores: dict[str, CustomStore] = {}
        self._stopped = False

    @property
    def ready(self) -> bool:
        """Return whether the cache is filled."""
        return self._cache is not None and (self._cache.ready or not self._waiting)

    @property
    def cache(self) -> WatchCache:
        """Return the cache of all objects; only when L{ready}."""
        assert self._cache is not None
        return self._cache

    def start(self) -> Deferred[None]:
        """Fill the cache unless it is filled; return when its objects are available."""
        if self.ready or self._stopped:
            return succeed(None)
        waiter: Deferred[None] = Deferred()
        self._waiting.append(waiter)
        if self._cache is None:
            self._cache = self._caches.create(self.definition.info, self.decode_value)
            Deferred.fromCoroutine(self._start(self._cache)).addBoth(self._started)
        return waiter

    async def _start(self, cache: WatchCache) -> None:
        definition = self.definition
        if self._in_thread is not None and definition.is_large:
            object_meta = definition.definitions.custom_metadata
            object_meta.compiled()
            definition.use(await self._in_thread(definition.compile, object_meta))
        await cache.start()

    def _started(self, result: Failure | None) -> None:
        waiting, self._waiting = self._waiting, []
        if isinstance(result, Failure):
            self._cache = None
        elif self._stopped and self._cache is not None:
            self._cache.stop()
        for waiter in waiting:
            if isinstance(result, Failure):
                waiter.errback(result)
            else:
                waiter.callback(None)
        if self.ready and not self._stopped:
            self._on_ready()

    def stop(self) -> None:
        """Stop the watches and release the cache."""
        self._stopped = True
        if self.definition.conversion is not None:
            self.definition.conversion.close()
        if self._cache is not None and not self._waiting:
            self._cache.stop()

    def store(self, version: CustomVersion) -> CustomStore:
        """Return the store of a version; only when L{ready}."""
        store = self._stores.get(version.name)
        if store is None:
            # Imported with the first use of a definition.
            from .strategy import CustomStrategy

            definition = self.definition
            cache = self.cache
            strategy = CustomStrategy(version).with_features(self._environment.features)
            resource = StoredResource(definition.info, lambda: strategy, lambda codec: cache, definition.selectable())
            store = CustomStore(resource, self._environment, self, CustomCodec(version))
            self._stores[version.name] = store
        return store

    async def any_stored(self, namespace: str = "") -> bool:
        """Return whether an object exists, by a read of the backend that fills no cache."""
        environment, info = self._environment, self.definition.info
        below = f"{namespace}/" if namespace and info.namespaced else ""
        page = await environment.backend.read_page(f"{environment.prefix}{info.key_prefix}/{below}", limit=1)
        return bool(page.items)

    @property
    def main(self) -> CustomStore:
        """Return the store of the storage version."""
        return self.store(self.definition.version(self.definition.storage_version))

    def decode_value(self, key: str, value: bytes, revision: int) -> Record:
        """
        Return the cache's record of a stored value: pruned, and with the defaults of the version in which it is stored.

        If that is not the storage version, the record has another class. If a webhook or plugin converts, it keeps
        its version until it is read.
        """
        # kube-apiserver stores custom resources as CBOR if its feature gate is on, and always reads both formats.
        is_cbor = value.startswith(CBOR_MAGIC)
        obj = decode_cbor(value).value if is_cbor else orjson.loads(value)
        definition = self.definition
        stored = str(obj.get("apiVersion", "")).rpartition("/")[2]
        version = definition.find(stored)
        if version is None and definition.conversion is None:
            version = definition.version(definition.storage_version)
        raw = obj
        try:
            if version is not None:
                obj = version.type.decode(obj, [])
        except DecodeError as error:
            self._log.warn(
                "malformed custom resource in storage: key={key} crd={crd} error={error}",
                key=key,
                crd=definition.name,
                error=error,
            )
        changed = is_cbor is not self._environment.stores_cbor or obj != raw
        meta = obj.setdefault("metadata", {})
        meta.setdefault("generation", 1)
        if definition.namespaced and not meta.get("namespace"):
            meta["namespace"] = key.partition("/")[0]
        draft = self.main.encode(obj)
        if stored == definition.storage_version:
            # The next update writes the result of the current schema, even if it changes nothing.
            return (StaleFormatRecord if changed else Record).from_draft(key, revision, draft)
        if definition.conversion is not None:
            return OldVersionRecord(key, revision, draft, stored)
        return RenamedRecord(key, revision, self.main.encode(self.codec.pruned(obj)), draft)
