"""
What goes between us and etcd's gRPC gateway, as pure functions: answers of HTTP/1.1, lines of JSON, values in base64.

Bytes in, values out; L{kubetwist.storage.etcdhttp} has the sockets.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from typing import Any, Final

import orjson
from attrs import frozen

from .errors import StorageError
from .values import StoredValue

#: What the head of an answer, or the trailers behind a body, may have at most.
MOST_HEAD: Final = 64 << 10
#: The most bytes in one line of a stream; etcd splits what is much larger than one request may be.
MOST_LINE: Final = 256 << 20

# The codes of gRPC that matter here.
CANCELLED: Final = 1
INVALID_ARGUMENT: Final = 3
DEADLINE_EXCEEDED: Final = 4
NOT_FOUND: Final = 5
RESOURCE_EXHAUSTED: Final = 8
OUT_OF_RANGE: Final = 11
UNAVAILABLE: Final = 14


class BadAnswer(StorageError):
    """What came back is not what the gateway of etcd answers."""


class ResponseReader:
    """
    Reads one answer of HTTP/1.1 from the pieces in which it comes.

    @ivar status: The code; 0 before it is known.
    @ivar done: Whether the answer is complete.
    @ivar keep_alive: Whether another request can follow on the connection.
    """

    __slots__ = ("_buffer", "_left", "_state", "done", "keep_alive", "status")

    def __init__(self) -> None:
        self.status = 0
        self.done = False
        self.keep_alive = True
        self._buffer = b""
        self._state = "head"
        #: Bytes of the body, or of this chunk, that are still to come.
        self._left = 0

    def feed(self, data: bytes) -> bytes:
        """
        Take what came.

        @return: What of the body there is now.
        @raise BadAnswer: It is no HTTP, or more than one answer.
        """
        buffer = self._buffer + data if self._buffer else data
        self._buffer = b""
        parts: list[bytes] = []
        while buffer:
            state = self._state
            if self.done:
                raise BadAnswer("etcd sent more than one answer")
            if state == "head":
                end = buffer.find(b"\r\n\r\n")
                if end < 0:
                    return self._wait(buffer, parts)
                self._read_head(buffer[:end])
                buffer = buffer[end + 4 :]
            elif state == "length" or state == "chunk":
                part = buffer[: self._left]
                parts.append(part)
                buffer = buffer[len(part) :]
                self._left -= len(part)
                if not self._left:
                    if state == "length":
                        self.done = True
                    else:
                        self._state = "chunk end"
            elif state == "rest":
                parts.append(buffer)
                buffer = b""
            else:
                end = buffer.find(b"\r\n")
                if end < 0:
                    return self._wait(buffer, parts)
                self._read_line(buffer[:end])
                buffer = buffer[end + 2 :]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _wait(self, buffer: bytes, parts: list[bytes]) -> bytes:
        if len(buffer) > MOST_HEAD:
            raise BadAnswer("etcd sent a head without an end")
        self._buffer = buffer
        return b"".join(parts)

    def _read_head(self, head: bytes) -> None:
        lines = head.split(b"\r\n")
        words = lines[0].split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
            raise BadAnswer(f"etcd does not speak HTTP/1.1: {lines[0][:60]!r}")
        self.status = int(words[1])
        length = None
        chunked = False
        for line in lines[1:]:
            name, _, value = line.partition(b":")
            name = name.lower()
            if name == b"content-length":
                if not value.strip().isdigit():
                    raise BadAnswer(f"etcd sent a body without a length: {value[:60]!r}")
                length = int(value)
            elif name == b"transfer-encoding":
                chunked = value.strip().lower() == b"chunked"
            elif name == b"connection" and b"close" in value.lower():
                self.keep_alive = False
        if chunked:
            self._state = "size"
        elif length is None:
            self._state = "rest"
            self.keep_alive = False
        elif length:
            self._state, self._left = "length", length
        else:
            self.done = True

    def _read_line(self, line: bytes) -> None:
        if self._state == "size":
            try:
                size = int(line.partition(b";")[0], 16)
            except ValueError:
                size = -1
            if size < 0:
                raise BadAnswer(f"etcd sent a chunk without a size: {line[:60]!r}")
            self._state, self._left = ("chunk", size) if size else ("trailers", 0)
        elif self._state == "chunk end":
            if line:
                raise BadAnswer("etcd sent a chunk that is longer than it says")
            self._state = "size"
        elif not line:
            self.done = True

    def lost(self) -> bool:
        """The connection is closed; whether that was the end of the answer."""
        if self._state == "rest":
            self.done = True
        return self.done


class LineSplitter:
    """Cuts a stream into its lines, whatever the pieces are in which it comes."""

    __slots__ = ("_parts", "_size")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """
        Take what came.

        @return: The lines that are complete now, without those that are empty.
        @raise BadAnswer: A line is too long.
        """
        if b"\n" not in data:
            self._parts.append(data)
            self._size += len(data)
            if self._size > MOST_LINE:
                raise BadAnswer("etcd sent a line without an end")
            return []
        lines = data.split(b"\n")
        if self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
        rest = lines.pop()
        self._parts = [rest] if rest else []
        self._size = len(rest)
        return [line for line in lines if line]


class GatewayError(Exception):
    """
    etcd says no.

    @ivar code: That of gRPC.
    @ivar message: As etcd has it: C{"etcdserver: request is too large"}.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def compacted(self) -> bool:
        """A revision that is asked for is forgotten."""
        return self.code == OUT_OF_RANGE and "compacted" in self.message

    @property
    def future(self) -> bool:
        """A revision that is asked for is not there yet."""
        return self.code == OUT_OF_RANGE and "future" in self.message

    @property
    def uncertain(self) -> bool:
        """Whether a write that is answered so may have been done, or may still be done."""
        if self.code in (UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED):
            return True
        # Codes that etcd does not use for what it refuses: unknown, internal, aborted, data loss.
        return self.code in (2, 10, 13, 15)

    @property
    def elsewhere(self) -> bool:
        """Whether another member may know better."""
        return self.uncertain or self.message.endswith(("too many requests", "rpc not supported for learner"))


def parse_error(status: int, body: bytes) -> GatewayError:
    """What an answer other than 200 says."""
    code, message = 2, ""
    try:
        found = orjson.loads(body)
        code = int(found.get("code", found.get("grpc_code", 2)))
        message = str(found.get("message") or found.get("error") or "")
    except (ValueError, TypeError, AttributeError):
        message = body[:200].decode("utf-8", "replace").strip()
        if 400 <= status < 500:
            code = INVALID_ARGUMENT
    return GatewayError(code, message or f"etcd answers {status}")


def parse_answer(body: bytes) -> dict[str, Any]:
    """
    The object that an answer is.

    @raise BadAnswer: It is none.
    """
    try:
        found = orjson.loads(body)
    except ValueError as error:
        raise BadAnswer(f"etcd sent what is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadAnswer("etcd sent no object")
    return found


def encoded(data: bytes) -> str:
    """Bytes as the gateway takes them."""
    return b2a_base64(data, newline=False).decode("ascii")


def key_bytes(key: str) -> bytes:
    """A key as etcd has it; what L{key_text} makes of foreign ones finds back."""
    return key.encode("utf-8", "surrogateescape")


def key_text(key: bytes) -> str:
    """A key as we have it."""
    return key.decode("utf-8", "surrogateescape")


def header_revision(answer: dict[str, Any]) -> int:
    """
    The revision of the store when a member gave an answer.

    @raise BadAnswer: It is not said.
    """
    try:
        return int(answer["header"]["revision"])
    except (KeyError, TypeError, ValueError):
        raise BadAnswer("etcd sent an answer without a revision") from None


def stored_values(answer: dict[str, Any]) -> list[StoredValue]:
    """
    The values in the answer to a range.

    @raise BadAnswer: They are not as etcd sends them.
    """
    try:
        return [
            StoredValue(key_text(a2b_base64(item["key"])), a2b_base64(item.get("value", "")), int(item["mod_revision"]))
            for item in answer.get("kvs") or ()
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise BadAnswer(f"etcd sent a value that can not be read: {error!r}") from None


@frozen
class Change:
    """
    One event.

    @ivar value: L{None} for a deletion.
    @ivar created: Whether nothing was there before.
    """

    key: str
    value: bytes | None
    revision: int
    created: bool


@frozen
class WatchMessage:
    """
    One line of a watch.

    @ivar revision: Of the store when it was sent.
    @ivar changes: In the order of their revisions.
    @ivar partial: Whether more of these changes follow in the next message.
    @ivar compacted: The oldest revision that is left, where the watch ended for asking for an older one.
    """

    revision: int
    changes: list[Change]
    created: bool = False
    canceled: bool = False
    partial: bool = False
    compacted: int = 0
    reason: str = ""


def parse_message(line: bytes) -> WatchMessage:
    """
    Read a line of a watch.

    @raise BadAnswer: It is no such line.
    @raise GatewayError: The watch failed as a whole.
    """
    found = parse_answer(line)
    error = found.get("error")
    if error is not None:
        raise parse_error(500, orjson.dumps(error if isinstance(error, dict) else {"message": str(error)}))
    result = found.get("result")
    if not isinstance(result, dict):
        raise BadAnswer("etcd sent a message that is none of a watch")
    try:
        return WatchMessage(
            int((result.get("header") or {}).get("revision", 0)),
            [_change(event) for event in result.get("events") or ()],
            result.get("created") is True,
            result.get("canceled") is True,
            result.get("fragment") is True,
            int(result.get("compact_revision", 0)),
            str(result.get("cancel_reason", "")),
        )
    except (KeyError, TypeError, ValueError) as bad:
        raise BadAnswer(f"etcd sent an event that can not be read: {bad!r}") from None


def _change(event: dict[str, Any]) -> Change:
    item = event["kv"]
    revision = item["mod_revision"]
    key = key_text(a2b_base64(item["key"]))
    if event.get("type") == "DELETE":
        return Change(key, None, int(revision), False)
    return Change(key, a2b_base64(item.get("value", "")), int(revision), item["create_revision"] == revision)
