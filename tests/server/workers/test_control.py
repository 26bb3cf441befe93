"""Tests for L{kubetwist.server.workers.control}, with two connections that are joined in memory."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.workers.control import ControlConnection, ControlError, SingleConnectionFactory


class ControlTests(SynchronousTestCase):
    """Tests for L{ControlConnection}."""

    def setUp(self) -> None:
        """Connect two ends; the first one calls functions of the other one."""
        self.lost: list[str] = []
        self.slow: Deferred[str] = Deferred()
        self.caller = ControlConnection({"back": lambda: "called back"}, lambda: self.lost.append("caller"))
        self.callee = ControlConnection(
            {"add": lambda one, other: one + other, "slow": lambda: self.slow, "fail": self.fail_call, "ask": self.ask},
            lambda: self.lost.append("callee"),
        )
        self.transports = []
        for end in (self.caller, self.callee):
            transport = StringTransport()
            end.makeConnection(transport)
            self.transports.append(transport)

    def fail_call(self) -> None:
        """Fail."""
        raise ValueError("it is wrong")

    def ask(self) -> Any:
        """Call the caller."""
        return self.callee.call("back")

    def pump(self) -> None:
        """Deliver all messages."""
        while any(transport.value() for transport in self.transports):
            for transport, receiver in zip(self.transports, (self.callee, self.caller), strict=True):
                data = transport.value()
                transport.clear()
                receiver.dataReceived(data)

    def test_call(self) -> None:
        """A call returns the result of the function at the other end."""
        result = self.caller.call("add", 1, 2)
        self.pump()
        self.assertEqual(self.successResultOf(result), 3)

    def test_awaited(self) -> None:
        """The result may be awaited; other calls do not wait for it."""
        slow, quick = self.caller.call("slow"), self.caller.call("add", "a", "b")
        self.pump()
        self.assertEqual(self.successResultOf(quick), "ab")
        self.assertNoResult(slow)
        self.slow.callback("late")
        self.pump()
        self.assertEqual(self.successResultOf(slow), "late")

    def test_both_directions(self) -> None:
        """A function may call the other end."""
        result = self.caller.call("ask")
        self.pump()
        self.assertEqual(self.successResultOf(result), "called back")

    def test_failure(self) -> None:
        """A failure is logged where it happens, and is an error of the call."""
        result = self.caller.call("fail")
        self.pump()
        self.assertEqual(str(self.failureResultOf(result, ControlError).value), "it is wrong")
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)

    def test_lost(self) -> None:
        """The end of the connection is reported, and fails calls that have no result, and later ones."""
        result = self.caller.call("slow")
        self.caller.connected = 0
        self.caller.connectionLost(Failure(ConnectionDone()))
        self.failureResultOf(result, ControlError)
        self.failureResultOf(self.caller.call("add", 1, 2), ControlError)
        self.assertEqual(self.lost, ["caller"])

    def test_too_long(self) -> None:
        """A message that exceeds the limit ends the connection."""
        self.callee.dataReceived(b"\xff\xff\xff\xff")
        self.assertTrue(self.transports[1].disconnecting)

    def test_factory(self) -> None:
        """The factory returns the connection."""
        self.assertIs(SingleConnectionFactory(self.caller).buildProtocol(None), self.caller)
