"""
The first server of a chain: it installs what all servers have, and builds the filters in front of the chain.

@see: kubernetes/apiserver, C{pkg/server/genericapiserver.go}: C{PrepareRun}.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from twisted.logger import Logger

from ..api.resource import UserInfo
from ..audit.auditedrequest import audited_request
from ..authentication.signinlinks import LIFETIME, SIGN_IN_LINKS, SignInLinks, sign_in_url
from ..authentication.union import add_authenticated_group
from ..filters.authorization import WHY
from ..filters.consistency import ConsistentReadFilter
from ..filters.handlerchain import build_handler_chain
from ..filters.memory import with_memory_limit
from ..http.connection.bodyshares import MAX_BODIES, MAX_BODY, BodyShares
from ..http.connection.connectionlimit import ConnectionLimiter
from ..http.connection.connections import Connections
from ..http.connection.memorylimit import MemoryGuard, make_guard
from ..http.connection.memoryrelease import MemoryRelease, find_trim
from ..http.site import DEFAULT_MAX_STREAMS, KubeSite, traverse
from ..logs.httplog import RequestLog
from ..metrics.requests import RequestMetrics
from ..resources.routing import RoutedApp
from ..storage.wrappers import find_shared_storage
from .apis import InstalledAPIs
from .collectors import register_collectors, register_connection_collectors
from .credentials.frontproxy import configure_proxy_client_certificate
from .datadir import ADMIN
from .encryption import register_encryption_checks
from .endpoints.configz import install_configz
from .endpoints.debugging import install_debugging
from .endpoints.fairness import PATH as FAIRNESS
from .endpoints.fairness import FlowControlDebugging
from .endpoints.flagz import install_flagz
from .endpoints.logs import install_logs
from .endpoints.metrics import ServedResourceNames, install_metrics
from .endpoints.openid import serve_documents
from .endpoints.statusz import install_statusz
from .endpoints.version import VersionEndpoint
from .etcdbackend import register_etcd_metrics
from .flowcontrolsampler import FlowControlSampler
from .lifecycle import PreparedAPIServer, RunState
from .processmetrics import register_process_metrics
from .serverchecks import ServerChecks

if TYPE_CHECKING:
    from klein import Klein

    from ..authentication.sessions import SessionAuthenticator
    from ..flowcontrol.controller import FlowControl
    from ..http.request import Handler, KubeRequest
    from .config import ServerConfig
    from .generic import GenericServer
    from .options import ServerOptions

#: User of the admin's client certificate.
_ADMIN_USER = add_authenticated_group(UserInfo(ADMIN.common_name, groups=(ADMIN.organization,)))


class APIServer:
    """
    The first server of a chain, which L{kubetwist.server.chain.create_server_chain} builds.

    @ivar config: The complete configuration.
    @ivar front: Its paths, hooks and checks; it delegates to the other servers.
    @ivar apis: The APIs of the chain; L{None} in a chain without APIs.
    """

    prepared_type: type[PreparedAPIServer] = PreparedAPIServer
    _log = Logger()

    def __init__(self, config: ServerConfig, front: GenericServer, apis: InstalledAPIs | None) -> None:
        self.config = config
        self.front = front
        self.apis = apis
        self._options = config.options
        self._reactor = config.reactor

    def prepare_run(self) -> PreparedAPIServer:
        """
        Install what all servers have: documents, health checks, metrics and further endpoints, and the filters.

        Nothing is opened or started, except for the export of traces.

        @return: The server, ready to be run once.
        @raise StartError: A flag cannot be used.
        """
        config, options, apis, front = self.config, self._options, self.apis, self.front
        for warning in config.features.warnings():
            self._log.warn("{text}", text=warning)
        state = RunState()
        tracing = config.tracing
        if tracing is not None:
            tracing.start(self._reactor, front)
        if apis is not None:
            apis.install_documents()
            if apis.aggregation is not None:
                proxy_client = config.credentials.front_proxy_files
                configure_proxy_client_certificate(apis.aggregation, options, proxy_client, config.files)
        register_encryption_checks(config, front)
        register_etcd_metrics(config, front)
        checks = self._install_endpoints(state)
        served = ServedResourceNames(None if apis is None else apis.served_resources, config.kubernetes_version)
        metrics = RequestMetrics(
            config.metrics, served.__contains__, lambda: list(site.open_requests), served.is_deprecated
        )
        install_metrics(front.mux, config, metrics.clear_cached_children)
        sampler = None
        if apis is not None and apis.flow is not None:
            sampler = self._add_sampling(apis.flow, metrics)
        limit, release_seats = self.make_request_limiter()
        guard = make_guard(options["memory-limit"], config.workers.processes)
        delays = register_process_metrics(config, front, guard)
        handler = build_handler_chain(
            traverse(front.mux),
            reactor=self._reactor,
            authenticator=config.authenticator,
            authorizer=config.authorizer,
            request_timeout=options["request-timeout"],
            proxy_headers=config.proxy_headers,
            features=config.features,
            auditor=config.auditor,
            metrics=metrics,
            limit=limit,
            consistency=self.make_consistency(),
            memory=None if guard is None else self.make_memory_limit(guard),
            tracing=None if tracing is None else tracing.requests,
        )
        handler = _for_browsers(handler, options)
        if options["goaway-chance"]:
            from ..filters.goaway import with_probabilistic_goaway

            handler = with_probabilistic_goaway(handler, options["goaway-chance"])
        if options["shutdown-send-retry-after"]:
            from ..filters.retryafter import with_retry_after

            handler = with_retry_after(handler, lambda: state.sends_retry_after)
        if options["send-retry-after-while-not-ready-once"]:
            from ..filters.retryafter import with_not_ready

            handler = with_not_ready(handler, lambda: state.ready)
        if config.sessions is not None:
            from ..ui.page import with_ui

            swagger_ui = options["enable-swagger-ui"]
            handler = with_ui(
                handler,
                config.sessions,
                self._reactor,
                swagger_ui=swagger_ui,
                oidc_button=options["ui-oidc-button"],
                auditor=config.auditor,
            )
        site = self._make_site(handler, metrics, release_seats, guard)
        if config.sessions is not None:
            from .history.endpoint import install_history
            from .history.sources import ProcessSource

            source = ProcessSource(config, apis, site, sampler, delays, lambda: state.ready and not state.stopping)
            install_history(config, front, source, None if apis is None else apis.registry.stores)
            links_app = partial(_make_links_app, config, config.sessions)
            front.mux.handle(SIGN_IN_LINKS, RoutedApp(links_app), exposed=False)
        liveness = partial(checks.liveness_problem, front)
        return self.prepared_type(config, front, apis, site, state, self.announce, liveness)

    def _install_endpoints(self, state: RunState) -> ServerChecks:
        """
        Register the paths and checks that all servers have.

        @return: The checks.
        """
        config, server, apis = self.config, self.front, self.apis
        server.mux.handle_prefix("/version", RoutedApp(VersionEndpoint(config.features).make_app))
        server.mux.handle_prefix(WHY, RoutedApp(lambda: _make_why_app(config)))
        if config.token_keys:
            drop_documents = serve_documents(
                server.mux, self._options, config.token_keys, lambda: config.external_address
            )
            config.token_key_listeners.append(lambda keys: drop_documents())
        install_debug_paths = install_debugging(server.mux, config)
        if self._options["debug-socket-path"]:
            from .debugsocket import add_debug_socket

            add_debug_socket(config, server, install_debug_paths)
        install_logs(server.mux, config)
        install_flagz(server.mux, config)
        install_configz(server.mux, config)
        install_statusz(server.mux, config, lambda: [path for one in server.chain() for path in one.mux.listed_paths()])
        register_collectors(config, apis)
        if apis is not None and apis.flow is not None:
            debugging = FlowControlDebugging(apis.flow, config.reactor)
            server.mux.handle_prefix(FAIRNESS, RoutedApp(debugging.make_app), exposed=False)
        checks = ServerChecks(
            config,
            started_at=config.started_at,
            prepared=lambda: state.caches_filled,
            stopping=lambda: state.stopping,
        )
        checks.register(server)
        return checks

    def _make_site(
        self,
        handler: Handler,
        metrics: RequestMetrics,
        release_seats: Callable[[KubeRequest], object],
        guard: MemoryGuard | None,
    ) -> KubeSite:
        config, options, tracing = self.config, self._options, self.config.tracing
        log_request, count_request = RequestLog(options.verbosity).ended, metrics.ended

        def ended(request: KubeRequest) -> None:
            # Log first: the next call removes data of the request.
            now = perf_counter()
            log_request(request, now)
            release_seats(request)
            count_request(request, now)

        max_bodies = MAX_BODIES if guard is None or not guard.limit else min(MAX_BODIES, guard.limit // 8)
        site = KubeSite(
            handler,
            self._reactor,
            connections=Connections(
                self._reactor,
                connection_limiter=ConnectionLimiter(options["max-connections-per-address"]),
                bodies=BodyShares(max_bodies),
                memory=MemoryRelease(self._reactor, find_trim()),
            ),
            scheduler=config.scheduler,
            guard=guard,
            heads_first=True,
            streams=() if self.apis is None else self.apis.streams,
            ended=ended if tracing is None else tracing.requests.chain_on_end(ended),
            on_late_response=metrics.post_timeout,
            max_streams=_max_streams(options),
            serves_cbor=config.features.enabled("CBORServingAndStorage"),
            features=config.features,
            compresses=config.features.enabled("APIResponseCompression"),
        )
        register_connection_collectors(config.metrics, site)
        if config.auditor is not None:
            site.requestFactory = audited_request(config.auditor)
        return site

    # Methods that other kinds of servers override.

    def make_memory_limit(self, guard: MemoryGuard) -> Callable[[Handler], Handler]:
        """Return a wrapper of handlers that refuses requests while there is not enough memory."""
        stores = self.config.context.stores
        guard.on_shortage.append(stores.release_memory)
        return lambda handler: with_memory_limit(handler, guard, stores.sizes, MAX_BODY)

    def make_request_limiter(self) -> tuple[Callable[[Handler], Handler], Callable[[KubeRequest], object]]:
        """
        Create the limit of concurrent requests.

        @return: A wrapper of handlers, and a function that is called with finished requests.
        """
        from ..filters.priorityandfairness import (
            MaxInFlightLimit,
            with_priority_and_fairness,
        )

        apis = self.apis
        reading, changing = self._in_flight_limits()
        if apis is None or apis.flow is None:
            in_flight = MaxInFlightLimit(reading, changing)
            return in_flight.wrap, in_flight.ended
        flow, stores = apis.flow, apis.registry.stores
        limited = partial(with_priority_and_fairness, flow=flow, sizes=stores.sizes, watches=stores.count_watches)
        return limited, flow.ended

    def _add_sampling(self, flow: FlowControl, metrics: RequestMetrics) -> FlowControlSampler:
        """Sample the utilization of priority levels while the server runs."""
        sampler = FlowControlSampler(flow, self._reactor, metrics.in_flight, self._in_flight_limits())
        self.config.metrics.register_collector(sampler.collect)
        self.front.add_post_start_hook("priority-and-fairness-filter", sampler.start)
        self.front.register_destroy_func("samples of priority levels", sampler.stop)
        return sampler

    def _in_flight_limits(self) -> tuple[int, int]:
        """Return the limits of requests of this process: those that read, and those that change something."""
        options, share = self._options, self.config.share
        return share(options["max-requests-inflight"]), share(options["max-mutating-requests-inflight"])

    def make_consistency(self) -> ConsistentReadFilter | None:
        """
        Create a wrapper of handlers that makes requests wait until this server has caught up with the shared storage.
        """
        config, apis = self.config, self.apis
        shared = find_shared_storage(config.backend)
        if shared is None or apis is None:
            return None
        cache = apis.registry.stores.cache
        namespaces_cache = cache("", "namespaces")
        if namespaces_cache is None:
            return None
        reactor = self._reactor
        return ConsistentReadFilter(
            shared, cache, namespaces_cache, config.metrics, lambda call: reactor.callLater(0, call)
        )

    def announce(self, url: str) -> None:
        """
        Write the admin's kubeconfig, and log how the server can be reached.

        @param url: The URL of the listening server.
        """
        path = self.config.credentials.write_kubeconfig(url)
        self._log.info("serving on {url}; the admin's kubeconfig is {path}", url=url, path=str(path))
        sessions = self.config.sessions
        if sessions is not None and isinstance(sessions.links, SignInLinks) and self._options["ui-sign-in-link"]:
            secret = sessions.links.issue(_ADMIN_USER)
            self._log.info(
                "web page, signed in as the admin (valid once, for {minutes} minutes, on this machine): {url}",
                minutes=int(LIFETIME // 60),
                url=sign_in_url(self._options["bind-address"], self.config.bound.port, secret),
            )


def _max_streams(options: ServerOptions) -> int:
    """Return the maximum number of streams of a connection; 0 if HTTP/2 is not served."""
    if options["disable-http2-serving"]:
        return 0
    return options["http2-max-streams-per-connection"] or DEFAULT_MAX_STREAMS


def _for_browsers(handler: Handler, options: ServerOptions) -> Handler:
    """Wrap C{handler} with the response headers for browsers, if they are enabled."""
    directives, patterns = options["strict-transport-security-directives"], options["cors-allowed-origins"]
    if directives or patterns:
        from ..filters.browsers import with_cors, with_hsts

        if patterns:
            handler = with_cors(handler, patterns)
        if directives:
            handler = with_hsts(handler, directives)
    return handler


def _make_links_app(config: ServerConfig, sessions: SessionAuthenticator) -> Klein:
    # Imported late: most servers never need it.
    from .endpoints.signinlinks import SignInLinkEndpoint

    return SignInLinkEndpoint(config, sessions).make_app()


def _make_why_app(config: ServerConfig) -> Klein:
    # Imported late: most servers never need it.
    from .endpoints.why import WhyEndpoint

    return WhyEndpoint(config).make_app()
