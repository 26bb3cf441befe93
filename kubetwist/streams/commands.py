"""Streams, terminal sizes and final status of a command in a container, for any transport."""

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

#: Header with the type of a stream.
STREAM_TYPE: Final = "streamtype"
#: Stream protocol versions of kubelets, the preferred one first.
VERSIONS: Final = (V5, V4, V3, V2, V1)
#: Maximum bytes of the kubelet's error stream.
MAX_STATUS_BYTES: Final = 1 << 20

_NON_ZERO: Final = "NonZeroExitCode"
_EXIT_CODE: Final = "ExitCode"
_MAX_SIZE: Final = 4096

SUCCESS: Final = b'{"metadata":{},"status":"Success"}'


@frozen
class Command:
    """
    The streams of a command.

    @ivar tty: Whether it has a terminal, which can be resized; C{stderr} goes to C{stdout} then.
    """

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False

    def stream_types(self, version: str) -> list[str]:
        """Return the types of the streams to open at the kubelet, in the expected order."""
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
    """Encode a Status for the error channel: without kind, with fields in Go's order."""
    fields: JSONObject = {"metadata": status.get("metadata") or {}}
    for name in ("status", "message", "reason", "details", "code"):
        if status.get(name):
            fields[name] = status[name]
    return go_json(fields).encode("utf-8", "surrogatepass")


def internal_error_status(message: str) -> bytes:
    """Return the Status of a command that failed to run or was interrupted."""
    return encode_status(APIStatusError.internal(message).status())


def final_status(message: bytes, version: str) -> bytes:
    """
    Return the final Status of a command for the client.

    @param message: Content of the kubelet's error stream.
    @param version: Stream protocol version of the kubelet.
    """
    if not message:
        return SUCCESS
    if version not in (V4, V5):
        text = message.decode("utf-8", "replace")
        return internal_error_status(f"{'error' if version in (V2, V3) else 'Error'} executing remote command: {text}")
    try:
        status = decode_json(message).value
    except BodyError as error:
        return internal_error_status(
            f"error stream protocol error: {error} in {quoted(message.decode('utf-8', 'replace'))}"
        )
    if not isinstance(status, dict):
        return internal_error_status("error stream protocol error: unknown error")
    outcome = status.get("status")
    if outcome == "Success":
        return SUCCESS
    if outcome != "Failure":
        return internal_error_status("error stream protocol error: unknown error")
    if status.get("reason") == _NON_ZERO:
        return _exit_code_status(status.get("details"))
    reason = status.get("message")
    return internal_error_status(reason if isinstance(reason, str) else "")


def _exit_code_status(details: JSONValue) -> bytes:
    if not isinstance(details, dict):
        return internal_error_status("error stream protocol error: details must be set")
    causes = details.get("causes")
    for cause in causes if isinstance(causes, list) else ():
        if not isinstance(cause, dict) or cause.get("reason") != _EXIT_CODE:
            continue
        code = cause.get("message", "")
        if not (isinstance(code, str) and code.isascii() and code.isdigit() and len(code) < 20 and int(code) < 256):
            shown = quoted(code) if isinstance(code, str) else '""'
            return internal_error_status(f"error stream protocol error: invalid exit code value {shown}")
        return exit_status(int(code))
    return internal_error_status(f"error stream protocol error: no {_EXIT_CODE} cause given")


def exit_status(code: int) -> bytes:
    """Return the Status of a command with a non-zero exit code."""
    return encode_status(
        {
            "status": "Failure",
            "message": f"command terminated with non-zero exit code: command terminated with exit code {code}",
            "reason": _NON_ZERO,
            "details": {"causes": [{"reason": _EXIT_CODE, "message": str(code)}]},
        }
    )


def status_code(status: bytes) -> int:
    """Return the HTTP status code of a command for metrics: 200 for every exit code."""
    document = json.loads(status)
    if document.get("status") == "Success" or document.get("reason") == _NON_ZERO:
        return 200
    code = document.get("code")
    return code if isinstance(code, int) else 500


class TerminalSizeDecoder:
    """Decodes terminal sizes: a stream of JSON objects, in pieces of any size."""

    def __init__(self) -> None:
        self._text = ""
        self._failed = False
        self._decoder = json.JSONDecoder()

    def feed(self, data: bytes) -> list[tuple[int, int]]:
        """
        Decode received data.

        @return: Widths and heights. After invalid data all further data is ignored.
        """
        sizes: list[tuple[int, int]] = []
        if self._failed:
            return sizes
        # Sizes are ASCII.
        text = self._text + data.decode("latin-1")
        at = _skip(text, 0)
        while at < len(text):
            try:
                value, end = self._decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                # The object may be incomplete, up to a maximum length.
                self._failed = len(text) - at > _MAX_SIZE or text[at] != "{"
                break
            size = _size(value)
            if size is None:
                self._failed = True
                break
            sizes.append(size)
            at = _skip(text, end)
        self._text = "" if self._failed else text[at:]
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
    """Encode a terminal size for a kubelet."""
    return b'{"Width":%d,"Height":%d}\n' % (width, height)
