"""The hooks of the servers of the chain: bootstrap objects, controllers, endpoints, priority and fairness."""

from __future__ import annotations

import ipaddress
from socket import gethostname
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from ..controllers.aggregation.apiservices import GROUP as AGGREGATION
from ..controllers.aggregation.apiservices import Aggregation
from ..controllers.apfconfig import GROUP as FAIRNESS
from ..controllers.apfconfig import APFConfigController
from ..controllers.serviceaccounts.legacytokentracking import LegacyTokenTracking
from ..flowcontrol.collectors import register_collectors
from ..flowcontrol.computing import freeze
from ..flowcontrol.controller import FlowControl
from ..registry.assembly import ResourceRegistry
from ..registry.core.namespace.bootstrap import system_namespaces
from ..registry.core.service.bootstrap import default_service_cidr, kubernetes_service
from ..registry.core.service.ipaddresses import IPAddressStore
from ..registry.flowcontrol.bootstrap import ensure_flow_control
from ..registry.rbac.bootstrap import reconcile as bootstraprbac
from ..registry.rbac.ruleresolver import GROUP as RBAC
from ..registry.scheduling.bootstrap import ensure_priority_classes
from ..registry.stores import Stores
from .customresources import CustomResources

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cryptography.x509 import Certificate

    from ..controllers.machinery.context import ControllerContext
    from ..controllers.machinery.election import LeaderElectedControllerManager
    from ..controllers.machinery.manager import ControllerManager
    from .hosting import APIConfig, APIHost, Hook

#: Maximum seconds that a request waits in a queue.
MAX_QUEUE_WAIT: Final = 60.0


class ServerControllers:
    """
    The controllers of a server, which run from its readiness until its last request.

    @ivar running: The controllers; L{None} before the server is ready.
    """

    def __init__(
        self,
        config: APIConfig,
        registry: ResourceRegistry,
        custom: CustomResources | None,
        aggregation: Aggregation | None,
    ) -> None:
        """
        @param config: Provides the factories of the controllers.
        @param registry: The stores that they read and write.
        @param custom: Serves custom resources; L{None} without definitions.
        @param aggregation: Provides the servers behind APIServices; L{None} without APIServices.
        """
        self._config = config
        self._registry = registry
        self._custom = custom
        self._aggregation = aggregation
        self.running: ControllerManager | LeaderElectedControllerManager | None = None

    def start(self) -> None:
        """Construct and start the controllers."""
        # Not earlier: readiness must not wait for their imports.
        from ..controllers.machinery.manager import ControllerManager

        config = self._config
        if config.backend.shared:
            from ..controllers.machinery.election import LeaderElectedControllerManager

            identity = f"{gethostname()}_{uuid4()}"
            self.running = LeaderElectedControllerManager(self._make_context, config.controllers, identity)
        else:
            running = self.running = ControllerManager(self._make_context(), config.controllers)
            running.started.addCallback(lambda started: freeze())
        self.running.start()

    def _make_context(self) -> ControllerContext:
        from ..controllers.machinery.context import ControllerContext

        config = self._config
        return ControllerContext(self._registry, config.reactor, config, self._custom, self._aggregation)

    async def stop(self) -> None:
        """Stop the controllers, if they were started."""
        if self.running is not None:
            await self.running.stop()


class HooksDone:
    """
    The server of a front, for hooks that the storage process runs: health paths have their names.

    @ivar mux: See L{APIHost.mux}.
    """

    def __init__(self, host: APIHost) -> None:
        """@param host: The server."""
        self._host = host
        self.mux = host.mux

    def add_pre_listen_hook(self, name: str, start: Hook, /, covers: Sequence[str] = ()) -> None:
        """Add the name of a hook."""
        self._host.add_pre_listen_hook(name, _do_nothing, covers)

    def add_post_start_hook(self, name: str, run: Hook, /, covers: Sequence[str] = ()) -> None:
        """Add the name of a hook."""
        self._host.add_post_start_hook(name, _do_nothing, covers)

    def add_ready_hook(self, name: str, run: Hook, /) -> None:
        """Do nothing: such a hook has no name in health paths."""

    def add_pre_shutdown_hook(self, name: str, run: Hook, /) -> None:
        """Do nothing: the hook that it ends does not run."""

    def register_destroy_func(self, name: str, stop: Hook, /) -> None:
        """Do nothing: the hook that it ends does not run."""


def _do_nothing() -> None:
    """Take the place of a hook."""


def add_controllers(
    config: APIConfig,
    registry: ResourceRegistry,
    custom: CustomResources | None,
    aggregation: Aggregation | None,
    aggregator: APIHost,
) -> ServerControllers:
    """
    Run the enabled controllers from the readiness of the server until its last request.

    @param config: Provides the factories of the controllers.
    @param registry: The stores that they read and write.
    @param custom: Serves custom resources; L{None} without definitions.
    @param aggregation: Provides the servers behind APIServices; L{None} without APIServices.
    @param aggregator: The server whose hooks start and stop them.
    """
    controllers = ServerControllers(config, registry, custom, aggregation)
    aggregator.add_ready_hook("controllers", controllers.start)
    aggregator.register_destroy_func("controllers", controllers.stop)
    return controllers


def add_fairness(config: APIConfig, stores: Stores, aggregator: APIHost) -> FlowControl | None:
    """Queue requests according to flow schemas; return L{None} if flow schemas are not served."""
    levels, schemas = (stores.find(FAIRNESS, name) for name in ("prioritylevelconfigurations", "flowschemas"))
    if levels is None or schemas is None:
        return None
    options = config.options
    seats = config.share(options["max-requests-inflight"] + options["max-mutating-requests-inflight"])
    # The reference's limit of the wait: a quarter of the request timeout.
    wait = min(options["request-timeout"] / 4, MAX_QUEUE_WAIT)
    flow = FlowControl(config.reactor, seats, wait, config.scheduler)
    register_collectors(flow, config.metrics)
    configuration = APFConfigController(flow, levels, schemas, config.reactor)
    aggregator.add_pre_listen_hook("priority-and-fairness-config-consumer", configuration.start)
    aggregator.register_destroy_func("priority and fairness", configuration.stop)
    return flow


def add_authentication_info(config: APIConfig, stores: Stores, aggregator: APIHost, kube: APIHost) -> None:
    """
    Publish the authentication settings to aggregated servers.

    They are in the config map kube-system/extension-apiserver-authentication.

    @param config: The configuration of the server.
    @param stores: Contains the store of config maps.
    @param aggregator: The server whose hooks stop the updates.
    @param kube: The server whose hooks start the updates.
    """
    from ..controllers.clusterauthenticationtrust import (
        ClusterAuthenticationTrustController,
        cluster_authentication_info,
    )

    def certificates(flag: str) -> list[Certificate]:
        return [
            provider for each in config.client_authorities if each.flag == flag for provider in each.pool.certificates
        ]

    def desired_info() -> dict[str, str]:
        generated = not config.options["proxy-client-cert-file"]
        return cluster_authentication_info(
            config.options,
            certificates("--client-ca-file"),
            certificates("--requestheader-client-ca-file"),
            config.credentials.front_proxy_authority.decode() if generated else "",
        )

    info = ClusterAuthenticationTrustController(stores.get("", "configmaps"), config.reactor, desired_info)

    async def publish() -> None:
        await system_namespaces(stores)
        await info.start()
        for provider in config.client_authorities:
            provider.listeners.append(info.schedule)
        config.credentials.front_proxy_listeners.append(info.schedule)

    kube.add_post_start_hook("start-cluster-authentication-info-controller", publish)
    aggregator.register_destroy_func("authentication info", info.stop)


def add_bootstrap_hooks(
    config: APIConfig, registry: ResourceRegistry, register: Hook, aggregator: APIHost, kube: APIHost
) -> None:
    """
    Create the bootstrap objects of the servers, once they listen.

    A front has the names of these hooks only: the storage process has run them before the front starts.

    @param config: The configuration of the server.
    @param registry: The stores of the objects.
    @param register: Creates the APIServices of the served group-versions.
    @param aggregator: The server in front.
    @param kube: The Kubernetes API server.
    """
    options, stores = config.options, registry.stores
    if config.is_front:
        aggregator, kube = HooksDone(aggregator), HooksDone(kube)
    cidrs = [str(cidr) for cidr in options["service-cluster-ip-range"]]
    first_ip = str(next(ipaddress.ip_network(cidrs[0], strict=False).hosts()))

    is_single_server = not config.backend.shared and options["endpoint-reconciler-type"] != "none"

    async def create_namespaces() -> None:
        await system_namespaces(stores)
        address, port = config.endpoint
        if not is_single_server:
            address = ""
        node_port = options["kubernetes-service-node-port"]
        await kubernetes_service(stores, first_ip, address, port, node_port=node_port)

    async def repair_allocations() -> None:
        store = stores.find("networking.k8s.io", "ipaddresses")
        if isinstance(store, IPAddressStore):
            await store.repair()
        shared_ports = registry.allocators.shared_ports
        if shared_ports is not None:
            await shared_ports.repair(stores.get("", "services").cache)

    kube.add_post_start_hook("start-service-ip-repair-controllers", repair_allocations)

    def add_hook(server: APIHost, name: str, required: tuple[str, str], run: Callable[[Stores], object]) -> None:
        if required in stores.infos:
            server.add_post_start_hook(name, lambda: run(stores))

    kube.add_post_start_hook("start-system-namespaces-controller", create_namespaces)
    add_hook(
        kube,
        "start-kubernetes-service-cidr-controller",
        ("networking.k8s.io", "servicecidrs"),
        lambda stores: default_service_cidr(stores, cidrs),
    )
    add_hook(
        kube,
        "scheduling/bootstrap-system-priority-classes",
        ("scheduling.k8s.io", "priorityclasses"),
        ensure_priority_classes,
    )
    add_hook(
        kube,
        "priority-and-fairness-config-producer",
        ("flowcontrol.apiserver.k8s.io", "flowschemas"),
        lambda stores: ensure_flow_control(stores, config.features),
    )

    async def reconcile_roles() -> None:
        await bootstraprbac.reconcile(stores, config.features, metrics=bool(options["fake-nodes"]))

    if (RBAC, "clusterroles") in stores.infos:
        kube.add_post_start_hook("rbac/bootstrap-roles", reconcile_roles)
    if ("", "configmaps") in stores.infos:
        tracking = LegacyTokenTracking(stores.get("", "configmaps"), config.reactor)

        async def start_tracking() -> None:
            await system_namespaces(stores)
            await tracking.start()

        kube.add_post_start_hook("start-legacy-token-tracking-controller", start_tracking)
        aggregator.register_destroy_func("tracking of tokens in secrets", tracking.stop)
        add_authentication_info(config, stores, aggregator, kube)
    if (AGGREGATION, "apiservices") in stores.infos:
        aggregator.add_post_start_hook(
            "kube-apiserver-autoregistration",
            register,
            covers=("apiservice-status-local-available-controller", "autoregister-completion"),
        )
    if options["endpoint-reconciler-type"] != "none":
        add_endpoints(config, stores, aggregator)
    if config.features.enabled("APIServerIdentity"):
        add_identity(config, stores, aggregator, kube)


def add_endpoints(config: APIConfig, stores: Stores, aggregator: APIHost) -> None:
    """Maintain the endpoints of the kubernetes service: by leases, by a fixed count, or for a single server."""
    from ..controllers.endpointreconcilers.lease import LeaseEndpointReconciler
    from ..controllers.endpointreconcilers.mastercount import MasterCountEndpointReconciler
    from ..controllers.endpointreconcilers.single import SingleEndpointReconciler

    options = config.options
    prefix = f"{options['etcd-prefix'].rstrip('/')}/"
    reconciler: LeaseEndpointReconciler
    if not config.backend.shared:
        reconciler = SingleEndpointReconciler(stores, config.backend, prefix, config.reactor, lambda: config.endpoint)
    elif options["endpoint-reconciler-type"] == "master-count":
        count = options["apiserver-count"]
        reconciler = MasterCountEndpointReconciler(
            stores, config.backend, prefix, config.reactor, lambda: config.endpoint, count
        )
    else:
        reconciler = LeaseEndpointReconciler(stores, config.backend, prefix, config.reactor, lambda: config.endpoint)
    aggregator.add_post_start_hook("bootstrap-controller", reconciler.prepare)
    aggregator.add_ready_hook("endpoints of the servers", reconciler.start)
    aggregator.add_pre_shutdown_hook("endpoints of the servers", reconciler.stop)
    aggregator.register_destroy_func("endpoints of the servers", reconciler.end)


def add_identity(config: APIConfig, stores: Stores, aggregator: APIHost, kube: APIHost) -> None:
    """
    Keep the identity Lease of this server up to date.

    @param config: The configuration of the server.
    @param stores: Contains the store of Leases.
    @param aggregator: The server whose hooks start and stop the renewal.
    @param kube: The server whose identity it is.
    """
    leases = stores.find("coordination.k8s.io", "leases")
    if leases is None:
        return
    from ..controllers.serveridentity import IdentityLeaseController, IdentityLeaseGC

    identity = IdentityLeaseController(leases, config.reactor, gethostname(), str(uuid4()))
    collector = IdentityLeaseGC(leases, config.reactor)

    async def start_renewal() -> None:
        await system_namespaces(stores)
        identity.start()

    kube.add_post_start_hook("start-kube-apiserver-identity-lease-controller", start_renewal)
    kube.add_post_start_hook("start-kube-apiserver-identity-lease-garbage-collector", collector.start)
    aggregator.register_destroy_func("the Lease of this server", identity.stop)
    aggregator.register_destroy_func("Leases of other servers", collector.stop)
