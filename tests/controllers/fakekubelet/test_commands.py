"""Tests for L{kubetwist.controllers.fakekubelet.commands}."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.fakeimages import CommandCall, CommandHandler, CommandResult
from kubetwist.controllers.fakekubelet.commands import MAX_STDIN, CommandRunner, find_script
from kubetwist.controllers.fakekubelet.filesystem import FileSystem
from kubetwist.controllers.fakekubelet.programs import Container
from kubetwist.streams.channels import V5
from kubetwist.streams.commands import Command
from kubetwist.streams.kubeletserver import Session


class ImmediateReactor(Clock):
    """A reactor whose thread pool runs functions immediately."""

    def getThreadPool(self) -> ImmediateReactor:
        """Return the thread pool."""
        return self

    def callInThreadWithCallback(self, on_result: Any, function: Any, *args: Any, **kwargs: Any) -> None:
        """Call a function, and pass on whether it succeeded, and its result."""
        from twisted.python.failure import Failure

        try:
            result = function(*args, **kwargs)
        except Exception:
            on_result(False, Failure())
        else:
            on_result(True, result)

    def callFromThread(self, function: Any, *args: Any, **kwargs: Any) -> None:
        """Call a function."""
        function(*args, **kwargs)


class CommandTests(SynchronousTestCase):
    """L{CommandRunner}."""

    def setUp(self) -> None:
        """Have no output."""
        self.outputs: defaultdict[str, bytes] = defaultdict(bytes)
        self.pieces: list[tuple[str, int]] = []
        self.ends = 0
        self.scripts: dict[str, CommandResult | CommandHandler] = {}

    def begin(self, *command: str, stdin: bool = False, tty: bool = False) -> Session:
        """Start a command."""

        def send(kind: str, data: bytes) -> None:
            self.outputs[kind] += data
            self.pieces.append((kind, len(data)))

        def end() -> None:
            self.ends += 1

        self.outputs.clear()
        session = Session(Command(stdin=stdin, stdout=True, stderr=not tty, tty=tty), V5, send, end)
        container = Container(FileSystem({"/etc/v": b"1\n"}), "web-0", {}, lambda: 0.0)
        runner = CommandRunner(ImmediateReactor(), container, self.scripts, {"metadata": {"name": "web-0"}}, "web")
        runner.start(session, command)
        return session

    def ended(self) -> tuple[bytes, bytes, int]:
        """Return the outputs and the exit code of the last command, which has ended once."""
        self.assertEqual(self.ends, 1)
        self.ends = 0
        status = json.loads(self.outputs["error"])
        if status["status"] == "Success":
            return self.outputs["stdout"], self.outputs["stderr"], 0
        causes = status["details"]["causes"]
        self.assertEqual([cause["reason"] for cause in causes], ["ExitCode"])
        return self.outputs["stdout"], self.outputs["stderr"], int(causes[0]["message"])

    def test_programs(self) -> None:
        """A command runs a simulated program; without one, it ends as in a container runtime."""
        self.begin("cat", "/etc/v")
        self.assertEqual(self.ended(), (b"1\n", b"", 0))
        self.begin("nginx", "-v")
        out, err, code = self.ended()
        self.assertEqual((out, code), (b"", 127))
        self.assertIn(b'exec: "nginx": executable file not found in $PATH', err)

    def test_scripts(self) -> None:
        """A configured result is found by the command line, in the words of a shell, or by the program."""
        self.scripts = {
            "sh -c 'exit 3'": CommandResult(b"o", b"e", 3),
            "nginx": CommandResult(b"n"),
            "bad '": CommandResult(),
        }
        for command, expected in (
            (("sh", "-c", "exit 3"), (b"o", b"e", 3)),
            (("nginx", "-t"), (b"n", b"", 0)),
            (("hostname",), (b"web-0\n", b"", 0)),
        ):
            self.begin(*command)
            self.assertEqual(self.ended(), expected)
        self.assertIsNone(find_script(self.scripts, ()))
        self.assertIsNone(find_script({}, ("nginx",)))

    def test_stdin(self) -> None:
        """A program that reads its input runs at the end of it; a terminal ends it with Ctrl+D."""
        session = self.begin("cat", stdin=True)
        session.on_stdin(b"a")
        session.on_stdin(b"b")
        self.assertEqual(self.ends, 0)
        session.on_stdin(None)
        self.assertEqual(self.ended(), (b"ab", b"", 0))
        session = self.begin("cat", stdin=True, tty=True)
        session.on_stdin(b"x\ny\x04z")
        self.assertEqual(self.ended(), (b"x\r\ny", b"", 0))

    def test_stdin_too_long(self) -> None:
        """The input is limited."""
        session = self.begin("cat", stdin=True)
        session.on_stdin(b"x" * MAX_STDIN)
        self.assertEqual(self.ends, 0)
        session.on_stdin(b"x")
        out, err, code = self.ended()
        self.assertEqual((out, code), (b"", 1))
        self.assertEqual(err, f"cat: the input has more than {MAX_STDIN} bytes\n".encode())
        session.on_stdin(b"more")
        session.on_stdin(None)
        self.assertEqual(self.ends, 0)

    def test_function(self) -> None:
        """A Python function gets the command and its input, and returns the output or the exit code."""
        calls: list[CommandCall] = []

        def handle(call: CommandCall) -> Any:
            calls.append(call)
            return len(call.stdin) or "text"

        self.scripts = {"tool": handle}
        self.begin("tool", "-a")
        self.assertEqual(self.ended(), (b"text", b"", 0))
        session = self.begin("tool", stdin=True)
        session.on_stdin(b"abc")
        session.on_stdin(None)
        self.assertEqual(self.ended(), (b"", b"", 3))
        self.assertEqual(
            [(call.command, call.stdin, call.container) for call in calls],
            [(("tool", "-a"), b"", "web"), (("tool",), b"abc", "web")],
        )
        self.assertEqual(calls[0].pod, {"metadata": {"name": "web-0"}})

    def test_failing_function(self) -> None:
        """A function that raises, or returns another value, is an internal error."""

        def handle(call: CommandCall) -> Any:
            raise ValueError("no")

        self.scripts = {"raises": handle, "returns": lambda call: 1.5}
        for name, text in (("raises", "ValueError: no"), ("returns", "the result of the command")):
            self.begin(name)
            status = json.loads(self.outputs["error"])
            self.assertEqual((status["code"], status["reason"]), (500, "InternalError"))
            self.assertIn(text, status["message"])
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)

    def test_slow_client(self) -> None:
        """A long output is sent in pieces, while the client reads."""
        self.scripts = {"long": CommandResult(b"x" * 200_000)}
        begin = Session.write

        def write(session: Session, data: bytes, kind: str = "stdout") -> None:
            begin(session, data, kind)
            session.on_backpressure(True)

        self.patch(Session, "write", write)
        session = self.begin("long")
        self.assertEqual((self.pieces, self.ends), ([("stdout", 65_536)], 0))
        for _ in range(3):
            session.on_backpressure(False)
        self.assertEqual(self.ended(), (b"x" * 200_000, b"", 0))

    def test_shell(self) -> None:
        """A shell without a terminal runs lines, and ends with the exit code of the last one."""
        session = self.begin("sh", stdin=True)
        session.on_stdin(b"echo a\ncat /x\n")
        session.on_stdin(b"false")
        session.on_stdin(None)
        self.assertEqual(self.ended(), (b"a\n", b"cat: /x: No such file or directory\n", 1))
        session = self.begin("/bin/sh", stdin=True)
        session.on_stdin(b"exit 7\necho never\n")
        self.assertEqual(self.ended(), (b"", b"", 7))

    def test_terminal(self) -> None:
        """A shell on a terminal has a prompt, echoes its input, and knows Backspace, Ctrl+C and Ctrl+D."""
        session = self.begin("sh", stdin=True, tty=True)
        session.on_stdin(b"echo b\x7fa\r")
        self.assertEqual(self.outputs["stdout"], b"# echo b\b \ba\r\na\r\n# ")
        session.on_stdin(b"never\x03\x04")
        out, _, code = self.ended()
        self.assertEqual((out.endswith(b"a\r\n# never^C\r\n# "), code), (True, 0))
