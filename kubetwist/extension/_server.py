"""The extension server: an API server for further APIs, with delegated authentication and authorization."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from twisted.application.service import IService

from ..admission.chain import AdmissionChain
from ..admission.traced import TracedChain
from ..client.errors import InvalidRESTConfig
from ..http.request import KubeRequest
from ..interfaces import (
    IAdmissionPlugin,
    IControllerFactory,
    IServerReactor,
)
from ..registry.assembly import (
    RegistryOptions,
    ResourceRegistry,
)
from ..resources.customresources import (
    CRDVersionHandlers,
    CustomResources,
)
from ..resources.documents import install_documents
from ..resources.handlers.watch import WatchFlusher
from ..resources.mux import DelegatingMux, NotFound
from ..resources.servedresources import ServedResources
from ..schema.definitions import Definitions
from ..server.apiserver import APIServer
from ..server.complete import (
    Access,
    Completion,
)
from ..server.config import ServerConfig
from ..server.context import PluginContext
from ..server.datadir import (
    Credentials,
    DataDirectory,
)
from ..server.errors import StartError
from ..server.generic import GenericServer
from ..server.service import (
    KubeAPIService,
    TwistProcess,
)
from ..storage.compaction import Compactor
from ._cluster import KubeAPIClient
from ._computed import ComputedStorage
from ._delegation import (
    DelegatedAuthentication,
    LookupFailed,
    delegated_authorizer,
)
from ._options import ExtensionOptions
from ._resources import (
    BadResource,
    Resource,
    validate_resources,
)
from ._storages import StorageHandlers

if TYPE_CHECKING:
    from ..controllers.aggregation.apiservices import Aggregation
    from ..controllers.machinery.manager import ControllerManager
    from ..flowcontrol.controller import FlowControl
    from ..registry.customresources.crd import CustomVersion
    from ..registry.customresources.served import ServedResource


class ExtensionAPIs:
    """
    The APIs of an extension server.

    @ivar registry: The stores, and their shared state.
    @ivar custom: The handlers of the resources.
    @ivar flusher: Coalesces the writes of watches.
    @ivar served_resources: The served groups, versions and resources.
    """

    aggregation: Aggregation | None = None
    flow: FlowControl | None = None
    controllers: ControllerManager | None = None
    streams: Sequence[Callable[[KubeRequest], bool]] = ()
    idle = True

    def __init__(
        self,
        config: ServerConfig,
        server: GenericServer,
        resources: Iterable[Resource],
        admission: Sequence[IAdmissionPlugin] = (),
    ) -> None:
        """
        @param config: The completed configuration.
        @param server: The generic server.
        @param resources: The resources.
        @param admission: The admission plugins, in this order.
        @raise BadResource: A resource is invalid.
        """
        options, reactor = config.options, config.reactor
        definitions = Definitions.load(config.kubernetes_version)
        self.registry = ResourceRegistry(
            config.backend,
            reactor,
            definitions=definitions,
            options=RegistryOptions(
                prefix=f"{options['etcd-prefix'].rstrip('/')}/",
                delete_workers=options["delete-collection-workers"],
                cache_sizes=options["watch-cache-sizes"] if options["watch-cache"] else {},
                default_cache_size=options["default-watch-cache-size"] if options["watch-cache"] else 0,
            ),
            grants=config.context.grants,
            authorizer=config.authorizer,
            outgoing=config.outgoing,
            admission=lambda server: (TracedChain if config.traced else AdmissionChain)(admission, reactor),
        )
        self.served_resources = served_resources = ServedResources()
        self.flusher = WatchFlusher(reactor)
        resources = list(resources)
        self.custom = _Resources(
            {resource.name: resource for resource in resources},
            server.mux,
            served_resources,
            self.registry,
            definitions,
            self.flusher,
            config,
        )
        for resource in resources:
            self.custom.install(resource.definition(definitions), terminating=False)

        self._config, self._definitions, self._mux = config, definitions, server.mux

    def install_documents(self) -> None:
        """See L{kubetwist.server.apis.InstalledAPIs.install_documents}."""
        config, mux = self._config, self._mux

        def other_paths() -> list[str]:
            return [path for path in mux.listed_paths() if not path.startswith("/api")]

        install_documents(
            mux, self.served_resources, self._definitions, config.reactor, lambda: config.address, other_paths
        )
        # An extension server has no core group.
        mux.unregister("/api")


class _Resources(CustomResources):
    """Handlers of the resources of an extension server: stored, computed, or with a storage object."""

    def __init__(
        self,
        resources: Mapping[str, Resource],
        mux: DelegatingMux,
        served_resources: ServedResources,
        registry: ResourceRegistry,
        definitions: Definitions,
        flusher: WatchFlusher,
        config: ServerConfig,
    ) -> None:
        """
        @param resources: The resources by name.
        """
        super().__init__(
            mux,
            served_resources,
            served_resources,
            registry,
            definitions,
            config.reactor,
            flusher,
            min_request_timeout=config.options["min-request-timeout"],
            traced=config.traced,
        )
        self._resources = resources

    def version_handlers(self, served: ServedResource, version: CustomVersion) -> CRDVersionHandlers:
        resource = self._resources[served.definition.name]
        storage = resource.storage
        if resource.compute is not None:
            storage = ComputedStorage(version, resource.compute)
        if storage is None:
            return super().version_handlers(served, version)
        return StorageHandlers(served, version, self, storage)


class ExtensionCompletion(Completion):
    """
    Completes the configuration of an extension server.

    @ivar delegated: The delegated authentication. Set by L{make_access}.
    """

    delegated: DelegatedAuthentication

    def __init__(self, options: ExtensionOptions, reactor: IServerReactor) -> None:
        super().__init__(options, reactor)
        self._names = options.serving_names

    def make_credentials(self, data: DataDirectory) -> Credentials:
        """See L{Completion.make_credentials}."""
        options = self.options
        local_names = ("localhost", socket.gethostname().lower(), options["external-hostname"])
        addresses = ("127.0.0.1", "::1", options["bind-address"])
        addresses_to_certify = [one for one in addresses if one and not ipaddress.ip_address(one).is_unspecified]
        names = [
            name
            for name in (*self._names, *local_names, *addresses_to_certify)
            if name and name.isascii() and len(name) < 254
        ]
        return Credentials(data, options, list(dict.fromkeys(names)))

    def choose_controllers(self) -> Sequence[IControllerFactory]:
        """See L{Completion.choose_controllers}. An extension server has none."""
        return ()

    def make_kubelet_credentials(self, context: PluginContext) -> None:
        """See L{Completion.make_kubelet_credentials}. An extension server does not call kubelets."""

    async def make_access(self, context: PluginContext) -> Access:
        """See L{Completion.make_access}. The Kubernetes API server decides."""
        options = self.options
        try:
            cluster = KubeAPIClient(context.outgoing, context.files, options["kubeconfig"])
            authentication = DelegatedAuthentication(
                cluster, context.reactor, options["authentication-token-webhook-cache-ttl"]
            )
            self.delegated = authentication
            context.closers.append(authentication.stop)
            await authentication.start(options["authentication-tolerate-lookup-failure"])
        except (InvalidRESTConfig, LookupFailed) as error:
            raise StartError(str(error)) from error
        context.client_authorities.extend(authentication.authorities)
        authorizer = delegated_authorizer(
            cluster,
            context.reactor,
            options["authorization-webhook-cache-authorized-ttl"],
            options["authorization-webhook-cache-unauthorized-ttl"],
        )
        return Access(authentication.authenticator, authorizer)


class ExtensionServer(APIServer):
    """An extension server."""

    def announce(self, url: str) -> None:
        """See L{APIServer.announce}."""
        self._log.info("serving on {url}", url=url)


def create_extension_server(
    config: ServerConfig, resources: Iterable[Resource], admission: Sequence[IAdmissionPlugin] = ()
) -> ExtensionServer:
    """
    Build an extension server; its chain consists of one server.

    @param admission: The admission plugins, in this order.
    @raise StartError: A resource is invalid.
    """
    end = NotFound()  # type: ignore[no-untyped-call] # Twisted has no annotations here
    server = GenericServer("extension-apiserver", end, (), traced=config.traced)
    try:
        apis = ExtensionAPIs(config, server, validate_resources(resources), admission)
    except BadResource as error:
        raise StartError(str(error)) from error
    compactor = Compactor(config.backend, config.reactor, config.options["etcd-compaction-interval"])
    server.add_pre_listen_hook("storage-compaction", compactor.start)
    server.register_destroy_func("storage-compaction", compactor.stop)
    server.register_destroy_func("watch caches", apis.custom.stop)
    return ExtensionServer(config, server, apis)


class ExtensionService(KubeAPIService):
    """Service that runs an L{ExtensionServer}."""

    def __init__(
        self,
        options: ExtensionOptions,
        reactor: IServerReactor,
        resources: Iterable[Resource],
        admission: Sequence[IAdmissionPlugin] = (),
    ) -> None:
        super().__init__(options, reactor)
        self._completion = ExtensionCompletion(options, reactor)
        self._resources = resources
        self._plugins = admission

    @property
    def delegated(self) -> DelegatedAuthentication:
        """The delegated authentication. Available once the service is started."""
        return self._completion.delegated

    async def complete(self) -> ServerConfig:
        """See L{KubeAPIService.complete}."""
        return await self._completion.complete()

    def make_server(self, config: ServerConfig) -> ExtensionServer:
        """See L{KubeAPIService.make_server}."""
        return create_extension_server(config, self._resources, self._plugins)


def make_service(
    options: ExtensionOptions, resources: Iterable[Resource], admission: Sequence[IAdmissionPlugin] = ()
) -> IService:
    """
    Return the service that C{twist} starts, for C{makeService} of a Twisted plugin.

    @param options: The parsed command line.
    @param resources: The resources to serve.
    @param admission: The admission plugins, in this order.
    @return: A service. Its C{ready}, a Deferred, fires when the server is ready, or fails with the startup error.
    """
    from twisted.internet import reactor

    running = cast("IServerReactor", reactor)
    service = ExtensionService(options, running, resources, admission)
    if options.parent is not None:
        TwistProcess(service, running, options).install()
    return service
