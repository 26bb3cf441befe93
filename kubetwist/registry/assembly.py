"""
Construction of the stores of a server and their shared components, in the order of their dependencies.

The container of stores is constructed first, since components that read objects later depend on it. Allocators, caches,
the admission context and the admission chain follow, and finally the stores, which depend on all of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from attrs import evolve, field, frozen

from twisted.internet.interfaces import IReactorTime

from ..admission.chain import AdmissionChain
from ..api.featuregates import FeatureGates
from ..interfaces import IAuthorizer, IStorageBackend
from .admissioncontext import ServerAdmissionContext
from .apiextensions.store import CustomResourceDefinitionStore
from .core.namespace.store import NamespaceStore
from .core.service.ipaddresses import IPAddressStore
from .core.service.serverallocators import ServiceAllocators
from .core.service.store import ServiceStore
from .generic.caches import WatchCaches
from .generic.environment import StoredResource, StoreEnvironment
from .generic.fieldmanager.serverfields import ServerFields
from .generic.fieldselectors import selectable_fields
from .generic.resourceinfo import ResourceInfo
from .generic.store import Store
from .generic.storedprotobuf import StoredProtobuf
from .generic.strategy import Strategy
from .networking.store import ServiceCIDRStore
from .printers import built_in_table
from .rbac.ruleresolver import GROUP as RBAC
from .rbac.ruleresolver import RuleResolver
from .rbac.store import BindingStore, RoleStore
from .resource.store import ClaimStore
from .scheduling.store import PriorityClassStore
from .stores import Stores
from .strategies import strategy_finder

if TYPE_CHECKING:
    from ..client.factory import ClientFactory
    from ..schema.definitions import Definitions

EXTENSIONS: Final = "apiextensions.k8s.io"
#: Constructs the store of a resource.
StoreFactory = Callable[[StoredResource, StoreEnvironment], Store]
#: Constructs the admission chain from the context of its plugins.
AdmissionFactory = Callable[[ServerAdmissionContext], AdmissionChain]


@frozen(kw_only=True)
class RegistryOptions:
    """
    Options of the storage of a server.

    @ivar prefix: The prefix of all keys in the backend.
    @ivar event_ttl: Seconds until Events expire; L{None} if they do not.
    @ivar service_ranges: The ranges of cluster IPs: one, or one of each IP family.
    @ivar node_ports: The first and the last node port.
    @ivar delete_workers: Number of objects that one C{deletecollection} deletes concurrently.
    @ivar cache_sizes: The minimum number of past events that are kept, by resource (C{"deployments.apps"}); with 0, the
        backend answers reads instead of the cache.
    @ivar default_cache_size: The minimum number of past events for all other resources.
    @ivar protobuf: Whether objects are stored as protobuf, where kube-apiserver does so, instead of JSON.
    @ivar cbor: Whether custom resources are stored as CBOR instead of JSON.
    @ivar features: The feature gates and the release of the server.
    @ivar allow_privileged: Whether containers may be privileged.
    @ivar toleration_seconds: Seconds until pods are evicted from nodes that are not ready, and from unreachable ones.
    """

    prefix: str = "/registry/"
    event_ttl: float | None = 3600.0
    service_ranges: Sequence[str] = ("10.0.0.0/24",)
    node_ports: tuple[int, int] = (30000, 32767)
    delete_workers: int = 1
    cache_sizes: Mapping[str, int] | None = None
    default_cache_size: int = 100
    protobuf: bool = False
    cbor: bool = False
    features: FeatureGates = field(factory=FeatureGates)
    allow_privileged: bool = True
    toleration_seconds: tuple[int, int] = (300, 300)


def _no_plugins(context: ServerAdmissionContext) -> AdmissionChain:
    return AdmissionChain((), context.reactor)


def _definition_strategy(definitions: Definitions, features: FeatureGates) -> Strategy:
    from .apiextensions.strategy import CustomResourceDefinitionStrategy

    return CustomResourceDefinitionStrategy(definitions.custom_metadata).with_features(features)


class ResourceRegistry:
    """
    The stores of a server and their shared components.

    @ivar stores: All stores; custom resources are added when they are served.
    @ivar grants: The index of RBAC roles and bindings.
    @ivar allocators: The allocators of cluster IPs and node ports.
    @ivar caches: The factory of watch caches.
    @ivar context: The context of admission plugins.
    @ivar admission: The admission plugins.
    @ivar environment: The shared components of the stores of built-in resources.
    @ivar custom_environment: The shared components of the stores of custom resources.
    """

    def __init__(
        self,
        backend: IStorageBackend,
        reactor: IReactorTime,
        infos: Iterable[ResourceInfo] = (),
        *,
        definitions: Definitions | None = None,
        options: RegistryOptions = RegistryOptions(),
        grants: RuleResolver | None = None,
        authorizer: IAuthorizer | None = None,
        outgoing: ClientFactory | None = None,
        admission: AdmissionFactory = _no_plugins,
    ) -> None:
        """
        @param backend: The storage.
        @param reactor: The reactor, or a clock in tests.
        @param infos: The built-in resources.
        @param definitions: The type definitions of the release; without them, the server does not record the managed
            fields of its writes, and cannot read protobuf.
        @param options: The options of the storage.
        @param grants: The index of RBAC roles and bindings, if an authorizer shares it; the stores are added to its
            container.
        @param authorizer: The authorizer of further permissions that a write requires; L{None} grants none.
        @param outgoing: The factory of clients for other servers; L{None} if no server is called.
        @param admission: Constructs the admission chain; by default one without plugins.
        """
        self.grants = RuleResolver(Stores()) if grants is None else grants
        self.stores = self.grants.stores
        self.allocators = ServiceAllocators(
            backend,
            reactor,
            prefix=options.prefix,
            ranges=options.service_ranges,
            node_ports=options.node_ports,
            protobuf=options.protobuf,
        )
        self.caches = WatchCaches(
            backend,
            reactor,
            prefix=options.prefix,
            sizes=options.cache_sizes,
            default_size=options.default_cache_size,
        )
        self.context = ServerAdmissionContext(
            self.stores,
            reactor,
            definitions=definitions,
            authorizer=authorizer,
            outgoing=outgoing,
            toleration_seconds=options.toleration_seconds,
            features=options.features,
        )
        self.admission = admission(self.context)
        self.environment = StoreEnvironment(
            backend,
            self.admission,
            self.context,
            partial(built_in_table, features=options.features),
            prefix=options.prefix,
            fields=None if definitions is None else ServerFields(definitions),
            protobuf=None if definitions is None else StoredProtobuf(definitions),
            stores_protobuf=options.protobuf,
            delete_workers=options.delete_workers,
            allows_privileged=options.allow_privileged,
            discards_unreadable=options.features.enabled("AllowUnsafeMalformedObjectDeletion"),
            features=options.features,
            zero_metadata={} if definitions is None else definitions.zero_metadata,
        )
        # Each version of a custom resource has its field manager, and custom resources have no protobuf.
        self.custom_environment = evolve(self.environment, fields=None, protobuf=None, stores_cbor=options.cbor)
        factories = self._factories(authorizer)
        for info in infos:
            make = factories.get((info.group, info.resource), Store)
            store = make(self._resource(info, options), self.environment) if info.stored else None
            self.stores.add(info, store)

    def _factories(self, authorizer: IAuthorizer | None) -> dict[tuple[str, str], StoreFactory]:
        """Return the factories of stores that extend the generic store, by group and resource."""
        roles = partial(RoleStore, grants=self.grants, authorizer=authorizer)
        bindings = partial(BindingStore, grants=self.grants, authorizer=authorizer)
        claims = partial(ClaimStore, stores=self.stores)
        return {
            ("", "namespaces"): NamespaceStore,
            ("", "services"): partial(ServiceStore, allocators=self.allocators, stores=self.stores),
            ("networking.k8s.io", "ipaddresses"): partial(
                IPAddressStore, allocators=self.allocators, stores=self.stores
            ),
            ("networking.k8s.io", "servicecidrs"): partial(ServiceCIDRStore, allocators=self.allocators),
            (RBAC, "clusterroles"): roles,
            (RBAC, "roles"): roles,
            (RBAC, "clusterrolebindings"): bindings,
            (RBAC, "rolebindings"): bindings,
            (EXTENSIONS, "customresourcedefinitions"): CustomResourceDefinitionStore,
            ("scheduling.k8s.io", "priorityclasses"): PriorityClassStore,
            ("resource.k8s.io", "resourceclaims"): claims,
            ("resource.k8s.io", "resourceclaimtemplates"): claims,
        }

    def _resource(self, info: ResourceInfo, options: RegistryOptions) -> StoredResource:
        return StoredResource(
            info,
            self._strategy_finder(info, options),
            partial(self.caches.shared, info),
            selectable=selectable_fields(info.storage_group, info.resource),
            ttl=options.event_ttl if info.key_prefix == "events" else None,
            cached=self.caches.answers_reads(info),
        )

    def _strategy_finder(self, info: ResourceInfo, options: RegistryOptions) -> Callable[[], Strategy]:
        definitions = self.context.definitions
        if definitions is not None and info.kind == "CustomResourceDefinition" and info.group == EXTENSIONS:
            return partial(_definition_strategy, definitions, options.features)
        return strategy_finder(info.group, info.kind, options.features)

    async def start(self) -> None:
        """
        Load the stored objects of all built-in resources; then the stores can serve requests.

        @raise StorageError: The storage cannot be read.
        """
        await self.allocators.start()
        await self.stores.start()

    def stop(self) -> None:
        """Stop all watches of clients and of the backend."""
        self.allocators.stop()
        self.stores.stop()
