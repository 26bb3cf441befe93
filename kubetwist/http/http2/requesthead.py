"""
Read the heads of requests from header blocks, and refuse malformed and too large ones. No I/O.

@see: RFC 9113, section 8.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from attrs import frozen

from ..headsyntax import ESCAPE, MAX_HEAD, METHODS, TARGET, TOKEN, Malformed, expects_continue, valid_host
from .headerblocks import HeaderDecoder

#: Maximum size of a header list in bytes, by the measure of SETTINGS_MAX_HEADER_LIST_SIZE; larger ones are answered
#: with 431.
MAX_LIST: Final = MAX_HEAD
#: A connection whose client sends larger lists is closed.
MAX_DECODED_LIST: Final = 2 * MAX_LIST
#: Maximum number of header fields; more are answered with 431.
MAX_FIELDS: Final = 200
#: A connection whose client sends more fields is closed.
MAX_DECODED_FIELDS: Final = 2 * MAX_FIELDS
#: Added to the size of name and value for each field of a header list.
FIELD_OVERHEAD: Final = 32

_FORBIDDEN_NAME: Final = re.compile(rb"[A-Z]")
_FORBIDDEN_VALUE: Final = re.compile(rb"[\0\r\n]|^[ \t]|[ \t]$")
#: Header fields of a connection of HTTP/1.1.
CONNECTION_FIELDS: Final = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)
_PSEUDO: Final = (b":method", b":scheme", b":path", b":authority")
#: Well-formed names of fields; clients use few.
_NAMES: Final[set[bytes]] = set()
_MAX_CACHED_NAMES: Final = 2048
#: Header blocks whose heads a connection keeps, and the maximum size of such a block and its list in bytes.
_MAX_CACHED_HEADS: Final = 16
_MAX_CACHED_BLOCK: Final = 512
_MAX_CACHED_LIST: Final = 4096


class MalformedMessage(Exception):
    """The client breaks a rule of HTTP/2's messages; the stream is reset with PROTOCOL_ERROR."""


@frozen
class RequestHead:
    """
    The head of a request.

    @ivar method: The method.
    @ivar target: Path and query.
    @ivar fields: The header fields by name, with C{host}; requests get copies of it.
    @ivar length: The value of C{Content-Length}; L{None} without.
    @ivar expects_continue: Whether the client waits for 100 Continue before it sends the body.
    @ivar size: Size of the header list, in bytes.
    """

    method: bytes
    target: bytes
    fields: dict[bytes, list[bytes]]
    length: int | None
    expects_continue: bool
    size: int


class HeadReader:
    """
    Reads the header blocks of one connection.

    A block that changes no table decodes to the same head again. The heads of some such blocks are kept, because
    clients repeat requests.
    """

    __slots__ = ("_decoder", "_heads")

    def __init__(self) -> None:
        self._decoder = HeaderDecoder(MAX_DECODED_LIST, MAX_DECODED_FIELDS)
        self._heads: dict[bytes, RequestHead] = {}

    def read(self, block: bytes) -> RequestHead:
        """
        Return the head of a request.

        @raise Malformed: The request is answered with an error.
        @raise MalformedMessage: The stream is reset.
        @raise HeaderListTooLarge: The connection is closed.
        @raise Http2ConnectionError: The connection is closed.
        """
        head = self._heads.get(block)
        if head is not None:
            return head
        fields = self._decode(block)
        head = parse_head(fields)
        if (
            not self._decoder.table_changed
            and len(block) <= _MAX_CACHED_BLOCK
            and head.size <= _MAX_CACHED_LIST
            and len(self._heads) < _MAX_CACHED_HEADS
        ):
            self._heads[block] = head
        return head

    def read_trailers(self, block: bytes) -> None:
        """
        Check the trailers of a request, which are not used.

        @raise MalformedMessage: The stream is reset.
        @raise HeaderListTooLarge: The connection is closed.
        @raise Http2ConnectionError: The connection is closed.
        """
        check_trailers(self._decode(block))

    def skip(self, block: bytes) -> None:
        """
        Decode a block whose stream is refused, as it may change the table.

        @raise HeaderListTooLarge: The connection is closed.
        @raise Http2ConnectionError: The connection is closed.
        """
        self._decode(block)

    def _decode(self, block: bytes) -> Sequence[tuple[bytes, bytes]]:
        fields = self._decoder.decode(block)
        if self._decoder.table_changed:
            self._heads.clear()
        return fields


def parse_head(header_list: Sequence[tuple[bytes, bytes]]) -> RequestHead:
    """
    Check the header list of a request.

    @param header_list: Names and values, in the first two elements of each tuple.
    @raise Malformed: The request is answered with an error.
    @raise MalformedMessage: The stream is reset.
    """
    fields: dict[bytes, list[bytes]] = {}
    pseudo: dict[bytes, bytes] = {}
    size = 0
    for field in header_list:
        name, value = field[0], field[1]
        size += len(name) + len(value) + FIELD_OVERHEAD
        if name not in _NAMES:
            if name.startswith(b":"):
                if fields or name in pseudo or name not in _PSEUDO:
                    raise MalformedMessage(f"the pseudo-header field {name!r} is unknown, repeated or too late")
                pseudo[name] = value
                continue
            check_name(name)
        if _FORBIDDEN_VALUE.search(value):
            raise MalformedMessage(f"the value of {name!r} has a forbidden character")
        if name in fields:
            fields[name].append(value)
        else:
            fields[name] = [value]
    if size > MAX_LIST or len(header_list) > MAX_FIELDS:
        raise Malformed(431)
    if b"te" in fields and fields[b"te"] != [b"trailers"]:
        raise MalformedMessage("TE may only be trailers")
    cookies = fields.get(b"cookie")
    if cookies is not None and len(cookies) > 1:
        fields[b"cookie"] = [b"; ".join(cookies)]
    method, target = _request_line(pseudo)
    _check_host(pseudo.get(b":authority"), fields)
    expectations = fields.get(b"expect")
    expects = expectations is not None and bool(expectations[0]) and expects_continue(expectations[0])
    return RequestHead(method, target, fields, _content_length(fields), expects, size)


def _request_line(pseudo: dict[bytes, bytes]) -> tuple[bytes, bytes]:
    """Return method and target."""
    method, target = pseudo.get(b":method"), pseudo.get(b":path")
    if method == b"CONNECT" and target is None:
        # The server is no proxy; over HTTP/1.1 it answers the same.
        raise Malformed(400)
    if not method or not target or pseudo.get(b":scheme") not in (b"https", b"http"):
        raise MalformedMessage("a pseudo-header field is missing or empty")
    if method not in METHODS and not TOKEN.fullmatch(method):
        raise MalformedMessage("the method is malformed")
    if not target.startswith(b"/") and not (target == b"*" and method == b"OPTIONS"):
        raise MalformedMessage("the path is not absolute")
    if not TARGET.fullmatch(target):
        raise MalformedMessage("the path has a forbidden character")
    if b"%" in target and ESCAPE.search(target.partition(b"?")[0]):
        raise Malformed(400)
    return method, target


def _check_host(authority: bytes | None, fields: dict[bytes, list[bytes]]) -> None:
    """Check C{:authority} and C{Host}, which must not contradict each other, and set the header field."""
    hosts = fields.get(b"host")
    if hosts is not None and (len(hosts) > 1 or (authority is not None and hosts[0] != authority)):
        raise MalformedMessage("Host contradicts :authority")
    if authority is not None:
        fields[b"host"] = [authority]
    elif hosts is None:
        raise Malformed(400, "missing required Host header")
    if not valid_host(fields[b"host"][0]):
        raise Malformed(400, "malformed Host header")


def _content_length(fields: dict[bytes, list[bytes]]) -> int | None:
    lengths = fields.get(b"content-length")
    if lengths is None:
        return None
    length = lengths[0]
    if len(lengths) != 1 or not length.isdigit() or len(length) > 18:
        raise MalformedMessage("Content-Length is malformed")
    return int(length)


def check_name(name: bytes) -> None:
    """
    Check the name of a header field, and remember it.

    @raise MalformedMessage: It is malformed, or belongs to HTTP/1.1.
    """
    if not TOKEN.fullmatch(name) or _FORBIDDEN_NAME.search(name):
        raise MalformedMessage("the name of a header field is malformed")
    if name in CONNECTION_FIELDS:
        raise MalformedMessage(f"the header field {name.decode()} belongs to HTTP/1.1")
    if len(_NAMES) < _MAX_CACHED_NAMES and len(name) < 64:
        _NAMES.add(name)


def check_trailers(header_list: Sequence[tuple[bytes, bytes]]) -> None:
    """
    Check the trailers of a request.

    @raise MalformedMessage: They are malformed.
    """
    if len(header_list) > MAX_FIELDS:
        raise MalformedMessage("there are too many trailers")
    for field in header_list:
        if field[0] not in _NAMES:
            check_name(field[0])
        if _FORBIDDEN_VALUE.search(field[1]):
            raise MalformedMessage("a trailer has a forbidden character")
