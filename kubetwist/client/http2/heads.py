"""
Header blocks of requests, and heads of responses, with the same strictness as over HTTP/1.1. No I/O.

@see: RFC 9113, section 8.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from ...http.http2.requesthead import CONNECTION_FIELDS, FIELD_OVERHEAD, MalformedMessage, check_name
from ...http.http2.responsehead import field
from ..responsehead import MAX_FIELDS, MAX_HEAD, Fields, Head, InvalidHead

_FORBIDDEN: Final = re.compile(rb"[\0\r\n]")
_FORBIDDEN_IN_TARGET: Final = re.compile(rb"[\x00-\x20\x7f]")
_STATUS: Final = re.compile(rb"[1-9][0-9]{2}")
_VALUE: Final = re.compile(rb"[^\x00-\x08\x0a-\x1f\x7f]*")
_METHODS: Final = {b"GET": b"\x82", b"POST": b"\x83"}
#: The scheme C{https}: a server offers HTTP/2 in the handshake of TLS.
_HTTPS: Final = b"\x87"


#: Fields of requests that are left out, and those that are not kept in memory.
_LEFT_OUT: Final = CONNECTION_FIELDS | {b"te"}
_SECRETS: Final = frozenset((b"authorization", b"cookie"))
_MAX_CACHED_VALUE: Final = 256
#: Well-formed names of fields in responses; servers use few.
_NAMES: Final[set[bytes]] = set()
_MAX_CACHED_NAMES: Final = 2048


class InvalidRequest(Exception):
    """A request cannot be sent, because a text in its head has a forbidden character."""


def request_block(method: bytes, target: bytes, fields: Sequence[tuple[bytes, bytes]], length: int | None) -> bytes:
    """
    Encode the head of a request.

    @param method: The HTTP method.
    @param target: Path and query, escaped.
    @param fields: The header fields with C{Host}; the fields of a connection of HTTP/1.1 are left out.
    @param length: Bytes of the body; L{None} without C{Content-Length}.
    @raise InvalidRequest: A text has a forbidden character.
    """
    if _FORBIDDEN_IN_TARGET.search(method + target):
        raise InvalidRequest
    parts = [_METHODS.get(method) or field(b":method", method), _HTTPS, field(b":path", target)]
    for name, value in fields:
        lower_name = name.lower()
        if lower_name == b"host":
            parts.insert(0, _encode(b":authority", value))
        elif lower_name in _SECRETS or len(value) > _MAX_CACHED_VALUE:
            parts.append(_encode(lower_name, value))
        else:
            parts.append(_encode_cached(lower_name, value))
    if length is not None:
        parts.append(field(b"content-length", b"%d" % length))
    return b"".join(parts)


def _encode(name: bytes, value: bytes) -> bytes:
    """
    Encode a field; C{b""} for one that belongs to a connection of HTTP/1.1.

    @param name: In lower case.
    @raise InvalidRequest: Name or value have a forbidden character.
    """
    if _FORBIDDEN.search(name) or _FORBIDDEN.search(value):
        raise InvalidRequest
    return b"" if name in _LEFT_OUT else field(name, value.strip(b" \t"))


#: Most fields are the same in all requests.
_encode_cached: Final = lru_cache(maxsize=2048)(_encode)


def parse_response_head(header_list: Sequence[tuple[bytes, bytes]]) -> Head:
    """
    Check the header list of a response.

    @param header_list: Names and values, in the first two elements of each tuple.
    @raise InvalidHead: It is malformed.
    """
    if len(header_list) > MAX_FIELDS:
        raise InvalidHead("too many header fields")
    status: bytes | None = None
    fields: Fields = []
    size = 0
    for one in header_list:
        name, value = one[0], one[1]
        size += len(name) + len(value) + FIELD_OVERHEAD
        if name not in _NAMES:
            if name.startswith(b":"):
                if name != b":status" or status is not None or fields:
                    raise InvalidHead("malformed response from server: invalid pseudo header")
                status = value
                continue
            _check_name(name)
        if not _VALUE.fullmatch(value):
            raise InvalidHead("malformed response from server: invalid header field value")
        fields.append((name, value.strip(b" \t")))
    if size > MAX_HEAD:
        raise InvalidHead("response header list larger than advertised limit")
    if status is None:
        raise InvalidHead("malformed response from server: missing status pseudo header")
    if not _STATUS.fullmatch(status):
        raise InvalidHead("malformed response from server: malformed non-numeric status pseudo header")
    return Head(1, int(status), fields)


def _check_name(name: bytes) -> None:
    """
    Check the name of a field, and remember it.

    @raise InvalidHead: It is malformed.
    """
    try:
        check_name(name)
    except MalformedMessage as error:
        raise InvalidHead(f"malformed response from server: {error}") from None
    if len(_NAMES) < _MAX_CACHED_NAMES and len(name) < 64:
        _NAMES.add(name)
