"""What controllers are given: informers, a client, the clock, the server's configuration."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from ...api.errors import APIStatusError
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
    """What serves custom resources: L{kubetwist.resources.customresources.CustomResources}."""

    def served(self, name: str) -> ServedResource | None:
        """What is served for the definition of a name."""

    def all_served(self) -> Collection[ServedResource]:
        """All that is served now."""

    def follow(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Have C{changed} called after every change of these; what is returned ends that."""


class _Custom:
    """Where the objects of a custom resource are: in another place whenever its definition has changed."""

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
                lambda failure: self._log.warn("{name} can not be read: {why}", name=self._name, why=failure.value)
            )


class Context:
    """
    What controllers share.

    @ivar registry: The stores of the server, and what they share.
    @ivar stores: The stores of the server.
    @ivar clock: The reactor, or a clock in tests. All times of controllers come from it.
    @ivar aggregation: What other servers answer for; L{None} where none can be named.
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
        self._followers: list[Callable[[], object]] = []
        self._unfollow: Callable[[], None] | None = None
        self._recorders: dict[str, EventRecorder] = {}
        self._stopped = False

    def now(self) -> datetime:
        """The time of the day, by the clock."""
        return datetime.fromtimestamp(self.clock.seconds(), UTC)

    # --- the server's certificates

    @property
    def root_ca(self) -> str:
        """What pods verify this server by, in PEM; C{""} where it is not known."""
        return "" if self._config is None else self._config.credentials.trust.decode()

    def follow_trust(self, changed: Callable[[], object]) -> None:
        """Have C{changed} called whenever L{root_ca} is another."""
        if self._config is not None:
            self._config.credentials.trust_followers.append(changed)

    # --- the configuration

    @property
    def config(self) -> ControllerConfig:
        """The configuration of the server."""
        assert self._config is not None, "there is no configuration"
        return self._config

    # --- resources

    def served(self, group: str, resource: str) -> bool:
        """Whether there is such a resource now."""
        if self.stores.find(group, resource) is not None:
            return True
        return self._custom is not None and self._custom.served(str(GroupResource(group, resource))) is not None

    def resources(self) -> list[ResourceInfo]:
        """Every resource that has objects: those that are built in, and custom ones as they are defined now."""
        found = [store.info for store in self.stores]
        if self._custom is not None:
            found += [served.definition.info for served in self._custom.all_served()]
        return found

    def loaded(self, group: str, resource: str) -> bool:
        """Whether the objects of a resource are in memory; those of custom ones are from the first question on."""
        if self.stores.find(group, resource) is not None:
            return True
        served = None if self._custom is None else self._custom.served(str(GroupResource(group, resource)))
        return served is not None and served.ready

    def follow_resources(self, changed: Callable[[], object]) -> None:
        """Have C{changed} called whenever L{resources} or L{loaded} may give something else."""
        self._followers.append(changed)
        self._follow_custom()

    def _follow_custom(self) -> None:
        if self._unfollow is None and self._custom is not None:
            self._unfollow = self._custom.follow(self._customs_changed)

    def _customs_changed(self) -> None:
        if self._stopped:
            return
        for key, informer in list(self._informers.items()):
            if not self.served(*key):
                del self._informers[key]
                informer.gone()
        for follower in list(self._followers):
            follower()

    async def store(self, group: str, resource: str) -> Store:
        """
        The store of a resource, whose objects are in memory then.

        @raise APIStatusError: There is no such resource (404).
        """
        store = self.stores.find(group, resource)
        if store is not None:
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
        The informer of a resource, the same one for all who ask; it is started.

        That of a custom resource ends, after telling that its objects are gone, when it is served no more; ask for
        another one when it comes back.

        @raise KeyError: There is no such resource.
        """
        key = GroupResource(group, resource)
        informer = self._informers.get(key)
        if informer is None:
            informer = self._informers[key] = self._made(key)
            informer.start()
        return informer

    def _made(self, key: GroupResource) -> Informer:
        store = self.stores.find(*key)
        if store is not None:
            return Informer(StoreSource(store), self.clock)
        served = None if self._custom is None else self._custom.served(str(key))
        if served is None or self._custom is None:
            raise KeyError(str(key))
        self._follow_custom()
        return Informer(_Custom(served.definition.info, self._custom), self.clock)

    def when_caught_up(self, done: Callable[[], object]) -> None:
        """Call C{done} when all informers have caught up: see L{Informer.when_caught_up}."""
        for informer in self._informers.values():
            if not informer.caught_up:
                informer.when_caught_up(lambda: self.when_caught_up(done))
                return
        done()

    # --- writing

    def client(self, account: str, manager: str = "") -> Client:
        """
        What a controller writes with.

        @param account: Of its service account, as the built-in roles name it: C{"namespace-controller"}.
        @param manager: Who owns the fields that it writes; the reference's usual name without it.
        """
        user = controller_user(account)
        return Client(self, user, manager) if manager else Client(self, user)

    def recorder(self, component: str) -> EventRecorder:
        """What records events in the name of a component: C{"deployment-controller"}."""
        recorder = self._recorders.get(component)
        if recorder is None:
            from .events import EventRecorder

            recorder = self._recorders[component] = EventRecorder(self.client(component), component, self.clock)
        return recorder

    async def stop(self) -> None:
        """Tell nobody any more; controllers are stopped before."""
        self._stopped = True
        if self._unfollow is not None:
            self._unfollow()
        for recorder in self._recorders.values():
            await recorder.stop()
        for informer in self._informers.values():
            informer.stop()
