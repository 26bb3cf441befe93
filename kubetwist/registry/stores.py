"""All stores of a server: made from the table of kinds, started and stopped together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import orjson

from twisted.internet.defer import Deferred, FirstError, gatherResults
from zope.interface import alsoProvides

from ..admission.attributes import Commit
from ..admission.chain import AdmissionChain
from ..api.errors import APIStatusError
from ..api.frozen import frozen
from ..api.options import CreateOptions
from ..api.requestscope import RequestScope
from ..api.resource import GroupResource, GroupVersionKind, JSONObject
from ..api.storage import Write
from ..api.times import now
from ..interfaces import IAuthorizer, IStorageBackend, IUnreadableDeleter
from ..schema.protobuf.wire import WireError
from ..storage.cache.reader import Codec
from ..storage.cache.record import Record
from ..storage.cache.watchcache import WINDOW_EVENTS, WatchCache
from ..storage.errors import ForeignValue, KeyNotFound, RevisionConflict, StorageUnavailable
from ..storage.wrappers import shared_storage
from .apiextensions.store import DefinitionStore
from .core.namespace.store import NamespaceStore
from .core.node.kubelets import ConnectionRules
from .core.service.allocator import Holdings, ServiceAllocator
from .core.service.allocatorsync import Following
from .core.service.ipaddresses import IPAddressStore
from .core.service.portallocator import NodePortAllocator
from .core.service.store import ServiceStore
from .generic.bootstrap import SERVER
from .generic.fieldmanager.manager import FieldManager, built_in_field_manager
from .generic.fieldselectors import selectable_fields
from .generic.objectwait import appeared
from .generic.resourceinfo import ResourceInfo
from .generic.store import Store
from .generic.storedprotobuf import decode_stored, encode_stored
from .generic.strategy import Strategy
from .generic.updates import ATTEMPTS
from .networking.store import ServiceCIDRStore
from .rbac.ruleresolver import GROUP as RBAC
from .rbac.ruleresolver import Grants
from .rbac.store import BindingStore, RoleStore
from .resource.store import ClaimStore
from .scheduling.store import PriorityClassStore
from .strategies import strategy_for
from .versions import FindCustom, Versions

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorTime

    from ..client.factory import Outgoing
    from ..schema.definitions import Definitions
    from .core.service.portregistry import SharedPorts

#: Resources whose storage knows more than the generic store does.
SPECIAL: dict[tuple[str, str], Callable[..., Store]] = {
    ("", "namespaces"): NamespaceStore,
    ("", "services"): ServiceStore,
    ("networking.k8s.io", "ipaddresses"): IPAddressStore,
    ("networking.k8s.io", "servicecidrs"): ServiceCIDRStore,
    (RBAC, "clusterroles"): RoleStore,
    (RBAC, "roles"): RoleStore,
    (RBAC, "clusterrolebindings"): BindingStore,
    (RBAC, "rolebindings"): BindingStore,
    ("apiextensions.k8s.io", "customresourcedefinitions"): DefinitionStore,
    ("scheduling.k8s.io", "priorityclasses"): PriorityClassStore,
    ("resource.k8s.io", "resourceclaims"): ClaimStore,
    ("resource.k8s.io", "resourceclaimtemplates"): ClaimStore,
}

#: Groups whose objects are JSON in any case, as those of the servers that the reference has for them.
ALWAYS_JSON: Final = ("apiextensions.k8s.io", "apiregistration.k8s.io")

#: The release that there is without definitions.
NEWEST: Final = "1.36"

#: Makes a store from the arguments that all have.
_Custom = Callable[..., Store]


def seen(record: Record) -> JSONObject:
    """An object as those see it who only look; decoded once."""
    views = record.views
    if views is None:
        views = record.views = {}
    obj: JSONObject | None = views.get(frozen)
    if obj is None:
        obj = views[frozen] = frozen(orjson.loads(record.item))
    return obj


class Stores:
    """
    The store of every stored resource, and what they share.

    Resources that are stored at the same place (C{events} of two groups) share one cache. This is also what admission
    plugins see of the server: L{lookup}.

    @ivar grants: What roles and bindings say.
    @ivar allow_privileged: Whether containers may be privileged.
    @ivar traced: Requests leave spans.
    @ivar authorizer: Asked where a write needs more than what its request was allowed for; L{None} allows no more.
    """

    def __init__(
        self,
        backend: IStorageBackend,
        reactor: IReactorTime,
        *,
        prefix: str = "/registry/",
        event_ttl: float | None = 3600.0,
        service_ranges: Sequence[str] = ("10.0.0.0/24",),
        node_ports: tuple[int, int] = (30000, 32767),
        delete_workers: int = 1,
        cache_sizes: Mapping[str, int] | None = None,
        default_cache_size: int = 100,
        traced: bool = False,
        protobuf: bool = False,
        open_gates: Collection[str] = (),
    ) -> None:
        """
        @param prefix: Of all keys in the backend.
        @param event_ttl: Seconds that events are kept.
        @param service_ranges: Where cluster IPs come from: one range, or one of each family.
        @param node_ports: The first and the last.
        @param delete_workers: How many objects one C{deletecollection} deletes at a time.
        @param cache_sizes: How many past events are kept at least, by resource (C{"deployments.apps"}); 0 has reads
            answered by the backend instead of the cache.
        @param default_cache_size: The same for all other resources.
        @param protobuf: Whether objects are stored as protobuf, where kube-apiserver does so, and not as JSON.
        @param open_gates: The feature gates that were opened.
        """
        self.backend = backend
        self.admission = AdmissionChain()
        self.grants = Grants(self)
        self.authorizer: IAuthorizer | None = None
        self.allow_privileged = True
        self.traced = traced
        self.reactor = reactor
        self._prefix = prefix
        self._protobuf = protobuf
        self._discards = "AllowUnsafeMalformedObjectDeletion" in open_gates
        self._event_ttl = event_ttl
        self._open_gates = open_gates
        #: What services take their addresses and ports from.
        self.services = ServiceAllocator(service_ranges, NodePortAllocator(*node_ports))
        #: What servers that share the storage agree on; L{None} where this is the only one.
        self.shared_ports: SharedPorts | None = None
        if shared_storage(backend) is not None:
            from .core.service.portregistry import SharedPorts

            self.shared_ports = SharedPorts(backend, prefix, self.services.ports, reactor, protobuf=protobuf)
        self._following: list[Following] = []
        self._delete_workers = delete_workers
        self._cache_sizes = cache_sizes or {}
        self._default_cache_size = default_cache_size
        #: The types of the release, by which ownership of the server's own objects is noted; L{None} leaves it out.
        self.definitions: Definitions | None = None
        self._fields: dict[tuple[GroupResource, str], FieldManager] = {}
        #: Every resource that is built in, also those without objects.
        self.infos: dict[tuple[str, str], ResourceInfo] = {}
        #: Finds a custom resource by the name of its definition; L{None} where there are none.
        self.find_custom: FindCustom | None = None
        self.versions = Versions(self)
        #: How plugins call others; L{None} where nobody is called.
        self.outgoing: Outgoing | None = None
        self.toleration_seconds = (300, 300)
        #: How kubelets are found.
        self.connection_rules = ConnectionRules()
        self._caches: dict[str, WatchCache] = {}
        #: By place: the store whose rules say how what is there is decoded.
        self._owners: dict[str, Store] = {}
        self._stores: dict[tuple[str, str], Store] = {}

    def add(self, infos: Iterable[ResourceInfo]) -> None:
        """Make a store for each resource that has objects."""
        for info in infos:
            self.infos[info.group, info.resource] = info
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
                self.reactor,
                window_events=max(self._cache_size(info), WINDOW_EVENTS),
            )
        strategy = strategy_for(info.group, info.kind)
        make = SPECIAL.get((info.group, info.resource), Store)
        store = make(
            info,
            strategy.with_gates(self._open_gates) if self._open_gates else strategy,
            self.backend,
            cache,
            self.admission,
            self,
            selectable=selectable_fields(info.storage_group, info.resource),
            ttl=self._event_ttl if place == "events" else None,
            prefix=self._prefix,
        )
        store.own = partial(self.own, store)
        store.apply = partial(self.apply, store)
        store.read_protobuf = self._read_protobuf
        if self._protobuf and info.group not in ALWAYS_JSON:
            store.write_protobuf = self._write_protobuf
        store.delete_workers = self._delete_workers
        store.cached = self._cache_size(info) > 0
        if self._discards:
            alsoProvides(store, IUnreadableDeleter)
        self._owners.setdefault(place, store)
        return store

    def custom_cache(self, info: ResourceInfo, codec: Codec) -> WatchCache:
        """A cache for a custom resource, which the caller starts and stops."""
        size = max(self._cache_size(info), WINDOW_EVENTS)
        prefix = f"{self._prefix}{info.key_prefix}/"
        return WatchCache(self.backend, prefix, codec, self.reactor, window_events=size)

    async def any_stored(self, info: ResourceInfo, namespace: str = "") -> bool:
        """Whether there is an object of a resource, by the backend: nothing is kept in memory for the answer."""
        below = f"{namespace}/" if namespace and info.namespaced else ""
        page = await self.backend.read_page(f"{self._prefix}{info.key_prefix}/{below}", limit=1)
        return bool(page.items)

    def custom_store(self, store: _Custom, info: ResourceInfo, strategy: Strategy, cache: WatchCache) -> Store:
        """
        A store of a custom resource.

        @param store: Its class, or what else makes it from the usual arguments.
        """
        made = store(info, strategy, self.backend, cache, self.admission, self, prefix=self._prefix)
        made.delete_workers = self._delete_workers
        if self._discards:
            alsoProvides(made, IUnreadableDeleter)
        return made

    def own(self, store: Store, live: JSONObject | None, obj: JSONObject, subresource: str, manager: str) -> None:
        """Note in C{obj} that the part of this server called C{manager} writes it."""
        if self.definitions is not None:
            self._fields_of(self.definitions, store, subresource).update(live, obj, manager, now())

    def apply(self, store: Store, live: JSONObject, applied: JSONObject, subresource: str, manager: str) -> JSONObject:
        """The subresource of an object with what the part of this server called C{manager} applies to it."""
        if self.definitions is None:
            return {**live, subresource: applied[subresource]}
        fields = self._fields_of(self.definitions, store, subresource)
        merged = fields.apply(live, applied, manager, now(), force=True)
        # Decoding adds fields that Go never omits, such as the reason of a condition, and that have no owner.
        return self.definitions.type_for(store.gvk).decode(merged, [])

    def _fields_of(self, definitions: Definitions, store: Store, subresource: str) -> FieldManager:
        key = store.info.group_resource, subresource
        fields = self._fields.get(key)
        if fields is None:
            fields = built_in_field_manager(definitions, store.info, store.info.storage_version, subresource)
            self._fields[key] = fields
        return fields

    def _cache_size(self, info: ResourceInfo) -> int:
        return self._cache_sizes.get(str(info.group_resource), self._default_cache_size)

    def _record(self, place: str, key: str, value: bytes, revision: int) -> Record:
        return self._owners[place].record(key, value, revision)

    def _read_protobuf(self, value: bytes) -> JSONObject:
        if self.definitions is None:
            raise ForeignValue("it is encoded as protobuf, which no types are known of")
        return decode_stored(self.definitions, value)

    def _write_protobuf(self, gvk: GroupVersionKind, body: bytes) -> bytes:
        assert self.definitions is not None, "whoever asks for protobuf has types"
        try:
            return encode_stored(self.definitions, gvk, body)
        except WireError as error:
            raise APIStatusError.internal(str(error)) from error

    def get(self, group: str, resource: str) -> Store:
        """
        The store of a resource.

        @raise KeyError: The resource is not served, or has no objects.
        """
        return self._stores[group, resource]

    def find(self, group: str, resource: str) -> Store | None:
        """The store of a resource, or L{None} for one that --runtime-config has switched off."""
        return self._stores.get((group, resource))

    def __iter__(self) -> Iterator[Store]:
        return iter(self._stores.values())

    def use(self, admission: AdmissionChain) -> None:
        """Have all writes from now on pass this chain."""
        self.admission = admission
        for store in self._stores.values():
            store.admission = admission

    def lookup(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """See L{kubetwist.admission.attributes.AdmissionContext.lookup}."""
        store = self._loaded(group, resource)
        if store is None:
            return None
        record = store.cache.get(store.key(namespace, name))
        return None if record is None else orjson.loads(record.item)

    def view(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """See L{kubetwist.admission.attributes.AdmissionContext.view}."""
        store = self._loaded(group, resource)
        if store is None:
            return None
        record = store.cache.get(store.key(namespace, name))
        return None if record is None else seen(record)

    async def appears(self, group: str, resource: str, namespace: str, name: str, seconds: float) -> JSONObject | None:
        """See L{kubetwist.admission.attributes.AdmissionContext.appears}."""
        store = self._loaded(group, resource)
        if store is None:
            return None
        record = await appeared(store.cache, store.key(namespace, name), seconds, self.reactor)
        return None if record is None else seen(record)

    def sizes(self, group: str, resource: str) -> tuple[int, int] | None:
        """How many objects there are of a resource, and about how many bytes one has; L{None} where it is not known."""
        store = self._loaded(group, resource)
        return None if store is None else store.cache.sizes()

    def cache(self, group: str, resource: str) -> WatchCache | None:
        """The cache of a resource; L{None} where there is none, or not yet."""
        store = self._loaded(group, resource)
        return None if store is None else store.cache

    def lookup_all(self, group: str, resource: str, namespace: str = "") -> list[JSONObject]:
        """See L{kubetwist.admission.attributes.AdmissionContext.lookup_all}."""
        return [orjson.loads(record.item) for record in self._records(group, resource, namespace)]

    def views(self, group: str, resource: str, namespace: str = "") -> list[JSONObject]:
        """See L{kubetwist.admission.attributes.AdmissionContext.views}."""
        return [seen(record) for record in self._records(group, resource, namespace)]

    def loaders(self, group: str, resource: str, namespace: str = "") -> list[Callable[[], JSONObject]]:
        """See L{kubetwist.admission.attributes.AdmissionContext.loaders}."""
        return [partial(orjson.loads, record.item) for record in self._records(group, resource, namespace)]

    def resources_of(self, group: str, version: str, kind: str) -> list[tuple[str, bool]]:
        """See L{kubetwist.admission.attributes.AdmissionContext.resources_of}."""
        found = [
            (store.info.resource, store.info.namespaced)
            for store in self._stores.values()
            if store.info.group == group and store.info.kind == kind and version in store.info.versions
        ]
        # Definitions are large, and most are of other groups.
        mark = orjson.dumps(group)
        for record in self._records("apiextensions.k8s.io", "customresourcedefinitions", ""):
            if mark not in record.item:
                continue
            definition = seen(record)
            spec, names = definition.get("spec") or {}, (definition.get("status") or {}).get("acceptedNames") or {}
            served = any(one["name"] == version and one.get("served") for one in spec.get("versions") or ())
            if spec.get("group") == group and names.get("kind") == kind and served:
                found.append((names["plural"], spec.get("scope") == "Namespaced"))
        return found

    @property
    def release(self) -> str:
        """See L{kubetwist.admission.attributes.AdmissionContext.release}."""
        return NEWEST if self.definitions is None else self.definitions.minor

    async def create(self, group: str, resource: str, namespace: str, obj: JSONObject) -> None:
        """See L{kubetwist.admission.attributes.AdmissionContext.create}."""
        store = self._stores[group, resource]
        store.strategy.default(obj)
        await store.create(RequestScope(namespace), obj, CreateOptions())

    async def load(self, group: str, resource: str) -> bool:
        """See L{kubetwist.admission.attributes.AdmissionContext.load}."""
        if (group, resource) in self._stores:
            return True
        served = None if self.find_custom is None else self.find_custom(f"{resource}.{group}")
        if served is not None:
            await served.start()
        return served is not None

    def _loaded(self, group: str, resource: str) -> Store | None:
        """The store of a resource whose objects are in memory: built-in ones always are."""
        store = self._stores.get((group, resource))
        if store is not None or self.find_custom is None:
            return store
        served = self.find_custom(f"{resource}.{group}")
        return served.main if served is not None and served.ready else None

    def _records(self, group: str, resource: str, namespace: str) -> list[Record]:
        store = self._loaded(group, resource)
        if store is None:
            return []
        return store.cache.list(f"{namespace}/" if namespace and store.info.namespaced else "").records

    async def commit_with(
        self,
        commit: Commit,
        group: str,
        resource: str,
        namespace: str,
        names: Sequence[str],
        change: Callable[[JSONObject], None],
    ) -> int:
        """See L{kubetwist.admission.attributes.AdmissionContext.commit_with}."""
        store = self._stores[group, resource]
        for _ in range(ATTEMPTS):
            writes = [write for name in names if (write := self._amendment(store, namespace, name, change))]
            try:
                revision = await commit(writes)
            except (RevisionConflict, KeyNotFound) as error:
                if all(error.key != write.key for write in writes):
                    raise
                # Somebody else has written one of them: begin again with that.
                await store.cache.seen(error.revision)
                continue
            await store.cache.seen(revision)
            return revision
        raise APIStatusError.modified(GroupResource(group, resource), names[0])

    def _amendment(self, store: Store, namespace: str, name: str, change: Callable[[JSONObject], None]) -> Write | None:
        """The write that changes the status of an object; L{None} where nothing changes."""
        key = store.key(namespace, name)
        record = store.cache.get(key)
        if record is None:
            return None
        old, new = store.load(record), store.load(record)
        change(new)
        if new == old:
            return None
        store.own(old, new, "status", SERVER)
        draft = store.draft(new)
        return Write(store.path(key), store.value(draft), record.revision, store.ttl, draft)

    def follow_holdings(self, cache: WatchCache, holdings: Callable[[JSONObject], Holdings]) -> None:
        """Have the allocator know what the objects of a cache hold."""
        following = Following(cache, self.services, holdings, self.reactor)
        self._following.append(following)
        following.start()

    async def start(self) -> None:
        """Load every cache; the stores serve from then on."""
        if self.shared_ports is not None:
            await self.shared_ports.start()
        starts = [Deferred.fromCoroutine(cache.start()) for cache in self._caches.values()]
        try:
            await gatherResults(starts, consumeErrors=True)
        except FirstError as error:
            # They all read one backend: what is wrong for one is wrong for all.
            error.subFailure.raiseException()
        for store in self._stores.values():
            try:
                store.loaded()
            except APIStatusError as error:
                raise StorageUnavailable(error.message) from error

    def stop(self) -> None:
        """Let go of the backend's watches, and end all watches of clients."""
        for following in self._following:
            following.stop()
        if self.shared_ports is not None:
            self.shared_ports.stop()
        for cache in self._caches.values():
            cache.stop()
