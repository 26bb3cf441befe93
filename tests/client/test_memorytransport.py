"""Tests for L{kubetwist.client.memorytransport}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.memorytransport import connect_in_memory
from tests.wires import Wire


class Producer:
    """A push producer that records its calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def pauseProducing(self) -> None:
        """Record the call."""
        self.calls.append("pause")

    def resumeProducing(self) -> None:
        """Record the call."""
        self.calls.append("resume")

    def stopProducing(self) -> None:
        """Record the call."""
        self.calls.append("stop")


class MemoryTransportTests(SynchronousTestCase):
    """L{connect_in_memory}."""

    def setUp(self) -> None:
        """Connect two protocols."""
        self.clock = Clock()
        self.client, self.server = Wire(), Wire()
        connect_in_memory(self.clock, self.client, self.server, ("10.0.0.1", 80))

    def run_calls(self) -> None:
        """Run the delayed calls."""
        while self.clock.getDelayedCalls():
            self.clock.advance(0)

    def test_addresses(self) -> None:
        """Each end knows the address of the other one."""
        self.assertEqual(self.client.transport.getPeer().host, "10.0.0.1")
        self.assertEqual(self.client.transport.getPeer(), self.server.transport.getHost())

    @given(st.lists(st.binary(max_size=5)), st.lists(st.binary(max_size=5)))
    def test_data(self, there: list[bytes], back: list[bytes]) -> None:
        """Data arrive in order, in both directions, and before the end."""
        self.setUp()
        for piece in there:
            self.client.transport.write(piece)
        self.server.transport.writeSequence(back)
        self.assertEqual(self.server.data, b"")
        self.run_calls()
        self.assertEqual((bytes(self.server.data), bytes(self.client.data)), (b"".join(there), b"".join(back)))
        self.server.transport.write(b"last")
        self.server.transport.loseConnection()
        self.server.transport.write(b"dropped")
        self.run_calls()
        self.assertTrue(self.client.data.endswith(b"last"))
        for end in (self.client, self.server):
            assert end.lost is not None
            end.lost.trap(ConnectionDone)

    def test_abort(self) -> None:
        """An abort ends both sides at once, without the unread data."""
        producer = Producer()
        self.server.transport.registerProducer(producer, True)
        self.client.transport.write(b"lost")
        self.client.transport.abortConnection()
        self.run_calls()
        self.assertEqual(self.server.data, b"")
        assert self.client.lost is not None and self.server.lost is not None
        self.client.lost.trap(ConnectionAborted)
        self.server.lost.trap(ConnectionLost)
        self.assertEqual(producer.calls, ["stop"])
        late = Producer()
        self.server.transport.registerProducer(late, True)
        self.assertEqual(late.calls, ["stop"])

    def test_backpressure(self) -> None:
        """A push producer is paused while the other side does not read."""
        producer = Producer()
        self.client.transport.registerProducer(producer, True)
        self.server.transport.pauseProducing()
        for _ in range(5):
            self.client.transport.write(b"x" * 100_000)
        self.run_calls()
        self.assertEqual((producer.calls, self.server.data), (["pause"], b""))
        self.server.transport.resumeProducing()
        self.run_calls()
        self.assertEqual((producer.calls, len(self.server.data)), (["pause", "resume"], 500_000))
        self.client.transport.loseConnection()
        self.run_calls()
        self.assertIsNone(self.client.lost)
        self.client.transport.unregisterProducer()
        self.run_calls()
        self.assertIsNotNone(self.client.lost)

    def test_pull_producer(self) -> None:
        """A pull producer is asked for more after each delivery."""
        producer: Any = Producer()
        self.client.transport.registerProducer(producer, False)
        self.assertEqual(producer.calls, ["resume"])
        self.client.transport.write(b"x")
        self.run_calls()
        self.assertEqual(producer.calls, ["resume", "resume"])

    def test_one_producer(self) -> None:
        """A second producer is refused."""
        self.client.transport.registerProducer(Producer(), True)
        self.assertRaises(RuntimeError, self.client.transport.registerProducer, StringTransport(), True)
