"""Answer requests with bytes, a Status, or a large body at the pace of its reader."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import orjson

from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

from ..api.errors import APIStatusError, clear_frames
from ..api.jsontypes import JSONObject
from .negotiation import encode_cbor, encode_yaml, error_media, wants_pretty
from .request import KubeRequest

JSON = b"application/json"
YAML = b"application/yaml"
PROTOBUF = b"application/vnd.kubernetes.protobuf"
CBOR = b"application/cbor"
#: Their encoders log the object of the response in JSON.
_BINARY = (PROTOBUF, CBOR)
#: Size in bytes above which responses are compressed for clients that accept gzip, as in the reference.
GZIP_FROM = 128 * 1024
#: The reference compresses at the fastest level too.
GZIP_LEVEL = 1
#: Larger responses, in bytes, are written in pieces at the pace of the client.
PACED_FROM = 256 * 1024
#: Bytes per piece, and the same while cheap requests are served. Encrypted, a waiting piece is sent by one call, for
#: which Twisted's limit is 128 KiB.
PIECE = 126 * 1024
SMALL_PIECE = 32 * 1024


class Body:
    """A response body in parts, so that a large one can be written at the pace of the client."""

    __slots__ = ("length", "parts")

    def __init__(self, parts: Sequence[bytes]) -> None:
        self.parts = parts
        self.length = sum(map(len, parts))

    def joined(self) -> bytes:
        """Return the whole body."""
        return b"".join(self.parts)


def pretty(document: bytes) -> bytes:
    """Return a JSON document indented as in the reference."""
    return orjson.dumps(orjson.loads(document), option=orjson.OPT_INDENT_2)


def respond_error(request: KubeRequest, error: APIStatusError, protobuf: bool = False) -> None:
    """
    Answer with an error, in the media type that the client accepts.

    @param error: The error; its traceback is dropped, see L{clear_frames}.
    @param protobuf: Whether protobuf is available, which it is not for custom resources.
    """
    clear_frames(error)
    if request.disconnected or request.finished:
        return
    if request.startedWriting:
        request.abort()
        return
    error = error.in_release(request.site.features)
    if error.retry_after is not None:
        request.setHeader(b"retry-after", b"%d" % error.retry_after)
    respond_status(request, error.code, error.status(), protobuf)


def respond_status(
    request: KubeRequest, code: int, status: JSONObject, protobuf: bool = False, content_type: bytes = b""
) -> None:
    """
    Answer with a Status, or another small object that the server made.

    @param content_type: The negotiated media type, if the response replaces an object; views do not apply to it.
    """
    request.audit_response_status(status)
    negotiated = error_media(request.getHeader(b"accept"), protobuf, request.site.serves_cbor)
    if negotiated.media == "protobuf" or content_type == PROTOBUF:
        from ..schema.metaprotobuf import encode_protobuf

        request.respond(code, encode_protobuf(status), PROTOBUF)
        return
    if negotiated.media == "cbor" or content_type == CBOR:
        request.respond(code, encode_cbor(status), CBOR)
        return
    if negotiated.media == "yaml" or content_type == YAML:
        request.respond(code, encode_yaml(status), YAML)
        return
    body = orjson.dumps(status)
    if wants_pretty(negotiated, request.uri, request.getHeader(b"user-agent")):
        request.respond(code, pretty(body), JSON)
        return
    request.respond(code, body + b"\n", JSON)


def respond_body(request: KubeRequest, code: int, body: Body, content_type: bytes) -> None:
    """
    Answer with a large body, compressed and paced if that is useful.

    @param request: The request.
    @param code: The status code.
    @param body: The body, in parts.
    @param content_type: The value of C{Content-Type}.
    """
    if request.audit is not None and request.audit.wants_response_object and content_type not in _BINARY:
        request.audit.log_response_object(body.joined(), yaml=content_type.startswith(YAML))
    if body.length > GZIP_FROM and request.site.compresses and accepts_gzip(request):
        start_response(request, code, content_type, None)
        request.setHeader(b"content-encoding", b"gzip")
        request.responseHeaders.addRawHeader(b"vary", b"Accept-Encoding")
        PacedBody(request, body, zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, 31)).start()
    elif body.length >= PACED_FROM:
        start_response(request, code, content_type, body.length)
        PacedBody(request, body, None).start()
    else:
        request.respond(code, body.joined(), content_type)


def respond_object(request: KubeRequest, code: int, body: bytes, content_type: bytes) -> None:
    """
    Answer with an object, compressed and paced if it is large.

    @param request: The request.
    @param code: The status code.
    @param body: The encoded object.
    @param content_type: The value of C{Content-Type}.
    """
    if len(body) <= GZIP_FROM or request.finished or request.disconnected or request.startedWriting:
        request.respond(code, body, content_type)
    else:
        respond_body(request, code, Body([body]), content_type)


def accepts_gzip(request: KubeRequest) -> bool:
    """Return whether the client accepts gzip; without parameters, as in the reference."""
    header = request.getHeader(b"accept-encoding")
    return header is not None and any(one.strip() == b"gzip" for one in header.split(b","))


def start_response(request: KubeRequest, code: int, content_type: bytes, length: int | None) -> None:
    """
    Set the head of a response whose body is written later.

    @param request: The request.
    @param code: The status code.
    @param content_type: The value of C{Content-Type}.
    @param length: The length of the body in bytes; L{None} for a body in chunks.
    """
    request.setResponseCode(code)
    request.setHeader(b"content-type", content_type)
    if length is not None:
        request.setHeader(b"content-length", b"%d" % length)


@implementer(IPushProducer)
class PacedBody:
    """Producer of a large body, at the pace of the client and without a second copy."""

    def __init__(self, request: KubeRequest, body: Body, compressor: zlib._Compress | None) -> None:
        self._request = request
        self._parts = body.parts
        self._next = 0
        #: The written bytes of the next part.
        self._offset = 0
        self._compressor = compressor
        self._paused = False
        self._finished = False
        self._scheduled = False

    def start(self) -> None:
        """Write as much as the transport accepts now."""
        self._request.notifyFinish().addErrback(lambda reason: self.stopProducing())
        # A client that accepts no data now pauses at once.
        self._request.registerProducer(self, True)
        self._resume()

    def pauseProducing(self) -> None:
        """Pause: the transport accepts no data for now."""
        self._paused = True

    def resumeProducing(self) -> None:
        """Resume: the transport accepts more data."""
        self._paused = False
        self._resume()

    def _resume(self) -> None:
        scheduler = self._request.site.scheduler
        while not self._paused and not self._finished and not self._scheduled:
            if scheduler is None:
                self._write()
            else:
                # Encrypting a piece takes time, and many clients may read: serve them in different iterations.
                self._scheduled = True
                scheduler.run_or_defer(self._next_piece)

    def _next_piece(self) -> None:
        self._scheduled = False
        if not self._paused and not self._finished:
            self._write()
            self._resume()

    def _write(self) -> None:
        """Write the next piece."""
        parts, begin, offset, scheduler = self._parts, self._next, self._offset, self._request.site.scheduler
        end, size, total = begin, -offset, len(parts)
        max_size = SMALL_PIECE if scheduler is not None and scheduler.has_cheap_requests else PIECE
        while end < total and size < max_size:
            size += len(parts[end])
            end += 1
        pieces: list[bytes | memoryview] = list(parts[begin:end])
        self._offset = 0
        if size > max_size:
            # The rest of the last part is written later.
            end -= 1
            self._offset = len(pieces[-1]) - (size - max_size)
            pieces[-1] = memoryview(pieces[-1])[: self._offset]
        if offset:
            pieces[0] = memoryview(pieces[0])[offset:]
        self._next = end
        if self._compressor is not None:
            data = self._compressor.compress(b"".join(pieces))
            if end == total:
                data += self._compressor.flush()
            if data:
                self._request.write(data)
        elif len(pieces) == 1 and isinstance(pieces[0], bytes):
            # A part that is written alone is not copied.
            self._request.write(pieces[0])
        else:
            self._request.write_parts(pieces, min(size, max_size))
        if end == total and not self._finished:
            self._finished = True
            self._request.unregisterProducer()
            self._request.finish()

    def stopProducing(self) -> None:
        """Stop: the client has disconnected."""
        self._finished = True
        self._parts = ()
