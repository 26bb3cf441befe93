"""Tests for L{kubetwist.streams.tunnel}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.streams.handshakes import check_handshake
from kubetwist.streams.tunnel import Tunnel, tunneled_protocols
from kubetwist.streams.websocket import WebSocketConnection

from .wires import FULL, Wire, pump

ASKED = {
    b"connection": [b"Upgrade"],
    b"upgrade": [b"websocket"],
    b"sec-websocket-key": [b"dGhlIHNhbXBsZSBub25jZQ=="],
    b"sec-websocket-version": [b"13"],
    b"sec-websocket-protocol": [b"SPDY/3.1+portforward.k8s.io, v5.channel.k8s.io, SPDY/3.1+v2.portforward.k8s.io"],
}


class _Backend:
    """A peer that records received bytes and sends any bytes."""

    def __init__(self) -> None:
        self.got = b""
        self.disconnected = False

    def makeConnection(self, transport: Any) -> None:
        self.transport = transport

    def dataReceived(self, data: bytes) -> None:
        self.got += data

    def connectionLost(self, reason: Any) -> None:
        self.disconnected = True


class _Run:
    """A tunnel between a client and a backend."""

    def __init__(self, *, protocol: bytes | None = b"portforward.k8s.io", upgrade: bytes = b"SPDY/3.1") -> None:
        self.clock = Clock()
        self.wires: list[Wire] = []
        self.fields = ASKED
        self.site = SimpleNamespace(reactor=self.clock)
        self.head: list[tuple[bytes, bytes]] = []
        self.texts: list[tuple[int, str]] = []
        self.messages: list[bytes] = []
        self.ends: list[bool] = []
        self.aborted = False
        self.code = 200
        self.counted: list[int] = []
        self.switched = True
        self.answered = [(b"connection", b"Upgrade"), (b"upgrade", upgrade)]
        if protocol is not None:
            self.answered.append((b"x-stream-protocol-version", protocol))
        self.client = WebSocketConnection(self.clock, self, client=True)
        self.backend = _Backend()
        self.tunnel = Tunnel(self, check_handshake(b"GET", ASKED), self.counted.append)  # type: ignore[arg-type]
        self.over = self.tunnel.upgraded(self, self)  # type: ignore[arg-type]
        self.pump()

    # A request.

    def switch_protocols(self, fields: Any, protocol: Any, end: Any) -> bool:
        self.head = list(fields)
        self.code = 101
        self.end = end
        self.wires.append(Wire(protocol, self.client))
        return True

    def respond_text(self, code: int, text: str) -> None:
        self.texts.append((code, text))
        self.code = code

    # An answer.

    def field(self, name: bytes) -> bytes | None:
        return dict(self.answered).get(name)

    def abort(self) -> None:
        self.aborted = True

    def hijack(self, protocol: Any) -> None:
        self.wires.append(Wire(protocol, self.backend))

    # A client.

    def message_received(self, data: bytes, finished: bool) -> None:
        self.messages.append(data)

    def closed(self, clean: bool) -> None:
        self.ends.append(clean)

    def pump(self, size: int = 1 << 16) -> None:
        pump(self.clock, *self.wires, size=size)


class TunnelRequestTests(SynchronousTestCase):
    """Requests of tunnels."""

    def test_tunneled(self) -> None:
        """Only subprotocols with the prefix and suffix of tunnels are tunneled."""
        self.assertEqual(["portforward.k8s.io", "v2.portforward.k8s.io"], tunneled_protocols(ASKED))
        self.assertEqual([], tunneled_protocols({}))
        self.assertEqual([], tunneled_protocols({b"sec-websocket-protocol": [b"SPDY/3.1+other, x.k8s.io"]}))

    def test_fields(self) -> None:
        """The backend receives an upgrade request to SPDY without WebSocket headers."""
        run = _Run()
        fields = [(name, value) for name, values in ASKED.items() for value in values]
        self.assertEqual(b"POST", run.tunnel.method)
        self.assertEqual(
            [
                (b"x-forwarded-for", b"192.0.2.1"),
                (b"Connection", b"Upgrade"),
                (b"Upgrade", b"SPDY/3.1"),
                (b"X-Stream-Protocol-Version", b"portforward.k8s.io"),
                (b"X-Stream-Protocol-Version", b"v2.portforward.k8s.io"),
            ],
            run.tunnel.fields([*fields, (b"x-stream-protocol-version", b"odd"), (b"x-forwarded-for", b"192.0.2.1")]),
        )

    def test_chosen(self) -> None:
        """The response names the protocol that the backend selected, if the client requested it."""
        self.assertIn((b"Sec-WebSocket-Protocol", b"SPDY/3.1+portforward.k8s.io"), _Run().head)
        self.assertEqual([101], _Run().counted)
        for other in (b"odd.k8s.io", None):
            self.assertNotIn(b"Sec-WebSocket-Protocol", dict(_Run(protocol=other).head))

    def test_other_protocol_CVE_2018_1002105(self) -> None:
        """A response of the backend with another protocol fails the request."""
        run = _Run(upgrade=b"websocket")
        self.assertEqual([(500, "unable to upgrade: missing upgrade headers in response\n")], run.texts)
        self.assertTrue(run.aborted)
        self.assertEqual([500], run.counted)
        self.assertEqual([], run.wires)
        self.assertIsNone(self.successResultOf(run.over))

    def test_client_disconnected(self) -> None:
        """The backend's connection is closed if the client disconnected before its response."""
        switch, _Run.switch_protocols = _Run.switch_protocols, lambda *_: False  # type: ignore[assignment]
        self.addCleanup(setattr, _Run, "switch_protocols", switch)
        run = _Run()
        self.assertTrue(run.aborted)
        self.assertIsNone(self.successResultOf(run.over))


class TunnelTests(SynchronousTestCase):
    """Forwarded data."""

    @given(st.lists(st.binary(min_size=1, max_size=500), max_size=5), st.integers(1, 200))
    def test_both_ways(self, pieces: list[bytes], size: int) -> None:
        """Bytes are forwarded unchanged in both directions, however they are split."""
        run = _Run()
        for piece in pieces:
            run.client.send(piece)
            run.backend.transport.write(piece[::-1])
        run.pump(size)
        self.assertEqual(b"".join(pieces), run.backend.got)
        self.assertEqual(b"".join(piece[::-1] for piece in pieces), b"".join(run.messages))

    def test_backend_ends(self) -> None:
        """The end of the backend's connection sends a close frame to the client after all data."""
        run = _Run()
        run.backend.transport.write(b"last")
        run.backend.transport.loseConnection()
        run.pump()
        self.assertEqual(([b"last"], [True]), (run.messages, run.ends))
        self.assertIsNone(self.successResultOf(run.over))
        self.assertEqual([], run.clock.getDelayedCalls())

    def test_client_ends(self) -> None:
        """A close frame of the client closes the backend's connection after all data."""
        for leave in (lambda run: run.client.close(), lambda run: run.wires[0].second.loseConnection()):
            run = _Run()
            run.client.send(b"last")
            leave(run)
            run.pump()
            self.assertEqual((b"last", True), (run.backend.got, run.backend.disconnected))
            self.assertIsNone(self.successResultOf(run.over))
            self.assertEqual([], run.clock.getDelayedCalls())

    def test_stop(self) -> None:
        """Stopping the server closes both connections."""
        run = _Run()
        run.end()
        run.pump()
        self.assertTrue(run.backend.disconnected and run.wires[0].first.disconnected)
        self.assertIsNone(self.successResultOf(run.over))
        self.assertEqual([], run.clock.getDelayedCalls())

    def test_slow_client(self) -> None:
        """A client that does not read pauses reading from the backend; no data is lost."""
        run = _Run()
        run.wires[0].second.reading = False
        for _ in range(100):
            run.backend.transport.write(b"x" * 10_000)
            run.pump()
        self.assertLess(run.wires[0].first.most_waiting, FULL + (1 << 17))
        self.assertGreater(len(run.wires[1].second.waiting), 500_000)
        run.backend.transport.loseConnection()
        run.wires[0].second.reading = True
        run.pump()
        self.assertEqual((1_000_000, [True]), (sum(map(len, run.messages)), run.ends))

    def test_slow_backend(self) -> None:
        """A backend that does not read pauses reading from the client; no data is lost."""
        run = _Run()
        run.wires[1].second.reading = False
        for _ in range(100):
            run.client.send(b"x" * 10_000)
            run.pump()
        self.assertLess(run.wires[1].first.most_waiting, FULL + (1 << 17))
        self.assertGreater(len(run.wires[0].second.waiting), 500_000)
        run.wires[1].second.reading = True
        run.pump()
        self.assertEqual(1_000_000, len(run.backend.got))

    def test_client_lost_while_slow(self) -> None:
        """The loss of a client that does not read closes both connections."""
        run = _Run()
        run.wires[0].second.reading = False
        for _ in range(30):
            run.backend.transport.write(b"x" * 10_000)
            run.pump()
        run.wires[0].second.abortConnection()
        run.pump()
        self.assertTrue(run.backend.disconnected)
        self.assertIsNone(self.successResultOf(run.over))

    def test_backend_lost_while_slow(self) -> None:
        """The loss of the backend is reported to a client that did not read before."""
        run = _Run()
        run.wires[1].second.reading = False
        for _ in range(30):
            run.client.send(b"x" * 10_000)
            run.pump()
        run.wires[1].second.abortConnection()
        run.pump()
        self.assertEqual([True], run.ends)
        self.assertIsNone(self.successResultOf(run.over))

    def test_garbage(self) -> None:
        """Invalid frames of a client close both connections."""
        run = _Run()
        run.wires[0].second.write(b"GET / HTTP/1.1\r\n\r\n")
        run.pump()
        self.assertTrue(run.backend.disconnected and run.wires[0].first.disconnected)
        self.assertIsNone(self.successResultOf(run.over))
