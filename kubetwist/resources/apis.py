"""All built-in APIs of a server: their stores, and their places in the three servers of the chain."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from twisted.logger import Logger

from ..admission.chain import AdmissionChain
from ..admission.configuration import read_configurations, require_baseline
from ..admission.plugins import build_chain
from ..api.featuregates import FeatureGates
from ..api.resource import JSONObject
from ..controllers.aggregation.apiservices import Aggregation
from ..controllers.aggregation.autoregister import AutoRegisterController
from ..controllers.customresources import CRDController
from ..flowcontrol.computing import Computing
from ..flowcontrol.controller import FlowControl
from ..metrics.streams import StreamMetrics
from ..registry.admissioncontext import ServerAdmissionContext
from ..registry.assembly import RegistryOptions, ResourceRegistry
from ..registry.core.node.kubelets import ConnectionRules
from ..registry.core.servercontext import ServerContext
from ..registry.customresources.crd import converts_elsewhere
from ..registry.emulation import ForwardCompatibility
from ..registry.generic.resourceinfo import ResourceInfo
from ..registry.kinds import kinds_for
from ..schema.definitions import Definitions
from ..storage.compaction import Compactor
from ..streams.handlers import StreamHandlers
from .aggregation.routes import ServiceResolver, add_aggregator
from .customresources import CustomResources
from .documents import install_documents, install_group_not_found
from .endpoint import thread_deferrer
from .handlers.connect import is_proxy_stream
from .handlers.watch import WatchFlusher
from .hooks import HooksDone, ServerControllers, add_bootstrap_hooks, add_controllers, add_fairness
from .install import Installer
from .mux import DelegatingMux
from .proxy.upstreamclients import UpstreamClientPool
from .servedresources import IServedResources, MergedServedResources, ServedResources

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..api.flagvalues import FlagValues
    from ..client.factory import ClientFactory
    from ..controllers.fakekubelet.network import SimulatedNetwork
    from ..controllers.machinery.election import LeaderElectedControllerManager
    from ..controllers.machinery.manager import ControllerManager
    from ..http.request import KubeRequest
    from ..interfaces import IServerReactor
    from ..registry.customresources.conversion import CRConverter
    from .aggregation.routes import AvailabilityChecks
    from .hosting import APIConfig, APIHost

#: The groups that other servers of the chain serve.
AGGREGATOR_GROUP: Final = "apiregistration.k8s.io"
EXTENSIONS_GROUP: Final = "apiextensions.k8s.io"


class APIs:
    """
    The APIs of Kubernetes, on the three servers of a chain.

    @ivar registry: The stores, and their shared dependencies.
    @ivar infos: The resources that the release and --runtime-config enable.
    @ivar served_resources: The served groups, versions and resources.
    @ivar custom: Serves custom resources; L{None} if definitions are not served.
    @ivar aggregation: The routes of APIServices; L{None} if APIServices are not served.
    @ivar availability: Checks the servers behind APIServices; L{None} without APIServices.
    @ivar flow: Priority and fairness; L{None} if requests are only counted.
    @ivar streams: See L{kubetwist.http.site.KubeSite.streams}.
    """

    _log = Logger()

    def __init__(self, config: APIConfig, aggregator: APIHost, kube: APIHost, extensions: APIHost) -> None:
        """
        @param config: The configuration of the server.
        @param aggregator: The server in front.
        @param kube: Its delegate.
        @param extensions: The delegate of C{kube}.
        """
        options = config.options
        self._config = config
        self._definitions = definitions = Definitions.load(config.kubernetes_version)
        forward = options["emulation-forward-compatible"], options["runtime-config-emulation-forward-compatible"]
        self.infos: list[ResourceInfo] = kinds_for(
            definitions.gvks(),
            config.features,
            options["runtime-config"],
            ForwardCompatibility(*forward),
            lambda text: self._log.warn("{text}", text=text),
        )
        self.registry = make_registry(config, definitions, self.infos)
        self.flusher = WatchFlusher(config.reactor)
        self._computing = Computing(thread_deferrer(config.reactor), config.reactor)
        installers = self._install(aggregator.mux, kube.mux, extensions.mux)
        served = [installer.served_resources for installer in installers]
        if options["fake-nodes"]:
            served += self._serve_metrics(kube.mux)
        self.served_resources = MergedServedResources(served)
        built_in, priorities = self.served_resources.group_versions(), self.served_resources.priorities
        self.custom: CustomResources | None = None
        self._definition_controller: CRDController | None = None
        definition_store = self.registry.stores.find(EXTENSIONS_GROUP, "customresourcedefinitions")
        if definition_store is not None:
            self.custom = self._serve_custom(installers[-1])
            self._definition_controller = CRDController(definition_store, self.custom, config.reactor)
        controller = self._definition_controller
        self.aggregation: Aggregation | None = None
        self._registration: AutoRegisterController | None = None
        self.availability: AvailabilityChecks | None = None
        self.streams: Sequence[Callable[[KubeRequest], bool]] = (is_proxy_stream,)
        apis_groups: IServedResources = self.served_resources
        services = self.registry.stores.find(AGGREGATOR_GROUP, "apiservices")
        if services is not None:
            endpoints = ServiceResolver(self.registry.stores, config.reactor)
            self.aggregation = Aggregation(
                services,
                config.outgoing,
                config.reactor,
                endpoints.resolve if options["enable-aggregator-routing"] else None,
                loopback=options["allow-loopback-proxy"],
                sends_uids=config.features.enabled("RemoteRequestHeaderUID"),
            )
            self._registration = AutoRegisterController(
                services,
                self.aggregation.informer,
                config.reactor,
                built_in=built_in,
                priorities=priorities,
                custom=controller.group_versions if controller is not None else lambda: (),
                subscribe=controller.subscribe if controller is not None else lambda changed: None,
            )
            added = add_aggregator(config, endpoints, self.aggregation, aggregator, self.served_resources)
            apis_groups = added.paths.apis_groups
            self.streams = (is_proxy_stream, added.paths.is_proxy_stream)
            self.availability = added.checks
        self._hosts, self._apis_groups = (aggregator, kube, extensions), apis_groups
        compactor = Compactor(config.backend, config.reactor, options["etcd-compaction-interval"])
        self._add_cache_hooks(aggregator, extensions)
        aggregator.register_destroy_func("watch caches", self.stop)
        (HooksDone(aggregator) if config.is_front else aggregator).add_pre_listen_hook(
            "storage-compaction", compactor.start
        )
        aggregator.register_destroy_func("compaction", compactor.stop)
        add_bootstrap_hooks(config, self.registry, self.register, aggregator, kube)
        self.flow: FlowControl | None = None
        if options["enable-priority-and-fairness"] and config.serves:
            self.flow = add_fairness(config, self.registry.stores, aggregator)
        self._controllers: ServerControllers | None = None
        if config.controllers:
            self._controllers = add_controllers(config, self.registry, self.custom, self.aggregation, aggregator)

    @property
    def idle(self) -> bool:
        """Return whether no work on definitions of custom resources is pending."""
        controllers = self._definition_controller, self._registration
        return all(controller is None or controller.idle for controller in controllers)

    @property
    def controllers(self) -> ControllerManager | LeaderElectedControllerManager | None:
        """Return the controllers once the server is ready; L{None} before, and if none are configured."""
        return None if self._controllers is None else self._controllers.running

    def _install(self, aggregator: DelegatingMux, kube: DelegatingMux, extensions: DelegatingMux) -> list[Installer]:
        """Register the paths of every resource on its server; return the installers of the three servers."""
        config = self._config
        context, clients = make_context(config, self.registry), make_clients(config, self.registry)
        installers = []
        for mux, groups in (
            (aggregator, lambda group: group == AGGREGATOR_GROUP),
            (kube, lambda group: group not in (AGGREGATOR_GROUP, EXTENSIONS_GROUP)),
            (extensions, lambda group: group == EXTENSIONS_GROUP),
        ):
            installer = Installer(
                mux,
                context,
                self._definitions,
                config.reactor,
                self.flusher,
                min_request_timeout=config.options["min-request-timeout"],
                clients=clients,
                defer_to_thread=self._computing,
                traced=config.traced,
                features=config.features,
            )
            installer.install([info for info in self.infos if groups(info.group)])
            installers.append(installer)
        return installers

    def _serve_custom(self, installer: Installer) -> CustomResources:
        """
        Serve custom resources on the extensions server.

        @param installer: The installer of the extensions server.
        """
        config = self._config
        return CustomResources(
            installer.mux,
            installer.served_resources,
            self.served_resources,
            self.registry,
            self._definitions,
            config.reactor,
            self.flusher,
            make_converter=make_converter_factory(config.outgoing, config.reactor),
            min_request_timeout=config.options["min-request-timeout"],
            defer_to_thread=self._computing,
            traced=config.traced,
            features=config.features,
        )

    def _serve_metrics(self, mux: DelegatingMux) -> list[ServedResources]:
        """
        Serve the usage of simulated nodes and their pods, and the metrics that tests set.

        @param mux: The server that serves the paths.
        @return: The entries for discovery and OpenAPI.
        """
        from ..controllers.fakekubelet.setmetrics import SetMetrics
        from ..controllers.fakekubelet.usage import SimulatedUsage
        from .custommetricsapi import CustomMetricsAPI
        from .metricsapi import MetricsAPI

        config = self._config
        api = MetricsAPI(
            mux,
            SimulatedUsage(self.registry.stores, config.images, config.reactor),
            self._definitions,
            config.reactor,
            self.flusher,
            defer_to_thread=self._computing,
            traced=config.traced,
            features=config.features,
        )
        set_metrics = CustomMetricsAPI(mux, SetMetrics(self.registry.stores, config.reactor))
        return [api.served_resources, set_metrics.served_resources]

    def install_documents(self) -> None:
        """
        Register the paths of discovery and OpenAPI documents.

        The server in front serves them; the last server answers unknown versions of known groups.
        """
        config, hosts = self._config, self._hosts
        aggregator, extensions = hosts[0], hosts[-1]

        def non_api_paths() -> list[str]:
            paths = {path for host in hosts for path in host.mux.listed_paths() if not path.startswith("/api")}
            return sorted(paths)

        text = "Number of times discovery was aggregated."
        documents = config.metrics.counter("aggregator_discovery_aggregation_count_total", text).with_label_values()

        def count_document() -> None:
            documents.value += 1

        aggregated_documents = install_documents(
            aggregator.mux,
            self.served_resources,
            self._definitions,
            config.reactor,
            lambda: config.address,
            non_api_paths,
            self._apis_groups,
            self.aggregation,
            count_document,
            config.features,
        )
        if aggregated_documents is not None:
            aggregator.add_post_start_hook(
                "apiservice-discovery-controller",
                aggregated_documents.start,
                covers=("apiservice-openapi-controller", "apiservice-openapiv3-controller"),
            )
            aggregator.register_destroy_func("documents of other servers", aggregated_documents.stop)
        install_group_not_found(extensions.mux, self.served_resources)

    def _add_cache_hooks(self, aggregator: APIHost, extensions: APIHost) -> None:
        """
        Fill the watch caches before the server listens; no resource is served before, not even a custom one.

        @param aggregator: The first server, whose hooks run last.
        @param extensions: The last delegate, whose hooks run first.
        """
        initializes = self._config.features.enabled("WatchCacheInitializationPostStartHook")
        extensions.add_pre_listen_hook(
            "generic-apiserver-start-informers",
            self.registry.start,
            covers=("storage-readiness",) if initializes else (),
        )
        if self._definition_controller is not None:
            extensions.add_pre_listen_hook(
                "start-apiextensions-informers",
                self._definition_controller.start,
                covers=("start-apiextensions-controllers", "crd-informer-synced"),
            )
        if self.aggregation is not None:
            aggregator.add_pre_listen_hook(
                "start-kube-aggregator-informers",
                self.aggregation.start,
                covers=("apiservice-registration-controller", "apiservice-wait-for-first-sync"),
            )

    async def register(self) -> None:
        """Create an APIService for each group-version that is served here, and keep them up to date."""
        if self._registration is not None:
            await self._registration.start()

    async def stop(self) -> None:
        """End the watches and release the backend."""
        if self._registration is not None:
            await self._registration.stop()
        if self.aggregation is not None:
            self.aggregation.stop()
        if self._definition_controller is not None:
            self._definition_controller.stop()
        if self.custom is not None:
            self.custom.stop()
        self.registry.stop()
        self._computing.stop()


def install_apis(config: APIConfig, aggregator: APIHost, kube: APIHost, extensions: APIHost) -> APIs:
    """
    Install the APIs of Kubernetes on the three servers of a chain; see L{APIs}.

    @param config: The configuration of the server.
    @param aggregator: The server in front.
    @param kube: The delegate of C{aggregator}.
    @param extensions: The delegate of C{kube}.
    """
    return APIs(config, aggregator, kube, extensions)


def make_registry(config: APIConfig, definitions: Definitions, infos: Sequence[ResourceInfo]) -> ResourceRegistry:
    """
    Construct the stores of a server, and their shared dependencies.

    @param definitions: The types of the release.
    @param infos: The built-in resources.
    """
    options = config.options

    def admission(server: ServerAdmissionContext) -> AdmissionChain:
        configurations = read_configurations(options["admission-control-config-file"])
        if options["hardened"]:
            require_baseline(configurations)
        return build_chain(
            options["enable-admission-plugins"],
            options["disable-admission-plugins"],
            server,
            configurations,
            traced=config.traced,
            features=config.features,
        )

    return ResourceRegistry(
        config.backend,
        config.reactor,
        infos,
        definitions=definitions,
        options=registry_options(options),
        grants=config.grants,
        authorizer=config.authorizer,
        outgoing=config.outgoing,
        admission=admission,
    )


def make_context(config: APIConfig, registry: ResourceRegistry) -> ServerContext:
    """Return the server's dependencies of reviews, actions and connections."""
    options = config.options
    return ServerContext(
        registry.stores,
        registry.environment,
        config.authorizer,
        config.authenticate_token,
        config.token_issuer,
        config.outgoing,
        ConnectionRules(
            tuple(options["kubelet-preferred-address-types"]),
            options["kubelet-port"],
            options["allow-loopback-proxy"],
            config.features.enabled("PodLogsQuerySplitStreams"),
        ),
    )


def make_clients(config: APIConfig, registry: ResourceRegistry) -> UpstreamClientPool:
    """Return the clients for the targets of proxies, logs and streams."""
    kubelet_credentials = config.kubelet_credentials
    assert kubelet_credentials is not None, "a Kubernetes API server has credentials for kubelets"

    @cache
    def simulated_network() -> SimulatedNetwork:
        # Imported late: most servers have no simulated nodes.
        from ..controllers.fakekubelet.network import SimulatedNetwork

        return SimulatedNetwork(config.reactor, registry.stores, config.images)

    return UpstreamClientPool(
        config.outgoing,
        kubelet_credentials.current,
        StreamHandlers(StreamMetrics(config.metrics), config.features),
        loopback=config.options["allow-loopback-proxy"],
        patience=config.options["kubelet-timeout"],
        simulated=lambda host, port: simulated_network().endpoint(host, port),
    )


def make_converter_factory(
    outgoing: ClientFactory, reactor: IServerReactor
) -> Callable[[JSONObject], CRConverter | None]:
    """
    Return the function that finds the conversion of a definition; webhooks and plugins are imported at its first use.
    """

    @cache
    def factory() -> Callable[[JSONObject], CRConverter | None]:
        from ..registry.customresources.conversion import CRConverterFactory

        return CRConverterFactory(outgoing, reactor)

    return lambda crd: factory()(crd) if converts_elsewhere(crd) else None


def registry_options(options: FlagValues) -> RegistryOptions:
    """Return the settings of the object stores from the command line."""
    features = FeatureGates.from_options(options)
    return RegistryOptions(
        prefix=f"{options['etcd-prefix'].rstrip('/')}/",
        event_ttl=options["event-ttl"],
        service_ranges=[str(network) for network in options["service-cluster-ip-range"]],
        node_ports=options["service-node-port-range"],
        delete_workers=options["delete-collection-workers"],
        cache_sizes=options["watch-cache-sizes"] if options["watch-cache"] else {},
        default_cache_size=options["default-watch-cache-size"] if options["watch-cache"] else 0,
        protobuf=options["storage-media-type"] == "application/vnd.kubernetes.protobuf",
        cbor=options["storage-backend"] == "etcd3" and features.enabled("CBORServingAndStorage"),
        features=features,
        allow_privileged=options["allow-privileged"],
        toleration_seconds=(
            options["default-not-ready-toleration-seconds"],
            options["default-unreachable-toleration-seconds"],
        ),
    )
