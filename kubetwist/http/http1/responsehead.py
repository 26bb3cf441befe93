"""Encode the heads of responses."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from twisted.web.http import NO_BODY_CODES
from twisted.web.http_headers import Headers

from ..request import KubeRequest

_STATUS_LINES: Final = {status.value: b"HTTP/1.1 %d %b\r\n" % (status, status.phrase.encode()) for status in HTTPStatus}
_PLAIN_HEAD: Final = (
    b"%bAudit-Id: %b\r\nCache-Control: %b\r\nContent-Type: %b\r\nDate: %b\r\n%bContent-Length: %d\r\n\r\n"
)


def complete_head(request: KubeRequest, length: int, content_type: bytes, close: bool) -> bytes:
    """
    Return the head of a response that is sent together with its body.

    @param length: Bytes of the body.
    @param close: Whether the connection is closed after it.
    """
    code = request.code
    if (
        request.response_fields is None
        and request.warnings is None
        and request.cache_control
        and not close
        and code not in NO_BODY_CODES
    ):
        return _PLAIN_HEAD % (
            _STATUS_LINES[code],
            request.audit_id.encode("latin-1", "replace"),
            request.cache_control,
            content_type,
            request.site.date,
            request.apf_headers.lines,
            length,
        )
    headers = request.complete_fields(content_type, None if code in NO_BODY_CODES else length)
    return encode_head(code, headers, request.apf_headers.lines, close)


def encode_head(code: int, headers: Headers, more: bytes, close: bool) -> bytes:
    """
    Return the head of a response.

    @param more: Further lines.
    @param close: Whether the connection is closed after the response.
    """
    if close:
        headers.setRawHeaders(b"Connection", [b"close"])
    lines = [_STATUS_LINES.get(code) or b"HTTP/1.1 %d Unknown\r\n" % code]
    for name, values in headers.getAllRawHeaders():
        for value in values:
            lines += (name, b": ", value, b"\r\n")
    lines += (more, b"\r\n")
    return b"".join(lines)


def switching_head(fields: Iterable[tuple[bytes, bytes]], audit_id: str) -> bytes:
    """Return the head of a response 101 with some header fields, C{Connection} and the audit id."""
    headers = Headers()
    for name, value in fields:
        headers.addRawHeader(name, value)
    headers.setRawHeaders(b"Connection", [b"Upgrade"])
    if audit_id:
        headers.setRawHeaders(b"Audit-Id", [audit_id.encode("latin-1", "replace")])
    return encode_head(101, headers, b"", False)
