"""The server as a Twisted service, and its integration into the process."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import ReactorNotRunning
from twisted.logger import Logger
from twisted.python.failure import Failure

from ..api.garbage import CollectionPause, keep_present_objects
from .errors import StartError
from .notify import ServiceManager, Watchdog, watchdog_timeout

if TYPE_CHECKING:
    from ..interfaces import IServerReactor
    from .apis import Installer
    from .apiserver import APIServer
    from .config import ServerConfig
    from .lifecycle import PreparedAPIServer
    from .options import ServerOptions

#: The exit code of a failed start, or after a second signal to stop.
FAILED = 1
#: Seconds that a thread runs before the interpreter switches to another one.
SWITCH_INTERVAL = 0.001


class KubeAPIService(Service):
    """
    Service that runs an L{APIServer}.

    @ivar ready: Fires when the server is ready; fails with L{StartError} if the start fails.
    @ivar server: The server that runs or starts; L{None} before, and after a failed start.
    """

    _log = Logger()

    def __init__(self, options: ServerOptions, reactor: IServerReactor, install: Installer | None = None) -> None:
        self._options = options
        self._reactor = reactor
        self._install = install
        self._running: Deferred[None] | None = None
        self._stopping: Deferred[None] | None = None
        self.ready: Deferred[None] = Deferred()
        self.server: PreparedAPIServer | None = None

    def startService(self) -> None:
        """Begin the start."""
        super().startService()  # type: ignore[no-untyped-call]
        self._running = Deferred.fromCoroutine(self._run())

    async def _run(self) -> None:
        pause = CollectionPause()

        def end_pause(result: object) -> object:
            pause.end()
            return result

        self.ready.addBoth(end_pause)
        try:
            self.begin_key()
            self.server = await self._prepare(await self.complete())
            if self._stopping is not None:
                self.server.stop()
            await self.server.run(lambda: self.ready.callback(None))
        except BaseException:
            if self.ready.called:
                raise
            self.server = None
            self.ready.errback(Failure())

    async def _prepare(self, config: ServerConfig) -> PreparedAPIServer:
        """
        Build the server of a configuration.

        @raise StartError: It cannot be built; everything is undone.
        """
        server = None
        try:
            server = self.make_server(config)
            return self.prepare_run(server)
        except BaseException as error:
            if server is not None:
                await server.front.run_destroy_funcs()
            await config.release()
            from .complete import start_error

            readable = start_error(error)
            if readable is None:
                raise
            raise readable from error

    async def complete(self) -> ServerConfig:
        """
        Return the complete configuration.

        @raise StartError: A flag or a file cannot be used.
        """
        from .complete import complete

        return await complete(self._options, self._reactor)

    def make_server(self, config: ServerConfig) -> APIServer:
        """Return the server in front of the chain."""
        from .chain import create_server_chain

        return create_server_chain(config, self._install)

    def prepare_run(self, server: APIServer) -> PreparedAPIServer:
        """Return a server, ready to be run."""
        return server.prepare_run()

    def begin_key(self) -> None:
        """Generate a key that the start will need, while the rest of the server is imported."""
        options = self._options
        temporary = options["in-memory"] and "data-dir" not in options.changed
        if temporary or not os.path.exists(os.path.join(options["data-dir"], "pki")):
            from .credentials.keygeneration import begin_key

            begin_key()

    def stopService(self) -> Deferred[None]:
        """Stop gracefully, after a start that is in progress."""
        if self._stopping is None:
            super().stopService()  # type: ignore[no-untyped-call]
            self._stopping = self._running or succeed(None)
            if self.server is not None:
                self.server.stop()
        done: Deferred[None] = Deferred()
        self._stopping.chainDeferred(done)
        return done


class TwistProcess:
    """
    Settings of the process that C{twist} does not make: start errors in one line, exit codes, signals, the service
    manager, logs as text.
    """

    _log = Logger()

    def __init__(
        self, service: KubeAPIService, reactor: IServerReactor, options: ServerOptions, worker: int = 0
    ) -> None:
        """
        @param service: The service of the server.
        @param reactor: The reactor.
        @param options: The parsed command line.
        @param worker: The number of the front, which its log lines contain; 0 in another process.
        """
        self._worker = worker
        self._service = service
        self._reactor = reactor
        self._options = options
        self._stop_requested = False
        self._manager = ServiceManager(os.environ, reactor)

    def install(self) -> None:
        """Apply all settings when the reactor runs."""
        # Busy threads delay the reactor by this long each time that it needs the interpreter.
        sys.setswitchinterval(SWITCH_INTERVAL)
        raise_open_files_limit()
        self._choose_logs()
        self._manager.status("starting")
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, self._handle_signal)
        self._reactor.callWhenRunning(self._install_signal_handlers)
        # A server without delays is ready before the reactor runs and installs its signal handlers.
        self._service.ready.addCallbacks(lambda _: self._reactor.callWhenRunning(self._ready), self._failed)

    def _choose_logs(self) -> None:
        """Log text, as the reference does, also without a terminal; or JSON if requested."""
        from twisted.logger import LogLevel

        from ..logs.structured import file_observer

        parent, verbosity = self._options.parent, self._options.verbosity
        assert parent is not None, "the server runs under twist"
        if not any(argument.partition("=")[0] == "--log-file" for argument in sys.argv):
            # kube-apiserver logs to stderr; the default of twist is stdout.
            parent["logFile"] = sys.stderr
        json = self._options["logging-format"] == "json"
        lowest = parent.get("logLevel", LogLevel.info)
        parent["fileLogObserverFactory"] = lambda file: file_observer(
            file, verbosity, json=json, lowest=lowest, worker=self._worker
        )
        # twist must not filter by level: levels depend on modules and can change at run time.
        parent["logLevel"] = LogLevel.debug

    def _install_signal_handlers(self) -> None:
        """Replace the reactor's signal handlers, whose exit code is the one of a killed process."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle_stop_signal)

    def _handle_stop_signal(self, number: int, frame: FrameType | None) -> None:
        if self._stop_requested:
            os._exit(FAILED)
        self._stop_requested = True
        self._reactor.callFromThread(self._stop)

    def _handle_signal(self, number: int, frame: FrameType | None) -> None:
        """Handle signals that end other programs, and that operators and tools send to servers."""
        self._reactor.callFromThread(self._handle_signal_in_reactor, number)

    def _handle_signal_in_reactor(self, number: int) -> None:
        name = signal.Signals(number).name
        if number != signal.SIGHUP:
            self._log.info("ignoring signal {name}", name=name)
            return
        self._log.info("received {name}: checking all files for changes", name=name)
        server = self._service.server
        if server is not None and server.url and not self._stop_requested:
            self._manager.reloading()
            server.reread_files().addBoth(lambda _: self._manager.ready(self._status()))

    def _status(self) -> str:
        server = self._service.server
        return f"serving on {server.url}" if server is not None and not self._stop_requested else "stopping"

    def _stop(self) -> None:
        self._manager.stopping()
        if self._reactor.running:
            # The storage process may have stopped it.
            with suppress(ReactorNotRunning):
                self._reactor.stop()

    def _ready(self) -> None:
        self._manager.ready(self._status())
        self._start_watchdog()
        # Objects that exist now are permanent, and a collection pauses the server.
        keep_present_objects()

    def _start_watchdog(self) -> None:
        """Ping the watchdog of the service manager, if it is enabled, until the process ends."""
        try:
            timeout = watchdog_timeout(os.environ, os.getpid())
        except ValueError as error:
            self._log.warn("ignoring the watchdog of the service manager: {error}", error=str(error))
            return
        server = self._service.server
        if timeout is None or server is None:
            return
        # The watchdog ends a process that hangs with SIGABRT: its last lines show where each thread was.
        if sys.__stderr__ is not None:
            faulthandler.enable(sys.__stderr__)
        Watchdog(timeout, server.liveness_problem, self._manager.ping, self._reactor).start()

    def _failed(self, failure: Failure) -> None:
        if failure.check(StartError):
            line = str(failure.value)
        else:
            self._log.failure("the server cannot start", failure)
            line = f"cannot start: {failure.value!r}"
        self._stop_requested = True
        self._manager.status(line)
        if self._options.parent is not None:
            # "Starting reactor..." has no meaning for users.
            from twisted.logger import LogLevel

            self._options.parent["logLevel"] = LogLevel.critical
        # Printed at the end, so that the reason is the last line, after all log lines.
        # The reactor swallows SystemExit, and twist knows no other exit code than 0.
        message = f"{self._options.program}: {line}"
        self._reactor.addSystemEventTrigger("after", "shutdown", _exit_failed, message)
        self._reactor.callWhenRunning(self._reactor.stop)


def _exit_failed(message: str) -> None:
    # sys.stderr itself belongs to the log while the reactor runs.
    print(message, file=sys.__stderr__)
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            stream.flush()
    os._exit(FAILED)


def raise_open_files_limit() -> None:
    """
    Raise the limit of open files to its maximum, as every Go program does.

    The usual limit is for programs that use C{select}, and is lower than the number of watches in a cluster.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some systems report a limit that cannot be set.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
