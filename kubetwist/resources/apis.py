"""All built-in APIs of a server: their stores, and their places in the three servers of the chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ..admission.chain import AdmissionChain
from ..admission.configuration import read_configurations
from ..admission.selection import build_chain
from ..api.resource import JSONObject
from ..controllers.aggregation.apiservices import Aggregation
from ..controllers.aggregation.autoregister import Registration
from ..controllers.customresources import DefinitionController
from ..flowcontrol.computing import Computing
from ..flowcontrol.levels import FlowControl
from ..interfaces import IAuthorizer, IServerReactor, IStorageBackend
from ..metrics.streams import StreamMetrics
from ..registry.admissioncontext import ServerAdmissionContext
from ..registry.assembly import AdmissionFactory, RegistryOptions, ResourceRegistry
from ..registry.core.node.kubelets import ConnectionRules
from ..registry.core.servercontext import ServerContext
from ..registry.customresources.crd import converts_elsewhere
from ..registry.generic.codec import Codec
from ..registry.generic.fieldmanager.manager import BuiltInVersions, FieldManager
from ..registry.generic.fieldmanager.resetfields import allowed_fields
from ..registry.generic.resourceinfo import ResourceInfo
from ..registry.kinds import kinds_for
from ..registry.rbac.ruleresolver import Grants
from ..schema.definitions import Definitions
from ..storage.compaction import Compactor
from ..streams.handlers import Streams
from .aggregation.routes import add_aggregator
from .customresources import CustomResources
from .documents import install_documents, install_group_ends
from .endpoint import in_threads_of
from .handlers.connect import passes_on
from .handlers.watch import Flusher
from .hooks import ServerControllers, add_bootstrap_hooks, add_controllers, add_fairness
from .install import Installer
from .mux import Layer
from .proxy.upstreamclients import TargetClients
from .servedresources import IInstalled, MergedGroups

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..api.flagvalues import FlagValues
    from ..client.factory import Outgoing
    from ..controllers.machinery.election import ElectedControllers
    from ..controllers.machinery.manager import RunningControllers
    from ..http.request import KubeRequest
    from ..registry.customresources.conversion import Conversion
    from .aggregation.routes import AvailabilityChecks
    from .hosting import APIConfig, APIHost

#: The groups that are not kube-apiserver's own: they belong to the servers around it.
AGGREGATOR_GROUP: Final = "apiregistration.k8s.io"
EXTENSIONS_GROUP: Final = "apiextensions.k8s.io"


class APIs:
    """
    The stores and installers of a server.

    @ivar registry: The stores, and what they share.
    @ivar stores: The stores.
    @ivar infos: The resources that the release and --runtime-config leave on.
    @ivar installed: The served groups, versions and resources, once the APIs are installed.
    @ivar availability: Checks the servers behind APIServices; L{None} without APIServices.
    @ivar flow: Priority and fairness; L{None} if requests are only counted.
    @ivar streams: See L{kubetwist.http.site.KubeSite.streams}.
    @ivar aggregation: What APIServices say, once the APIs are installed; L{None} where there are none.
    """

    def __init__(
        self,
        definitions: Definitions,
        backend: IStorageBackend,
        reactor: IServerReactor,
        *,
        runtime_config: Mapping[str, str] | None = None,
        min_request_timeout: float = 1800.0,
        options: RegistryOptions,
        grants: Grants,
        authorizer: IAuthorizer,
        outgoing: Outgoing,
        admission: AdmissionFactory,
        traced: bool = False,
    ) -> None:
        """
        The parameters that are not described here are those of L{ResourceRegistry}.

        @param runtime_config: The resources that are switched on or off.
        @param min_request_timeout: The minimum duration of watches that set no timeout, in seconds.
        @param traced: Whether requests leave spans.
        """
        self.definitions = definitions
        self.reactor = reactor
        self.infos: list[ResourceInfo] = kinds_for(
            definitions.gvks(), int(definitions.minor.partition(".")[2]), runtime_config
        )
        self.registry = ResourceRegistry(
            backend,
            reactor,
            self.infos,
            definitions=definitions,
            options=options,
            grants=grants,
            authorizer=authorizer,
            outgoing=outgoing,
            admission=admission,
        )
        self.stores = self.registry.stores
        self._outgoing = outgoing
        self._traced = traced
        self.flusher = Flusher(reactor)
        self._computing = Computing(in_threads_of(reactor), reactor)
        self._min_request_timeout = min_request_timeout
        self._installers: dict[str, Installer] = {}
        self._custom: CustomResources | None = None
        self._definition_controller: DefinitionController | None = None
        self._registration: Registration | None = None
        self.aggregation: Aggregation | None = None
        self.availability: AvailabilityChecks | None = None
        self.installed: IInstalled = MergedGroups(())
        self.flow: FlowControl | None = None
        self.running: ServerControllers | None = None
        self.streams: list[Callable[[KubeRequest], bool]] = [passes_on]
        self._conversions: Callable[[JSONObject], Conversion | None] | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing is being done about definitions of custom resources just now."""
        followers = self._definition_controller, self._registration
        return all(follower is None or follower.idle for follower in followers)

    @property
    def controllers(self) -> RunningControllers | ElectedControllers | None:
        """The controllers, from the time that the server is ready; L{None} before, and without any."""
        return None if self.running is None else self.running.running

    @property
    def custom(self) -> CustomResources | None:
        """What serves custom resources, where definitions are served."""
        return self._custom

    def install(
        self,
        aggregator: Layer,
        kube: Layer,
        extensions: Layer,
        context: ServerContext,
        clients: TargetClients | None = None,
    ) -> MergedGroups:
        """
        Give every resource its path in the server it belongs to.

        @param clients: Calls what proxies, logs and streams lead to; L{None} where nothing is led to.
        @return: What is served, for discovery and OpenAPI.
        """
        for layer, groups in (
            (aggregator, lambda group: group == AGGREGATOR_GROUP),
            (kube, lambda group: group not in (AGGREGATOR_GROUP, EXTENSIONS_GROUP)),
            (extensions, lambda group: group == EXTENSIONS_GROUP),
        ):
            installer = Installer(
                layer,
                context,
                self.definitions,
                self.reactor,
                self.flusher,
                min_request_timeout=self._min_request_timeout,
                clients=clients,
                in_thread=self._computing,
                traced=self._traced,
            )
            installer.install([info for info in self.infos if groups(info.group)])
            self._installers[layer.name] = installer
        merged = MergedGroups([installer.installed for installer in self._installers.values()])
        built_in = merged.group_versions()
        self._install_custom(extensions, merged)
        services = self.stores.find(AGGREGATOR_GROUP, "apiservices")
        if services is not None:
            self.aggregation = Aggregation(services, self._outgoing, self.reactor)
            definitions = self._definition_controller
            self._registration = Registration(
                services,
                self.aggregation.informer,
                self.reactor,
                built_in=built_in,
                custom=definitions.group_versions if definitions is not None else lambda: (),
                subscribe=definitions.subscribe if definitions is not None else lambda changed: None,
            )
        return merged

    async def register(self) -> None:
        """Have an APIService for each group-version that is served here, from now on."""
        if self._registration is not None:
            await self._registration.start()

    def _install_custom(self, extensions: Layer, merged: MergedGroups) -> None:
        """Have the extensions server serve custom resources."""
        store = self.stores.find(EXTENSIONS_GROUP, "customresourcedefinitions")
        if store is None:
            return
        self._custom = CustomResources(
            extensions,
            self._installers[extensions.name].installed,
            merged,
            self.registry,
            self.definitions,
            self.reactor,
            self.flusher,
            conversion_of=self._conversion,
            min_request_timeout=self._min_request_timeout,
            in_thread=self._computing,
            traced=self._traced,
        )
        gvk = store.gvk
        fields = FieldManager(
            gvk,
            BuiltInVersions(self.definitions, {gvk.api_version: gvk}),
            Codec(self.definitions, gvk, gvk).zero,
            subresource="status",
            filters={gvk.api_version: allowed_fields(store.info, "status")},
        )
        self._definition_controller = DefinitionController(store, self._custom, self.reactor, fields)

    def _conversion(self, crd: JSONObject) -> Conversion | None:
        """Who converts between the versions of a definition; imported for those that say so."""
        if not converts_elsewhere(crd):
            return None
        if self._conversions is None:
            from ..registry.customresources.conversion import Conversions

            self._conversions = Conversions(self._outgoing, self.reactor)
        return self._conversions(crd)

    async def start(self) -> None:
        """Fill the watch caches; nothing can be served before, custom resources included."""
        await self.registry.start()
        if self.aggregation is not None:
            self.aggregation.start()
        if self._definition_controller is not None:
            self._definition_controller.start()

    async def stop(self) -> None:
        """End the watches and let go of the backend."""
        if self._registration is not None:
            await self._registration.stop()
        if self.aggregation is not None:
            self.aggregation.stop()
        if self._definition_controller is not None:
            self._definition_controller.stop()
        if self._custom is not None:
            self._custom.stop()
        self.registry.stop()
        self._computing.stop()


def install_apis(config: APIConfig, aggregator: APIHost, kube: APIHost, extensions: APIHost) -> APIs:
    """
    Put the APIs of Kubernetes on the three servers of a chain.

    @param aggregator: The server in front; C{kube} is its delegate, and C{extensions} that of C{kube}.
    """
    options = config.options
    definitions = Definitions.load(config.kubernetes_version)

    def admission(server: ServerAdmissionContext) -> AdmissionChain:
        return build_chain(
            options["enable-admission-plugins"],
            options["disable-admission-plugins"],
            server,
            read_configurations(options["admission-control-config-file"]),
            traced=config.traced,
        )

    apis = APIs(
        definitions,
        config.backend,
        config.reactor,
        runtime_config=options["runtime-config"],
        min_request_timeout=options["min-request-timeout"],
        options=registry_options(options),
        grants=config.grants,
        authorizer=config.authorizer,
        outgoing=config.outgoing,
        admission=admission,
        traced=config.traced,
    )
    kubelet_credentials = config.kubelet_credentials
    assert kubelet_credentials is not None, "a Kubernetes API server has credentials for kubelets"
    clients = TargetClients(
        config.outgoing,
        kubelet_credentials.current,
        Streams(StreamMetrics(config.metrics), options["feature-gates"]),
        loopback=options["allow-loopback-proxy"],
        patience=options["kubelet-timeout"],
    )
    context = ServerContext(
        apis.stores,
        apis.registry.environment,
        config.authorizer,
        config.user_of_token,
        config.token_issuer,
        config.outgoing,
        ConnectionRules(
            tuple(options["kubelet-preferred-address-types"]),
            options["kubelet-port"],
            options["allow-loopback-proxy"],
            options["feature-gates"].get("PodLogsQuerySplitStreams", False),
        ),
    )
    apis.installed = installed = apis.install(aggregator.layer, kube.layer, extensions.layer, context, clients)

    def other_paths() -> list[str]:
        layers = (aggregator.layer, kube.layer, extensions.layer)
        paths = {path for layer in layers for path in layer.paths() if not path.startswith("/api")}
        return sorted(paths)

    listed: IInstalled = installed
    if apis.aggregation is not None:
        aggregated = add_aggregator(config, apis.stores, apis.aggregation, aggregator, installed)
        listed = aggregated.paths.listed
        apis.streams.append(aggregated.paths.streams)
        apis.availability = aggregated.checks
    text = "Documents of aggregated discovery that were put together."
    documents = config.metrics.counter("aggregator_discovery_aggregation_count_total", text).of()

    def made() -> None:
        documents.value += 1

    others = install_documents(
        aggregator.layer,
        installed,
        definitions,
        config.reactor,
        lambda: config.address,
        other_paths,
        listed,
        apis.aggregation,
        made,
    )
    if others is not None:
        aggregator.add_post_start_hook("apiservice-discovery-controller", others.start)
        aggregator.add_at_end("documents of other servers", others.stop)
    install_group_ends(extensions.layer, installed)
    compactor = Compactor(config.backend, config.reactor, options["etcd-compaction-interval"])
    aggregator.add_before_listening("watch caches", apis.start)
    aggregator.add_at_end("watch caches", apis.stop)
    aggregator.add_before_listening("compaction", compactor.start)
    aggregator.add_at_end("compaction", compactor.stop)
    add_bootstrap_hooks(config, apis.registry, apis.register, aggregator, kube)
    if options["enable-priority-and-fairness"]:
        apis.flow = add_fairness(config, apis.stores, aggregator)
    if config.controllers:
        apis.running = add_controllers(config, apis.registry, apis.custom, apis.aggregation, aggregator)
    return apis


def registry_options(options: FlagValues) -> RegistryOptions:
    """Return how the command line wants objects to be kept."""
    return RegistryOptions(
        prefix=f"{options['etcd-prefix'].rstrip('/')}/",
        event_ttl=options["event-ttl"],
        service_ranges=[str(network) for network in options["service-cluster-ip-range"]],
        node_ports=options["service-node-port-range"],
        delete_workers=options["delete-collection-workers"],
        cache_sizes=options["watch-cache-sizes"] if options["watch-cache"] else {},
        default_cache_size=options["default-watch-cache-size"] if options["watch-cache"] else 0,
        protobuf=options["storage-media-type"] == "application/vnd.kubernetes.protobuf",
        open_gates=frozenset(name for name, opened in options["feature-gates"].items() if opened),
        allow_privileged=options["allow-privileged"],
        toleration_seconds=(
            options["default-not-ready-toleration-seconds"],
            options["default-unreachable-toleration-seconds"],
        ),
    )
