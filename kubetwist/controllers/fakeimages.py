"""
Behavior of container images on simulated nodes, from C{--fake-images} or from Python.

The configuration is a mapping C{images: {NAME: {...}}}. An image reference matches the most specific name: the whole
reference, then its last path components with the tag, then without. C{"*"} matches all other images.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from attrs import field, frozen

from ..api.go.durations import parse_duration
from ..api.quantity import Quantity

#: Maximum number of configured images, of entries of each mapping of an image, and of bytes of each text.
MAX_IMAGES: Final = 1000
MAX_ENTRIES: Final = 256
MAX_TEXT: Final = 256 * 1024
#: Maximum size of a configuration file in bytes.
MAX_FILE: Final = 4 * 1024 * 1024
#: Maximum duration in seconds.
_MAX_SECONDS: Final = 1e9
_MIN_LOG_INTERVAL: Final = 0.001
#: Maximum number of references whose behavior is remembered.
_MAX_KNOWN: Final = 10_000
DEFAULT: Final = "*"
#: The kinds of probes.
LIVENESS: Final = "liveness"
READINESS: Final = "readiness"
STARTUP: Final = "startup"
PROBES: Final = (LIVENESS, READINESS, STARTUP)

V = TypeVar("V")


class InvalidImages(ValueError):
    """The configuration of images is invalid; the text begins with the path of the field."""


@frozen
class Usage:
    """
    Resources that a container uses while it runs.

    @ivar cpu: CPU cores.
    @ivar memory: Bytes.
    @ivar ephemeral_storage: Bytes of the local disk.
    """

    cpu: Quantity = field(factory=lambda: Quantity(0))
    memory: Quantity = field(factory=lambda: Quantity(0, "binary"))
    ephemeral_storage: Quantity = field(factory=lambda: Quantity(0, "binary"))


@frozen
class LogScript:
    """
    The log of a run of a container.

    @ivar lines: Lines that are written at the start, without line ends.
    @ivar every: Seconds between two repetitions of C{line}; 0 for none.
    @ivar line: The repeated line; C{{n}} is replaced by its number, from 1.
    """

    lines: tuple[str, ...] = ()
    every: float = 0.0
    line: str = ""


@frozen
class CommandResult:
    """
    The result of a command.

    @ivar exit: The exit code.
    """

    stdout: bytes = b""
    stderr: bytes = b""
    exit: int = 0


@frozen
class CommandCall:
    """
    A command that a Python function handles.

    @ivar command: The command and its arguments.
    @ivar stdin: The whole input; C{b""} without one.
    @ivar pod: The pod.
    @ivar container: The name of the container.
    """

    command: Sequence[str]
    stdin: bytes
    pod: Mapping[str, Any]
    container: str


#: Returns the output, the exit code or both; called in a thread.
CommandHandler = Callable[[CommandCall], str | bytes | int | CommandResult | None]


@frozen
class PortAnswer:
    """
    What answers on a port of a container.

    @ivar kind: C{"echo"} sends received data back; C{"http"} answers each HTTP request with C{status}, C{headers} and
        C{body}; C{"response"} sends C{body} and closes; C{"forward"} connects to C{host} and C{port}.
    """

    kind: str
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    host: str = ""
    port: int = 0


@frozen
class ProbeScript:
    """
    The results of a probe, by the seconds since the start of the container.

    @ivar fail_after: Seconds until it begins to fail; L{None} for never.
    @ivar pass_after: Seconds until it succeeds for the first time.
    """

    fail_after: float | None = None
    pass_after: float = 0.0


@frozen(kw_only=True)
class ImageBehavior:
    """
    The behavior of the containers of an image.

    @ivar logs: What a container writes to its log.
    @ivar exec: Results of commands, by the command line with arguments separated by spaces, or the name of a program.
    @ivar ready: Whether a container becomes ready.
    @ivar ready_after: Seconds until it is ready.
    @ivar run_for: Seconds until it exits; L{None} for never.
    @ivar exit: Exit codes of the first and of later runs; empty for the default.
    @ivar stop_after: Seconds from SIGTERM to the exit, at most the grace period.
    @ivar pull_error: Whether the image cannot be pulled.
    @ivar ports: What answers, by port.
    @ivar usage: Resources in use; L{None} if nothing is configured.
    @ivar probes: Results of probes, by kind.
    @ivar files: Contents of files, by absolute path.
    """

    logs: LogScript = field(factory=LogScript)
    exec: Mapping[str, CommandResult | CommandHandler] = field(factory=dict)
    ready: bool = True
    ready_after: float = 0.0
    run_for: float | None = None
    exit: tuple[int, ...] = ()
    stop_after: float = 0.0
    pull_error: bool = False
    ports: Mapping[int, PortAnswer] = field(factory=dict)
    usage: Usage | None = None
    probes: Mapping[str, ProbeScript] = field(factory=dict)
    files: Mapping[str, bytes] = field(factory=dict)


#: The behavior of images without configuration.
_BUILT_IN: Final = {
    "true": ImageBehavior(run_for=1.0, exit=(0,)),
    "false": ImageBehavior(run_for=1.0, exit=(1,)),
    "pull-error": ImageBehavior(pull_error=True),
}


class FakeImages:
    """The behavior of all images. The configuration can be replaced while the server runs."""

    def __init__(self, behaviors: Mapping[str, ImageBehavior] | None = None) -> None:
        self._behaviors: dict[str, ImageBehavior] = {}
        self._known: dict[str, ImageBehavior] = {}
        self.replace(behaviors or {})

    def replace(self, behaviors: Mapping[str, ImageBehavior]) -> None:
        """Use another configuration from now on, by image name."""
        self._behaviors = {**_BUILT_IN, **behaviors}
        self._known = {}

    def find(self, reference: str) -> ImageBehavior:
        """
        Return the behavior of an image.

        @param reference: The image as in the pod: C{"registry.example/team/web:1.2"}.
        """
        known = self._known.get(reference)
        if known is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            behaviors = self._behaviors
            name = next((one for one in _names_of(reference) if one in behaviors), DEFAULT)
            known = self._known[reference] = behaviors.get(name) or _UNCONFIGURED
        return known


_UNCONFIGURED: Final = ImageBehavior()


def _names_of(reference: str) -> list[str]:
    """Return the names that match an image, the most specific one first."""
    without_digest = reference.partition("@")[0]
    path, separator, last = without_digest.rpartition("/")
    last, _, tag = last.partition(":")
    components = f"{path}{separator}{last}".split("/")
    suffixes = ["/".join(components[first:]) for first in range(len(components))]
    return [reference, without_digest, *(f"{one}:{tag or 'latest'}" for one in suffixes), *suffixes]


def parse_images_file(data: bytes) -> dict[str, ImageBehavior]:
    """
    Parse a configuration file in YAML or JSON.

    @raise InvalidImages: It is invalid.
    """
    from ..api.decoding import BodyError, decode_yaml

    if len(data) > MAX_FILE:
        raise InvalidImages(f"the file has more than {MAX_FILE} bytes")
    try:
        decoded = decode_yaml(data)
    except BodyError as error:
        raise InvalidImages(str(error)) from None
    if decoded.duplicates:
        raise InvalidImages(str(decoded.duplicates[0]))
    document = _mapping(decoded.value, "", ("images",), ())
    return parse_images(document.get("images") or {})


def parse_images(images: Any) -> dict[str, ImageBehavior]:
    """
    Parse the behavior of images.

    @param images: Settings by image name, as in the file; values of C{exec} may be functions.
    @raise InvalidImages: They are invalid.
    """
    settings = _mapping(images, "images", None, (), MAX_IMAGES)
    return {name: _behavior(value, f"images.{name}") for name, value in settings.items()}


# --- fields


def _behavior(value: Any, path: str) -> ImageBehavior:
    if isinstance(value, ImageBehavior):
        return value
    fields = _mapping(value, path, tuple(_PARSERS), ())
    parsed = {name: _PARSERS[name](one, f"{path}.{name}") for name, one in fields.items()}
    if "exit" in parsed:
        parsed.setdefault("run_for", 1.0)
    return ImageBehavior(**parsed)


def _mapping(
    value: Any, path: str, known: tuple[str, ...] | None, required: tuple[str, ...], limit: int = MAX_ENTRIES
) -> dict[str, Any]:
    """
    Return a mapping with its keys as text.

    @param known: The allowed keys; L{None} for any.
    @param required: The keys that must be there.
    @param limit: Maximum number of keys.
    """
    if value is None:
        value = {}
    if not isinstance(value, Mapping):
        raise InvalidImages(_at(path, "must be a mapping"))
    result = {str(key): one for key, one in value.items()}
    if len(result) > limit:
        raise InvalidImages(_at(path, f"must have at most {limit} entries"))
    for key in result:
        if known is not None and key not in known:
            raise InvalidImages(_at(path, f"unknown field {key!r}: must be one of {', '.join(known)}"))
    for key in required:
        if key not in result:
            raise InvalidImages(_at(path, f"field {key!r} is required"))
    return result


def _at(path: str, problem: str) -> str:
    return f"{path}: {problem}" if path else problem


def _text(value: Any, path: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidImages(_at(path, "must be text"))
    text = str(value)
    if len(text) > MAX_TEXT:
        raise InvalidImages(_at(path, f"must have at most {MAX_TEXT} characters"))
    return text


def _bytes(value: Any, path: str) -> bytes:
    if isinstance(value, bytes):
        if len(value) > MAX_TEXT:
            raise InvalidImages(_at(path, f"must have at most {MAX_TEXT} bytes"))
        return value
    return _text(value, path).encode()


def _switch(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidImages(_at(path, "must be true or false"))
    return value


def _whole(value: Any, path: str, minimum: int, maximum: int) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise InvalidImages(_at(path, f"must be a whole number from {minimum} to {maximum}"))
    return value


def _duration(value: Any, path: str) -> float:
    seconds = -1.0
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str):
        try:
            seconds = parse_duration(value)
        except ValueError as error:
            raise InvalidImages(_at(path, str(error))) from None
    if not 0 <= seconds <= _MAX_SECONDS:
        raise InvalidImages(_at(path, "must be a duration such as 2s or 500ms"))
    return seconds


def _logs(value: Any, path: str) -> LogScript:
    if isinstance(value, str):
        return LogScript(_lines(value, path))
    if isinstance(value, list | tuple):
        return LogScript(_lines("\n".join(_text(one, f"{path}[{n}]") for n, one in enumerate(value)), path))
    fields = _mapping(value, path, ("lines", "every", "line"), ())
    lines = _logs(fields.get("lines", ()), f"{path}.lines").lines if not isinstance(fields.get("lines"), dict) else None
    if lines is None:
        raise InvalidImages(_at(f"{path}.lines", "must be text or a list of lines"))
    if ("every" in fields) != ("line" in fields):
        raise InvalidImages(_at(path, "'every' and 'line' must be set together"))
    every = 0.0
    if "every" in fields:
        every = _duration(fields["every"], f"{path}.every")
        if every < _MIN_LOG_INTERVAL:
            raise InvalidImages(_at(f"{path}.every", f"must be at least {_MIN_LOG_INTERVAL * 1000:.0f}ms"))
    return LogScript(lines, every, _text(fields.get("line", ""), f"{path}.line"))


def _lines(text: str, path: str) -> tuple[str, ...]:
    text = _text(text, path)
    return tuple(text.removesuffix("\n").split("\n")) if text else ()


def _commands(value: Any, path: str) -> dict[str, CommandResult | CommandHandler]:
    results: dict[str, CommandResult | CommandHandler] = {}
    for command, one in _mapping(value, path, None, ()).items():
        results[command] = one if callable(one) else command_result(one, f"{path}.{command}")
    return results


def command_result(value: Any, path: str) -> CommandResult:
    """
    Return the result of a command from its output, its exit code or a mapping of both.

    @param path: The path of the field, for errors.
    @raise InvalidImages: It is invalid.
    """
    if value is None or isinstance(value, CommandResult):
        return value or CommandResult()
    if isinstance(value, int) and not isinstance(value, bool):
        return CommandResult(exit=_whole(value, path, 0, 255))
    if isinstance(value, str | bytes):
        return CommandResult(_bytes(value, path))
    fields = _mapping(value, path, ("stdout", "stderr", "exit"), ())
    return CommandResult(
        _bytes(fields.get("stdout", ""), f"{path}.stdout"),
        _bytes(fields.get("stderr", ""), f"{path}.stderr"),
        _whole(fields.get("exit", 0), f"{path}.exit", 0, 255),
    )


def _exit_codes(value: Any, path: str) -> tuple[int, ...]:
    codes = value if isinstance(value, list | tuple) else [value]
    if not 1 <= len(codes) <= MAX_ENTRIES:
        raise InvalidImages(_at(path, "must be an exit code, or a list with one for each run"))
    return tuple(_whole(one, path, 0, 255) for one in codes)


def _ports(value: Any, path: str) -> dict[int, PortAnswer]:
    return {
        _whole(port, path, 1, 65535): _port(one, f"{path}.{port}")
        for port, one in _mapping(value, path, None, ()).items()
    }


def _port(value: Any, path: str) -> PortAnswer:
    if value == "echo":
        return PortAnswer("echo")
    fields = _mapping(value, path, ("http", "response", "forward"), ())
    if len(fields) != 1:
        raise InvalidImages(_at(path, "must be echo, or one of http, response and forward"))
    if "response" in fields:
        return PortAnswer("response", body=_bytes(fields["response"], f"{path}.response"))
    if "forward" in fields:
        return _forward(fields["forward"], f"{path}.forward")
    http = fields["http"]
    path = f"{path}.http"
    if isinstance(http, str | bytes):
        return PortAnswer("http", body=_bytes(http, path))
    parts = _mapping(http, path, ("status", "headers", "body"), ())
    headers = []
    for name, content in _mapping(parts.get("headers"), f"{path}.headers", None, ()).items():
        text = _text(content, f"{path}.headers.{name}")
        if not name.isascii() or not name or any(one in name + text for one in "\r\n\0") or " " in name:
            raise InvalidImages(_at(f"{path}.headers", f"invalid header {name!r}"))
        headers.append((name, text))
    status = _whole(parts.get("status", 200), f"{path}.status", 200, 599)
    return PortAnswer("http", status, tuple(headers), _bytes(parts.get("body", ""), f"{path}.body"))


def _forward(value: Any, path: str) -> PortAnswer:
    """Return a port that is forwarded to this machine only: the configuration cannot reach other hosts."""
    host, _, port = _text(value, path).rpartition(":")
    if host not in ("", "localhost", "127.0.0.1"):
        raise InvalidImages(_at(path, "must be localhost:PORT"))
    return PortAnswer("forward", host="127.0.0.1", port=_whole(port, path, 1, 65535))


def _usage(value: Any, path: str) -> Usage:
    fields = _mapping(value, path, ("cpu", "memory", "ephemeral-storage"), ())
    amounts: dict[str, Quantity] = {}
    for name, one in fields.items():
        try:
            amounts[name] = Quantity.parse(one)
        except ValueError as error:
            raise InvalidImages(_at(f"{path}.{name}", str(error))) from None
        if amounts[name].sign() < 0:
            raise InvalidImages(_at(f"{path}.{name}", "must not be negative"))
    return Usage(**{name.replace("-", "_"): amount for name, amount in amounts.items()})


def _probes(value: Any, path: str) -> dict[str, ProbeScript]:
    probes = {}
    for kind, one in _mapping(value, path, PROBES, ()).items():
        where = f"{path}.{kind}"
        if isinstance(one, bool):
            probes[kind] = ProbeScript(None if one else 0.0)
            continue
        fields = _mapping(one, where, ("fail_after", "pass_after"), ())
        times = {name: _duration(seconds, f"{where}.{name}") for name, seconds in fields.items()}
        probes[kind] = ProbeScript(**times)
    return probes


def _files(value: Any, path: str) -> dict[str, bytes]:
    files = {}
    for name, content in _mapping(value, path, None, ()).items():
        if not name.startswith("/") or "\0" in name or len(name) > 4096:
            raise InvalidImages(_at(path, f"invalid absolute path {name!r}"))
        files[name] = _bytes(content, f"{path}.{name}")
    return files


_PARSERS: Final[dict[str, Callable[[Any, str], Any]]] = {
    "logs": _logs,
    "exec": _commands,
    "ready": _switch,
    "ready_after": _duration,
    "run_for": _duration,
    "exit": _exit_codes,
    "stop_after": _duration,
    "pull_error": _switch,
    "ports": _ports,
    "usage": _usage,
    "probes": _probes,
    "files": _files,
}
