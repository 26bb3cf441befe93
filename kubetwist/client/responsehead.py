"""
Heads of HTTP/1.1 responses, parsed strictly.

Input that two parsers could read differently is an error: bare line feeds, folded lines, spaces before colons,
a length and a transfer encoding together. Heads that are passed on are parsed and serialized again.
"""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

#: Maximum size of a head in bytes, and maximum number of its fields.
MAX_HEAD: Final = 128 * 1024
MAX_FIELDS: Final = 500

_TOKEN: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_STATUS: Final = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: ([^\x00-\x08\x0a-\x1f\x7f]*))?")
_VALUE: Final = re.compile(rb"[^\x00-\x08\x0a-\x1f\x7f]*")

Fields = list[tuple[bytes, bytes]]


class InvalidHead(ValueError):
    """A response head is invalid; the text of the error quotes nothing of it."""


@frozen
class Head:
    """
    The head of a response.

    @ivar minor: The minor version of HTTP: 0 or 1.
    @ivar fields: With names in lower case, in their order.
    @ivar phrase: The reason phrase; C{b""} without one.
    """

    minor: int
    code: int
    fields: Fields
    phrase: bytes = b""

    def values(self, name: bytes) -> list[bytes]:
        """Return all values of a field."""
        return [value for one, value in self.fields if one == name]

    @property
    def keep_alive(self) -> bool:
        """Return whether the connection may be used again."""
        if self.minor == 0:
            return False
        return not any(b"close" in value.lower() for value in self.values(b"connection"))


def parse_head(data: bytes) -> Head:
    """
    Parse a head.

    @param data: The head without the empty line at its end.
    @raise InvalidHead: It is malformed.
    """
    first, *lines = data.split(b"\r\n")
    if len(lines) > MAX_FIELDS:
        raise InvalidHead("too many header fields")
    status = _STATUS.fullmatch(first)
    if status is None:
        raise InvalidHead("malformed HTTP status" if first.startswith(b"HTTP/1.") else "malformed HTTP response")
    fields: Fields = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise InvalidHead("malformed MIME header line")
        fields.append((name.lower(), value.strip(b" \t")))
    return Head(int(status[1]), int(status[2]), fields, status[3] or b"")


def body_length(head: Head, method: bytes) -> int | None:
    """
    Return the length of the body: C{-1} for a chunked one, L{None} for one that ends with the connection.

    @param method: The method of the request.
    @raise InvalidHead: The length is ambiguous.
    """
    lengths, codings = head.values(b"content-length"), head.values(b"transfer-encoding")
    if codings:
        if lengths or head.minor == 0 or len(codings) != 1 or codings[0].lower() != b"chunked":
            raise InvalidHead("unsupported transfer encoding")
    elif lengths and (len(lengths) != 1 or not lengths[0].isdigit() or len(lengths[0]) > 18):
        raise InvalidHead("bad Content-Length")
    if method == b"HEAD" or head.code in (204, 304) or head.code < 200:
        return 0
    if codings:
        return -1
    return int(lengths[0]) if lengths else None
