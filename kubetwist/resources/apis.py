"""All built-in APIs of a server: their stores, and their places in the three servers of the chain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from attrs import define
from twisted.internet.interfaces import IReactorTime

from ..admission.chain import build_chain
from ..interfaces import IAuthorizer, IStorageBackend
from ..registry.kinds import ResourceInfo, kinds_for
from ..registry.stores import Stores
from ..schema.definitions import Definitions
from .install import Installer
from .installed import MergedGroups
from .layer import Layer
from .watching import Flusher

if TYPE_CHECKING:
    from collections.abc import Callable

#: The groups that are not kube-apiserver's own: they belong to the servers around it.
AGGREGATOR_GROUP: Final = "apiregistration.k8s.io"
EXTENSIONS_GROUP: Final = "apiextensions.k8s.io"


@define
class ServerContext:
    """
    What storage objects without objects of their own ask the server for.

    @ivar authorizer: Decides what access reviews ask.
    @ivar user_of_token: Whose token this is, for token reviews; L{None} when nobody's.
    @ivar token_issuer: Issues service account tokens; L{None} without one.
    """

    authorizer: IAuthorizer
    user_of_token: Callable[[str], Any]
    token_issuer: Any = None


class APIs:
    """
    The stores and installers of a server.

    @ivar infos: The resources that the release and --runtime-config leave on.
    """

    def __init__(
        self,
        definitions: Definitions,
        backend: IStorageBackend,
        reactor: IReactorTime,
        *,
        runtime_config: Mapping[str, str] | None = None,
        prefix: str = "/registry/",
        event_ttl: float = 3600.0,
        min_request_timeout: float = 1800.0,
    ) -> None:
        self.definitions = definitions
        self.reactor = reactor
        self.infos: list[ResourceInfo] = kinds_for(
            definitions.gvks(), int(definitions.minor.partition(".")[2]), runtime_config
        )
        self.stores = Stores(backend, reactor, prefix=prefix, event_ttl=event_ttl)
        self.stores.add(self.infos)
        self.flusher = Flusher(reactor)
        self._min_request_timeout = min_request_timeout
        self._installers: dict[str, Installer] = {}

    def use_admission(self, enabled: Iterable[str] = (), disabled: Iterable[str] = ()) -> None:
        """
        Put the admission plugins in front of all writes.

        @raise UnknownPlugins: A name stands for no plugin.
        """
        self.stores.use(build_chain(enabled, disabled, self.stores))

    def install(self, aggregator: Layer, kube: Layer, extensions: Layer, context: ServerContext) -> MergedGroups:
        """
        Give every resource its path in the server it belongs to.

        @return: What is served, for discovery and OpenAPI.
        """
        for layer, groups in (
            (aggregator, lambda group: group == AGGREGATOR_GROUP),
            (kube, lambda group: group not in (AGGREGATOR_GROUP, EXTENSIONS_GROUP)),
            (extensions, lambda group: group == EXTENSIONS_GROUP),
        ):
            installer = Installer(
                layer,
                self.stores,
                self.definitions,
                self.reactor,
                self.flusher,
                min_request_timeout=self._min_request_timeout,
                context=context,
            )
            installer.install([info for info in self.infos if groups(info.group)])
            self._installers[layer.name] = installer
        return MergedGroups([installer.installed for installer in self._installers.values()])

    async def start(self) -> None:
        """Fill the watch caches; nothing can be served before."""
        await self.stores.start()

    def stop(self) -> None:
        """End the watches and let go of the backend."""
        self.stores.stop()
