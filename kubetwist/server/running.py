"""
A server from its first file to its last request.

Start: data directory, storage, watch caches, listen, hooks, ready. Stop: /readyz fails, delay and pre-shutdown hooks,
no new connections, watches end, requests are finished, storage is closed.
"""

from __future__ import annotations

import ipaddress
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from ..admission.configuration import BadAdmission
from ..api.resource import UserInfo
from ..audit.auditedrequest import audited_request
from ..authentication.signinlinks import LIFETIME
from ..authentication.union import authenticated
from ..filters.authorization import WHY
from ..filters.consistency import Consistency
from ..filters.memory import with_memory_limit
from ..filters.stack import with_filters
from ..http.connection.bodyshares import MAX_BODY
from ..http.connection.ciphers import openssl_ciphers
from ..http.connection.memorylimit import MemoryGuard, make_guard
from ..http.connection.memoryrelease import MemoryRelease, find_trim
from ..http.connection.neighbours import Neighbours
from ..http.request import Handler, KubeRequest
from ..http.site import KubeSite, traverse
from ..logs.httplog import RequestLog
from ..metrics.requests import RequestMetrics
from ..registry.runtimeconfig import BadRuntimeConfig
from ..storage.errors import StorageError
from ..storage.wrappers import shared_storage
from .chain import Installer, create_server_chain
from .config import ServerConfig
from .credentials.certificates import Pair
from .credentials.frontproxy import show_front_proxy
from .credentials.serviceaccounttokens import make_token_issuer, read_token_keys
from .datadir import ADMIN, Credentials, DataDirectory
from .encryption import encrypted, show_encryption
from .endpoints.debugging import claim_debugging
from .endpoints.fairness import PATH as FAIRNESS
from .endpoints.fairness import FairnessResource
from .endpoints.logs import claim_logs
from .endpoints.metrics import Served, claim_metrics
from .endpoints.openid import serve_documents
from .endpoints.version import VersionResource
from .endpoints.zpages import claim_zpages
from .errors import StartError
from .etcdbackend import show_etcd
from .flowsamples import FlowSamples
from .generic import GenericServer
from .listening import BoundAddress
from .plugins import choose_controllers, make_auditor, make_authenticator, make_authorizer, make_backend
from .readings import tell_of, tell_of_connections
from .serverchecks import ServerChecks
from .tracing import make_tracing

#: Seconds that clients are given to take what was written for them, when the server stops.
_FLUSH = 5.0
#: Seconds that idle clients are given to close their side.
_GOODBYE = 0.1
#: How many watches end in a second at least, where they end one after the other, and how often some of them do.
_WATCHES_ENDED = 200.0
_STEP = 0.05

#: User of the admin's client certificate.
_ADMIN_USER = authenticated(UserInfo(ADMIN.common_name, groups=(ADMIN.organization,)))


class APIServer:
    """
    One server; it can be started once.

    @ivar url: Where it listens, once it does.
    @ivar stopping: Whether it was told to stop.
    """

    _log = Logger()

    def __init__(self, options: Any, reactor: Any, install: Installer | None = None) -> None:
        """
        @param install: As for L{create_server_chain}.
        """
        self._options = options
        self._reactor = reactor
        self._install = install
        self._data = DataDirectory(Path(options["data-dir"]), durable=not options["in-memory"])
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._config: ServerConfig | None = None
        self._server: GenericServer | None = None
        self._site: KubeSite | None = None
        self._address: BoundAddress | None = None
        self._port: Any = None
        self._auditor: Any = None
        self._opened = False
        self._prepared = False
        self._started = False
        self._begun = reactor.seconds()
        #: Whether those who come are told to come again, as this server stops.
        self._refusing = False
        self.url = ""
        self.stopping = False

    @property
    def config(self) -> ServerConfig:
        """What it is built from; there while it runs."""
        assert self._config is not None, "the server does not run"
        return self._config

    @property
    def site(self) -> KubeSite:
        """Its connections; there while it runs."""
        assert self._site is not None, "the server does not run"
        return self._site

    # Start.

    async def start(self) -> None:
        """
        Start, and come back when the server is ready.

        @raise StartError: It can not; everything is as it was before, and C{stop} is not needed.
        """
        try:
            await self._start()
        except BaseException as error:
            await self._tear_down()
            if isinstance(error, BadAdmission):
                raise StartError(str(error)) from error
            if isinstance(error, BadRuntimeConfig):
                raise StartError(f"--runtime-config: {error}") from error
            if isinstance(error, StorageError):
                raise StartError(f"can not use the store: {error}") from error
            raise

    async def _start(self) -> None:
        options, reactor = self._options, self._reactor
        if options["in-memory"] and "data-dir" not in options.given:
            self._temporary = tempfile.TemporaryDirectory(prefix="kubetwist-")
            options["data-dir"] = f"{self._temporary.name}/data"
            self._data = DataDirectory(Path(options["data-dir"]), durable=False)
        self._data.open()
        self._address = BoundAddress(options["bind-address"], options["secure-port"])
        credentials = self.make_credentials(self._data)
        made = make_backend(options, reactor)
        config = ServerConfig(options, reactor, self._data, made, options["kubernetes-version"])
        self._config = config
        backend = encrypted(config)
        config.credentials = credentials
        tracing = make_tracing(config)
        await self.decide_access(config)
        assert config.authorizer is not None
        server = self._server = self.make_chain(config)
        if tracing is not None:
            tracing.start(config, server)
        if config.aggregation is not None:
            show_front_proxy(config.aggregation, config.options, config.credentials.front_proxy, config.files)
        show_encryption(config, server)
        show_etcd(config, server)
        auditor = make_auditor(options, config)
        self._prepare_run(server, config)
        served = Served(config)
        metrics = RequestMetrics(
            config.metrics, served.__contains__, lambda: list(self.site.open_requests), served.is_deprecated
        )
        claim_metrics(server.layer, config, metrics.begin_anew)
        if config.flow is not None:
            self._sample(server, config, metrics)
        limit, left = self.make_limit(config)
        guard = make_guard(options["memory-limit"])
        handler = with_filters(
            traverse(server.layer),
            reactor=reactor,
            authenticator=config.authenticator,
            authorizer=config.authorizer,
            request_timeout=options["request-timeout"],
            proxy_headers=config.proxy_headers,
            constrained_impersonation=config.constrained_impersonation,
            auditor=auditor,
            metrics=metrics,
            limit=limit,
            consistency=self.make_consistency(config),
            memory=None if guard is None else self.make_memory_limit(config, guard),
            tracing=None if tracing is None else tracing.requests,
        )
        handler = _for_browsers(handler, options)
        if options["shutdown-send-retry-after"]:
            from ..filters.stopping import with_retry_after

            handler = with_retry_after(handler, lambda: self._refusing)
        if config.sessions is not None:
            from ..ui.page import with_pages

            swagger_ui = options["enable-swagger-ui"]
            handler = with_pages(handler, config.sessions, reactor, swagger_ui=swagger_ui, auditor=auditor)
        await backend.open()
        self._opened = True
        await server.run_before_listening()
        self._prepared = True
        self._site = KubeSite(handler, reactor)
        self._site.turns = config.turns
        self._site.heads_first = True
        self._site.connections.memory = MemoryRelease(reactor, find_trim())
        if guard is not None:
            self._site.guard = guard
            if guard.limit:
                self._site.connections.bodies.most = min(self._site.connections.bodies.most, guard.limit // 8)
        self._site.connections.neighbours = Neighbours(options["max-connections-per-address"])

        told, counted = RequestLog(options.verbosity).ended, metrics.ended

        def ended(request: KubeRequest) -> None:
            # Others forget what they know of it.
            now = perf_counter()
            told(request, now)
            left(request)
            counted(request, now)

        self._site.ended = ended if tracing is None else tracing.requests.and_then(ended)
        self._site.late = metrics.late
        tell_of_connections(config.metrics, self._site)
        self._site.streams = config.streams
        if auditor is not None:
            auditor.start()
            self._auditor = auditor
            self._site.requestFactory = audited_request(auditor)
        self._listen(credentials)
        self.announce(credentials)
        await server.run_post_start_hooks()
        config.files.start()
        self._started = True
        self._log.info("ready")
        await server.run_when_ready()

    # What servers of another purpose do in their own way.

    def make_credentials(self, data: DataDirectory) -> Credentials:
        """
        What it shows to clients.

        @raise StartError: Something can not be read, used or written.
        """
        return Credentials(data, self._options)

    async def decide_access(self, config: ServerConfig) -> None:
        """
        Say in C{config} whom it knows, and what they may do.

        @raise StartError: The options make no sense.
        """
        options = self._options
        config.controllers = choose_controllers(options)
        config.token_issuer = make_token_issuer(options, self._data)
        config.token_keys = read_token_keys(options, config.data, config.files, config.token_key_followers)
        config.authorizer = make_authorizer(options, config)
        config.authenticator = make_authenticator(options, config)

    def make_chain(self, config: ServerConfig) -> GenericServer:
        """The server in front, of which the others are delegates."""
        return create_server_chain(config, self._install)

    def make_memory_limit(self, config: ServerConfig, guard: MemoryGuard) -> Callable[[Handler], Handler]:
        """Return a wrapper of handlers that refuses requests while there is not enough memory."""
        return lambda handler: with_memory_limit(handler, guard, config.stores.sizes, MAX_BODY)

    def make_limit(self, config: ServerConfig) -> tuple[Callable[[Handler], Handler], Callable[[KubeRequest], object]]:
        """
        What keeps requests waiting while there are too many.

        @return: What puts it in front of a handler, and what is told of requests that are over.
        """
        from ..filters.fairness import InFlight, with_priority_and_fairness

        options = self._options
        reading, changing = options["max-requests-inflight"], options["max-mutating-requests-inflight"]
        if config.flow is None:
            in_flight = InFlight(reading, changing)
            return in_flight.in_front, in_flight.ended
        flow, stores = config.flow, config.stores
        return lambda handler: with_priority_and_fairness(handler, flow, stores.sizes), flow.ended

    def _sample(self, server: GenericServer, config: ServerConfig, metrics: RequestMetrics) -> None:
        """Have it looked at how busy priority levels are, while the server runs."""
        options = self._options
        limits = options["max-requests-inflight"], options["max-mutating-requests-inflight"]
        samples = FlowSamples(config.flow, self._reactor, metrics.in_flight, limits)
        config.metrics.read(samples.readings)
        server.add_when_ready("samples of priority levels", samples.start)
        server.add_at_end("samples of priority levels", samples.stop)

    def make_consistency(self, config: ServerConfig) -> Consistency | None:
        """What has requests wait until this server is as far as those are that share its storage."""
        shared = shared_storage(config.backend)
        some = config.stores.cache("", "namespaces") if shared is not None else None
        if some is None:
            return None
        reactor = self._reactor
        return Consistency(shared, config.stores.cache, some, config.metrics, lambda call: reactor.callLater(0, call))

    def announce(self, credentials: Credentials) -> None:
        """Write the admin's kubeconfig, and log how the server can be reached."""
        path = credentials.write_kubeconfig(self.url)
        self._log.info("serving on {url}; the admin's kubeconfig is {path}", url=self.url, path=str(path))
        sessions = self.config.sessions
        if sessions is not None and self._options["ui-sign-in-link"]:
            port = self._port.getHost().port
            secret = sessions.links.issue(_ADMIN_USER)
            self._log.info(
                "web page, signed in as the admin (valid once, for {minutes} minutes, on this machine):"
                " https://{host}:{port}/ui/#sign-in={secret}",
                minutes=int(LIFETIME // 60),
                host=_local_host(self._options["bind-address"]),
                port=port,
                secret=secret,
            )

    def _prepare_run(self, server: GenericServer, config: ServerConfig) -> None:
        """What every chain has, whatever APIs are on it."""
        server.layer.claim_below("/version", VersionResource(config.kubernetes_version))
        server.layer.claim_below(WHY, lambda: _why(config))
        if config.token_keys:
            forget = serve_documents(server.layer, self._options, config.token_keys, lambda: config.external_address)
            config.token_key_followers.append(lambda keys: forget())
        claim_debugging(server.layer, config)
        claim_logs(server.layer, config)
        claim_zpages(server.layer, config, lambda: [path for one in server.chain() for path in one.layer.paths()])
        tell_of(config)
        if config.flow is not None:
            server.layer.claim_below(FAIRNESS, FairnessResource(config.flow, config.reactor), listed=False)
        checks = ServerChecks(
            config,
            begun=self._begun,
            prepared=lambda: self._prepared,
            started=lambda: self._started,
            stopping=lambda: self.stopping,
        )
        checks.claim(server)

    def _listen(self, credentials: Credentials) -> None:
        from ..http.connection.prompttls import PromptFactory
        from .credentials.tlscontext import ServerContext

        options = self._options
        assert self._config is not None
        context = ServerContext(
            credentials.serving,
            options["tls-min-version"],
            openssl_ciphers(options["tls-cipher-suites"]),
            options["tls-sni-cert-key"],
        )
        if context.named is not None:
            context.named.follow(self._config.files)
        context.ask_for(self._config.client_authorities)
        if options["tls-cert-file"]:
            self._follow_certificate(context, credentials)
        assert self._address is not None, "the address is bound first"
        assert self._site is not None, "the site is made before"
        factory = PromptFactory(context, self._site, self._reactor, self._site.write_events)
        self._port = self._address.listen(factory, self._reactor)
        shown = ipaddress.ip_address(options["advertise-address"] or options["bind-address"])
        if shown.is_unspecified:
            shown = ipaddress.ip_address("127.0.0.1" if shown.version == 4 else "::1")
        host = f"[{shown}]" if shown.version == 6 else str(shown)
        self._config.address = f"{host}:{self._port.getHost().port}"
        self.url = f"https://{self._config.address}"

    def _follow_certificate(self, context: Any, credentials: Credentials) -> None:
        """Show the certificate of --tls-cert-file as it is at the time, to those who connect from then on."""
        from .credentials.tlscontext import make_context

        options, config = self._options, self._config
        assert config is not None

        def load(contents: Sequence[bytes]) -> Pair:
            pair = Pair(*contents)
            pair.parsed()
            make_context(pair, options["tls-min-version"])
            return pair

        def use(pair: Pair) -> None:
            credentials.take(pair)
            context.replace(pair)
            for follower in config.trust_followers:
                follower()
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
            raise StartError(f"can not use the serving certificate: {error}") from error

    def reread_files(self) -> None:
        """Check the files of the command line for changes immediately."""
        if self._config is not None:
            self._config.files.look_now()

    # Stop.

    async def stop(self) -> None:
        """Stop in good order. Idempotent."""
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
        """Undo the start, however far it came."""
        address, self._address = self._address, None
        if address is not None:
            address.close()
        port, self._port = self._port, None
        site, self._site = self._site, None
        if self._config is not None:
            self._config.files.stop()
        if port is not None and site is not None:
            if self._options["shutdown-send-retry-after"]:
                self._refusing = True
                await self._end_watches(site)
                await self._finish(site)
            stopped = port.stopListening()
            if stopped is not None:
                await stopped
            await self._drain(site)
        server, self._server = self._server, None
        if server is not None:
            await server.run_at_end()
        auditor, self._auditor = self._auditor, None
        if auditor is not None:
            await auditor.stop()
        config, self._config = self._config, None
        if config is not None:
            for close in config.closers:
                close()
            await config.outgoing.close()
        if config is not None and self._opened:
            try:
                await config.backend.close()
            except Exception:
                self._log.failure("closing the store failed")
        self._data.close()
        temporary, self._temporary = self._temporary, None
        if temporary is not None:
            temporary.cleanup()

    async def _end_watches(self, site: KubeSite) -> None:
        """Have watches end, one after the other where that is wanted."""
        grace = self._options["shutdown-watch-termination-grace-period"]
        if grace:
            until = self._reactor.seconds() + grace
            share = int(max(_WATCHES_ENDED, len(site.long_running) / grace) * _STEP)
            while site.long_running and self._reactor.seconds() < until:
                site.end_long_running(share)
                await self._sleep(_STEP)
        site.end_long_running()

    async def _finish(self, site: KubeSite) -> None:
        """Let the requests that are open be finished."""
        finished = site.requests_finished()
        timeout = self._reactor.callLater(self._options["request-timeout"], finished.cancel)
        try:
            await finished
        except CancelledError:
            self._log.warn("{count} requests were not finished in time", count=len(site.open_requests))
        else:
            timeout.cancel()

    async def _drain(self, site: KubeSite) -> None:
        """Let what is open be finished, and close all connections."""
        if not self._refusing:
            await self._end_watches(site)
        site.connections.close_idle()
        await self._finish(site)
        begun = self._reactor.seconds()
        while site.connections.channels:
            waited = self._reactor.seconds() - begun
            if waited > _FLUSH or (
                waited > _GOODBYE and not any(channel.unflushed for channel in site.connections.channels)
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


def _for_browsers(handler: Handler, options: Any) -> Handler:
    """Put in front of C{handler} what browsers are told, where they are."""
    directives, patterns = options["strict-transport-security-directives"], options["cors-allowed-origins"]
    if directives or patterns:
        from ..filters.browsers import with_origins, with_transport_security

        if patterns:
            handler = with_origins(handler, patterns)
        if directives:
            handler = with_transport_security(handler, directives)
    return handler


def _local_host(bind_address: str) -> str:
    """Return the host under which a browser on this machine reaches the server."""
    address = ipaddress.ip_address(bind_address)
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return f"[{address}]" if address.version == 6 else str(address)


def _why(config: ServerConfig) -> Any:
    # Most servers are never asked.
    from .endpoints.why import Why

    return Why(config)
