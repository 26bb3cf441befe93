"""
Parse heads of HTTP/1.1 requests in one pass, and refuse malformed and too large ones. No I/O.

L{kubetwist.http.http1.channel} handles the connection.
"""

from __future__ import annotations

import re
from typing import Final

from ..headsyntax import (
    ESCAPE,
    MAX_FIELDS,
    MAX_HEAD,
    METHODS,
    TARGET,
    TOKEN,
    Malformed,
    refusal_text,
    valid_host,
)

#: Maximum bytes of the request line; longer ones are answered with 414.
MAX_LINE: Final = 64 * 1024

_VERSION: Final = re.compile(rb"HTTP/[0-9]\.[0-9]")

#: Field names as sent, and in lower case; clients use few.
_NAMES: Final[dict[bytes, bytes]] = {}
_MAX_CACHED_NAMES: Final = 2048
#: Maximum bytes of header fields that are kept for a connection; there may be many connections.
_MAX_KEPT: Final = 1024


Fields = dict[bytes, list[bytes]]
#: Method, target without scheme and host, version, and the header fields by name in lower case.
Head = tuple[bytes, bytes, bytes, Fields]


class HeadParser:
    """
    Parses the heads of one connection.

    Most clients send the same header fields with each request to an endpoint. The last ones are kept, once they were
    sent twice.
    """

    __slots__ = ("_fields", "_text")

    def __init__(self) -> None:
        self._text = b""
        self._fields: Fields | None = None

    def parse(self, head: bytes) -> Head:
        """
        Parse a whole head.

        @param head: Without the empty line at its end.
        @raise Malformed: The head breaks a rule of HTTP or a limit.
        """
        if head.startswith(b"\r\n"):
            head = head[2:]
        if len(head) > MAX_HEAD:
            raise Malformed(414 if head.find(b"\r\n", 0, MAX_LINE) < 0 else 431)
        line, _, text = head.partition(b"\r\n")
        method, target, version = parse_line(line)
        if text == self._text and text:
            kept = self._fields
            if kept is None:
                kept = self._fields = parse_fields(text)
            # Filters remove fields, and replace values.
            fields = {name: values.copy() for name, values in kept.items()}
        else:
            fields = parse_fields(text)
            self._text, self._fields = text if len(text) <= _MAX_KEPT else b"", None
        hosts = fields.get(b"host", ())
        if not hosts:
            if version == b"HTTP/1.1":
                raise Malformed(400, "missing required Host header")
        elif len(hosts) > 1:
            raise Malformed(400)
        elif not valid_host(hosts[0]):
            raise Malformed(400, "malformed Host header")
        return method, target, version, fields


def parse_line(line: bytes) -> tuple[bytes, bytes, bytes]:
    """
    Parse a request line.

    @return: Method, target without scheme and host, and version.
    @raise Malformed: The line breaks a rule of HTTP or a limit.
    """
    if len(line) > MAX_LINE:
        raise Malformed(414)
    if b"\n" in line or b"\r" in line or b"\0" in line:
        raise Malformed(400)
    parts = line.split(b" ")
    if len(parts) != 3:
        raise Malformed(400)
    method, target, version = parts
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise Malformed(505 if _VERSION.fullmatch(version) else 400)
    if method not in METHODS and not TOKEN.fullmatch(method):
        raise Malformed(400)
    if not TARGET.fullmatch(target):
        raise Malformed(400)
    if not target.startswith(b"/") and target != b"*":
        target = _relative(target)
    if b"%" in target and ESCAPE.search(target.partition(b"?")[0]):
        raise Malformed(400)
    return method, target, version


def parse_fields(text: bytes) -> Fields:
    """
    Parse the lines after the request line.

    @return: The header fields by name in lower case.
    @raise Malformed: A line breaks a rule of HTTP or a limit.
    """
    if not text:
        return {}
    lines = text.split(b"\r\n")
    line_breaks = len(lines) - 1
    if text.count(b"\n") != line_breaks or text.count(b"\r") != line_breaks or b"\0" in text:
        raise Malformed(400)
    if len(lines) > MAX_FIELDS:
        raise Malformed(431)
    fields: Fields = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        lower_name = _NAMES.get(name)
        if lower_name is None:
            lower_name = _field_name(name, colon)
        elif not colon:
            raise Malformed(400)
        value = value.strip(b" \t")
        if lower_name in fields:
            fields[lower_name].append(value)
        else:
            fields[lower_name] = [value]
    return fields


def _relative(target: bytes) -> bytes:
    """Return path and query of a target in absolute form, which clients send to proxies."""
    scheme, separator, rest = target.partition(b"://")
    if not separator or scheme.lower() not in (b"http", b"https"):
        raise Malformed(400)
    authority_end = min((at for at in (rest.find(b"/"), rest.find(b"?")) if at >= 0), default=len(rest))
    target = rest[authority_end:]
    return target if target.startswith(b"/") else b"/" + target


def _field_name(name: bytes, colon: bytes) -> bytes:
    """Return a field's name in lower case; check it, and remember it."""
    if not colon or not TOKEN.fullmatch(name):
        raise Malformed(400)
    lower_name = name.lower()
    if len(_NAMES) < _MAX_CACHED_NAMES and len(name) < 64:
        _NAMES[name] = lower_name
    return lower_name


def body_length(fields: dict[bytes, list[bytes]]) -> int | None:
    """
    Return the length of the body in bytes; L{None} for a body in chunks.

    @raise Malformed: The length is malformed, or can be read in two ways.
    """
    lengths = fields.get(b"content-length")
    codings = fields.get(b"transfer-encoding")
    if codings is not None:
        # Both at once, or several, allow request smuggling through proxies.
        if lengths is not None or len(codings) != 1:
            raise Malformed(400)
        if codings[0].lower() != b"chunked":
            raise Malformed(501, "unsupported transfer encoding")
        return None
    if lengths is None:
        return 0
    length = lengths[0]
    if len(lengths) != 1 or not length.isdigit() or len(length) > 18:
        raise Malformed(400)
    return int(length)


def refusal(code: int, message: str = "") -> bytes:
    """Return the response to a malformed request: plain text, as in the reference."""
    reason, text = refusal_text(code, message)
    retry = b"Retry-After: 1\r\n" if code == 429 else b""
    return b"HTTP/1.1 %b\r\n%bContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n" % (
        reason,
        retry,
    ) + b"Content-Length: %d\r\n\r\n%b" % (len(text), text)
