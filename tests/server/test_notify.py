"""Tests of L{kubetwist.server.notify}."""

from __future__ import annotations

import os
import re
import socket
import tempfile
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import LogLevel, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.notify import RETRY_INTERVAL, ServiceManager, Watchdog, watchdog_timeout


class TimeoutTests(SynchronousTestCase):
    """L{watchdog_timeout}."""

    def test_enabled(self) -> None:
        """The timeout is in microseconds; without a process id it is meant for every process."""
        self.assertEqual(30.0, watchdog_timeout({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, 7))
        self.assertEqual(0.5, watchdog_timeout({"WATCHDOG_USEC": "500000"}, 7))

    def test_disabled(self) -> None:
        """There is no timeout without the variable, and if another process is watched."""
        self.assertIsNone(watchdog_timeout({}, 7))
        self.assertIsNone(watchdog_timeout({"WATCHDOG_PID": "7"}, 7))
        self.assertIsNone(watchdog_timeout({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"}, 7))

    def test_invalid(self) -> None:
        """Other values are errors that name the variable."""
        for text in ("0", "-1", "x", "1.5", " 1", "9" * 20, "²"):
            error = self.assertRaises(ValueError, watchdog_timeout, {"WATCHDOG_USEC": text}, 7)
            self.assertTrue(str(error).startswith("WATCHDOG_USEC='"), str(error))
        values = {"WATCHDOG_USEC": "1", "WATCHDOG_PID": "me"}
        self.assertIn("WATCHDOG_PID", str(self.assertRaises(ValueError, watchdog_timeout, values, 7)))


class ServiceManagerTests(SynchronousTestCase):
    """L{ServiceManager}, over real sockets."""

    def setUp(self) -> None:
        """Create a clock."""
        self.clock = Clock()

    def listen(self, address: str) -> socket.socket:
        """Return a socket of a service manager."""
        notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(notified.close)
        notified.bind(address)
        notified.settimeout(5)
        return notified

    def connect(self) -> tuple[socket.socket, ServiceManager]:
        """Return a socket of a service manager, and the object under test."""
        path = f"{tempfile.mkdtemp()}/notify"
        return self.listen(path), ServiceManager({"NOTIFY_SOCKET": path}, self.clock)

    def test_messages(self) -> None:
        """Each state is one message; the status is shown to people."""
        notified, manager = self.connect()
        manager.status("starting")
        manager.ready("serving on https://127.0.0.1:6443")
        manager.ping()
        manager.reloading()
        manager.stopping()
        self.assertEqual(notified.recv(100), b"STATUS=starting")
        self.assertEqual(notified.recv(100), b"READY=1\nSTATUS=serving on https://127.0.0.1:6443")
        self.assertEqual(notified.recv(100), b"WATCHDOG=1")
        self.assertTrue(
            re.fullmatch(rb"RELOADING=1\nMONOTONIC_USEC=[1-9][0-9]+\nSTATUS=reloading files", notified.recv(100))
        )
        self.assertEqual(notified.recv(100), b"STOPPING=1\nSTATUS=stopping")

    def test_abstract(self) -> None:
        """An address that begins with @ is an abstract socket."""
        name = f"kubetwist-test-{os.getpid()}"
        notified = self.listen(f"\0{name}")
        ServiceManager({"NOTIFY_SOCKET": f"@{name}"}, self.clock).stopping()
        self.assertEqual(notified.recv(100), b"STOPPING=1\nSTATUS=stopping")

    def test_no_service_manager(self) -> None:
        """Nothing happens without the variable; without a listening service manager a warning is logged."""
        events: list[Any] = []
        globalLogPublisher.addObserver(events.append)
        self.addCleanup(globalLogPublisher.removeObserver, events.append)
        without = ServiceManager({}, self.clock)
        without.ready("x")
        without.ping()
        self.assertEqual([], events)
        ServiceManager({"NOTIFY_SOCKET": "/nowhere/notify"}, self.clock).ready("x")
        (event,) = events
        self.assertEqual(LogLevel.warn, event["log_level"])
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_full_queue(self) -> None:
        """If the service manager does not read, messages are sent later, in order; pings are dropped."""
        notified, manager = self.connect()
        count = 0
        while not self.clock.getDelayedCalls():
            manager.status(str(count))
            count += 1
        manager.ping()
        manager.stopping()
        self.clock.advance(RETRY_INTERVAL)
        for number in range(count - 1):
            self.assertEqual(notified.recv(100), b"STATUS=%d" % number)
        self.clock.advance(RETRY_INTERVAL)
        self.assertEqual(notified.recv(100), b"STATUS=%d" % (count - 1))
        self.assertEqual(notified.recv(100), b"STOPPING=1\nSTATUS=stopping")
        self.assertEqual([], self.clock.getDelayedCalls())


class WatchdogTests(SynchronousTestCase):
    """L{Watchdog}."""

    def setUp(self) -> None:
        """Create a watchdog of 30 seconds."""
        self.clock = Clock()
        self.pings = 0
        self.problem: str | None = None
        self.waiting: Deferred[None] | None = None
        self.logged: list[Any] = []
        Watchdog(30.0, self.check, self.ping, self.clock).start()

    async def check(self) -> str | None:
        """Return the problem of the test, after what it waits for."""
        if self.waiting is not None:
            await self.waiting
        return self.problem

    def ping(self) -> None:
        """Count pings."""
        self.pings += 1

    def test_interval(self) -> None:
        """A ping is sent at the start, and twice in each timeout."""
        self.assertEqual(1, self.pings)
        self.clock.pump([14.0])
        self.assertEqual(1, self.pings)
        self.clock.pump([1.0] * 31)
        self.assertEqual(4, self.pings)

    def test_blocked_reactor(self) -> None:
        """A reactor that does not run sends no pings, and one when it runs again."""
        self.clock.rightNow += 1000.0
        self.assertEqual(1, self.pings)
        self.clock.advance(0)
        self.assertEqual(2, self.pings)

    def test_problem(self) -> None:
        """Pings stop while the check returns a problem."""
        self.problem = "etcd: no answer"
        self.clock.pump([15.0] * 3)
        self.assertEqual(1, self.pings)
        self.problem = None
        self.clock.advance(15.0)
        self.assertEqual(2, self.pings)

    def test_pending_check(self) -> None:
        """Pings stop while the check does not finish; its end is a ping, and checks do not pile up."""
        self.waiting = waiting = Deferred[None]()
        self.clock.pump([15.0] * 3)
        self.assertEqual(1, self.pings)
        waiting.callback(None)
        self.assertEqual(2, self.pings)
        self.clock.advance(15.0)
        self.assertEqual(3, self.pings)

    def test_failing_check(self) -> None:
        """An unexpected error of the check is logged, and is no ping."""
        self.waiting = waiting = Deferred[None]()
        self.clock.advance(15.0)
        waiting.errback(ZeroDivisionError())
        self.assertEqual(1, self.pings)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
        self.waiting = None
        self.clock.advance(15.0)
        self.assertEqual(2, self.pings)
