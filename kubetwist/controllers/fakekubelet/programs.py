"""
The programs of simulated containers: a few commands of a shell, on files in memory.

Each is a function of its arguments and its input, without side effects except on the files.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from shlex import shlex
from typing import Final

from attrs import define, field

from ...api.times import format_time
from ..fakeimages import CommandResult
from .filesystem import FileError, FileSystem

#: Maximum size of the output of a command line in bytes.
MAX_OUTPUT: Final = 32 * 1024 * 1024
_MAX_NESTING: Final = 8
_OPERATORS: Final = (";", "&&", "||", ">", ">>")


class UnknownProgram(Exception):
    """There is no program of a name; the text is the name."""


@define
class Container:
    """
    What programs see of their container.

    @ivar files: Its files.
    @ivar hostname: The name of the pod.
    @ivar environment: The environment variables.
    @ivar now: Returns the time in POSIX seconds.
    @ivar scripted: Returns the configured result of a command; L{None} without one.
    """

    files: FileSystem
    hostname: str
    environment: Mapping[str, str]
    now: Callable[[], float]
    scripted: Callable[[Sequence[str]], CommandResult | None] = field(default=lambda arguments: None)


Program = Callable[[Container, Sequence[str], bytes], CommandResult]


def run_program(container: Container, command: Sequence[str], stdin: bytes, nesting: int = 0) -> CommandResult:
    """
    Run a command.

    @param command: The program and its arguments.
    @param stdin: The whole input.
    @param nesting: Number of shells around it.
    @raise UnknownProgram: There is no such program.
    """
    scripted = container.scripted(command)
    if scripted is not None:
        return scripted
    name = posixpath.basename(command[0]) if command else ""
    if name in SHELLS:
        return _shell(container, command, stdin, nesting)
    program = _PROGRAMS.get(name)
    if program is None or (command[0] != name and posixpath.dirname(command[0]) not in ("/bin", "/usr/bin")):
        raise UnknownProgram(command[0] if command else "")
    try:
        return program(container, command[1:], stdin)
    except FileError as error:
        return CommandResult(stderr=f"{name}: {error.path}: {error.reason}\n".encode(), exit=1)


def reads_stdin(command: Sequence[str]) -> bool:
    """Return whether a program needs its whole input."""
    name = posixpath.basename(command[0]) if command else ""
    if name == "cat":
        return all(one == "-" for one in command[1:])
    return name in SHELLS or (name == "tar" and any("x" in one for one in command[1:2]))


# --- shell


def _shell(container: Container, command: Sequence[str], stdin: bytes, nesting: int) -> CommandResult:
    if len(command) > 2 and command[1] in ("-c", "-ec", "-lc"):
        return run_line(container, command[2], stdin, nesting)
    stdout, stderr, code = b"", b"", 0
    for line in stdin.decode("utf-8", "replace").splitlines():
        if line.split()[:1] == ["exit"]:
            return CommandResult(stdout, stderr, run_line(container, line, b"", nesting).exit)
        result = run_line(container, line, b"", nesting)
        stdout, stderr, code = stdout + result.stdout, stderr + result.stderr, result.exit
    return CommandResult(stdout, stderr, code)


def run_line(container: Container, text: str, stdin: bytes = b"", nesting: int = 0) -> CommandResult:
    """
    Run a command line: commands that are joined by C{;}, C{&&} and C{||}, with C{>} and C{>>} to files.

    @param text: The command line.
    @param stdin: The input of the first command.
    @param nesting: Number of shells around it.
    """
    if nesting > _MAX_NESTING:
        return CommandResult(stderr=b"sh: too many nested shells\n", exit=2)
    try:
        steps = list(_steps(text))
    except ValueError as error:
        return CommandResult(stderr=f"sh: syntax error: {error}\n".encode(), exit=2)
    stdout, stderr, code = bytearray(), bytearray(), 0
    for operator, words, target, append in steps:
        if (operator == "&&" and code) or (operator == "||" and not code):
            continue
        if words[0] == "exit":
            code = int(words[1]) % 256 if len(words) > 1 and words[1].isdigit() else code
            break
        words = [_expanded(word, container, code) for word in words]
        try:
            result = run_program(container, words, stdin, nesting + 1)
        except UnknownProgram as error:
            result = CommandResult(stderr=f"sh: {error}: not found\n".encode(), exit=127)
        stdin = b""
        code = result.exit
        stderr += result.stderr
        if not target:
            stdout += result.stdout
        else:
            try:
                container.files.write(target, result.stdout, append=append, modified=container.now())
            except FileError as error:
                stderr += f"sh: {error.path}: {error.reason}\n".encode()
                code = 1
        if len(stdout) > MAX_OUTPUT:
            break
    return CommandResult(bytes(stdout), bytes(stderr), code)


def _steps(text: str) -> Iterator[tuple[str, list[str], str, bool]]:
    """Yield the operator before each command, its words, and the file of its output with whether that is appended."""
    lexer = shlex(text, posix=True, punctuation_chars=";&|<>")
    lexer.whitespace_split = True
    words: list[str] = []
    operator, target, append, expects_target = ";", "", False, False
    for token in lexer:
        if token and not token.strip(";&|<>"):
            if token not in _OPERATORS:
                raise ValueError(f"{token} is not simulated")
            if expects_target or not words:
                raise ValueError(f"unexpected {token}")
            if token in (">", ">>"):
                expects_target, append = True, token == ">>"
                continue
            yield operator, words, target, append
            operator, words, target, append = token, [], "", False
        elif expects_target:
            target, expects_target = token, False
        else:
            words.append(token)
    if expects_target:
        raise ValueError("unexpected end of file")
    if words:
        yield operator, words, target, append


def _expanded(word: str, container: Container, code: int) -> str:
    if word == "$?":
        return str(code)
    if word.startswith("$") and word[1:].strip("{}").isidentifier():
        return container.environment.get(word[1:].strip("{}"), "")
    return word


# --- programs


def _echo(container: Container, arguments: Sequence[str], stdin: bytes) -> CommandResult:
    newline = "\n"
    if arguments and arguments[0] == "-n":
        arguments, newline = arguments[1:], ""
    return CommandResult(f"{' '.join(arguments)}{newline}".encode())


def _cat(container: Container, arguments: Sequence[str], stdin: bytes) -> CommandResult:
    stdout, stderr = b"", b""
    for path in arguments or ("-",):
        try:
            stdout += stdin if path == "-" else container.files.read(path)
        except FileError as error:
            stderr += f"cat: {error.path}: {error.reason}\n".encode()
    return CommandResult(stdout, stderr, 1 if stderr else 0)


def _exit_with(code: int) -> Program:
    return lambda container, arguments, stdin: CommandResult(exit=code)


def _env(container: Container, arguments: Sequence[str], stdin: bytes) -> CommandResult:
    if arguments:
        found = [container.environment[one] for one in arguments if one in container.environment]
        return CommandResult("".join(f"{one}\n" for one in found).encode(), exit=int(len(found) < len(arguments)))
    return CommandResult("".join(f"{name}={value}\n" for name, value in container.environment.items()).encode())


def _hostname(container: Container, arguments: Sequence[str], stdin: bytes) -> CommandResult:
    return CommandResult(f"{container.hostname}\n".encode())


def _ls(container: Container, arguments: Sequence[str], stdin: bytes) -> CommandResult:
    paths = [one for one in arguments if not one.startswith("-")] or ["/"]
    stdout, stderr = b"", b""
    for path in paths:
        try:
            listed = "".join(f"{name}\n" for name in container.files.names(path))
        except FileError as error:
            stderr += f"ls: {error.path}: {error.reason}\n".encode()
        else:
            title = f"{path}:\n" if len(paths) > 1 and container.files.is_directory(path) else ""
            stdout += (title + listed).encode()
    return CommandResult(stdout, stderr, 1 if stderr else 0)


def _pwd(container: Container, arguments: Sequence[str], stdin: bytes) -> CommandResult:
    return CommandResult(b"/\n")


def _date(container: Container, arguments: Sequence[str], stdin: bytes) -> CommandResult:
    return CommandResult(f"{format_time(container.now())}\n".encode())


def _mkdir(container: Container, arguments: Sequence[str], stdin: bytes) -> CommandResult:
    for path in _paths(arguments):
        container.files.make_directory(path, parents="-p" in arguments)
    return CommandResult()


def _rm(container: Container, arguments: Sequence[str], stdin: bytes) -> CommandResult:
    flags = "".join(one[1:] for one in arguments if one.startswith("-"))
    for path in _paths(arguments):
        try:
            container.files.remove(path, recursive="r" in flags or "R" in flags)
        except FileError as error:
            if not ("f" in flags and error.reason.startswith("No such")):
                raise
    return CommandResult()


def _touch(container: Container, arguments: Sequence[str], stdin: bytes) -> CommandResult:
    for path in _paths(arguments):
        container.files.write(path, b"", append=True, modified=container.now())
    return CommandResult()


def _test(container: Container, arguments: Sequence[str], stdin: bytes) -> CommandResult:
    files = container.files
    match list(arguments):
        case ["-d", path]:
            holds = files.is_directory(path)
        case ["-f", path]:
            holds = files.is_file(path)
        case ["-e", path]:
            holds = files.is_file(path) or files.is_directory(path)
        case ["-s", path]:
            holds = files.is_file(path) and bool(files.read(path))
        case ["-n", text] | [text]:
            holds = bool(text)
        case ["-z", text]:
            holds = not text
        case [left, "=", right]:
            holds = left == right
        case [left, "!=", right]:
            holds = left != right
        case _:
            return CommandResult(stderr=b"test: not simulated\n", exit=2)
    return CommandResult(exit=0 if holds else 1)


def _tar(container: Container, arguments: Sequence[str], stdin: bytes) -> CommandResult:
    """Handle C{tar cf - PATH...} and C{tar xf - -C PATH}, which C{kubectl cp} runs."""
    rest = [one for one in arguments if not one.startswith("--")]
    if not rest:
        return CommandResult(stderr=b"tar: You must specify one of the '-Acdtrux' options\n", exit=2)
    flags, directory, paths = rest[0].removeprefix("-"), "/", []
    operands = iter(rest[1:])
    if "f" in flags and next(operands, "-") != "-":
        return CommandResult(stderr=b"tar: only archives in pipes are simulated\n", exit=2)
    for one in operands:
        if one == "-C":
            directory = next(operands, "/")
        else:
            paths.append(one)
    try:
        if "c" in flags:
            return CommandResult(container.files.pack([posixpath.join(directory, path) for path in paths]))
        container.files.unpack(stdin, directory)
    except FileError as error:
        text = f"tar: {error.path}: {error.reason}\ntar: Exiting with failure status due to previous errors\n"
        return CommandResult(stderr=text.encode(), exit=2)
    return CommandResult()


def _paths(arguments: Sequence[str]) -> list[str]:
    return [one for one in arguments if not one.startswith("-")]


SHELLS: Final = ("sh", "bash", "ash")
_PROGRAMS: Final[dict[str, Program]] = {
    "cat": _cat,
    "date": _date,
    "echo": _echo,
    "env": _env,
    "false": _exit_with(1),
    "hostname": _hostname,
    "ls": _ls,
    "mkdir": _mkdir,
    "printenv": _env,
    "pwd": _pwd,
    "rm": _rm,
    "tar": _tar,
    "test": _test,
    "touch": _touch,
    "true": _exit_with(0),
}
