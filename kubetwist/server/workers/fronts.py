"""The fronts of a storage process: they are started, restarted when they end, and stopped."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from math import inf
from typing import Any, Final

from attrs import frozen

from twisted.internet.defer import Deferred, fail, gatherResults
from twisted.internet.error import ProcessDone
from twisted.internet.interfaces import IDelayedCall, IProcessTransport
from twisted.internet.protocol import ProcessProtocol
from twisted.logger import Logger
from twisted.python.failure import Failure

from ...metrics.registry import MetricSnapshot
from ..errors import StartError
from ..notify import VARIABLES
from .control import ControlConnection, Handlers, SingleConnectionFactory
from .description import CONTROL, PASSING, VARIABLE, FrontDescription
from .passing import ConnectionAcceptor, ConnectionPasser

#: Seconds until a front that has ended is started again: the first delay, and the maximum.
FIRST_DELAY: Final = 0.1
MAX_DELAY: Final = 10.0
#: Seconds that a front runs until its next end is the first one again.
STABLE_SECONDS: Final = 60.0
#: Seconds that a front has to answer a call.
CALL_TIMEOUT: Final = 10.0


@frozen
class FrontCommand:
    """
    How a front is started.

    @ivar arguments: The command line, with the program.
    @ivar environment: The environment without the description.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str]


class Front(ProcessProtocol):
    """
    One front, over the processes that run it.

    @ivar number: Its number, from 1 on.
    @ivar control: The connection to the process; L{None} if none runs.
    @ivar is_ready: Whether it serves requests.
    @ivar pid: The id of the last process.
    @ivar ended: Fires when that process has ended.
    """

    _log = Logger()

    def __init__(self, number: int, fronts: Fronts) -> None:
        """
        @param fronts: All fronts.
        """
        self.number = number
        self.control: ControlConnection | None = None
        self.is_ready = False
        self.pid = 0
        self.ended: Deferred[None] | None = None
        self._fronts = fronts
        self._passer: ConnectionPasser | None = None
        self._process: IProcessTransport | None = None
        self._delay = FIRST_DELAY
        self._ready_since = inf
        self._restart: IDelayedCall | None = None

    def start(self) -> None:
        """
        Start a process.

        @raise OSError: The system has not enough resources.
        """
        fronts = self._fronts
        handlers: Handlers = {**fronts.handlers(self), "ready": self._ready, "draining": self._draining}
        control, control_of_front = socket.socketpair()
        passing, passing_of_front = socket.socketpair()
        self._ready_since = inf
        with ExitStack() as sockets, control, control_of_front, passing_of_front, open(os.devnull, "rb") as nothing:
            sockets.enter_context(passing)
            description = fronts.describe(self.number)
            self._process = fronts.reactor.spawnProcess(
                self,
                fronts.command.arguments[0],
                list(fronts.command.arguments),
                {**fronts.command.environment, VARIABLE: description.encode()},
                childFDs={
                    0: nothing.fileno(),
                    1: 1,
                    2: 2,
                    CONTROL: control_of_front.fileno(),
                    PASSING: passing_of_front.fileno(),
                },
            )
            control.setblocking(False)
            self.control = ControlConnection(handlers, lambda: None)
            # The reactor duplicates the descriptor.
            fronts.reactor.adoptStreamConnection(
                control.fileno(), socket.AF_UNIX, SingleConnectionFactory(self.control)
            )
            sockets.pop_all()
        self.ended = Deferred()
        self.pid = self._process.pid
        self._passer = ConnectionPasser(passing, fronts.reactor, fronts.acceptor.ended)
        if fronts.begun:
            self.begin()

    def begin(self) -> None:
        """Let the process open the storage, and serve requests."""
        self._call("begin")

    def stop(self) -> None:
        """Let the process stop gracefully; a process that has not begun ends."""
        if self._restart is not None:
            self._restart.cancel()
            self._restart = None
        if self._fronts.begun:
            self._call("stop")
        elif self.control is not None:
            self.control.close()

    def _call(self, name: str) -> None:
        if self.control is not None:
            # The end of the process is handled when it is reaped.
            self.control.call(name).addErrback(lambda failure: None)

    def _ready(self) -> None:
        """Pass connections to the process, which serves requests."""
        self.is_ready = True
        self._ready_since = self._fronts.reactor.seconds()
        assert self._passer is not None
        self._fronts.acceptor.fronts.append(self._passer)
        self._fronts.front_ready(self)

    def _draining(self) -> None:
        """Pass no more connections to the process."""
        self.is_ready = False
        acceptor = self._fronts.acceptor
        if self._passer in acceptor.fronts:
            acceptor.fronts.remove(self._passer)

    def processEnded(self, reason: Failure) -> None:
        """See L{ProcessProtocol.processEnded}: start another process, unless the server stops."""
        self._process = None
        self._draining()
        assert self._passer is not None and self.control is not None and self.ended is not None
        self._passer.close()
        self.control.close()
        self.control = None
        fronts = self._fronts
        if not fronts.stopping:
            if not fronts.started:
                fronts.start_failed(self, _describe_end(reason))
            else:
                if fronts.reactor.seconds() - self._ready_since >= STABLE_SECONDS:
                    self._delay = FIRST_DELAY
                self._log.error(
                    "worker {number} (process {pid}) has ended ({reason}); it is started again in {delay} s",
                    number=self.number,
                    pid=self.pid,
                    reason=_describe_end(reason),
                    delay=self._delay,
                )
                self._start_later()
        self.ended.callback(None)

    def _start_later(self) -> None:
        self._restart = self._fronts.reactor.callLater(self._delay, self._start_again)
        self._delay = min(2 * self._delay, MAX_DELAY)

    def _start_again(self) -> None:
        self._restart = None
        self._fronts.restarts += 1
        try:
            self.start()
        except OSError as error:
            self._log.error("worker {number} cannot be started: {error}", number=self.number, error=error)
            self._start_later()


class Fronts:
    """
    All fronts of a storage process.

    @ivar reactor: The reactor.
    @ivar acceptor: Passes the connections of clients to the fronts.
    @ivar command: How a front is started.
    @ivar begun: Whether fronts may open the storage.
    @ivar started: Whether all fronts were ready once.
    @ivar stopping: Whether fronts that end are not started again.
    @ivar restarts: The number of fronts that were started again.
    """

    _log = Logger()

    def __init__(
        self,
        count: int,
        command: FrontCommand,
        describe: Callable[[int], FrontDescription],
        handlers: Callable[[Front], Handlers],
        acceptor: ConnectionAcceptor,
        reactor: Any,
    ) -> None:
        """
        @param count: The number of fronts.
        @param command: How a front is started.
        @param describe: Returns the description of the front with a number.
        @param handlers: Returns the functions that a front may call.
        @param acceptor: Passes the connections of clients to the fronts.
        @param reactor: The reactor, which starts processes.
        """
        self.reactor = reactor
        self.acceptor = acceptor
        self.command = command
        self.describe = describe
        self.handlers = handlers
        self.begun = self.started = self.stopping = False
        self.restarts = 0
        self._fronts = [Front(number + 1, self) for number in range(count)]
        self._all_ready: Deferred[None] = Deferred()
        self._problem: StartError | None = None

    def start(self) -> None:
        """
        Start all fronts; they read the configuration, and wait for L{begin}.

        @raise StartError: The system has not enough resources.
        """
        for front in self._fronts:
            try:
                front.start()
            except OSError as error:
                raise StartError(f"cannot start worker {front.number}: {error.strerror or error}") from error

    def begin(self) -> Deferred[None]:
        """
        Let all fronts open the storage.

        @return: Fires when all fronts are ready; fails with L{StartError} if one ends before.
        """
        self.begun = True
        if self._problem is not None:
            return fail(self._problem)
        for front in self._fronts:
            front.begin()
        return self._all_ready

    def front_ready(self, front: Front) -> None:
        """Handle that a front is ready."""
        if not self.started:
            if all(one.is_ready for one in self._fronts):
                self.started = True
                self._all_ready.callback(None)
        elif not self.stopping:
            self._log.info("worker {number} is ready again", number=front.number)

    def start_failed(self, front: Front, reason: str) -> None:
        """Handle that a front has ended before the server was ready."""
        if self._problem is None:
            self._problem = StartError(f"worker {front.number} has not started: {reason}")
            if self.begun:
                self._all_ready.errback(self._problem)

    async def stop(self) -> None:
        """Stop all fronts, and wait for their end."""
        self.stopping = True
        for front in self._fronts:
            front.stop()
        await gatherResults([front.ended for front in self._fronts if front.ended is not None])

    def collect(self) -> Iterator[MetricSnapshot]:
        """Return the metrics of the fronts."""
        ready = sum(front.is_ready for front in self._fronts)
        for name, metric_type, text, value in (
            ("workers", "gauge", "Number of workers of the server: --workers.", len(self._fronts)),
            ("workers_ready", "gauge", "Number of workers that accept connections.", ready),
            ("worker_restarts_total", "counter", "Number of restarts of workers that had ended.", self.restarts),
        ):
            yield MetricSnapshot(f"kubetwist_{name}", metric_type, text, (), [((), float(value))])

    def call_peers(self, caller: Front | None, name: str, *arguments: object) -> list[Deferred[Any]]:
        """
        Call a function of all ready fronts but one.

        @param caller: The excepted front; L{None} for no exception.
        @param name: The name of the function.
        @return: The results; a front that has ended, or does not answer in time, fails.
        """
        return [
            front.control.call(name, *arguments).addTimeout(CALL_TIMEOUT, self.reactor)
            for front in self._fronts
            if front is not caller and front.is_ready and front.control is not None
        ]


def _describe_end(reason: Failure) -> str:
    """Return the exit code or the signal of a process."""
    if reason.check(ProcessDone):
        return "exit code 0"
    number: int | None = getattr(reason.value, "signal", None)
    if number is not None:
        return signal.Signals(number).name
    return f"exit code {getattr(reason.value, 'exitCode', 'unknown')}"


def front_command(program: str, arguments: Sequence[str], environment: Mapping[str, str]) -> FrontCommand:
    """
    Return the command of a front: the one of this process, without the socket of the service manager.

    @param program: The path of the Python interpreter.
    @param arguments: The command line of this process, with its program (C{sys.orig_argv}).
    @param environment: The environment of this process.
    """
    inherited = {name: value for name, value in environment.items() if name not in VARIABLES}
    return FrontCommand([program, *arguments[1:]], inherited)
