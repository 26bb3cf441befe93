"""
Start, run and stop a server with a complete configuration.

Start: chain of servers, storage, watch caches, listen, hooks, ready. Stop: /readyz fails, delay and pre-shutdown hooks,
no new connections, watches end, requests are finished, storage is closed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IListeningPort
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from ..api.resource import UserInfo
from ..audit.auditedrequest import audited_request
from ..authentication.signinlinks import LIFETIME
from ..authentication.union import add_authenticated_group
from ..filters.authorization import WHY
from ..filters.consistency import ConsistentReadFilter
from ..filters.handlerchain import build_handler_chain
from ..filters.memory import with_memory_limit
from ..http.connection.bodyshares import MAX_BODIES, MAX_BODY, BodyShares
from ..http.connection.ciphers import openssl_ciphers
from ..http.connection.connectionlimit import ConnectionLimiter
from ..http.connection.connections import Connections
from ..http.connection.memorylimit import MemoryGuard, make_guard
from ..http.connection.memoryrelease import MemoryRelease, find_trim
from ..http.site import KubeSite, traverse
from ..logs.httplog import RequestLog
from ..metrics.requests import RequestMetrics
from ..storage.wrappers import find_shared_storage
from .chain import InstalledAPIs, Installer, create_server_chain
from .collectors import register_collectors, register_connection_collectors
from .complete import start_error
from .credentials.certificates import CertKeyPair
from .credentials.frontproxy import configure_proxy_client_certificate
from .datadir import ADMIN
from .encryption import register_encryption_checks
from .endpoints.configz import install_configz
from .endpoints.debugging import install_debugging
from .endpoints.fairness import PATH as FAIRNESS
from .endpoints.fairness import FlowControlDebugResource
from .endpoints.flagz import install_flagz
from .endpoints.logs import install_logs
from .endpoints.metrics import ServedResourceNames, install_metrics
from .endpoints.openid import serve_documents
from .endpoints.statusz import install_statusz
from .endpoints.version import VersionResource
from .errors import StartError
from .etcdbackend import register_etcd_metrics
from .flowcontrolsampler import FlowControlSampler
from .serverchecks import ServerChecks

if TYPE_CHECKING:
    from twisted.web.resource import Resource

    from ..flowcontrol.controller import FlowControl
    from ..http.request import Handler, KubeRequest
    from .config import ServerConfig
    from .credentials.tlscontext import ServingContextFactory
    from .generic import GenericServer
    from .options import ServerOptions

#: Seconds that clients have to read the written data when the server stops.
_FLUSH_TIMEOUT = 5.0
#: Seconds that idle clients have to close their connections.
_IDLE_CLOSE_TIMEOUT = 0.1
#: Minimum number of watches that are ended per second, and the interval in seconds, when they are ended gradually.
_MIN_WATCHES_ENDED_PER_SECOND = 200.0
_END_WATCHES_INTERVAL = 0.05

#: User of the admin's client certificate.
_ADMIN_USER = add_authenticated_group(UserInfo(ADMIN.common_name, groups=(ADMIN.organization,)))


class APIServer:
    """
    One server; it can be started once.

    @ivar config: The complete configuration.
    @ivar apis: The APIs; L{None} before the server is built, and in a server without APIs.
    @ivar url: The URL of the listening server.
    @ivar stopping: Whether L{stop} was called.
    """

    _log = Logger()

    def __init__(self, config: ServerConfig, install: Installer | None = None) -> None:
        """
        @param install: As for L{create_server_chain}.
        """
        self.config = config
        self._install = install
        self._options = config.options
        self._reactor = config.reactor
        self._server: GenericServer | None = None
        self._site: KubeSite | None = None
        self._port: IListeningPort | None = None
        self._auditing = False
        self._opened = False
        self._prepared = False
        self._released = False
        #: Whether clients are asked to retry, as this server stops.
        self._send_retry_after = False
        self.apis: InstalledAPIs | None = None
        self.url = ""
        self.stopping = False

    @property
    def site(self) -> KubeSite:
        """The site with the connections; available while the server runs."""
        assert self._site is not None, "the server does not run"
        return self._site

    # Start.

    async def start(self) -> None:
        """
        Start the server, and return when it is ready.

        @raise StartError: The start failed; everything is undone, and C{stop} is not needed.
        """
        try:
            await self._start()
        except BaseException as error:
            await self._tear_down()
            readable = start_error(error)
            if readable is None:
                raise
            raise readable from error

    async def _start(self) -> None:
        config, options, reactor = self.config, self._options, self._reactor
        server, apis = self.make_chain()
        self._server, self.apis = server, apis
        tracing = config.tracing
        if tracing is not None:
            tracing.start(reactor, server)
        if apis is not None and apis.aggregation is not None:
            configure_proxy_client_certificate(apis.aggregation, options, config.credentials.front_proxy, config.files)
        register_encryption_checks(config, server)
        register_etcd_metrics(config, server)
        auditor = config.auditor
        self._prepare_run(server, apis)
        served = ServedResourceNames(None if apis is None else apis.served_resources, config.kubernetes_version)
        metrics = RequestMetrics(
            config.metrics, served.__contains__, lambda: list(self.site.open_requests), served.is_deprecated
        )
        install_metrics(server.mux, config, metrics.clear_cached_children)
        if apis is not None and apis.flow is not None:
            self._start_sampling(server, apis.flow, metrics)
        limit, release_seats = self.make_request_limiter()
        guard = make_guard(options["memory-limit"])
        handler = build_handler_chain(
            traverse(server.mux),
            reactor=reactor,
            authenticator=config.authenticator,
            authorizer=config.authorizer,
            request_timeout=options["request-timeout"],
            proxy_headers=config.proxy_headers,
            constrained_impersonation=config.constrained_impersonation,
            auditor=auditor,
            metrics=metrics,
            limit=limit,
            consistency=self.make_consistency(),
            memory=None if guard is None else self.make_memory_limit(guard),
            tracing=None if tracing is None else tracing.requests,
        )
        handler = _for_browsers(handler, options)
        if options["shutdown-send-retry-after"]:
            from ..filters.retryafter import with_retry_after

            handler = with_retry_after(handler, lambda: self._send_retry_after)
        if config.sessions is not None:
            from ..ui.page import with_ui

            swagger_ui = options["enable-swagger-ui"]
            handler = with_ui(handler, config.sessions, reactor, swagger_ui=swagger_ui, auditor=auditor)
        await config.backend.open()
        self._opened = True
        await server.run_pre_listen_hooks()
        self._prepared = True
        site = self._site = self._make_site(handler, metrics, release_seats, guard)
        if auditor is not None:
            auditor.start()
            self._auditing = True
            site.requestFactory = audited_request(auditor)
        self._listen(site)
        self.announce()
        await server.run_post_start_hooks()
        config.files.start()
        self._log.info("ready")
        await server.run_ready_hooks()

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
        )
        register_connection_collectors(config.metrics, site)
        return site

    # Methods that other kinds of servers override.

    def make_chain(self) -> tuple[GenericServer, InstalledAPIs | None]:
        """Return the first server, which delegates to the other ones, and the APIs on them."""
        return create_server_chain(self.config, self._install)

    def make_memory_limit(self, guard: MemoryGuard) -> Callable[[Handler], Handler]:
        """Return a wrapper of handlers that refuses requests while there is not enough memory."""
        return lambda handler: with_memory_limit(handler, guard, self.config.context.stores.sizes, MAX_BODY)

    def make_request_limiter(self) -> tuple[Callable[[Handler], Handler], Callable[[KubeRequest], object]]:
        """
        Create the limit of concurrent requests.

        @return: A wrapper of handlers, and a function that is called with finished requests.
        """
        from ..filters.priorityandfairness import (
            MaxInFlightLimit,
            with_priority_and_fairness,
        )

        options, apis = self._options, self.apis
        reading, changing = options["max-requests-inflight"], options["max-mutating-requests-inflight"]
        if apis is None or apis.flow is None:
            in_flight = MaxInFlightLimit(reading, changing)
            return in_flight.wrap, in_flight.ended
        flow, stores = apis.flow, apis.registry.stores
        return lambda handler: with_priority_and_fairness(handler, flow, stores.sizes), flow.ended

    def _start_sampling(self, server: GenericServer, flow: FlowControl, metrics: RequestMetrics) -> None:
        """Sample the utilization of priority levels while the server runs."""
        options = self._options
        limits = options["max-requests-inflight"], options["max-mutating-requests-inflight"]
        sampler = FlowControlSampler(flow, self._reactor, metrics.in_flight, limits)
        self.config.metrics.register_collector(sampler.collect)
        server.add_post_start_hook("priority-and-fairness-filter", sampler.start)
        server.register_destroy_func("samples of priority levels", sampler.stop)

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

    def announce(self) -> None:
        """Write the admin's kubeconfig, and log how the server can be reached."""
        path = self.config.credentials.write_kubeconfig(self.url)
        self._log.info("serving on {url}; the admin's kubeconfig is {path}", url=self.url, path=str(path))
        sessions = self.config.sessions
        if sessions is not None and self._options["ui-sign-in-link"]:
            secret = sessions.links.issue(_ADMIN_USER)
            self._log.info(
                "web page, signed in as the admin (valid once, for {minutes} minutes, on this machine):"
                " https://{host}:{port}/ui/#sign-in={secret}",
                minutes=int(LIFETIME // 60),
                host=_local_host(self._options["bind-address"]),
                port=self.config.bound.port,
                secret=secret,
            )

    def _prepare_run(self, server: GenericServer, apis: InstalledAPIs | None) -> None:
        """Register the paths and checks that all servers have (Go: C{PrepareRun})."""
        config = self.config
        server.mux.handle_prefix("/version", VersionResource(config.kubernetes_version))
        server.mux.handle_prefix(WHY, lambda: _make_why_resource(config))
        if config.token_keys:
            drop_documents = serve_documents(
                server.mux, self._options, config.token_keys, lambda: config.external_address
            )
            config.token_key_listeners.append(lambda keys: drop_documents())
        install_debugging(server.mux, config)
        install_logs(server.mux, config)
        install_flagz(server.mux, config)
        install_configz(server.mux, config)
        install_statusz(server.mux, config, lambda: [path for one in server.chain() for path in one.mux.listed_paths()])
        register_collectors(config, apis)
        if apis is not None and apis.flow is not None:
            server.mux.handle_prefix(FAIRNESS, FlowControlDebugResource(apis.flow, config.reactor), exposed=False)
        checks = ServerChecks(
            config,
            started_at=config.started_at,
            prepared=lambda: self._prepared,
            stopping=lambda: self.stopping,
        )
        checks.register(server)

    def _listen(self, site: KubeSite) -> None:
        from ..http.connection.coalescingtls import CoalescingTLSFactory
        from .credentials.tlscontext import ServingContextFactory

        options, config = self._options, self.config
        context = ServingContextFactory(
            config.credentials.serving,
            options["tls-min-version"],
            openssl_ciphers(options["tls-cipher-suites"]),
            options["tls-sni-cert-key"],
        )
        if context.named is not None:
            context.named.follow(config.files)
        context.request_client_certificates(config.client_authorities)
        if options["tls-cert-file"]:
            self._follow_certificate(context)
        factory = CoalescingTLSFactory(context, site, self._reactor, site.write_events)
        self._port = config.bound.listen(factory, self._reactor)
        self.url = f"https://{config.address}"

    def _follow_certificate(self, context: ServingContextFactory) -> None:
        """Reload the certificate of --tls-cert-file when it changes, for new connections."""
        from .credentials.tlscontext import make_context

        options, config = self._options, self.config
        credentials = config.credentials

        def load(contents: Sequence[bytes]) -> CertKeyPair:
            pair = CertKeyPair(*contents)
            pair.parsed()
            make_context(pair, options["tls-min-version"])
            return pair

        def use(pair: CertKeyPair) -> None:
            credentials.set_serving_certificate(pair)
            context.replace(pair)
            for listener in credentials.ca_bundle_listeners:
                listener()
            pool = self._reactor.getThreadPool()
            deferToThreadPool(self._reactor, pool, credentials.write_kubeconfig, self.url).addErrback(
                lambda failure: self._log.failure("writing the admin's kubeconfig failed", failure)
            )

        try:
            config.files.watch(
                [options["tls-cert-file"], options["tls-private-key-file"]],
                load,
                use,
                "--tls-cert-file and --tls-private-key-file",
            )
        except (OSError, ValueError) as error:
            raise StartError(f"cannot use the serving certificate: {error}") from error

    def reread_files(self) -> None:
        """Check the files of the command line for changes immediately."""
        self.config.files.poll_now()

    # Stop.

    async def stop(self) -> None:
        """Stop gracefully. Idempotent."""
        if self.stopping:
            return
        self.stopping = True
        server = self._server
        if server is not None and self._port is not None:
            self._log.info("stopping")
            delay = self._sleep(self._options["shutdown-delay-duration"])
            await server.run_pre_shutdown_hooks()
            await delay
        await self._tear_down()

    async def _tear_down(self) -> None:
        """Undo the start, complete or not."""
        if self._released:
            return
        self._released = True
        config = self.config
        config.bound.close()
        port, self._port = self._port, None
        site, self._site = self._site, None
        config.files.stop()
        if port is not None and site is not None:
            if self._options["shutdown-send-retry-after"]:
                self._send_retry_after = True
                await self._end_watches(site)
                await self._finish(site)
            stopped = port.stopListening()
            if stopped is not None:
                await stopped
            await self._drain(site)
        server, self._server = self._server, None
        if server is not None:
            await server.run_destroy_funcs()
        if config.auditor is not None and self._auditing:
            await config.auditor.stop()
        await config.release(self._close_backend if self._opened else None)

    async def _close_backend(self) -> None:
        try:
            await self.config.backend.close()
        except Exception:
            self._log.failure("cannot close the storage backend")

    async def _end_watches(self, site: KubeSite) -> None:
        """End watches, spread over the grace period."""
        grace = self._options["shutdown-watch-termination-grace-period"]
        if grace:
            until = self._reactor.seconds() + grace
            share = int(
                max(_MIN_WATCHES_ENDED_PER_SECOND, len(site.long_running_requests) / grace) * _END_WATCHES_INTERVAL
            )
            while site.long_running_requests and self._reactor.seconds() < until:
                site.end_long_running(share)
                await self._sleep(_END_WATCHES_INTERVAL)
        site.end_long_running()

    async def _finish(self, site: KubeSite) -> None:
        """Wait until the open requests are finished."""
        finished = site.requests_finished()
        timeout = self._reactor.callLater(self._options["request-timeout"], finished.cancel)
        try:
            await finished
        except CancelledError:
            self._log.warn("{count} requests did not finish before the shutdown timeout", count=len(site.open_requests))
        else:
            timeout.cancel()

    async def _drain(self, site: KubeSite) -> None:
        """Wait until the open requests are finished, and close all connections."""
        if not self._send_retry_after:
            await self._end_watches(site)
        site.connections.close_idle()
        await self._finish(site)
        begun = self._reactor.seconds()
        while site.connections.channels:
            waited = self._reactor.seconds() - begun
            if waited > _FLUSH_TIMEOUT or (
                waited > _IDLE_CLOSE_TIMEOUT and not any(channel.unflushed for channel in site.connections.channels)
            ):
                site.connections.abort_all()
                begun = self._reactor.seconds()
            await self._sleep(0.01)

    def _sleep(self, seconds: float) -> Deferred[None]:
        done: Deferred[None] = Deferred()
        if seconds > 0:
            self._reactor.callLater(seconds, done.callback, None)
        else:
            done.callback(None)
        return done


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


def _local_host(bind_address: str) -> str:
    """Return the host under which a browser on this machine reaches the server."""
    address = ipaddress.ip_address(bind_address)
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return f"[{address}]" if address.version == 6 else str(address)


def _make_why_resource(config: ServerConfig) -> Resource:
    # Imported late: most servers never need it.
    from .endpoints.why import WhyResource

    return WhyResource(config)
