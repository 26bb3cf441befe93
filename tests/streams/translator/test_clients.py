"""Tests for L{kubetwist.streams.translator}: disconnecting and slow clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.streams.kubeletserver import Session
from kubetwist.streams.translator import IDLE_TIMEOUT, StreamTranslator
from tests.streams.translator.runs import ALL, _Run, running
from tests.streams.wires import FULL

#: What can happen to a command, in any order.
ACTIONS: dict[str, Callable[[_Run], object]] = {
    "answers": lambda run: run.ready(),
    "input": lambda run: run.client.send(b"\0" + b"x" * 30_000),
    "end of input": lambda run: run.client.send(b"\xff\0"),
    "nonsense": lambda run: run.client.send(b"\xff\x09"),
    "client closes": lambda run: run.client.close(),
    "client leaves": lambda run: run.front.second.loseConnection(),
    "client is lost": lambda run: run.front.second.abortConnection(),
    "client is slow": lambda run: setattr(run.front.second, "reading", False),
    "client reads": lambda run: setattr(run.front.second, "reading", True),
    "output": lambda run: [session.write(b"y" * 30_000) for session in run.sessions],
    "exits": lambda run: [session.exit(3) for session in run.sessions],
    "kubelet closes": lambda run: [wire.second.loseConnection() for wire in run.wires[1:]],
    "kubelet is lost": lambda run: [wire.second.abortConnection() for wire in run.wires[1:]],
    "kubelet is slow": lambda run: [setattr(wire.second, "reading", False) for wire in run.wires[1:]],
    "kubelet reads": lambda run: [setattr(wire.second, "reading", True) for wire in run.wires[1:]],
    "a piece arrives": lambda run: [end.move(100) for wire in run.wires for end in (wire.first, wire.second)],
    "all arrives": lambda run: run.pump(),
    "the server stops": lambda run: run.translator.stop(),
}


class DisconnectTests(SynchronousTestCase):
    """Disconnecting clients."""

    def record_input(self, run: _Run) -> list[Any]:
        """Record the input and the disconnection that the kubelet receives."""
        received: list[Any] = []
        run.session.on_stdin = received.append
        run.session.on_connection_lost = lambda: received.append("lost")
        return received

    def test_disconnect(self) -> None:
        """Disconnecting the client closes the kubelet's connection after the received input is forwarded."""
        for leave in (lambda run: run.client.close(), lambda run: run.front.second.loseConnection()):
            run = running()
            received = self.record_input(run)
            run.client.send(b"\0last")
            leave(run)
            run.pump()
            self.assertEqual([b"last", None, "lost"], received)
            self.assertEqual(200, self.successResultOf(run.done))
            self.assertEqual([], run.clock.getDelayedCalls())

    def test_disconnect_early(self) -> None:
        """Disconnecting the client before the kubelet responds cancels the request."""
        cancelled: list[bool] = []
        run = _Run()
        run.answer = Deferred(lambda _: cancelled.append(True))
        run.begin()
        run.client.send(b"\0x")
        run.pump()
        run.front.second.abortConnection()
        self.assertEqual([True], cancelled)
        self.assertEqual(200, self.successResultOf(run.done))
        self.assertEqual([], run.clock.getDelayedCalls())

    def test_early_input_and_disconnect(self) -> None:
        """Input and disconnection before the kubelet's streams are open are forwarded when they are open."""
        for last in (lambda run: run.client.close(), lambda run: run.client.send(b"\xff\x09")):
            run = _Run()
            run.answer = Deferred()
            run.begin()
            run.client.send(b"\0early")
            last(run)
            run.pump()
            received: list[Any] = []

            def start(session: Session, received: list[Any] = received) -> None:
                session.on_stdin = received.append
                session.on_connection_lost = lambda: received.append("lost")

            run.on_start = start
            run.answer.callback(run.kubelet())
            run.pump()
            self.assertEqual([b"early", None], [one for one in received if one != "lost"])
            self.assertTrue(run.wires[1].first.disconnected and run.wires[1].second.disconnected)
            self.assertEqual(200, self.successResultOf(run.done))
            self.assertEqual([], run.clock.getDelayedCalls())

    def test_disconnected_before(self) -> None:
        """No command runs for a client that has disconnected already."""
        run = _Run()
        run.front.second.abortConnection()
        run.begin()
        self.assertEqual(200, self.successResultOf(run.done))
        self.assertEqual([], run.calls)
        self.assertEqual([], run.clock.getDelayedCalls())

    def test_cancelled(self) -> None:
        """Cancelling the wait for a command ends it."""
        run = running()
        received = self.record_input(run)
        run.done.cancel()
        run.pump()
        self.assertEqual([None, "lost"], received)
        self.assertEqual([True], run.ends)

    def test_stop(self) -> None:
        """Stopping the server closes both connections immediately."""
        run = running()
        received = self.record_input(run)
        run.translator.stop()
        run.pump()
        self.assertEqual([None, "lost"], received)
        self.assertTrue(run.front.first.disconnected)
        self.assertEqual(200, self.successResultOf(run.done))
        self.assertEqual([], run.clock.getDelayedCalls())

    def test_never_begun(self) -> None:
        """A command whose client has received its status is released."""
        clock = Clock()
        StreamTranslator(clock, ALL).stop()
        self.assertEqual([], clock.getDelayedCalls())

    def test_stop_late(self) -> None:
        """A client that has not answered the close frame does not delay the stop of the server."""
        run = running()
        run.front.second.reading = False
        run.session.exit(0)
        run.pump()
        self.assertFalse(run.front.first.disconnected)
        run.translator.stop()
        run.front.second.reading = True
        run.pump()
        self.assertTrue(run.front.first.disconnected)
        self.assertEqual([], run.clock.getDelayedCalls())

    def test_idle(self) -> None:
        """A command without data for hours is ended; pings do not count."""
        run = running()
        received = self.record_input(run)
        for _ in range(3):
            run.clock.advance(IDLE_TIMEOUT / 2)
            run.send(0, b"x")
        del received[:]
        for _ in range(100):
            run.clock.advance(IDLE_TIMEOUT / 100)
            run.client.ping()
            run.pump()
        self.assertEqual([None, "lost"], received)
        self.assertTrue(run.front.first.disconnected)


class AnyOrderTests(SynchronousTestCase):
    """Events in any order."""

    @settings(max_examples=300, deadline=None)
    @given(st.lists(st.sampled_from(sorted(ACTIONS)), max_size=25))
    def test_nothing_remains(self, actions: list[str]) -> None:
        """After any order of events, no connection or timer remains when the client or the kubelet has disconnected."""
        run = _Run()
        run.answer = Deferred()
        run.begin()
        for action in actions:
            ACTIONS[action](run)
        for name in ("answers", "client reads", "kubelet reads", "all arrives", "kubelet is lost", "all arrives"):
            ACTIONS[name](run)
        self.assertIn(self.successResultOf(run.done), (200, 500))
        ACTIONS["client leaves"](run)
        run.pump()
        for wire in run.wires:
            self.assertTrue(wire.first.disconnected and wire.second.disconnected)
        self.assertEqual([], run.clock.getDelayedCalls())


class BackpressureTests(SynchronousTestCase):
    """Backpressure."""

    def flood(self, write: Callable[[bytes], None], write_paused: Callable[[], bool], run: _Run) -> int:
        """Write until writing is paused; return the number of bytes."""
        written = 0
        while not write_paused():
            write(b"x" * 10_000)
            written += 10_000
            run.pump()
            self.assertLess(written, 10_000_000)
        return written

    def test_slow_client(self) -> None:
        """A client that does not read pauses the command; buffered data is limited, and no data is lost."""
        run = running()
        run.front.second.reading = False
        reported: list[bool] = []
        run.session.on_backpressure = reported.append
        written = self.flood(run.session.write, lambda: bool(reported), run)
        self.assertLess(run.front.first.most_waiting, FULL + (1 << 17))
        run.session.exit(0)
        run.pump()
        run.front.second.reading = True
        run.pump()
        self.assertEqual([True, False], reported)
        self.assertEqual(written, len(run.channel(1)))
        self.assertEqual("Success", run.status()["status"])

    def test_slow_command(self) -> None:
        """A command that does not read pauses its client; buffered data is limited, and no data is lost."""
        run = running()
        got: list[int] = []
        run.session.on_stdin = lambda data: got.append(len(data or b""))
        run.wires[1].second.reading = False
        written = self.flood(lambda data: run.client.send(b"\0" + data), lambda: run.client.write_paused, run)
        self.assertLess(run.wires[1].first.most_waiting, FULL + (1 << 17))
        run.wires[1].second.reading = True
        run.pump()
        self.assertFalse(run.client.write_paused)
        self.assertEqual(written, sum(got))
        run.translator.stop()

    def test_slow_client_of_a_lost_kubelet(self) -> None:
        """A slow client receives all data that arrived before its kubelet was lost."""
        run = running()
        run.front.second.reading = False
        reported: list[bool] = []
        run.session.on_backpressure = reported.append
        self.flood(run.session.write, lambda: bool(reported), run)
        run.wires[1].second.abortConnection()
        run.pump()
        run.front.second.reading = True
        run.pump()
        self.assertGreater(len(run.channel(1)), FULL)
        self.assertIn("unexpected EOF", run.status()["message"])

    def test_disconnect_while_command_is_slow(self) -> None:
        """Disconnecting the client while its command does not read closes both connections."""
        run = running()
        run.wires[1].second.reading = False
        self.flood(lambda data: run.client.send(b"\0" + data), lambda: run.client.write_paused, run)
        run.front.second.abortConnection()
        run.wires[1].second.reading = True
        run.pump()
        self.assertTrue(run.wires[1].first.disconnected)
        self.assertEqual(200, self.successResultOf(run.done))
        self.assertEqual([], run.clock.getDelayedCalls())
