"""
The storage process: the storage of all fronts, and what one process of a server does.

It opens the storage and serves it to the fronts, creates the bootstrap objects, runs the controllers and the
compaction, accepts the connections of clients and passes them to the fronts. It has watch caches and stores for its
controllers, but serves no requests.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.defer import Deferred, DeferredList
from twisted.logger import Logger

from ...http.connection.connectionlimit import ConnectionLimiter
from ...interfaces import ISharedStorage
from ...storage.locallyshared import LocallySharedStorage
from ...storage.remote import StorageServer
from ...storage.wrappers import unwrap_backend
from ..apiserver import APIServer
from ..chain import create_server_chain
from ..complete import Completion
from ..lifecycle import PreparedAPIServer
from ..listening import BoundAddress
from ..service import KubeAPIService
from ..workerrole import WorkerRole
from .description import FrontDescription
from .fronts import Front, FrontCommand, Fronts, front_command
from .passing import ConnectionAcceptor
from .peers import StoragePeers
from .sessions import session_handlers

if TYPE_CHECKING:
    from ...audit.auditor import Auditor
    from ...interfaces import IServerReactor, IStorageBackend
    from ..config import ServerConfig
    from ..context import PluginContext
    from ..datadir import DataDirectory
    from ..options import ServerOptions
    from .control import Handlers

#: The directory of the socket of the storage, in the data directory.
SOCKET_DIRECTORY: Final = "run"


class StorageCompletion(Completion):
    """Completes the configuration of a storage process."""

    def __init__(self, options: ServerOptions, reactor: IServerReactor, peers: StoragePeers) -> None:
        """
        @param options: The parsed command line.
        @param reactor: The reactor.
        @param peers: The fronts.
        """
        super().__init__(options, reactor)
        self.workers = WorkerRole(0, options["workers"])
        self.peers = peers

    def make_backend(self, data: DataDirectory) -> IStorageBackend:
        """Return the storage, which the fronts share."""
        backend = super().make_backend(data)
        return backend if ISharedStorage.providedBy(backend) else LocallySharedStorage(backend)

    def make_auditor(self, context: PluginContext) -> Auditor | None:
        """Check the configuration of the audit, which the fronts use."""
        super().make_auditor(context)
        return None


class PreparedStorageProcess(PreparedAPIServer):
    """
    A storage process that is ready to be run.

    @ivar command: How a front is started.
    """

    _log = Logger()
    command: FrontCommand
    _fronts: Fronts | None = None
    _acceptor: ConnectionAcceptor | None = None
    _storage: StorageServer | None = None
    _fronts_stopped: Deferred[None] | None = None

    async def start(self) -> None:
        """Start: storage, watch caches, bootstrap objects, fronts, ready. Fronts load while the storage is opened."""
        config, front = self.config, self.front
        fronts = self._make_fronts()
        fronts.start()
        await self.open_backend()
        reactor: Any = self.reactor
        tracer = None if config.tracing is None else config.tracing.tracer
        self._storage = storage = StorageServer(unwrap_backend(config.backend), reactor, tracer)
        await storage.start()
        storage.listen(reactor, str(config.data.path / SOCKET_DIRECTORY))
        await front.run_pre_listen_hooks()
        await front.run_post_start_hooks()
        self.follow_certificates(lambda pair: None)
        await fronts.begin()
        assert self._acceptor is not None
        self._acceptor.start()
        self.url = f"https://{config.address}"
        self.announce(self.url)
        config.files.start()
        self.report_ready()
        await front.run_ready_hooks()

    def _make_fronts(self) -> Fronts:
        config, options = self.config, self.config.options
        count: int = options["workers"]
        limiter = ConnectionLimiter(options["max-connections-per-address"])
        if not options["max-connections-per-address"]:
            # Each front may have three quarters of its descriptors.
            limiter.limit *= count
        reactor: Any = self.reactor
        bound, peers = config.bound, config.peers
        assert isinstance(bound, BoundAddress) and isinstance(peers, StoragePeers), "a storage process has these"
        self._acceptor = acceptor = ConnectionAcceptor(bound.take(), reactor, limiter)
        handlers: Handlers = {} if config.sessions is None else session_handlers(config.sessions)

        def describe(number: int) -> FrontDescription:
            return FrontDescription(number, count, config.bound.port, str(config.data.path))

        def front_handlers(front: Front) -> Handlers:
            return {**handlers, "call peers": partial(peers.call_peers, front)}

        fronts = self._fronts = peers.fronts = Fronts(count, self.command, describe, front_handlers, acceptor, reactor)
        config.metrics.register_collector(fronts.collect)
        return fronts

    async def liveness_problem(self) -> str | None:
        """See L{PreparedAPIServer.liveness_problem}; a front that does not answer is a problem, too."""
        if self._fronts is not None and not self.stopping:
            for answered, _ in await DeferredList(self._fronts.call_peers(None, "ping"), consumeErrors=True):
                if not answered:
                    return "a worker does not answer"
        return await super().liveness_problem()

    def reread_files(self) -> Deferred[None]:
        """See L{PreparedAPIServer.reread_files}; the fronts check their files, too."""
        checked = super().reread_files()
        if self._fronts is None:
            return checked
        of_fronts = DeferredList(self._fronts.call_peers(None, "reread"), consumeErrors=True)
        return of_fronts.addCallback(lambda _: checked)

    async def shut_down(self) -> None:
        """Stop gracefully: the fronts have the delay of the shutdown."""
        self._stop_fronts()
        await super().shut_down()

    def _stop_fronts(self) -> Deferred[None]:
        if self._fronts_stopped is None:
            assert self._fronts is not None
            self._fronts_stopped = Deferred.fromCoroutine(self._fronts.stop())
        done: Deferred[None] = Deferred()
        self._fronts_stopped.chainDeferred(done)
        return done

    async def tear_down(self) -> None:
        """Wait for the end of the fronts, and release everything."""
        if self._fronts is not None:
            await self._stop_fronts()
        if self._acceptor is not None:
            self._acceptor.close()
        await super().tear_down()

    async def close_backend(self) -> None:
        """Close the storage, which no front uses any more."""
        if self._storage is not None:
            await self._storage.stop()
        await super().close_backend()


class StorageProcessServer(APIServer):
    """The first server of the chain of a storage process."""

    prepared_type = PreparedStorageProcess


class StorageService(KubeAPIService):
    """Service that runs a storage process with its fronts."""

    def __init__(self, options: ServerOptions, reactor: IServerReactor, command: FrontCommand | None = None) -> None:
        """
        @param options: The parsed command line.
        @param reactor: The reactor.
        @param command: How a front is started; by default with the command line of this process.
        """
        super().__init__(options, reactor)
        self._command = command or front_command(sys.executable, sys.orig_argv, os.environ)

    async def complete(self) -> ServerConfig:
        """See L{KubeAPIService.complete}."""
        return await StorageCompletion(self._options, self._reactor, StoragePeers()).complete()

    def make_server(self, config: ServerConfig) -> APIServer:
        """See L{KubeAPIService.make_server}."""
        return create_server_chain(config, self._install, StorageProcessServer)

    def prepare_run(self, server: APIServer) -> PreparedAPIServer:
        """See L{KubeAPIService.prepare_run}."""
        prepared = server.prepare_run()
        assert isinstance(prepared, PreparedStorageProcess), "the chain of a storage process ends in one"
        prepared.command = self._command
        return prepared
