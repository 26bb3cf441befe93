"""
Run and stop a server that is prepared.

Start: storage, watch caches, listen, hooks, ready. Stop: /readyz fails, delay and pre-shutdown hooks, no new
connections, watches end, requests are finished, storage is closed.

@see: kubernetes/apiserver, C{pkg/server/genericapiserver.go}: C{preparedGenericAPIServer.Run}.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from attrs import define

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from ..http.connection.ciphers import openssl_ciphers
from ..storage.migration import incomplete_migration
from ..storage.wrappers import unwrap_backend
from .complete import start_error
from .credentials.certificates import CertKeyPair
from .errors import StartError

if TYPE_CHECKING:
    from ..http.site import KubeSite
    from .apis import InstalledAPIs
    from .config import ServerConfig
    from .credentialrotation import CredentialRotation
    from .generic import GenericServer
    from .listening import Listening

#: Seconds that clients have to read the written data when the server stops.
_FLUSH_TIMEOUT = 5.0
#: Seconds that idle clients have to close their connections.
_IDLE_CLOSE_TIMEOUT = 0.1
#: Minimum number of watches that are ended per second, and the interval in seconds, when they are ended gradually.
_MIN_WATCHES_ENDED_PER_SECOND = 200.0
_END_WATCHES_INTERVAL = 0.05


@define(eq=False)
class RunState:
    """
    The state of a running server, for its filters and checks.

    @ivar caches_filled: Whether the watch caches are filled.
    @ivar stopping: Whether the server is to stop.
    @ivar ready: Whether the server was ready once.
    @ivar sends_retry_after: Whether clients are asked to retry, as the server stops.
    """

    caches_filled: bool = False
    ready: bool = False
    stopping: bool = False
    sends_retry_after: bool = False


class PreparedAPIServer:
    """
    A server that can be run once.

    @ivar config: The complete configuration.
    @ivar front: The first server of the chain.
    @ivar apis: The APIs of the chain; L{None} in a chain without APIs.
    @ivar site: The site with the connections.
    @ivar url: The URL of the listening server; C{""} before.
    @ivar announce: Called with the URL when the server listens.
    @ivar reactor: The reactor.
    """

    _log = Logger()

    def __init__(
        self,
        config: ServerConfig,
        front: GenericServer,
        apis: InstalledAPIs | None,
        site: KubeSite,
        state: RunState,
        announce: Callable[[str], object],
        liveness: Callable[[], Awaitable[str | None]],
    ) -> None:
        """
        @param config: The complete configuration.
        @param front: The first server of the chain.
        @param apis: The APIs of the chain; L{None} in a chain without APIs.
        @param site: The site, with all filters.
        @param state: The state that this server updates.
        @param announce: Called with the URL when the server listens.
        @param liveness: Returns the first problem for which /livez fails; L{None} without one.
        """
        self.config = config
        self.front = front
        self.apis = apis
        self.site = site
        self.url = ""
        self._state = state
        self.announce = announce
        self._liveness = liveness
        self._options = config.options
        self.reactor = config.reactor
        self._port: Listening | None = None
        self._rotation: CredentialRotation | None = None
        self._auditing = False
        self._opened = False
        self._stop_requested: Deferred[None] = Deferred()

    @property
    def stopping(self) -> bool:
        """Return whether the server is to stop."""
        return self._state.stopping

    async def run(self, on_ready: Callable[[], object] = lambda: None) -> None:
        """
        Start the server, serve until L{stop} is called, and stop gracefully.

        @param on_ready: Called when the server is ready.
        @raise StartError: The start failed; everything is undone.
        """
        try:
            await self.start()
        except BaseException as error:
            await self.tear_down()
            readable = start_error(error)
            if readable is None:
                raise
            raise readable from error
        on_ready()
        await self._stop_requested
        await self.shut_down()

    def stop(self) -> None:
        """Let L{run} stop the server, after a start that is in progress. Idempotent."""
        if not self._stop_requested.called:
            self._stop_requested.callback(None)

    # Start.

    async def start(self) -> None:
        """Start: storage, watch caches, listen, hooks, ready."""
        config, front = self.config, self.front
        await self.open_backend()
        await front.run_pre_listen_hooks()
        self._state.caches_filled = True
        if config.auditor is not None:
            config.auditor.start()
            self._auditing = True
        self._listen()
        self.announce(self.url)
        await front.run_post_start_hooks()
        config.files.start()
        self._state.ready = True
        self.report_ready()
        await front.run_ready_hooks()

    async def open_backend(self) -> None:
        """
        Open the storage, which is closed when the server stops.

        @raise StartError: A migration into the store is incomplete.
        """
        await self.config.backend.open()
        self._opened = True
        prefix = self._options["etcd-prefix"].rstrip("/") + "/"
        source = await incomplete_migration(unwrap_backend(self.config.backend), prefix)
        if source:
            raise StartError(
                f"the store is incomplete: a migration from {source} into it was interrupted; run kubetwist migrate"
                " again"
            )

    def report_ready(self) -> None:
        """Report that the server is ready."""
        self._log.info("ready")

    def _listen(self) -> None:
        from ..http.connection.coalescingtls import CoalescingTLSFactory
        from .credentials.tlscontext import ServingContextFactory

        options, config = self._options, self.config
        context = ServingContextFactory(
            config.credentials.serving,
            options["tls-min-version"],
            openssl_ciphers(options["tls-cipher-suites"]),
            options["tls-sni-cert-key"],
            self.site.acceptableProtocols(),
            options["tls-curve-preferences"],
        )
        if context.named is not None:
            context.named.follow(config.files)
        context.request_client_certificates(config.client_authorities)
        self.follow_certificates(context.replace)
        factory = CoalescingTLSFactory(context, self.site, self.reactor, self.site.write_events)
        self._port = config.bound.listen(factory, self.reactor)
        self.url = f"https://{config.address}"

    def follow_certificates(self, replace: Callable[[CertKeyPair], object]) -> None:
        """
        Use changed certificates, and renew those that the server has issued to itself.

        @param replace: Uses a serving certificate for new connections.
        """
        from .credentialrotation import CredentialRotation

        self._rotation = CredentialRotation(self.config, self.reactor, replace)
        self._rotation.follow(f"https://{self.config.address}")
        if not self.config.is_front:
            self._rotation.start()

    async def liveness_problem(self) -> str | None:
        """Return the first problem that a restart may solve; L{None} without one, and while the server stops."""
        return None if self.stopping else await self._liveness()

    def reread_files(self) -> Deferred[None]:
        """
        Check the files of the command line for changes immediately.

        @return: Fires when changed files are in use or refused.
        """
        return self.config.files.poll_now()

    # Stop.

    async def shut_down(self) -> None:
        """Stop gracefully."""
        self._state.stopping = True
        self._log.info("stopping")
        delay = self._sleep(self._options["shutdown-delay-duration"])
        await self.front.run_pre_shutdown_hooks()
        await delay
        await self.tear_down()

    async def tear_down(self) -> None:
        """Undo the start, complete or not."""
        config = self.config
        if self._rotation is not None:
            self._rotation.stop()
        config.stop_following()
        port, self._port = self._port, None
        if port is not None:
            if self._options["shutdown-send-retry-after"]:
                self._state.sends_retry_after = True
                await self._end_watches()
                await self._finish()
            stopped = port.stopListening()
            if stopped is not None:
                await stopped
            await self._drain()
        await self.front.run_destroy_funcs()
        if config.auditor is not None and self._auditing:
            await config.auditor.stop()
        await config.release(self.close_backend if self._opened else None)

    async def close_backend(self) -> None:
        """Close the storage."""
        try:
            await self.config.backend.close()
        except Exception:
            self._log.failure("cannot close the storage backend")

    async def _end_watches(self) -> None:
        """End watches, spread over the grace period."""
        site = self.site
        grace = self._options["shutdown-watch-termination-grace-period"]
        if grace:
            until = self.reactor.seconds() + grace
            share = int(
                max(_MIN_WATCHES_ENDED_PER_SECOND, len(site.long_running_requests) / grace) * _END_WATCHES_INTERVAL
            )
            while site.long_running_requests and self.reactor.seconds() < until:
                site.end_long_running(share)
                await self._sleep(_END_WATCHES_INTERVAL)
        site.end_long_running()

    async def _finish(self) -> None:
        """Wait until the open requests are finished."""
        site = self.site
        finished = site.requests_finished()
        timeout = self.reactor.callLater(self._options["request-timeout"], finished.cancel)
        try:
            await finished
        except CancelledError:
            self._log.warn("{count} requests did not finish before the shutdown timeout", count=len(site.open_requests))
        else:
            timeout.cancel()

    async def _drain(self) -> None:
        """Wait until the open requests are finished, and close all connections."""
        site = self.site
        if not self._state.sends_retry_after:
            await self._end_watches()
        site.connections.close_idle()
        await self._finish()
        begun = self.reactor.seconds()
        while site.connections.channels:
            waited = self.reactor.seconds() - begun
            if waited > _FLUSH_TIMEOUT or (
                waited > _IDLE_CLOSE_TIMEOUT and not any(channel.unflushed for channel in site.connections.channels)
            ):
                site.connections.abort_all()
                begun = self.reactor.seconds()
            await self._sleep(0.01)

    def _sleep(self, seconds: float) -> Deferred[None]:
        done: Deferred[None] = Deferred()
        if seconds > 0:
            self.reactor.callLater(seconds, done.callback, None)
        else:
            done.callback(None)
        return done
