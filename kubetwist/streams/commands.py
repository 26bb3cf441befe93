"""What goes with a command in a container, whatever carries it: streams, the sizes of its terminal, how it ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from attrs import frozen

from ..api.documents import BodyError
from ..api.errors import APIStatusError, go_json
from ..api.go.quote import quoted
from ..api.jsondecoding import decode_json
from ..api.jsontypes import JSONObject, JSONValue
from .channels import V1, V2, V3, V4, V5

#: The header of a stream that says what it carries.
STREAM_TYPE: Final = "streamtype"
#: What is spoken with a kubelet, the best first.
VERSIONS: Final = (V5, V4, V3, V2, V1)
#: What the kubelet's error stream may have.
MAX_STATUS: Final = 1 << 20

_NON_ZERO: Final = "NonZeroExitCode"
_EXIT_CODE: Final = "ExitCode"
_MAX_SIZE: Final = 4096

SUCCESS: Final = b'{"metadata":{},"status":"Success"}'


@frozen
class Command:
    """
    Which streams a command is to have.

    @ivar tty: It has a terminal, whose size can change; then C{stderr} goes to C{stdout}.
    """

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False

    def stream_types(self, version: str) -> list[str]:
        """The streams to open at a kubelet, in this order; what it expects them to be."""
        types = ["error"]
        if self.stdin:
            types.append("stdin")
        if self.stdout:
            types.append("stdout")
        if self.stderr and not self.tty:
            types.append("stderr")
        if self.tty and version in (V3, V4, V5):
            types.append("resize")
        return types


def encode_status(status: Mapping[str, JSONValue]) -> bytes:
    """A Status as the channel for errors has it: without its kind, in the order that Go has its fields."""
    fields: JSONObject = {"metadata": status.get("metadata") or {}}
    for name in ("status", "message", "reason", "details", "code"):
        if status.get(name):
            fields[name] = status[name]
    return go_json(fields).encode("utf-8", "surrogatepass")


def internal(message: str) -> bytes:
    """The Status of a command that could not be run, or not to its end."""
    return encode_status(APIStatusError.internal(message).status())


def final_status(message: bytes, version: str) -> bytes:
    """
    The Status that tells a client how its command ended.

    @param message: What the kubelet's error stream had.
    @param version: What is spoken with the kubelet.
    """
    if not message:
        return SUCCESS
    if version not in (V4, V5):
        text = message.decode("utf-8", "replace")
        return internal(f"{'error' if version in (V2, V3) else 'Error'} executing remote command: {text}")
    try:
        status = decode_json(message).value
    except BodyError as error:
        return internal(f"error stream protocol error: {error} in {quoted(message.decode('utf-8', 'replace'))}")
    if not isinstance(status, dict):
        return internal("error stream protocol error: unknown error")
    outcome = status.get("status")
    if outcome == "Success":
        return SUCCESS
    if outcome != "Failure":
        return internal("error stream protocol error: unknown error")
    if status.get("reason") == _NON_ZERO:
        return _exited(status.get("details"))
    why = status.get("message")
    return internal(why if isinstance(why, str) else "")


def _exited(details: JSONValue) -> bytes:
    if not isinstance(details, dict):
        return internal("error stream protocol error: details must be set")
    causes = details.get("causes")
    for cause in causes if isinstance(causes, list) else ():
        if not isinstance(cause, dict) or cause.get("reason") != _EXIT_CODE:
            continue
        code = cause.get("message", "")
        if not (isinstance(code, str) and code.isascii() and code.isdigit() and len(code) < 20 and int(code) < 256):
            shown = quoted(code) if isinstance(code, str) else '""'
            return internal(f"error stream protocol error: invalid exit code value {shown}")
        return exit_status(int(code))
    return internal(f"error stream protocol error: no {_EXIT_CODE} cause given")


def exit_status(code: int) -> bytes:
    """The Status of a command that ended with an exit code that is not 0."""
    return encode_status(
        {
            "status": "Failure",
            "message": f"command terminated with non-zero exit code: command terminated with exit code {code}",
            "reason": _NON_ZERO,
            "details": {"causes": [{"reason": _EXIT_CODE, "message": str(code)}]},
        }
    )


def status_code(status: bytes) -> int:
    """What came of a command, as an HTTP status: that it has ended is well, whatever its exit code is."""
    told = json.loads(status)
    if told.get("status") == "Success" or told.get("reason") == _NON_ZERO:
        return 200
    code = told.get("code")
    return code if isinstance(code, int) else 500


class Sizes:
    """Reads the sizes of a terminal: JSON objects, one after the other, however they are cut."""

    def __init__(self) -> None:
        self._text = ""
        self._broken = False
        self._decoder = json.JSONDecoder()

    def feed(self, data: bytes) -> list[tuple[int, int]]:
        """
        Take what arrived.

        @return: Widths and heights. After something that is none there are none any more.
        """
        sizes: list[tuple[int, int]] = []
        if self._broken:
            return sizes
        # Nothing but ASCII is in a size.
        text = self._text + data.decode("latin-1")
        at = _skip(text, 0)
        while at < len(text):
            try:
                value, end = self._decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                # It may be whole when more has arrived, but not for ever.
                self._broken = len(text) - at > _MAX_SIZE or text[at] != "{"
                break
            size = _size(value)
            if size is None:
                self._broken = True
                break
            sizes.append(size)
            at = _skip(text, end)
        self._text = "" if self._broken else text[at:]
        return sizes


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _size(value: JSONValue) -> tuple[int, int] | None:
    if not isinstance(value, dict):
        return None
    size = {"width": 0, "height": 0}
    for name, number in value.items():
        if name.lower() in size and number is not None:
            if type(number) is not int or not 0 <= number < 65536:
                return None
            size[name.lower()] = number
    return size["width"], size["height"]


def encode_size(width: int, height: int) -> bytes:
    """A size of a terminal, as it is sent to a kubelet."""
    return b'{"Width":%d,"Height":%d}\n' % (width, height)
