"""Tests for L{kubetwist.streams.translator}: commands and kubelets."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.errors import Unreachable
from kubetwist.streams.channels import V1, V2, V3, V4
from kubetwist.streams.commands import SUCCESS, Command, encode_size, exit_status
from kubetwist.streams.kubeletserver import spdy_head
from kubetwist.streams.spdy import OPEN_TIMEOUT
from tests.streams.translator.runs import ALL, TARGET, _Response, _Run, running
from tests.streams.wires import Wire


class _SilentPeer:
    """A kubelet that accepts all streams and never answers."""

    def makeConnection(self, transport: Any) -> None:
        pass

    def dataReceived(self, data: bytes) -> None:
        pass

    def connectionLost(self, reason: Any) -> None:
        pass


class StreamTests(SynchronousTestCase):
    """Translated streams."""

    def test_call(self) -> None:
        """The kubelet receives a POST that requests SPDY with all supported stream protocols."""
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
        """An empty message announces to the client that the command starts."""
        for command, message in [(ALL, b"\1"), (Command(stderr=True), b"\2"), (Command(), b"\3")]:
            run = running(command)
            self.assertEqual([message], run.messages)
            run.translator.stop()

    def test_output(self) -> None:
        """The client receives the output of a command, its status, and a close frame."""
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
        """The exit code of a command is sent to its client."""
        run = running()
        run.session.exit(7)
        run.pump()
        self.assertEqual([b"\1", b"\3" + exit_status(7)], run.messages)

    def test_input(self) -> None:
        """Input of the client, and its end, are forwarded to the command."""
        run = running()
        received: list[bytes | None] = []
        run.session.on_stdin = received.append
        run.send(0, b"in")
        run.send(0, b"put")
        run.send(255, b"\0")
        run.send(0, b"too late")
        self.assertEqual([b"in", b"put", None], received)
        run.session.exit(0)
        run.pump()
        self.assertEqual("Success", run.status()["status"])

    @given(st.lists(st.binary(min_size=1, max_size=2000), max_size=5), st.integers(1, 500))
    def test_any_cut(self, pieces: list[bytes], size: int) -> None:
        """Bytes are forwarded unchanged in both directions, however they are split."""
        run = running()
        received: list[bytes] = []
        run.session.on_stdin = lambda data: received.append(data or b"")
        for piece in pieces:
            run.client.send(b"\0" + piece)
            run.session.write(piece[::-1])
        run.pump(size)
        self.assertEqual(b"".join(pieces), b"".join(received))
        self.assertEqual(b"".join(piece[::-1] for piece in pieces), run.channel(1))
        run.translator.stop()

    def test_early_input(self) -> None:
        """Input that arrives before the kubelet's streams are open is forwarded afterwards."""
        run = _Run()
        run.answer = Deferred()
        run.begin()
        run.send(0, b"early")
        run.send(255, b"\0")
        answer = run.kubelet()
        received: list[bytes | None] = []
        run.on_start = lambda session: setattr(session, "on_stdin", received.append)
        run.answer.callback(answer)
        run.pump()
        self.assertEqual([b"early", None], received)
        run.translator.stop()

    def test_terminal(self) -> None:
        """Terminal sizes are forwarded to the command; with a terminal there is no second output."""
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
        """Sizes without a terminal, and input of a command without C{stdin}, are dropped."""
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
        """A client that closes an invalid channel is disconnected, and its command ends."""
        run = running()
        disconnected: list[bool] = []
        run.session.on_connection_lost = lambda: disconnected.append(True)
        run.send(255, b"\x09")
        self.assertEqual(([True], [True]), (disconnected, run.ends))

    def test_input_not_taken(self) -> None:
        """The end of a command's input does not end the command."""
        run = running()
        received: list[bytes | None] = []
        run.session.on_stdin = received.append
        backend = run.wires[1].second.protocol
        stdin = next(one for one in backend._streams.values() if one.header("streamtype") == "stdin")
        stdin.finish()
        run.pump()
        self.assertEqual([None], received)
        run.session.write(b"still here")
        run.pump()
        self.assertEqual(b"still here", run.channel(1))
        run.translator.stop()


class KubeletTests(SynchronousTestCase):
    """Old and failing kubelets."""

    def ended(self, answer: Any) -> str:
        """Return the message of a command that failed to run."""
        run = _Run()
        run.answer = answer
        run.begin()
        self.assertEqual(500, self.successResultOf(run.done))
        self.assertEqual([True], run.ends)
        status = run.status()
        self.assertEqual((500, "InternalError"), (status["code"], status["reason"]))
        return str(status["details"]["causes"][0]["message"])

    def test_old_versions(self) -> None:
        """Kubelets with old stream protocols are supported."""
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
        """An unreachable kubelet is reported with the reference's message."""
        self.assertEqual(
            'error sending request: Post "https://10.0.0.1:10250/exec/default/web/main?command=sh": '
            "dial tcp 10.0.0.1:10250: connect: connection refused",
            self.ended(Unreachable("dial tcp 10.0.0.1:10250: connect: connection refused")),
        )

    def test_refused(self) -> None:
        """The error of a failed upgrade is reported to the client."""
        self.assertEqual(
            "unable to upgrade connection: container not found",
            self.ended(_Response(404, (), b"container not found\n")),
        )
        self.assertEqual(
            "unable to upgrade connection: unable to read error from server response",
            self.ended(_Response(500, (), Unreachable("unexpected EOF"))),
        )

    def test_refused_with_status(self) -> None:
        """A Status of the kubelet is forwarded."""
        run = _Run()
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": "no",
            "reason": "X",
            "code": 403,
        }
        run.answer = _Response(403, (), json.dumps(status).encode())
        run.begin()
        self.assertEqual(
            {"metadata": {}, "status": "Failure", "message": "no", "reason": "X", "code": 403}, run.status()
        )

    def test_redirect_CVE_2020_8559(self) -> None:
        """Redirects of a kubelet are not followed."""
        answer = _Response(302, [(b"Location", b"https://elsewhere/")])
        self.assertIn("redirect not allowed", self.ended(answer))
        self.assertTrue(answer.aborted)

    def test_other_protocol_CVE_2018_1002105(self) -> None:
        """The connection to a kubelet that switches to another protocol is closed."""
        answer = _Response(101, [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")])
        self.assertEqual("unable to upgrade connection: ", self.ended(answer))
        self.assertTrue(answer.aborted)
        self.assertEqual([], answer.taken)

    def test_streams_not_accepted(self) -> None:
        """Streams that the kubelet does not accept time out."""
        run = _Run()
        run.answer = _Response(101, spdy_head(V4))
        wires = run.wires
        run.answer.hijack = lambda protocol: wires.append(Wire(protocol, _SilentPeer()))
        run.begin()
        self.assertNoResult(run.done)
        for _ in range(int(OPEN_TIMEOUT)):
            run.clock.advance(1)
            run.pump()
        self.assertEqual("Internal error occurred: Timeout occurred", run.status()["message"])
        self.assertTrue(wires[1].first.disconnected)

    def test_lost(self) -> None:
        """A command whose kubelet is lost has not succeeded."""
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
        """The end of a kubelet's streams without an error means success, as in the reference."""
        run = running()
        run.session.end_without_status()
        run.pump()
        self.assertEqual("Success", run.status()["status"])

    def test_long_status(self) -> None:
        """The size of the kubelet's error stream is limited."""
        run = running()
        for _ in range(100):
            run.session._send("error", b"x" * 50_000)
        run.session.end_without_status()
        run.pump()
        self.assertIn("error stream protocol error: invalid character 'x'", run.status()["message"])
        self.assertLess(len(run.channel(3)), 3 << 20)
