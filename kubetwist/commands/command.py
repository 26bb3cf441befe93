"""What the tools have in common: flags, one line when something is wrong, an exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from threading import Event
from types import FrameType
from typing import Any, ClassVar

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger, LogLevel, textFileLogObserver
from twisted.python import usage
from twisted.python.failure import Failure

from ..server.errors import StartError
from ..server.flags import Flag, FlagError, describe_flags, parse_flags
from ..storage.errors import StorageError

_USAGE_EXIT = 64
FAILED = 1
#: As a shell tells of a program that was interrupted.
INTERRUPTED = 130


class CommandError(Exception):
    """The command can not do what it is asked to; the text is one line for whoever called it."""


class CommandOptions(usage.Options):
    """
    The flags of a tool, by their names.

    @cvar command: What C{twist} knows it by.
    @cvar flags: What can stand on the command line.
    @cvar about: What it does, for the help.
    @ivar parent: The options of C{twist}, when that runs us.
    """

    command: ClassVar[str]
    flags: ClassVar[Sequence[Flag]]
    about: ClassVar[str]
    parent: Any = None

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.update({flag.name: flag.default for flag in self.flags})

    def parseOptions(self, options: Sequence[str] | None = None) -> None:
        """
        Read the command line.

        @raise usage.UsageError: It makes no sense. Under C{twist}, which would print pages, the process ends instead.
        """
        arguments = list(sys.argv[1:] if options is None else options)
        if "--help" in arguments or "-h" in arguments:
            print(self)
            raise SystemExit(0)
        try:
            self.read(arguments)
            self.check()
        except FlagError as error:
            if self.parent is None:
                raise usage.UsageError(str(error)) from error
            print(f"twist {self.command}: {error}; see twist {self.command} --help", file=sys.stderr)
            raise SystemExit(_USAGE_EXIT) from error

    def read(self, arguments: Sequence[str]) -> None:
        """
        Take the values of the flags.

        @raise FlagError: They make no sense.
        """
        self.update(parse_flags(self.flags, arguments))

    def check(self) -> None:
        """
        See that the flags make sense together.

        @raise FlagError: They do not.
        """

    def needs(self, *names: str) -> None:
        """
        See that some flags are given.

        @raise FlagError: One is not.
        """
        for name in names:
            if not self[name]:
                raise FlagError(f"--{name} is needed")

    def getSynopsis(self) -> str:
        """How it is called."""
        return f"Usage: twist {self.command} [flags]"

    def getUsage(self, width: int | None = None) -> str:
        """What it does, and its flags."""
        return f"{self.about}\n{describe_flags(self.flags)}"

    def __str__(self) -> str:
        return f"{self.getSynopsis()}\n\n{self.getUsage()}"


class CommandService(Service):
    """
    Does the work of a tool, and then stops the reactor.

    @ivar cancelled: Set when the work is to be given up, for those of its parts that are in threads.
    @ivar code: The exit code, when it is done.
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

    def arrange(self) -> CommandService:
        """Have C{twist} log what is wrong and nothing else, and end with our exit code."""
        if self.options.parent is not None:
            self.options.parent["fileLogObserverFactory"] = textFileLogObserver
            self.options.parent["logLevel"] = LogLevel.warn
            self.reactor.callWhenRunning(self._take_signals)
            self.reactor.addSystemEventTrigger("after", "shutdown", self._exit)
        return self

    def say(self, line: str) -> None:
        """Tell whoever called; C{sys.stdout} itself is the log's once the reactor runs."""
        print(line, file=sys.__stdout__, flush=True)

    def startService(self) -> None:
        """Begin."""
        super().startService()  # type: ignore[no-untyped-call]
        self.reactor.callWhenRunning(self._begin)

    def _begin(self) -> None:
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
            self._log.failure("the command failed", failure)
            line = f"failed: {failure.value!r}"
        print(f"twist {self.options.command}: {line}", file=sys.__stderr__, flush=True)

    def _take_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._signalled)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self.code = 128 + number
        self.cancelled.set()
        self.reactor.callFromThread(self._cancel)

    def _cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()

    def _exit(self) -> None:
        # twist knows no other exit code than 0.
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None:
                stream.flush()
        os._exit(self.code)
