"""Tests of L{kubetwist.http.connection.connections}."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.connection.connectionlimit import ConnectionLimiter
from kubetwist.http.connection.connections import STALLED_TIMEOUT, TURN_SECONDS, Connections


class Connection:
    """A connection that records calls."""

    deadline: float | None = None
    unflushed = False

    def __init__(self, idle: bool = True, serve: Callable[[], object] = lambda: None) -> None:
        self.calls: list[str] = []
        self.idle = idle
        self._serve = serve

    def getPeer(self) -> IPv4Address:
        """Return the address of the client."""
        return IPv4Address("TCP", "192.0.2.1", 50000)

    def deadline_expired(self) -> None:
        """Record the call."""
        self.deadline = None
        self.calls.append("deadline")

    def check_peer_closed(self) -> None:
        """Record the call."""
        self.calls.append("look")

    def serve_next(self) -> None:
        """Record the call, and run the test's function."""
        self.calls.append("serve")
        self._serve()

    def disable_keep_alive(self) -> None:
        """Record the call."""
        self.calls.append("last")

    def close(self) -> None:
        """Record the call."""
        self.calls.append("close")

    def abort(self) -> None:
        """Record the call."""
        self.calls.append("abort")


class ConnectionsTests(SynchronousTestCase):
    """L{Connections}."""

    def setUp(self) -> None:
        """Create an empty set of connections."""
        self.clock = Clock()
        self.connections = Connections(self.clock)

    def test_deadlines(self) -> None:
        """A connection is called when its deadline has passed, and not without one."""
        one, other = Connection(), Connection()
        for connection in (one, other):
            self.assertTrue(self.connections.connected(connection))
        one.deadline = 10.0
        self.clock.advance(9.0)
        self.connections.check_deadlines()
        self.assertEqual(one.calls, [])
        self.clock.advance(1.0)
        self.connections.check_deadlines()
        self.assertEqual((one.calls, other.calls), (["deadline"], []))

    def test_stalled(self) -> None:
        """A connection with paused reading is checked after a timeout."""
        one = Connection()
        self.connections.connected(one)
        self.connections.stalled[one] = self.clock.seconds()
        self.connections.check_deadlines()
        self.assertEqual(one.calls, [])
        self.clock.advance(STALLED_TIMEOUT)
        self.connections.check_deadlines()
        self.assertEqual(one.calls, ["look"])

    def test_limit(self) -> None:
        """Connections above the limit of an address are refused until others are closed."""
        self.connections.connection_limiter = ConnectionLimiter(1)
        one, other = Connection(), Connection()
        self.assertEqual([self.connections.connected(each) for each in (one, other)], [True, False])
        self.connections.disconnected(other)
        self.connections.disconnected(one)
        self.assertFalse(self.connections.has(one))
        self.assertTrue(self.connections.connected(other))
        self.assertTrue(self.connections.has(other))

    def test_failing(self) -> None:
        """A connection that fails in its turn is closed, and the next ones are served."""

        def fail() -> None:
            raise ZeroDivisionError

        one, other = Connection(serve=fail), Connection()
        self.connections.schedule_pipelined(one)
        self.connections.schedule_pipelined(other)
        self.clock.advance(0)
        self.assertEqual((one.calls, other.calls), (["serve", "abort"], ["serve"]))
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)

    def test_pipelined(self) -> None:
        """Pipelined connections are served alternately, in a later iteration if the time is used up."""
        order: list[str] = []
        turns: list[Callable[[], object]] = []
        self.patch(self.clock, "callLater", lambda delay, call: turns.append(call))

        def slow() -> None:
            order.append("slow")
            self.clock.rightNow += 2 * TURN_SECONDS

        one, other = Connection(serve=slow), Connection(serve=lambda: order.append("other"))
        self.connections.schedule_pipelined(one)
        self.connections.schedule_pipelined(other)
        self.assertEqual((order, len(turns)), ([], 1))
        turns.pop()()
        self.assertEqual((order, len(turns)), (["slow"], 1))
        turns.pop()()
        self.assertEqual((order, turns), (["slow", "other"], []))

    def test_close_idle(self) -> None:
        """Idle connections are closed at once, others after their request."""
        idle, busy = Connection(), Connection(idle=False)
        self.connections.connected(idle)
        self.connections.connected(busy)
        self.connections.close_idle()
        self.assertEqual((idle.calls, busy.calls), (["last", "close"], ["last"]))
        self.connections.abort_all()
        self.assertEqual((idle.calls[-1], busy.calls[-1]), ("abort", "abort"))
