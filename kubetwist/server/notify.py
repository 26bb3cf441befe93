"""
Notify the service manager of the state of this process, and serve its watchdog.

@see: C{sd_notify(3)}, C{sd_watchdog_enabled(3)}.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

#: The variables of the environment that are meant for one process, and must not be inherited.
VARIABLES: Final = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC")
#: Seconds after which messages that the full queue of the socket did not accept are sent again.
RETRY_INTERVAL: Final = 0.1
#: The part of the watchdog's timeout between two pings, as recommended by C{sd_watchdog_enabled(3)}.
_PING_PART: Final = 0.5

#: Returns the problem of a process that should be restarted; L{None} without one.
Check = Callable[[], Coroutine[Any, Any, str | None]]


def watchdog_timeout(environment: Mapping[str, str], pid: int) -> float | None:
    """
    Return the seconds after which the service manager restarts a process that does not ping.

    @param environment: The environment of this process.
    @param pid: The id of this process.
    @return: L{None} if the watchdog is disabled or meant for another process.
    @raise ValueError: A variable is not a positive integer.
    """
    text = environment.get("WATCHDOG_USEC", "")
    if not text:
        return None
    watched = environment.get("WATCHDOG_PID", "")
    if watched and _positive("WATCHDOG_PID", watched) != pid:
        return None
    return _positive("WATCHDOG_USEC", text) / 1_000_000


def _positive(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or not int(text):
        raise ValueError(f"{name}={text!r:.40}: want a positive integer")
    return int(text)


class ServiceManager:
    """
    The service manager that has started this process; all calls do nothing without one.

    Messages are sent without blocking. Those that the socket does not accept are sent again later, in order; pings are
    dropped then.
    """

    _log = Logger()

    def __init__(self, environment: Mapping[str, str], clock: IReactorTime) -> None:
        """
        @param environment: The environment of this process, with C{NOTIFY_SOCKET}.
        @param clock: The reactor.
        """
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._clock = clock
        self._unsent: list[str] = []

    def ready(self, status: str) -> None:
        """Report that the start, or the reload, is complete."""
        self._send(f"READY=1\nSTATUS={status}")

    def reloading(self) -> None:
        """Report that configuration files are reloaded; L{ready} ends it."""
        # Type=notify-reload matches the message with its request by the time; Type=notify ignores it.
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}\nSTATUS=reloading files")

    def stopping(self) -> None:
        """Report that the process stops."""
        self._send("STOPPING=1\nSTATUS=stopping")

    def status(self, text: str) -> None:
        """Report the state as text, one line for people."""
        self._send(f"STATUS={text}")

    def ping(self) -> None:
        """Report to the watchdog that the process works."""
        if not self._unsent:
            self._try("WATCHDOG=1")

    def _send(self, message: str) -> None:
        if not self._address:
            return
        self._unsent.append(message)
        if len(self._unsent) == 1:
            self._send_unsent()

    def _send_unsent(self) -> None:
        while self._unsent:
            if not self._try(self._unsent[0]):
                self._clock.callLater(RETRY_INTERVAL, self._send_unsent)
                return
            del self._unsent[0]

    def _try(self, message: str) -> bool:
        """Send a message; return whether it need not be sent again."""
        if not self._address:
            return True
        try:
            with socket.socket(
                socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
            ) as sender:
                sender.sendto(message.encode(), self._address)
        except BlockingIOError:
            return False
        except OSError as error:
            self._log.warn("cannot notify the service manager: {error}", error=str(error))
        return True


class Watchdog:
    """
    Pings the service manager as long as the process works.

    Pings need a running reactor, and a check that passes. A check that is not finished when the next one is due counts
    as failed until it finishes.
    """

    _log = Logger()

    def __init__(self, timeout: float, check: Check, ping: Callable[[], object], clock: IReactorTime) -> None:
        """
        @param timeout: Seconds after which the service manager restarts a process that does not ping.
        @param check: Returns the problem, if a restart may help; L{None} without one.
        @param ping: Called when the check has passed.
        @param clock: The reactor.
        """
        self._interval = timeout * _PING_PART
        self._check = check
        self._ping = ping
        self._clock = clock
        self._checking = False

    def start(self) -> None:
        """Ping now, and then twice in each timeout."""
        self._clock.callLater(self._interval, self.start)
        if self._checking:
            self._log.warn("not notifying the watchdog: the health check does not finish")
            return
        self._checking = True
        Deferred.fromCoroutine(self._check()).addCallbacks(self._checked, self._check_failed)

    def _checked(self, problem: str | None) -> None:
        self._checking = False
        if problem is None:
            self._ping()
        else:
            self._log.warn("not notifying the watchdog: {problem}", problem=problem)

    def _check_failed(self, failure: Failure) -> None:
        self._checking = False
        self._log.failure("not notifying the watchdog: the health check failed", failure)
