"""Commands whose clients speak WebSocket, and whose kubelets speak SPDY."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.errors import Unreachable
from kubetwist.streams.channels import V1, V2, V3, V4
from kubetwist.streams.commands import SUCCESS, Command, encode_size, exit_status
from kubetwist.streams.spdy import OPEN_TIMEOUT
from kubetwist.streams.translator import IDLE_TIMEOUT, Translator
from kubetwist.streams.websocket import WebSocketConnection

from .serving import Session, spdy_head, spdy_session
from .wires import FULL, Wire, pump

TARGET = b"/exec/default/web/main?command=sh"
ALL = Command(stdin=True, stdout=True, stderr=True)


class _Answer:
    """A kubelet's answer."""

    def __init__(self, code: int = 101, fields: Sequence[tuple[bytes, bytes]] = (), body: bytes | Exception = b""):
        self.code = code
        self.switched = code == 101
        self.fields = [(name.lower(), value) for name, value in fields]
        self.body = body
        self.aborted = False
        self.taken: list[Any] = []

    def field(self, name: bytes) -> bytes | None:
        return next((value for one, value in self.fields if one == name), None)

    def abort(self) -> None:
        self.aborted = True

    async def collect(self, limit: int) -> bytes:
        if isinstance(self.body, Exception):
            raise self.body
        return self.body

    def take_over(self, protocol: Any) -> None:
        self.taken.append(protocol)


class _Run:
    """A command that runs: a client, what is between, and a kubelet."""

    def __init__(self, command: Command = ALL, version: str | None = V4) -> None:
        self.clock = Clock()
        self.command = command
        self.version = version
        self.calls: list[tuple[bytes, bytes, list[tuple[bytes, bytes]]]] = []
        self.sessions: list[Session] = []
        self.wires: list[Wire] = []
        self.messages: list[bytes] = []
        self.ends: list[bool] = []
        self.answer: Any = None
        self.on_start: Callable[[Session], object] = lambda session: None
        self.settings = SimpleNamespace(url="https://10.0.0.1:10250/")
        self.translator = Translator(self.clock, command)
        self.client = WebSocketConnection(self.clock, self, client=True)
        self.front = Wire(self.translator.websocket, self.client)
        self.wires.append(self.front)
        self.done: Any = None

    # The client's ears.

    def message_received(self, data: bytes, finished: bool) -> None:
        if self.messages and self.partial:
            self.messages[-1] += data
        else:
            self.messages.append(data)
        self.partial = not finished

    partial = False

    def closed(self, clean: bool) -> None:
        self.ends.append(clean)

    # The way to the kubelet.

    async def upgrade(self, method: bytes, target: bytes, fields: list[tuple[bytes, bytes]]) -> Any:
        self.calls.append((method, target, fields))
        if isinstance(self.answer, Exception):
            raise self.answer
        if isinstance(self.answer, Deferred):
            return await self.answer
        return self.answer if self.answer is not None else self.kubelet()

    def kubelet(self) -> Any:
        """The answer of a kubelet that runs the command."""
        version = self.version
        head = spdy_head(version or "")[: None if version else 2]
        answer = _Answer(101, head)
        backend = spdy_session(self.command, version or V1, self.start, self.clock)
        answer.take_over = lambda protocol: self.wires.append(Wire(protocol, backend))  # type: ignore[method-assign]
        return answer

    def ready(self) -> None:
        """The kubelet answers, if it was not before."""
        if isinstance(self.answer, Deferred) and not self.answer.called:
            self.answer.callback(self.kubelet())

    def start(self, session: Session) -> None:
        self.sessions.append(session)
        self.on_start(session)

    # What tests do.

    def begin(self) -> None:
        self.done = Deferred.fromCoroutine(self.translator.run(self, TARGET, [(b"x-more", b"1")]))  # type: ignore[arg-type]
        self.pump()

    def pump(self, size: int = 1 << 16) -> None:
        pump(self.clock, *self.wires, size=size)

    def send(self, channel: int, data: bytes) -> None:
        self.client.send(bytes((channel,)) + data)
        self.pump()

    @property
    def session(self) -> Session:
        (session,) = self.sessions
        return session

    def channel(self, number: int) -> bytes:
        """All that the client was sent on a channel."""
        return b"".join(message[1:] for message in self.messages if message[0] == number)

    def status(self) -> dict[str, Any]:
        """How the command ended, for its client."""
        status: dict[str, Any] = json.loads(self.channel(3))
        return status


def running(command: Command = ALL, version: str | None = V4) -> _Run:
    """A command that has begun."""
    run = _Run(command, version)
    run.begin()
    return run


class Streams(SynchronousTestCase):
    """What goes through."""

    def test_call(self) -> None:
        """The kubelet is asked for SPDY with a POST, and for the newest version that it knows."""
        run = running()
        ((method, target, fields),) = run.calls
        self.assertEqual((b"POST", TARGET), (method, target))
        self.assertEqual(
            [
                (b"x-more", b"1"),
                (b"Connection", b"Upgrade"),
                (b"Upgrade", b"SPDY/3.1"),
                (b"X-Stream-Protocol-Version", b"v5.channel.k8s.io"),
                (b"X-Stream-Protocol-Version", b"v4.channel.k8s.io"),
                (b"X-Stream-Protocol-Version", b"v3.channel.k8s.io"),
                (b"X-Stream-Protocol-Version", b"v2.channel.k8s.io"),
                (b"X-Stream-Protocol-Version", b"channel.k8s.io"),
            ],
            fields,
        )

    def test_first_message(self) -> None:
        """The client is told by an empty message that its connection is one to a command."""
        for command, message in [(ALL, b"\1"), (Command(stderr=True), b"\2"), (Command(), b"\3")]:
            run = running(command)
            self.assertEqual([message], run.messages)
            run.translator.stop()

    def test_output(self) -> None:
        """What a command writes comes to its client, then how it ended, and then the end."""
        run = running()
        run.session.write(b"out")
        run.session.write(b"err", "stderr")
        run.session.exit(0)
        run.pump()
        self.assertEqual([b"\1", b"\1out", b"\2err", b"\3" + SUCCESS], run.messages)
        self.assertEqual([True], run.ends)
        self.assertEqual(200, self.successResultOf(run.done))
        self.assertEqual([], run.clock.getDelayedCalls())

    def test_exit_code(self) -> None:
        """The exit code of a command comes to its client."""
        run = running()
        run.session.exit(7)
        run.pump()
        self.assertEqual([b"\1", b"\3" + exit_status(7)], run.messages)

    def test_input(self) -> None:
        """What a client sends comes to the command, and that it sends no more."""
        run = running()
        got: list[bytes | None] = []
        run.session.on_stdin = got.append
        run.send(0, b"in")
        run.send(0, b"put")
        run.send(255, b"\0")
        run.send(0, b"too late")
        self.assertEqual([b"in", b"put", None], got)
        run.session.exit(0)
        run.pump()
        self.assertEqual("Success", run.status()["status"])

    @given(st.lists(st.binary(min_size=1, max_size=2000), max_size=5), st.integers(1, 500))
    def test_any_cut(self, pieces: list[bytes], size: int) -> None:
        """Bytes come to the other side as they were, both ways, however they are cut."""
        run = running()
        got: list[bytes] = []
        run.session.on_stdin = lambda data: got.append(data or b"")
        for piece in pieces:
            run.client.send(b"\0" + piece)
            run.session.write(piece[::-1])
        run.pump(size)
        self.assertEqual(b"".join(pieces), b"".join(got))
        self.assertEqual(b"".join(piece[::-1] for piece in pieces), run.channel(1))
        run.translator.stop()

    def test_early_input(self) -> None:
        """What a client sends before the kubelet is ready waits for it."""
        run = _Run()
        run.answer = Deferred()
        run.begin()
        run.send(0, b"early")
        run.send(255, b"\0")
        answer = run.kubelet()
        got: list[bytes | None] = []
        run.on_start = lambda session: setattr(session, "on_stdin", got.append)
        run.answer.callback(answer)
        run.pump()
        self.assertEqual([b"early", None], got)
        run.translator.stop()

    def test_terminal(self) -> None:
        """The size of a client's terminal comes to the command; there is no second output then."""
        run = running(Command(True, True, True, True))
        sizes: list[tuple[int, int]] = []
        run.session.on_resize = lambda *size: sizes.append(size)
        run.send(4, b'{"Width":80,"Hei')
        run.send(4, b'ght":24}')
        run.send(4, encode_size(132, 50))
        run.send(4, b"nonsense")
        run.send(4, encode_size(1, 1))
        self.assertEqual([(80, 24), (132, 50)], sizes)
        run.translator.stop()

    def test_no_terminal(self) -> None:
        """Sizes without a terminal, and input that is not wanted, go nowhere."""
        run = running(Command(stdout=True))
        run.send(4, encode_size(132, 50))
        run.send(0, b"input")
        run.send(255, b"\0")
        run.send(255, b"\4")
        run.send(9, b"what")
        run.session.exit(0)
        run.pump()
        self.assertEqual("Success", run.status()["status"])

    def test_bad_message(self) -> None:
        """A client that closes what does not exist loses its connection, and its command."""
        run = running()
        gone: list[bool] = []
        run.session.on_gone = lambda: gone.append(True)
        run.send(255, b"\x09")
        self.assertEqual(([True], [True]), (gone, run.ends))

    def test_input_not_taken(self) -> None:
        """A command that ends its input does not end."""
        run = running()
        got: list[bytes | None] = []
        run.session.on_stdin = got.append
        backend = run.wires[1].second.protocol
        stdin = next(one for one in backend._streams.values() if one.header("streamtype") == "stdin")
        stdin.finish()
        run.pump()
        self.assertEqual([None], got)
        run.session.write(b"still here")
        run.pump()
        self.assertEqual(b"still here", run.channel(1))
        run.translator.stop()


class Kubelets(SynchronousTestCase):
    """Kubelets old and broken."""

    def ended(self, answer: Any) -> str:
        """The message of a command that could not be run."""
        run = _Run()
        run.answer = answer
        run.begin()
        self.assertEqual(500, self.successResultOf(run.done))
        self.assertEqual([True], run.ends)
        status = run.status()
        self.assertEqual((500, "InternalError"), (status["code"], status["reason"]))
        return str(status["details"]["causes"][0]["message"])

    def test_old_versions(self) -> None:
        """Kubelets that speak an old version serve as well."""
        for version in (V3, V2, V1, None):
            run = running(ALL, version)
            run.session.write(b"out")
            run.session.exit(0)
            run.pump()
            self.assertEqual([b"\1", b"\1out", b"\3" + SUCCESS], run.messages)
            run = running(ALL, version)
            run.session.exit(3)
            run.pump()
            self.assertIn("xecuting remote command: command terminated with exit code 3", run.status()["message"])

    def test_unreachable(self) -> None:
        """A kubelet that can not be reached is told of as the reference does."""
        self.assertEqual(
            'error sending request: Post "https://10.0.0.1:10250/exec/default/web/main?command=sh": '
            "dial tcp 10.0.0.1:10250: connect: connection refused",
            self.ended(Unreachable("dial tcp 10.0.0.1:10250: connect: connection refused")),
        )

    def test_refused(self) -> None:
        """What a kubelet says against an upgrade comes to the client."""
        self.assertEqual(
            "unable to upgrade connection: container not found", self.ended(_Answer(404, (), b"container not found\n"))
        )
        self.assertEqual(
            "unable to upgrade connection: unable to read error from server response",
            self.ended(_Answer(500, (), Unreachable("unexpected EOF"))),
        )

    def test_refused_with_status(self) -> None:
        """A Status of a kubelet is passed on."""
        run = _Run()
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": "no",
            "reason": "X",
            "code": 403,
        }
        run.answer = _Answer(403, (), json.dumps(status).encode())
        run.begin()
        self.assertEqual(
            {"metadata": {}, "status": "Failure", "message": "no", "reason": "X", "code": 403}, run.status()
        )

    def test_redirect_CVE_2020_8559(self) -> None:
        """A redirect of a kubelet is followed by nobody."""
        answer = _Answer(302, [(b"Location", b"https://elsewhere/")])
        self.assertIn("redirect not allowed", self.ended(answer))
        self.assertTrue(answer.aborted)

    def test_other_protocol_CVE_2018_1002105(self) -> None:
        """A kubelet that switches to something else is not spoken with."""
        answer = _Answer(101, [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")])
        self.assertEqual("unable to upgrade connection: ", self.ended(answer))
        self.assertTrue(answer.aborted)
        self.assertEqual([], answer.taken)

    def test_streams_not_accepted(self) -> None:
        """A kubelet that does not accept streams is given up."""
        run = _Run()
        run.answer = _Answer(101, spdy_head(V4))
        wires = run.wires
        run.answer.take_over = lambda protocol: wires.append(Wire(protocol, _Mute()))
        run.begin()
        self.assertNoResult(run.done)
        for _ in range(int(OPEN_TIMEOUT)):
            run.clock.advance(1)
            run.pump()
        self.assertEqual("Internal error occurred: Timeout occurred", run.status()["message"])
        self.assertTrue(wires[1].first.gone)

    def test_lost(self) -> None:
        """A command whose kubelet is lost has not succeeded, as far as anybody knows."""
        run = running()
        run.session.write(b"half of")
        run.pump()
        run.wires[1].second.abortConnection()
        run.pump()
        self.assertEqual(
            "Internal error occurred: error reading from error stream: unexpected EOF", run.status()["message"]
        )
        self.assertEqual([True], run.ends)

    def test_ends_without_status(self) -> None:
        """A kubelet that ends its streams and says nothing of an error means success, as in the reference."""
        run = running()
        run.session.end_without_status()
        run.pump()
        self.assertEqual("Success", run.status()["status"])

    def test_long_status(self) -> None:
        """What a kubelet says of the end has a limit."""
        run = running()
        for _ in range(100):
            run.session._send("error", b"x" * 50_000)
        run.session.end_without_status()
        run.pump()
        self.assertIn("error stream protocol error: invalid character 'x'", run.status()["message"])
        self.assertLess(len(run.channel(3)), 3 << 20)


class _Mute:
    """A kubelet that takes everything and says nothing."""

    def makeConnection(self, transport: Any) -> None:
        pass

    def dataReceived(self, data: bytes) -> None:
        pass

    def connectionLost(self, reason: Any) -> None:
        pass


class Clients(SynchronousTestCase):
    """Clients that go."""

    def gone(self, run: _Run) -> list[Any]:
        """What the kubelet hears from then on."""
        heard: list[Any] = []
        run.session.on_stdin = heard.append
        run.session.on_gone = lambda: heard.append("gone")
        return heard

    def test_goes(self) -> None:
        """A client that goes takes the kubelet's connection along; what it has sent still goes through."""
        for leave in (lambda run: run.client.close(), lambda run: run.front.second.loseConnection()):
            run = running()
            heard = self.gone(run)
            run.client.send(b"\0last")
            leave(run)
            run.pump()
            self.assertEqual([b"last", None, "gone"], heard)
            self.assertEqual(200, self.successResultOf(run.done))
            self.assertEqual([], run.clock.getDelayedCalls())

    def test_goes_early(self) -> None:
        """A client that goes before the kubelet has answered is not forgotten: the kubelet is not waited for."""
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

    def test_says_goodbye_early(self) -> None:
        """What a client sends and that it goes, both before the kubelet is ready, come to the kubelet when it is."""
        for last in (lambda run: run.client.close(), lambda run: run.client.send(b"\xff\x09")):
            run = _Run()
            run.answer = Deferred()
            run.begin()
            run.client.send(b"\0early")
            last(run)
            run.pump()
            heard: list[Any] = []

            def start(session: Session, heard: list[Any] = heard) -> None:
                session.on_stdin = heard.append
                session.on_gone = lambda: heard.append("gone")

            run.on_start = start
            run.answer.callback(run.kubelet())
            run.pump()
            self.assertEqual([b"early", None], [one for one in heard if one != "gone"])
            self.assertTrue(run.wires[1].first.gone and run.wires[1].second.gone)
            self.assertEqual(200, self.successResultOf(run.done))
            self.assertEqual([], run.clock.getDelayedCalls())

    def test_gone_before(self) -> None:
        """Nothing is run for a client that has gone already."""
        run = _Run()
        run.front.second.abortConnection()
        run.begin()
        self.assertEqual(200, self.successResultOf(run.done))
        self.assertEqual([], run.calls)
        self.assertEqual([], run.clock.getDelayedCalls())

    def test_cancelled(self) -> None:
        """Who gives up waiting for the end of a command ends it."""
        run = running()
        heard = self.gone(run)
        run.done.cancel()
        run.pump()
        self.assertEqual([None, "gone"], heard)
        self.assertEqual([True], run.ends)

    def test_stop(self) -> None:
        """When the server stops, both connections end at once."""
        run = running()
        heard = self.gone(run)
        run.translator.stop()
        run.pump()
        self.assertEqual([None, "gone"], heard)
        self.assertTrue(run.front.first.gone)
        self.assertEqual(200, self.successResultOf(run.done))
        self.assertEqual([], run.clock.getDelayedCalls())

    def test_never_begun(self) -> None:
        """A command whose client was answered already is forgotten."""
        clock = Clock()
        Translator(clock, ALL).stop()
        self.assertEqual([], clock.getDelayedCalls())

    def test_stop_late(self) -> None:
        """A client that has not said goodbye yet does not keep the server from stopping."""
        run = running()
        run.front.second.reading = False
        run.session.exit(0)
        run.pump()
        self.assertFalse(run.front.first.gone)
        run.translator.stop()
        run.front.second.reading = True
        run.pump()
        self.assertTrue(run.front.first.gone)
        self.assertEqual([], run.clock.getDelayedCalls())

    def test_idle(self) -> None:
        """A command with which nothing happens for hours is ended; signs of life do not count."""
        run = running()
        heard = self.gone(run)
        for _ in range(3):
            run.clock.advance(IDLE_TIMEOUT / 2)
            run.send(0, b"x")
        del heard[:]
        for _ in range(100):
            run.clock.advance(IDLE_TIMEOUT / 100)
            run.client.ping()
            run.pump()
        self.assertEqual([None, "gone"], heard)
        self.assertTrue(run.front.first.gone)


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


class Anything(SynchronousTestCase):
    """Things that happen in any order."""

    @settings(max_examples=300, deadline=None)
    @given(st.lists(st.sampled_from(sorted(ACTIONS)), max_size=25))
    def test_nothing_stays(self, actions: list[str]) -> None:
        """Whatever happens to a command, nothing is left when its client, or its kubelet, has gone."""
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
            self.assertTrue(wire.first.gone and wire.second.gone)
        self.assertEqual([], run.clock.getDelayedCalls())


class Pressure(SynchronousTestCase):
    """One side that does not take what the other sends."""

    def flood(self, write: Callable[[bytes], None], full: Callable[[], bool], run: _Run) -> int:
        """Write until there is no more room; how much that was."""
        written = 0
        while not full():
            write(b"x" * 10_000)
            written += 10_000
            run.pump()
            self.assertLess(written, 10_000_000)
        return written

    def test_slow_client(self) -> None:
        """A client that does not read stops the command; what waits in between has a limit, and nothing is lost."""
        run = running()
        run.front.second.reading = False
        told: list[bool] = []
        run.session.on_pressure = told.append
        written = self.flood(run.session.write, lambda: bool(told), run)
        self.assertLess(run.front.first.most_waiting, FULL + (1 << 17))
        run.session.exit(0)
        run.pump()
        run.front.second.reading = True
        run.pump()
        self.assertEqual([True, False], told)
        self.assertEqual(written, len(run.channel(1)))
        self.assertEqual("Success", run.status()["status"])

    def test_slow_command(self) -> None:
        """A command that does not read stops its client; what waits in between has a limit, and nothing is lost."""
        run = running()
        got: list[int] = []
        run.session.on_stdin = lambda data: got.append(len(data or b""))
        run.wires[1].second.reading = False
        written = self.flood(lambda data: run.client.send(b"\0" + data), lambda: run.client.full, run)
        self.assertLess(run.wires[1].first.most_waiting, FULL + (1 << 17))
        run.wires[1].second.reading = True
        run.pump()
        self.assertFalse(run.client.full)
        self.assertEqual(written, sum(got))
        run.translator.stop()

    def test_slow_client_of_a_lost_kubelet(self) -> None:
        """A client that reads slowly gets all that came before its kubelet was lost."""
        run = running()
        run.front.second.reading = False
        told: list[bool] = []
        run.session.on_pressure = told.append
        self.flood(run.session.write, lambda: bool(told), run)
        run.wires[1].second.abortConnection()
        run.pump()
        run.front.second.reading = True
        run.pump()
        self.assertGreater(len(run.channel(1)), FULL)
        self.assertIn("unexpected EOF", run.status()["message"])

    def test_client_goes_while_command_is_slow(self) -> None:
        """A client that goes while its command does not read leaves nothing behind."""
        run = running()
        run.wires[1].second.reading = False
        self.flood(lambda data: run.client.send(b"\0" + data), lambda: run.client.full, run)
        run.front.second.abortConnection()
        run.wires[1].second.reading = True
        run.pump()
        self.assertTrue(run.wires[1].first.gone)
        self.assertEqual(200, self.successResultOf(run.done))
        self.assertEqual([], run.clock.getDelayedCalls())
