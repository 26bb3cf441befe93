"""Answers the documents that the server generates: cached as bytes, rebuilt when the served resources change."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from hashlib import sha512

import orjson

from twisted.web.server import Request

from ..api.resource import JSONObject
from ..http.negotiation import Negotiated, encode_cbor, encode_yaml, wants_pretty
from ..http.responses import GZIP_FROM, GZIP_LEVEL
from ..http.site import KubeSite

#: Size in bytes from which a document is sent compressed. kube-apiserver compresses from 128 kB on; a document is
#: compressed once, so this costs no request anything, and less is about one TCP segment.
_DOCUMENT_GZIP_FROM = 1400


class Document:
    """
    A document, cached in the requested forms.

    @ivar json: The document as compact JSON.
    @ivar etag: The quoted hash of C{json}.
    """

    __slots__ = ("_forms", "etag", "json")

    def __init__(self, content: JSONObject) -> None:
        self.json = orjson.dumps(content)
        self.etag = b'"%b"' % content_hash(self.json).encode()
        self._forms: dict[str, bytes] = {"json": self.json + b"\n"}

    def form(self, media: str, pretty: bool) -> bytes:
        """Return the document as C{"json"}, C{"yaml"}, C{"protobuf"} or C{"cbor"}."""
        name = "pretty" if pretty and media == "json" else media
        body = self._forms.get(name)
        if body is None:
            body = self._forms[name] = encoded(orjson.loads(self.json), media)
        return body

    def compressed(self, media: str, pretty: bool) -> bytes:
        """Return the body, compressed."""
        name = f"{media} {pretty} packed"
        body = self._forms.get(name)
        if body is None:
            body = self._forms[name] = gzipped(self.form(media, pretty))
        return body


class CachedDocument:
    """A L{Document} that is built on first use, and rebuilt after changes."""

    def __init__(self, generation: Callable[[], int], build: Callable[[], JSONObject | None]) -> None:
        """
        @param generation: Returns a number that changes with every update.
        @param build: Builds the content; returns L{None} if there is no document at present.
        """
        self._generation = generation
        self._build = build
        self._built_generation = -1
        self._document: Document | None = None

    def get(self) -> Document | None:
        """Return the current document."""
        generation = self._generation()
        if generation != self._built_generation:
            content = self._build()
            self._document = None if content is None else Document(content)
            self._built_generation = generation
        return self._document


def content_hash(content: bytes) -> str:
    """Return the hash that serves as the document's ETag."""
    return sha512(content).hexdigest().upper()


def indented(content: object) -> bytes:
    """Encode as indented JSON."""
    return orjson.dumps(content, option=orjson.OPT_INDENT_2)


def encoded(content: JSONObject, media: str) -> bytes:
    """Encode in a less common form: C{"yaml"}, C{"protobuf"}, C{"cbor"}, or indented C{"json"}."""
    if media == "yaml":
        return encode_yaml(content)
    if media == "cbor":
        return encode_cbor(content)
    if media == "protobuf":
        from ..schema.metaprotobuf import encode_protobuf

        return encode_protobuf(content)
    return indented(content)


def answer_document(request: Request, document: Document, negotiated: Negotiated) -> bytes:
    """Answer with a document in the negotiated form."""
    pretty = wants_pretty(negotiated, request.uri, header(request, b"user-agent"))
    body = document.form(negotiated.media, pretty)
    if _is_compressed(request, body, _DOCUMENT_GZIP_FROM):
        return _answer(request, 200, document.compressed(negotiated.media, pretty), negotiated.content_type, True)
    return _answer(request, 200, body, negotiated.content_type)


def answer(request: Request, code: int, body: bytes, content_type: bytes) -> bytes:
    """
    Set the head of the response, and return its body.

    @param request: The request.
    @param code: The HTTP status.
    @param body: The uncompressed body; it is compressed if it is large and the client accepts gzip.
    @param content_type: The media type of C{body}.
    @return: The body to send; empty for HEAD.
    """
    compressed = _is_compressed(request, body)
    return _answer(request, code, gzipped(body) if compressed else body, content_type, compressed)


def _is_compressed(request: Request, body: bytes, gzip_from: int = GZIP_FROM) -> bool:
    site: KubeSite = request.site  # type: ignore[assignment] # the only site here
    return len(body) > gzip_from and site.compresses and accepts_gzip(request)


def _answer(request: Request, code: int, body: bytes, content_type: bytes, compressed: bool = False) -> bytes:
    request.setResponseCode(code)
    request.setHeader(b"content-type", content_type)
    if compressed:
        request.setHeader(b"content-encoding", b"gzip")
        request.responseHeaders.addRawHeader(b"vary", b"Accept-Encoding")
    request.setHeader(b"content-length", b"%d" % len(body))
    return b"" if request.method == b"HEAD" else body


def answer_bare(request: Request, code: int) -> None:
    """Answer without a body and without a content type."""
    request.defaultContentType = None
    request.setResponseCode(code)
    if code != 304:
        request.setHeader(b"content-length", b"0")
    request.finish()


def accepts_gzip(request: Request) -> bool:
    """Return whether the client accepts gzip; without parameters, as in the reference."""
    accepted = header(request, b"accept-encoding") or b""
    return any(one.strip() == b"gzip" for one in accepted.split(b","))


def gzipped(body: bytes) -> bytes:
    """Compress C{body} at the fastest level."""
    compressor = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, 31)
    return compressor.compress(body) + compressor.flush()


def header(request: Request, name: bytes) -> bytes | None:
    """Return the first header field with the name."""
    values = request.requestHeaders.getRawHeaders(name)
    return values[0] if values else None
