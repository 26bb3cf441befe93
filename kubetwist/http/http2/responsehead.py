"""
Encode the header blocks of responses, and fields of requests.

No entry is added to the client's table: a block consists of static entries and literals, so that it depends on no other
block, and streams can be sent in any order. Parts that many responses share are encoded once.

@see: RFC 7541.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from twisted.web.http import NO_BODY_CODES

from ..request import KubeRequest
from .requesthead import CONNECTION_FIELDS

#: The change of the table's size to 0, in the first block of a connection.
NO_TABLE: Final = b"\x20"
_STATUS: Final = {
    200: b"\x88", 204: b"\x89", 206: b"\x8a", 304: b"\x8b", 400: b"\x8c", 404: b"\x8d", 500: b"\x8e"
}  # fmt: skip
#: Names in the static table, by index.
_STATIC_NAMES: Final = {
    b":authority": 1, b":method": 2, b":path": 4,
    b"accept": 19, b"accept-encoding": 16, b"age": 21, b"allow": 22, b"authorization": 23, b"cache-control": 24,
    b"content-disposition": 25, b"content-encoding": 26, b"content-language": 27, b"content-length": 28,
    b"content-range": 30, b"content-type": 31, b"cookie": 32, b"date": 33, b"etag": 34, b"expires": 36,
    b"last-modified": 44, b"location": 46, b"retry-after": 53, b"server": 54, b"set-cookie": 55,
    b"strict-transport-security": 56, b"user-agent": 58, b"vary": 59, b"www-authenticate": 61,
}  # fmt: skip
#: Fields with secrets.
_SECRET_NAMES: Final = frozenset((b"authorization", b"cookie", b"set-cookie"))


def _integer(number: int, bits: int, flags: int) -> bytes:
    """Return an integer with a prefix of C{bits} bits, below C{flags}."""
    limit = (1 << bits) - 1
    if number < limit:
        return bytes((flags | number,))
    encoded = bytearray((flags | limit,))
    number -= limit
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _name(name: bytes) -> bytes:
    """Return the start of a literal field; the value follows."""
    # Secrets are never indexed, by proxies either.
    flags = 0x10 if name in _SECRET_NAMES else 0
    index = _STATIC_NAMES.get(name, 0)
    start = _integer(index, 4, flags)
    return start if index else start + _integer(len(name), 7, 0) + name


def field(name: bytes, value: bytes) -> bytes:
    """Encode a header field; C{name} is in lower case."""
    return _name(name) + _integer(len(value), 7, 0) + value


def status(code: int) -> bytes:
    """Return the status of a response."""
    return _STATUS.get(code) or b"\x08\x03%d" % code


#: Longer names of fields, which proxied servers may send, are not cached.
_MAX_CACHED_NAME: Final = 64
_AUDIT_ID: Final = _name(b"audit-id")
_CONTENT_LENGTH: Final = _name(b"content-length")
_LENGTH_OCTETS: Final = tuple(bytes((length,)) for length in range(127))


@lru_cache(maxsize=512)
def _sent_name(name: bytes) -> bytes:
    """Return the start of a literal field; empty for a field that only HTTP/1.1 has."""
    lower_name = name.lower()
    return b"" if lower_name in CONNECTION_FIELDS else _name(lower_name)


@lru_cache(maxsize=512)
def _shared_part(code: int, cache_control: bytes, content_type: bytes, more: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """Return the part of a block that many responses share."""
    fields = [(b"cache-control", cache_control), (b"content-type", content_type), *more]
    return status(code) + b"".join([field(name.lower(), value) for name, value in fields])


@lru_cache(maxsize=8)
def _date(date: bytes) -> bytes:
    return field(b"date", date)


def complete_block(request: KubeRequest, length: int, content_type: bytes) -> bytes:
    """
    Return the header block of a response that is sent together with its body.

    @param length: Bytes of the body.
    """
    code = request.code
    if (
        request.response_fields is None
        and request.warnings is None
        and request.cache_control
        and code not in NO_BODY_CODES
    ):
        audit_id = request.audit_id.encode("latin-1", "replace")
        digits = b"%d" % length
        if len(audit_id) < 127:
            return b"".join(
                (
                    _shared_part(code, request.cache_control, content_type, request.apf_headers.pairs),
                    _date(request.site.date),
                    _AUDIT_ID,
                    _LENGTH_OCTETS[len(audit_id)],
                    audit_id,
                    _CONTENT_LENGTH,
                    _LENGTH_OCTETS[len(digits)],
                    digits,
                )
            )
    request.complete_fields(content_type, None if code in NO_BODY_CODES else length)
    return response_block(request)


def response_block(request: KubeRequest) -> bytes:
    """Return the header block of a response with the header fields of the request, which are complete."""
    fields = [(name, value) for name, values in request.responseHeaders.getAllRawHeaders() for value in values]
    fields += request.apf_headers.pairs
    return encode_block(request.code, fields)


def encode_block(code: int, fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the header block of a response, without the fields of a connection of HTTP/1.1."""
    parts = [status(code)]
    for name, value in fields:
        start, length = (_sent_name if len(name) <= _MAX_CACHED_NAME else _sent_name.__wrapped__)(name), len(value)
        if start:
            parts += (start, _LENGTH_OCTETS[length] if length < 127 else _integer(length, 7, 0), value)
    return b"".join(parts)
