"""
A front: a process that serves requests, with the storage of another process.

It has TLS, filters, watch caches, stores, admission and documents, as one of several servers with one storage. The
storage process has created the bootstrap objects before, and runs the controllers.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.error import ReactorNotRunning
from twisted.logger import Logger

from ...storage.remote import RemoteStorage, connect
from ..apiserver import APIServer
from ..chain import create_server_chain
from ..complete import Completion
from ..datadir import DataDirectory
from ..lifecycle import PreparedAPIServer
from ..service import FAILED, KubeAPIService
from ..workerrole import WorkerRole
from .control import ControlConnection, SingleConnectionFactory
from .description import CONTROL, PASSING, FrontDescription
from .passing import PassedAddress
from .peers import FrontPeers
from .sessions import use_remote_sessions
from .storageprocess import SOCKET_DIRECTORY

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorUNIX

    from ...interfaces import IControllerFactory, IServerReactor, IStorageBackend
    from ..config import ServerConfig
    from ..options import ServerOptions


class FrontCompletion(Completion):
    """Completes the configuration of a front."""

    def __init__(
        self,
        options: ServerOptions,
        reactor: IServerReactor,
        description: FrontDescription,
        control: ControlConnection,
        peers: FrontPeers,
    ) -> None:
        """
        @param options: The command line of the storage process, parsed.
        @param reactor: The reactor.
        @param description: The description of this front.
        @param control: The connection to the storage process.
        @param peers: The other processes.
        """
        super().__init__(options, reactor)
        self.workers = WorkerRole(description.number, description.count)
        self.peers = peers
        self._description = description
        self._control = control

    def open_data(self, cleanup: ExitStack) -> DataDirectory:
        """Use the data directory, which the storage process has opened."""
        self.options["data-dir"] = self._description.data_dir
        return DataDirectory(Path(self._description.data_dir), durable=not self.options["in-memory"])

    def bind(self) -> PassedAddress:
        """Return the address at which the storage process listens."""
        passing = socket.socket(fileno=PASSING)
        passing.set_inheritable(False)
        return PassedAddress(self._description.port, passing, lambda: self._control.call("draining"))

    def make_backend(self, data: DataDirectory) -> IStorageBackend:
        """Return the storage of the storage process."""
        return RemoteStorage(
            connect(cast("IReactorUNIX", self.reactor), str(data.path / SOCKET_DIRECTORY)), self.reactor
        )

    def choose_controllers(self) -> Sequence[IControllerFactory]:
        """Return no controllers: the storage process runs them."""
        return ()


class PreparedFront(PreparedAPIServer):
    """A front that is ready to be run: it begins when the storage process lets it, and reports when it is ready."""

    begun: Deferred[None]
    control: ControlConnection

    async def start(self) -> None:
        """Start when the storage process has begun."""
        await self.begun
        await super().start()

    def report_ready(self) -> None:
        """Report it to the storage process, which logs the readiness of all fronts."""
        self.control.call("ready").addErrback(lambda failure: None)


class FrontServer(APIServer):
    """The first server of the chain of a front."""

    prepared_type = PreparedFront

    def announce(self, url: str) -> None:
        """Do nothing: the storage process writes the kubeconfig of the admin, and logs the address."""


class FrontService(KubeAPIService):
    """Service that runs a front."""

    _log = Logger()

    def __init__(
        self,
        options: ServerOptions,
        reactor: IServerReactor,
        description: FrontDescription,
        end_process: Callable[[int], object] = os._exit,
    ) -> None:
        """
        @param options: The command line of the storage process, parsed.
        @param reactor: The reactor.
        @param description: The description of this front.
        @param end_process: Ends the process at once, with an exit code.
        """
        super().__init__(options, reactor)
        self._description = description
        self._end_process = end_process
        self._stopped = False
        self._peers = FrontPeers()
        self._begun: Deferred[None] = Deferred()
        self._peers.functions |= {"begin": self._begin, "stop": self._stop_process}
        self._peers.functions |= {"reread": self._reread, "ping": lambda: None}
        self._control = self._peers.control = ControlConnection(self._peers.functions, self._storage_process_ended)

    def startService(self) -> None:
        """Connect to the storage process, and begin the start."""
        control = socket.socket(fileno=CONTROL)
        control.setblocking(False)
        reactor: Any = self._reactor
        reactor.adoptStreamConnection(control.fileno(), socket.AF_UNIX, SingleConnectionFactory(self._control))
        control.close()
        super().startService()

    def begin_key(self) -> None:
        """Do nothing: the storage process has generated the keys."""

    async def complete(self) -> ServerConfig:
        """See L{KubeAPIService.complete}."""
        completion = FrontCompletion(self._options, self._reactor, self._description, self._control, self._peers)
        config = await completion.complete()
        if config.sessions is not None:
            use_remote_sessions(config.sessions, self._control.call)
        return config

    def make_server(self, config: ServerConfig) -> APIServer:
        """See L{KubeAPIService.make_server}."""
        return create_server_chain(config, self._install, FrontServer)

    def prepare_run(self, server: APIServer) -> PreparedAPIServer:
        """See L{KubeAPIService.prepare_run}."""
        prepared = server.prepare_run()
        assert isinstance(prepared, PreparedFront), "the chain of a front ends in a front"
        prepared.begun, prepared.control = self._begun, self._control
        return prepared

    def stopService(self) -> Deferred[None]:
        """See L{KubeAPIService.stopService}."""
        return super().stopService().addCallback(self._set_stopped)

    def _set_stopped(self, result: None) -> None:
        self._stopped = True

    def _begin(self) -> None:
        self._begun.callback(None)

    def _stop_process(self) -> None:
        """Stop gracefully, as after SIGTERM."""
        with suppress(ReactorNotRunning):
            self._reactor.stop()

    async def _reread(self) -> None:
        if self.server is not None:
            await self.server.reread_files()

    def _storage_process_ended(self) -> None:
        """End at once: without the storage process no request can be answered."""
        if self._stopped:
            # This process itself closes its connections at its end.
            return
        if self._begun.called:
            self._log.error("the storage process has ended: this worker ends, too")
            for stream in (sys.__stdout__, sys.__stderr__):
                if stream is not None:
                    stream.flush()
        self._end_process(FAILED)
