"""Compressed OpenAPI documents; they are decompressed for clients that do not accept gzip."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from hashlib import sha512
from typing import Final

import orjson
from attrs import frozen

from twisted.web.server import Request

from ...api.resource import JSONObject
from ..cacheddocuments import accepts_gzip, answer_bare, header

V2_PROTOBUF: Final = "com.github.proto-openapi.spec.v2.v1.0+protobuf"
V3_PROTOBUF: Final = "com.github.proto-openapi.spec.v3.v1.0+protobuf"

#: Documents of more bytes are decompressed in a thread.
LARGE: Final = 256 * 1024


@frozen
class CompressedDocument:
    """
    A built document.

    @ivar hash: The hash of the encoded document.
    @ivar body: The encoded document, compressed with gzip.
    @ivar size: The size before compression.
    @ivar media: The media type of the encoded document.
    """

    hash: str
    body: bytes
    size: int
    media: bytes

    @classmethod
    def pack(cls, content: JSONObject) -> CompressedDocument:
        """Encode a document in JSON."""
        return cls.pieces([orjson.dumps(content)], b"application/json")

    @classmethod
    def pieces(cls, pieces: Iterable[bytes], media: bytes) -> CompressedDocument:
        """Construct a document from its encoded pieces, which are compressed one by one, as it may be large."""
        size, digest, packer = 0, sha512(), zlib.compressobj(1, zlib.DEFLATED, 31)
        chunks = []
        for piece in pieces:
            size += len(piece)
            digest.update(piece)
            chunks.append(packer.compress(piece))
        chunks.append(packer.flush())
        return cls(digest.hexdigest().upper(), b"".join(chunks), size, media)

    def decompress(self) -> bytes:
        """Return the decompressed body."""
        return zlib.decompress(self.body, 31, self.size)


def needs_decompression(request: Request, document: CompressedDocument) -> bool:
    """Return whether a response needs a decompression that takes long."""
    return document.size > LARGE and request.method != b"HEAD" and not accepts_gzip(request)


def answer_compressed(
    request: Request, document: CompressedDocument, decompressed: bytes | None = None
) -> bytes | None:
    """
    Set the head of the response and return its body; respond without a body if the client has a current copy.

    @param decompressed: The decompressed document, if the caller has it; otherwise it is decompressed when needed.
    """
    etag = b'"%b"' % document.hash.encode()
    request.setHeader(b"etag", etag)
    known = header(request, b"if-none-match")
    if known is not None and _matches(known, etag):
        answer_bare(request, 304 if request.method in (b"GET", b"HEAD") else 412)
        return None
    request.setHeader(b"content-type", document.media)
    body: bytes
    if accepts_gzip(request):
        body = document.body
        request.setHeader(b"content-encoding", b"gzip")
        if b"Accept-Encoding" not in request.responseHeaders.getRawHeaders(b"vary", []):
            request.responseHeaders.addRawHeader(b"vary", b"Accept-Encoding")
        length = len(body)
    else:
        length = document.size
        body = b"" if request.method == b"HEAD" else decompressed or document.decompress()
    request.setHeader(b"content-length", b"%d" % length)
    return b"" if request.method == b"HEAD" else body


def _matches(known: bytes, etag: bytes) -> bool:
    tags = [tag.strip().removeprefix(b"W/") for tag in known.split(b",")]
    return etag in tags or b"*" in tags
