"""The server as a Twisted service, and its manners as a process of its own."""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from .errors import StartError

if TYPE_CHECKING:
    from ..interfaces import IServerReactor
    from .chain import Installer
    from .config import ServerConfig
    from .options import ServerOptions
    from .running import APIServer

#: The exit code when the server could not start, or was told twice to stop.
FAILED = 1
#: Seconds that a thread runs before another one that wants to may.
SWITCH_INTERVAL = 0.001


class KubeAPIService(Service):
    """
    Starts and stops an L{APIServer}.

    @ivar ready: Fires when the server is ready; fails with L{StartError} when it cannot be.
    @ivar server: What was started.
    """

    _log = Logger()

    def __init__(self, options: ServerOptions, reactor: IServerReactor, install: Installer | None = None) -> None:
        self._options = options
        self._reactor = reactor
        self._install = install
        self._starting: Deferred[None] | None = None
        self._stopping: Deferred[None] | None = None
        self.ready: Deferred[None] = Deferred()
        self.server: APIServer | None = None

    def startService(self) -> None:
        """Begin to start."""
        super().startService()  # type: ignore[no-untyped-call]
        self._starting = Deferred.fromCoroutine(self._start())

    async def _start(self) -> None:
        try:
            self._begin_key()
            config = await self.complete()
            self.server = self.make_server(config)
            await self.server.start()
        except BaseException:
            self.server = None
            self.ready.errback(Failure())
        else:
            self.ready.callback(None)

    async def complete(self) -> ServerConfig:
        """
        Return the complete configuration.

        @raise StartError: A flag or a file cannot be used.
        """
        from .complete import complete

        return await complete(self._options, self._reactor)

    def make_server(self, config: ServerConfig) -> APIServer:
        """Return the server, not started."""
        from .running import APIServer

        return APIServer(config, self._install)

    def _begin_key(self) -> None:
        """Where the start will need a new key, have it made while the rest of the server is imported."""
        options = self._options
        temporary = options["in-memory"] and "data-dir" not in options.changed
        if temporary or not os.path.exists(os.path.join(options["data-dir"], "pki")):
            from .credentials.keygeneration import begin_key

            begin_key()

    def stopService(self) -> Deferred[None]:
        """Stop in good order; a start that is under way is waited for."""
        if self._stopping is None:
            super().stopService()  # type: ignore[no-untyped-call]
            self._stopping = Deferred.fromCoroutine(self._stop())
        done: Deferred[None] = Deferred()
        self._stopping.chainDeferred(done)
        return done

    async def _stop(self) -> None:
        if self._starting is not None:
            await self._starting
        if self.server is not None:
            await self.server.stop()


class TwistProcess:
    """
    What C{twist} leaves to us: one line when the start fails, exit codes, signals, the service manager, logs as text.
    """

    _log = Logger()

    def __init__(self, service: KubeAPIService, reactor: IServerReactor, options: ServerOptions) -> None:
        self._service = service
        self._reactor = reactor
        self._options = options
        self._stop_requested = False

    def install(self) -> None:
        """Do all of it, once the reactor runs."""
        # Threads that are at work let the reactor wait for this long each time that it wants to go on.
        sys.setswitchinterval(SWITCH_INTERVAL)
        open_as_many_files_as_allowed()
        self._choose_logs()
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, self._asked)
        self._reactor.callWhenRunning(self._take_signals)
        # A server that waits for nothing is ready before the reactor runs, and signals are still the reactor's then.
        self._service.ready.addCallbacks(lambda _: self._reactor.callWhenRunning(self._ready), self._failed)

    def _choose_logs(self) -> None:
        """Text, as the reference writes, even where nobody looks at a terminal; unless JSON is asked for."""
        from twisted.logger import LogLevel

        from ..logs.structured import file_observer

        parent, verbosity = self._options.parent, self._options.verbosity
        assert parent is not None, "the server runs under twist"
        if not any(argument.partition("=")[0] == "--log-file" for argument in sys.argv):
            # As kube-apiserver does; the default of twist is stdout.
            parent["logFile"] = sys.stderr
        json = self._options["logging-format"] == "json"
        lowest = parent.get("logLevel", LogLevel.info)
        parent["fileLogObserverFactory"] = lambda file: file_observer(file, verbosity, json=json, lowest=lowest)
        # What is told apart by modules, and while the server runs, is not for twist to hold back.
        parent["logLevel"] = LogLevel.debug

    def _take_signals(self) -> None:
        """The reactor's own handlers make the exit code one of a killed process."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._signalled)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if self._stop_requested:
            os._exit(FAILED)
        self._stop_requested = True
        self._reactor.callFromThread(self._stop)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        """Handle signals that end other programs, and that operators and tools send to servers."""
        self._reactor.callFromThread(self._answer, number)

    def _answer(self, number: int) -> None:
        name = signal.Signals(number).name
        if number != signal.SIGHUP:
            self._log.info("ignoring signal {name}", name=name)
            return
        self._log.info("received {name}: checking all files for changes", name=name)
        if self._service.server is not None:
            self._service.server.reread_files()

    def _stop(self) -> None:
        from .notify import notify

        notify("STOPPING=1")
        if self._reactor.running:
            self._reactor.stop()

    def _ready(self) -> None:
        from .notify import notify

        notify("READY=1")
        # What there is now stays: from here on nobody looks through it for garbage, which stops the server meanwhile.
        gc.collect()
        gc.freeze()

    def _failed(self, failure: Failure) -> None:
        if failure.check(StartError):
            line = str(failure.value)
        else:
            self._log.failure("the server cannot start", failure)
            line = f"cannot start: {failure.value!r}"
        self._stop_requested = True
        if self._options.parent is not None:
            # "Starting reactor..." has no meaning for users.
            from twisted.logger import LogLevel

            self._options.parent["logLevel"] = LogLevel.critical
        # Printed at the end, so that the reason is the last line, after all log lines.
        # The reactor swallows SystemExit, and twist knows no other exit code than 0.
        message = f"twist {self._options.command}: {line}"
        self._reactor.addSystemEventTrigger("after", "shutdown", _exit_failed, message)
        self._reactor.callWhenRunning(self._reactor.stop)


def _exit_failed(message: str) -> None:
    # sys.stderr itself belongs to the log while the reactor runs.
    print(message, file=sys.__stderr__)
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            stream.flush()
    os._exit(FAILED)


def open_as_many_files_as_allowed() -> None:
    """
    Let the process have as many files open as it may let itself, as every program in Go does.

    The usual limit is for programs that wait by C{select}, and is less than a cluster has watches.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some systems name a limit that none can have.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
