"""Base of the maintenance commands: flags, one-line errors and exit codes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from threading import Event
from types import FrameType
from typing import Any, ClassVar, TypeVar, cast

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import (
    FilteringLogObserver,
    Logger,
    LogLevel,
    LogLevelFilterPredicate,
    globalLogBeginner,
    textFileLogObserver,
)
from twisted.python.failure import Failure

from ..server.errors import StartError
from ..storage.errors import StorageError
from .commandline import FlagOptions
from .flagtypes import FlagError

T = TypeVar("T")

FAILED = 1
#: Exit code of an interrupted program, as in shells.
INTERRUPTED = 130


class CommandError(Exception):
    """The command failed. The message is a single line for the user."""


class CommandOptions(FlagOptions):
    """
    Options of a maintenance command.

    @cvar required: The names of the flags that must be set.
    @cvar argument: The placeholder of the argument that is not a flag; C{""} if there is none.
    """

    required: ClassVar[Sequence[str]] = ()
    argument: ClassVar[str] = ""

    def getSynopsis(self) -> str:
        """Return the usage line."""
        return f"Usage: {self.program} {self.argument} [flags]".replace("  ", " ")

    def read(self, arguments: Sequence[str]) -> None:
        """Read the argument, which is the first or the last one, and the flags."""
        rest = list(arguments)
        if self.argument:
            for index in (0, -1):
                if rest and not rest[index].startswith("-"):
                    self.set_argument(rest.pop(index))
                    break
        super().read(rest)

    def set_argument(self, text: str) -> None:
        """Set the argument that is not a flag; commands with an L{argument} override it."""
        raise NotImplementedError(self.argument)

    def check(self) -> None:
        """Check the required flags."""
        self.require_flags(*self.required)

    def require_flags(self, *names: str) -> None:
        """
        Check that flags are set.

        @raise FlagError: A flag is missing.
        """
        for name in names:
            if not self[name]:
                raise FlagError(f"--{name} is required")


def expected_failure(error: BaseException) -> bool:
    """Return whether the message of an error is a single line for the user, and no bug of the command."""
    return isinstance(error, (CommandError, StartError, StorageError))


class CommandService(Service):
    """
    Runs a command and stops the reactor when it is done.

    @ivar cancelled: Set when the command is cancelled, for code in threads.
    @ivar code: The exit code.
    """

    _log = Logger()

    def __init__(
        self, options: CommandOptions, reactor: Any, work: Callable[[CommandService], Coroutine[Any, Any, None]]
    ) -> None:
        self.options = options
        self.reactor = reactor
        self.cancelled = Event()
        self.code = 0
        self._work = work
        self._running: Deferred[None] | None = None

    def install(self) -> CommandService:
        """Configure C{twist} to log warnings only, and to exit with L{code}."""
        if self.options.parent is not None:
            self.options.parent["fileLogObserverFactory"] = textFileLogObserver
            self.options.parent["logLevel"] = LogLevel.warn
            self.reactor.callWhenRunning(self._install_signal_handlers)
            self.reactor.addSystemEventTrigger("after", "shutdown", self._exit)
        return self

    def print_line(self, line: str) -> None:
        """Print a line to the original stdout; C{twist} redirects C{sys.stdout} to the log."""
        print(line, file=sys.__stdout__, flush=True)

    def startService(self) -> None:
        """Start the command when the reactor runs."""
        super().startService()  # type: ignore[no-untyped-call]
        self.reactor.callWhenRunning(self._start)

    def _start(self) -> None:
        self._running = Deferred.fromCoroutine(self._work(self)).addErrback(self._failed)
        self._running.addBoth(lambda _: self.reactor.running and self.reactor.stop())

    def _failed(self, failure: Failure) -> None:
        if failure.check(CancelledError):
            self.code = self.code or INTERRUPTED
            return
        self.code = FAILED
        if failure.value is not None and expected_failure(failure.value):
            line = str(failure.value)
        else:
            self._log.failure("command failed: command={command}", failure, command=self.options.command)
            line = f"failed: {failure.value!r}"
        print(f"{self.options.program}: {line}", file=sys.__stderr__, flush=True)

    def _install_signal_handlers(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle_signal)

    def _handle_signal(self, number: int, frame: FrameType | None) -> None:
        self.code = 128 + number
        self.cancelled.set()
        self.reactor.callFromThread(self._cancel)

    def _cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()

    def _exit(self) -> None:
        # twist itself always exits with 0.
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None:
                stream.flush()
        os._exit(self.code)


def run_command(options: CommandOptions, work: Callable[[CommandService], Coroutine[Any, Any, None]]) -> None:
    """
    Run a command in the reactor of a process that is not C{twist}.

    @param options: The checked options.
    @param work: The function that L{CommandService} runs.
    @raise Exception: What C{work} raises.
    @raise SystemExit: A signal ended the command.
    """
    service: list[CommandService] = []

    def start(reactor: Any) -> Coroutine[Any, Any, None]:
        service.append(CommandService(options, reactor, work))
        return work(service[0])

    run_coroutine(start, lambda: service[0].cancelled.set())


def run_coroutine(work: Callable[[Any], Coroutine[Any, Any, T]], on_signal: Callable[[], object] = lambda: None) -> T:
    """
    Run a coroutine in the reactor, which can be started once in a process, and return its result.

    SIGINT and SIGTERM cancel the coroutine. Log lines of warnings and errors are written to stderr.

    @param work: Called with the reactor when it runs.
    @param on_signal: Called when the coroutine is about to be cancelled.
    @raise Exception: What the coroutine raises.
    @raise SystemExit: A signal ended the coroutine. The code is 128 plus the number of the signal. A coroutine that
        catches C{CancelledError} and returns has succeeded.
    """
    from twisted.internet import reactor as global_reactor

    reactor: Any = global_reactor
    results: list[Any] = []
    signals: list[int] = []

    def start() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, handle_signal)
        running.append(Deferred.fromCoroutine(work(reactor)).addBoth(finish))

    def finish(result: Any) -> None:
        results.append(result)
        reactor.callWhenRunning(reactor.stop)

    def handle_signal(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        on_signal()
        reactor.callFromThread(cancel)

    def cancel() -> None:
        if not results:
            running[0].cancel()

    running: list[Deferred[None]] = []
    observer = textFileLogObserver(sys.stderr)
    filters = [LogLevelFilterPredicate(LogLevel.warn)]
    globalLogBeginner.beginLoggingTo(
        [FilteringLogObserver(observer, filters)], discardBuffer=True, redirectStandardIO=False
    )
    reactor.callWhenRunning(start)
    reactor.run()
    [result] = results
    if isinstance(result, Failure):
        if signals:
            raise SystemExit(128 + signals[0])
        result.raiseException()
    return cast("T", result)
