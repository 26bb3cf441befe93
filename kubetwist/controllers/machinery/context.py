"""Context of controllers: informers, clients, the clock and the server's configuration."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from ...api.errors import APIStatusError
from ...api.renamed import renamed_names
from ...api.resource import GroupResource
from ...registry.assembly import ResourceRegistry
from ...registry.customresources.served import ServedResource
from ...registry.generic.resourceinfo import ResourceInfo
from ...registry.generic.store import Store
from ...storage.cache.watchcache import WatchCache
from .client import Client, controller_user
from .informer import Informer, StoreSource

if TYPE_CHECKING:
    from .aggregated import IAggregation
    from .config import ControllerConfig
    from .events import EventRecorder


class ICustomResources(Protocol):
    """Server of custom resources: L{kubetwist.resources.customresources.CustomResources}."""

    def served(self, name: str) -> ServedResource | None:
        """Return the served resource of a CustomResourceDefinition by name."""

    def all_served(self) -> Collection[ServedResource]:
        """Return all custom resources that are served now."""

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """
        Call C{changed} after every change of the served resources.

        @return: A function that ends the subscription.
        """


class _CustomResourceSource:
    """The source of a custom resource. Its store is replaced when its definition changes."""

    _log = Logger()

    def __init__(self, info: ResourceInfo, custom: ICustomResources) -> None:
        self.info = info
        self._custom = custom
        self._name = str(info.group_resource)

    def cache(self) -> WatchCache | None:
        served = self._custom.served(self._name)
        return served.cache if served is not None and served.ready and served.cache.ready else None

    def load(self) -> None:
        served = self._custom.served(self._name)
        if served is not None:
            served.start().addErrback(
                lambda failure: self._log.warn(
                    "cannot read custom resource: resource={name} error={error}", name=self._name, error=failure.value
                )
            )


class ControllerContext:
    """
    Shared context of the controllers of a server (kube-controller-manager: ControllerContext).

    @ivar registry: The registry of the server's resources.
    @ivar stores: The stores of the server.
    @ivar clock: The reactor, or a clock in tests. Controllers read all times from it.
    @ivar aggregation: The aggregated API servers; L{None} if aggregation is disabled.
    """

    def __init__(
        self,
        registry: ResourceRegistry,
        clock: IReactorTime,
        config: ControllerConfig | None = None,
        custom: ICustomResources | None = None,
        aggregation: IAggregation | None = None,
    ) -> None:
        """
        @param config: The configuration of the server; L{None} in tests of controllers that need none.
        @param custom: What serves custom resources; L{None} where there are none.
        """
        self.registry = registry
        self.stores = registry.stores
        self.clock = clock
        self._config = config
        self.aggregation = aggregation
        self._custom = custom
        self._informers: dict[GroupResource, Informer] = {}
        self._resource_listeners: list[Callable[[], object]] = []
        self._unsubscribe: Callable[[], None] | None = None
        self._recorders: dict[str, EventRecorder] = {}
        self._stopped = False

    def now(self) -> datetime:
        """Return the current time of the clock, in UTC."""
        return datetime.fromtimestamp(self.clock.seconds(), UTC)

    # --- the server's certificates

    @property
    def root_ca(self) -> str:
        """The CA bundle for verifying this server, PEM; C{""} if unknown."""
        return "" if self._config is None else self._config.credentials.ca_bundle.decode()

    def on_root_ca_changed(self, changed: Callable[[], object]) -> None:
        """Call C{changed} after every change of L{root_ca}."""
        if self._config is not None:
            self._config.credentials.ca_bundle_listeners.append(changed)

    # --- the configuration

    @property
    def configured(self) -> bool:
        """Whether there is a configuration; tests of controllers may have none."""
        return self._config is not None

    @property
    def config(self) -> ControllerConfig:
        """The configuration of the server."""
        assert self._config is not None, "there is no configuration"
        return self._config

    # --- resources

    def served(self, group: str, resource: str) -> bool:
        """Return whether the resource is served."""
        if self.stores.find(group, resource) is not None:
            return True
        return self._custom is not None and self._custom.served(str(GroupResource(group, resource))) is not None

    def resources(self) -> list[ResourceInfo]:
        """Return the served built-in and custom resources."""
        infos = [store.info for store in self.stores]
        if self._custom is not None:
            infos += [served.definition.info for served in self._custom.all_served()]
        return infos

    def is_cached(self, group: str, resource: str) -> bool:
        """Return whether a resource is cached. A custom resource is cached from its first request on."""
        if self.stores.find(group, resource) is not None:
            return True
        served = None if self._custom is None else self._custom.served(str(GroupResource(group, resource)))
        return served is not None and served.ready

    def on_resources_changed(self, changed: Callable[[], object]) -> None:
        """Call C{changed} when the results of L{resources} or L{is_cached} may have changed."""
        self._resource_listeners.append(changed)
        self._subscribe_custom()

    def _subscribe_custom(self) -> None:
        if self._unsubscribe is None and self._custom is not None:
            self._unsubscribe = self._custom.subscribe(self._custom_resources_changed)

    def _custom_resources_changed(self) -> None:
        if self._stopped:
            return
        for key, informer in list(self._informers.items()):
            if not self.served(*key):
                del self._informers[key]
                informer.handle_resource_removed()
        for listener in list(self._resource_listeners):
            listener()

    async def store(self, group: str, resource: str) -> Store:
        """
        Return the store of a resource, after its cache is ready.

        @raise APIStatusError: There is no such resource (404).
        """
        store = self.stores.find(group, resource)
        if store is not None:
            await store.cache.on_demand.ensure()
            return store
        name = str(GroupResource(group, resource))
        served = None if self._custom is None else self._custom.served(name)
        if served is None:
            raise APIStatusError(404, "NotFound", "the server could not find the requested resource")
        if not served.ready:
            await served.start()
        return served.main

    def informer(self, group: str, resource: str) -> Informer:
        """
        Return the shared, started informer of a resource.

        If a custom resource is no longer served, its informer emits DELETED for all objects, and stops. Call this
        method again when the resource is served again.

        @raise KeyError: There is no such resource.
        """
        key = GroupResource(group, resource)
        informer = self._informers.get(key)
        if informer is None:
            informer = self._informers[key] = self._new_informer(key)
            informer.start()
        return informer

    def _new_informer(self, key: GroupResource) -> Informer:
        store = self.stores.find(*key)
        if store is not None:
            return Informer(StoreSource(store), self.clock)
        served = None if self._custom is None else self._custom.served(str(key))
        if served is None or self._custom is None:
            raise KeyError(str(key))
        self._subscribe_custom()
        return Informer(_CustomResourceSource(served.definition.info, self._custom), self.clock)

    def when_handlers_synced(self, done: Callable[[], object]) -> None:
        """Call C{done} when the handlers of all informers have synced. See L{Informer.when_handlers_synced}."""
        for informer in self._informers.values():
            if not informer.handlers_synced:
                informer.when_handlers_synced(lambda: self.when_handlers_synced(done))
                return
        done()

    # --- writing

    def client(self, service_account: str, field_manager: str = "") -> Client:
        """
        Return a client that writes as a controller.

        @param service_account: The service account in kube-system: C{"namespace-controller"}.
        @param field_manager: The field manager of the writes; by default the one of kube-controller-manager.
        """
        user = controller_user(service_account)
        return Client(self, user, field_manager) if field_manager else Client(self, user)

    def recorder(self, component: str) -> EventRecorder:
        """Return the event recorder of a component: C{"deployment-controller"}."""
        recorder = self._recorders.get(component)
        if recorder is None:
            from .events import EventRecorder

            recorder = self._recorders[component] = EventRecorder(self.client(component), component, self.clock)
        return recorder

    async def stop(self) -> None:
        """Stop the informers and event recorders. Controllers must be stopped first."""
        self._stopped = True
        if self._unsubscribe is not None:
            self._unsubscribe()
        for recorder in self._recorders.values():
            await recorder.stop()
        for informer in self._informers.values():
            informer.stop()


if not TYPE_CHECKING:
    __getattr__ = renamed_names(__name__, {"Context": "ControllerContext"})
