"""Tests for L{kubetwist.controllers.fakekubelet.programs}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.fakeimages import CommandResult
from kubetwist.controllers.fakekubelet.filesystem import FileSystem
from kubetwist.controllers.fakekubelet.programs import (
    Container,
    UnknownProgram,
    reads_stdin,
    run_line,
    run_program,
)


class ProgramTests(SynchronousTestCase):
    """L{run_program} and L{run_line}."""

    def setUp(self) -> None:
        """Create a container."""
        self.container = Container(FileSystem({"/etc/v": b"1\n"}), "web-0", {"A": "b"}, lambda: 0.0)

    def output(self, *command: str, stdin: bytes = b"") -> tuple[bytes, bytes, int]:
        """Return the outputs and the exit code of a command."""
        result = run_program(self.container, command, stdin)
        return result.stdout, result.stderr, result.exit

    def line(self, text: str) -> tuple[bytes, bytes, int]:
        """Return the outputs and the exit code of a command line."""
        result = run_line(self.container, text)
        return result.stdout, result.stderr, result.exit

    def test_programs(self) -> None:
        """The programs work as the usual ones."""
        self.assertEqual(self.output("echo", "-n", "a", "b"), (b"a b", b"", 0))
        self.assertEqual(self.output("/bin/cat", "/etc/v", "-", stdin=b"2"), (b"1\n2", b"", 0))
        self.assertEqual(self.output("cat", "/x"), (b"", b"cat: /x: No such file or directory\n", 1))
        self.assertEqual(self.output("true"), (b"", b"", 0))
        self.assertEqual(self.output("false"), (b"", b"", 1))
        self.assertEqual(self.output("env"), (b"A=b\n", b"", 0))
        self.assertEqual(self.output("printenv", "A", "B"), (b"b\n", b"", 1))
        self.assertEqual(self.output("hostname"), (b"web-0\n", b"", 0))
        self.assertEqual(self.output("ls", "/etc"), (b"v\n", b"", 0))
        self.assertEqual(self.output("ls", "/x"), (b"", b"ls: /x: No such file or directory\n", 1))
        self.assertEqual(self.output("date"), (b"1970-01-01T00:00:00Z\n", b"", 0))
        self.assertEqual(self.output("mkdir", "/x/y"), (b"", b"mkdir: /x/y: No such file or directory\n", 1))
        self.assertEqual(self.output("rm", "-f", "/x"), (b"", b"", 0))
        self.assertEqual(self.output("touch", "/tmp/t"), (b"", b"", 0))
        self.assertEqual(self.output("pwd"), (b"/\n", b"", 0))

    def test_unknown(self) -> None:
        """Programs that are not simulated have an error."""
        for command in (("nginx",), ("/usr/local/bin/echo",), ("",), ()):
            self.assertRaises(UnknownProgram, run_program, self.container, command, b"")

    def test_test(self) -> None:
        """C{test} checks files and texts."""
        for arguments, code in (
            (("-d", "/etc"), 0),
            (("-d", "/etc/v"), 1),
            (("-f", "/etc/v"), 0),
            (("-e", "/x"), 1),
            (("-s", "/etc/v"), 0),
            (("-n", ""), 1),
            (("-z", ""), 0),
            (("a", "=", "a"), 0),
            (("a", "!=", "a"), 1),
            (("-x", "/a", "b", "c"), 2),
        ):
            self.assertEqual(self.output("test", *arguments)[2], code, arguments)

    def test_tar(self) -> None:
        """Archives are read and written in pipes."""
        archive, _, code = self.output("tar", "cf", "-", "/etc/v")
        self.assertEqual(code, 0)
        self.assertEqual(self.output("tar", "-xmf", "-", "-C", "/tmp", stdin=archive), (b"", b"", 0))
        self.assertEqual(self.output("cat", "/tmp/etc/v")[0], b"1\n")
        self.assertIn(b"tar: /x: No such file or directory\n", self.output("tar", "cf", "-", "/x")[1])
        self.assertEqual(self.output("tar", "cf", "/tmp/a.tar", "/etc")[2], 2)
        self.assertEqual(self.output("tar")[2], 2)

    def test_lines(self) -> None:
        """A shell joins commands, writes their output to files, and expands variables."""
        self.assertEqual(self.line("echo a && echo $A; false || echo ${A}"), (b"a\nb\nb\n", b"", 0))
        self.assertEqual(self.line("false && echo a"), (b"", b"", 1))
        self.assertEqual(self.line("false; echo $?"), (b"1\n", b"", 0))
        self.assertEqual(self.line("echo a > /tmp/x; echo b >> /tmp/x; cat /tmp/x"), (b"a\nb\n", b"", 0))
        self.assertEqual(self.line("echo a > /none/x")[1:], (b"sh: /none/x: No such file or directory\n", 1))
        self.assertEqual(self.line("echo a; exit 3; echo b"), (b"a\n", b"", 3))
        self.assertEqual(self.line("nginx"), (b"", b"sh: nginx: not found\n", 127))
        self.assertEqual(self.output("sh", "-c", "echo 'a  b'"), (b"a  b\n", b"", 0))
        self.assertEqual(self.output("bash", stdin=b"echo a\nexit 2\necho b"), (b"a\n", b"", 2))

    def test_syntax_errors(self) -> None:
        """What is not simulated has an error."""
        for text in ("echo a | cat", "echo 'a", "&& echo", "echo >", "echo < /x", "echo &"):
            self.assertEqual(self.line(text)[2], 2, text)
        nested = "true"
        for _ in range(10):
            nested = f"sh -c '{nested}'" if "'" not in nested else nested.replace("sh -c '", "sh -c 'sh -c \"", 1)
        self.assertIsInstance(self.line(nested)[2], int)

    def test_scripts(self) -> None:
        """Configured results have precedence, in command lines, too."""
        self.container.scripted = lambda command: CommandResult(b"x") if command[0] == "echo" else None
        self.assertEqual(self.output("sh", "-c", "echo a && cat /etc/v"), (b"x1\n", b"", 0))

    def test_stdin(self) -> None:
        """Only some programs wait for their input."""
        for command, expected in ((["cat"], True), (["cat", "/x"], False), (["tar", "xf", "-"], True), ([], False)):
            self.assertEqual(reads_stdin(command), expected, command)

    @given(st.text(max_size=40))
    def test_any_line(self, text: str) -> None:
        """All command lines have a result."""
        self.assertIn(run_line(self.container, text).exit, range(256))
