"""Runs commands in simulated containers, for any transport of their streams."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from ...streams.commands import internal_error_status
from ...streams.kubeletserver import Session
from ..fakeimages import (
    CommandCall,
    CommandHandler,
    CommandResult,
    InvalidImages,
    command_result,
)
from .programs import SHELLS, Container, UnknownProgram, reads_stdin, run_line, run_program

#: Maximum size of the input of a command in bytes.
MAX_STDIN: Final = 32 * 1024 * 1024
#: Maximum length of a line of an interactive shell.
_MAX_LINE: Final = 64 * 1024
_PIECE: Final = 64 * 1024
_END_OF_INPUT: Final = b"\x04"
_INTERRUPT: Final = b"\x03"


def find_script(
    scripts: Mapping[str, CommandResult | CommandHandler], command: Sequence[str]
) -> CommandResult | CommandHandler | None:
    """
    Return the configured result of a command, by its whole command line or its program.

    @param scripts: Results by command line, with the quotes of a shell.
    @param command: The program and its arguments.
    """
    if not scripts:
        return None
    line = " ".join(command)
    found = scripts.get(line)
    if found is not None:
        return found
    for text, one in scripts.items():
        try:
            words = shlex.split(text)
        except ValueError:
            continue
        if words == list(command):
            return one
    return scripts.get(command[0]) if command else None


class CommandRunner:
    """Runs commands of one container."""

    _log = Logger()

    def __init__(
        self,
        reactor: Any,
        container: Container,
        scripts: Mapping[str, CommandResult | CommandHandler],
        pod: Mapping[str, Any],
        name: str,
    ) -> None:
        """
        @param reactor: The reactor; handlers of Python run in its threads.
        @param container: What programs see.
        @param scripts: Configured results, by command line.
        @param pod: The pod.
        @param name: The name of the container.
        """
        self._reactor = reactor
        self._container = container
        self._scripts = scripts
        self._pod = pod
        self._name = name
        container.scripted = self._scripted

    def _scripted(self, command: Sequence[str]) -> CommandResult | None:
        found = find_script(self._scripts, command)
        return found if isinstance(found, CommandResult) else None

    def start(self, session: Session, command: Sequence[str]) -> None:
        """Run a command for a client."""
        found = find_script(self._scripts, command)
        if found is None and session.command.stdin and len(command) == 1 and command[0].rpartition("/")[2] in SHELLS:
            _InteractiveShell(session, self._container)
            return
        handler = found if callable(found) and not isinstance(found, CommandResult) else None
        needs_input = session.command.stdin and (handler is not None or (found is None and reads_stdin(command)))
        if not needs_input:
            self._run(session, command, b"", handler)
            return
        received = bytearray()

        def on_stdin(data: bytes | None) -> None:
            ended = data is None
            if data is not None and session.command.tty and _END_OF_INPUT in data:
                data, ended = data.partition(_END_OF_INPUT)[0], True
            received.extend(data or b"")
            if len(received) > MAX_STDIN:
                session.on_stdin = _ignore
                session.write(f"{command[0]}: the input has more than {MAX_STDIN} bytes\n".encode(), "stderr")
                session.exit(1)
            elif ended:
                session.on_stdin = _ignore
                self._run(session, command, bytes(received), handler)

        session.on_stdin = on_stdin

    def _run(self, session: Session, command: Sequence[str], stdin: bytes, handler: CommandHandler | None) -> None:
        if handler is not None:
            call = CommandCall(tuple(command), stdin, self._pod, self._name)
            Deferred.fromCoroutine(self._handle(session, handler, call))
            return
        try:
            result = run_program(self._container, command, stdin)
        except UnknownProgram as error:
            text = (
                f'OCI runtime exec failed: exec failed: unable to start container process: exec: "{error}": executable'
                " file not found in $PATH: unknown\r\n"
            )
            result = CommandResult(stderr=text.encode(), exit=127)
        finish(session, result)

    async def _handle(self, session: Session, handler: CommandHandler, call: CommandCall) -> None:
        from twisted.internet.threads import deferToThreadPool

        try:
            value = await deferToThreadPool(self._reactor, self._reactor.getThreadPool(), handler, call)
            result = command_result(value, "the result of the command")
        except InvalidImages as error:
            session.fail(internal_error_status(str(error)), str(error).encode())
            return
        except Exception as error:
            self._log.failure("the function of a simulated command failed")
            text = f"error executing command in container: {type(error).__name__}: {error}"
            session.fail(internal_error_status(text), text.encode())
            return
        finish(session, result)


def _ignore(data: bytes | None) -> None:
    """Ignore input."""


def finish(session: Session, result: CommandResult) -> None:
    """Send the output of a command in pieces, as fast as the client reads it, and then its exit code."""
    terminal = session.command.tty
    pieces = []
    for kind, data in (("stdout", result.stdout), ("stderr", result.stderr)):
        if terminal:
            # A terminal has one output, and its driver translates line ends.
            kind, data = "stdout", data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        pieces += [(kind, data[at : at + _PIECE]) for at in range(0, len(data), _PIECE)]
    pieces.reverse()
    paused = False

    def send() -> None:
        while pieces and not paused and not session.ended:
            kind, data = pieces.pop()
            session.write(data, kind)
        if not pieces:
            session.exit(result.exit)

    def on_backpressure(write_paused: bool) -> None:
        nonlocal paused
        paused = write_paused
        if not paused and pieces:
            send()

    session.on_backpressure = on_backpressure
    send()


class _InteractiveShell:
    """A shell that reads command lines from its input, with a prompt and an echo on a terminal."""

    def __init__(self, session: Session, container: Container) -> None:
        self._session = session
        self._container = container
        self._line = bytearray()
        self._code = 0
        session.on_stdin = self._received
        self._prompt()

    def _prompt(self) -> None:
        if self._session.command.tty:
            self._session.write(b"# ")

    def _received(self, data: bytes | None) -> None:
        if data is None:
            if self._line:
                self._run()
            self._session.exit(self._code)
            return
        for number in data:
            if self._session.ended:
                return
            self._key(bytes((number,)))

    def _key(self, key: bytes) -> None:
        session, terminal = self._session, self._session.command.tty
        if key in (b"\n", b"\r"):
            if terminal:
                session.write(b"\r\n")
            self._run()
        elif terminal and key == _END_OF_INPUT:
            if not self._line:
                session.exit(self._code)
        elif terminal and key == _INTERRUPT:
            self._line.clear()
            session.write(b"^C\r\n")
            self._prompt()
        elif terminal and key in (b"\x7f", b"\b"):
            if self._line:
                del self._line[-1:]
                session.write(b"\b \b")
        elif len(self._line) < _MAX_LINE:
            self._line += key
            if terminal:
                session.write(key)

    def _run(self) -> None:
        line, self._line = self._line.decode("utf-8", "replace").strip(), bytearray()
        session = self._session
        words = line.split()
        if words[:1] == ["exit"]:
            session.exit(int(words[1]) % 256 if len(words) > 1 and words[1].isdigit() else self._code)
            return
        if line:
            result = run_line(self._container, line)
            self._code = result.exit
            if session.command.tty:
                session.write((result.stdout + result.stderr).replace(b"\n", b"\r\n"))
            else:
                session.write(result.stdout)
                session.write(result.stderr, "stderr")
        self._prompt()
