"""Base of the maintenance commands: flags, one-line errors and exit codes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Coroutine
from threading import Event
from types import FrameType
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger, LogLevel, textFileLogObserver
from twisted.python.failure import Failure

from ..server.errors import StartError
from ..storage.errors import StorageError
from .commandline import FlagOptions
from .flagtypes import FlagError

FAILED = 1
#: Exit code of an interrupted program, as in shells.
INTERRUPTED = 130


class CommandError(Exception):
    """The command failed. The message is a single line for the user."""


class CommandOptions(FlagOptions):
    """Options of a maintenance command."""

    def require_flags(self, *names: str) -> None:
        """
        Check that flags are set.

        @raise FlagError: A flag is missing.
        """
        for name in names:
            if not self[name]:
                raise FlagError(f"--{name} is required")


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
        if failure.check(CommandError, StartError, StorageError):
            line = str(failure.value)
        else:
            self._log.failure("command failed: command={command}", failure, command=self.options.command)
            line = f"failed: {failure.value!r}"
        print(f"twist {self.options.command}: {line}", file=sys.__stderr__, flush=True)

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
