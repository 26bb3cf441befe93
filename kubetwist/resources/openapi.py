"""
OpenAPI over HTTP: C{/openapi/v2} and C{/openapi/v3}.

Documents are built in a thread when one is first asked for, and again after what is served has changed. What stays
in memory is compressed, as clients ask for it in that form; the few others get it unpacked.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha512
from itertools import chain
from typing import Any, Final, Protocol, cast
from urllib.parse import parse_qs, unquote

import orjson
from attrs import frozen

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.server import NOT_DONE_YET, Request

from ..api.resource import GroupVersion, JSONObject
from . import openapi_parts
from .discovery import page_not_found
from .discovery_http import Leaf, answer_bare, header, takes_gzip
from .installed import IInstalled, InstalledResource
from .negotiation import parse_accept
from .openapi_custom import custom_paths
from .openapi_operations import Definitions, Path, Release, document_paths, resource_paths, root_path
from .openapi_parts import V2, Part, Parts, joined
from .openapi_protobuf import encode_v2
from .openapi_schemas import IDefinitions, known_to_middle, reachable, v2_schemas, v3_schemas
from .openapi_v2 import path_item, v2_frame
from .openapi_v3 import v3_document

#: What is served, as of one moment.
Snapshot = Sequence[tuple[GroupVersion, Sequence[InstalledResource]]]


class IRunInThread(Protocol):
    """C{functools.partial(deferToThreadPool, reactor, reactor.getThreadPool())}, or something like it."""

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        """The result of C{function}, which may take long."""


@frozen
class Packed:
    """
    A built document.

    @ivar hash: Of what it is encoded as.
    @ivar body: What it is encoded as, compressed with gzip.
    @ivar size: Before it was compressed.
    @ivar media: The type of what it is encoded as.
    """

    hash: str
    body: bytes
    size: int
    media: bytes

    @classmethod
    def pack(cls, content: JSONObject) -> Packed:
        """Encode a document in JSON."""
        return cls.pieces([orjson.dumps(content)], b"application/json")

    @classmethod
    def pieces(cls, pieces: Iterable[bytes], media: bytes) -> Packed:
        """Keep a document that is encoded already; it may be large, and is nowhere as a whole."""
        size, digest, packer = 0, sha512(), zlib.compressobj(1, zlib.DEFLATED, 31)
        packed = []
        for piece in pieces:
            size += len(piece)
            digest.update(piece)
            packed.append(packer.compress(piece))
        packed.append(packer.flush())
        return cls(digest.hexdigest().upper(), b"".join(packed), size, media)

    def unpacked(self) -> bytes:
        """What it is encoded as."""
        return zlib.decompress(self.body, 31, self.size)


class Builder:
    """Makes documents of what is served; thread-safe, as it keeps nothing that changes."""

    def __init__(self, definitions: IDefinitions, release: str) -> None:
        """@param release: Major and minor version: C{"1.36"}."""
        self._definitions = definitions
        self._release = release
        self._rules = Release(int(release.partition(".")[2]))
        self._parts = Parts(self._rules)

    def v2(self, snapshot: Snapshot) -> Packed:
        """The one document of v2."""
        frame, parts = self._v2(snapshot, V2)
        paths, definitions = (part.inside()[0] for part in parts), (part.inside()[1] for part in parts)
        return Packed.pieces(joined(frame, paths, definitions, ("definitions",)), b"application/json")

    def v2_protobuf(self, snapshot: Snapshot) -> Packed:
        """
        The one document of v2, in protobuf.

        It is made anew, not read from its JSON: reading so much at once would keep all other threads from running.
        """
        frame, parts = self._v2(snapshot, openapi_parts.V2_PROTOBUF)
        pieces = chain([encode_v2(frame)], (part.unpacked() for part in parts))
        return Packed.pieces(pieces, b"application/" + V2_PROTOBUF.encode())

    def _v2(self, snapshot: Snapshot, form: str) -> tuple[JSONObject, list[Part]]:
        """The document but for what it has of custom resources, and that."""
        schemas = v2_schemas(self._definitions)
        names = _names(schemas)
        paths = [path for _, path in document_paths([one for one, _ in snapshot])]
        parts: list[Part] = []
        for group_version, resources in snapshot:
            if any(one.custom for one in resources):
                paths += custom_paths(resource_paths(group_version, (), names, self._rules))
                parts += self._parts.of(form, group_version, resources, names)
            else:
                paths += resource_paths(group_version, resources, names, self._rules)
        shared: dict[str, JSONObject] = {}
        written = {path.path: path_item(path, shared) for path in sorted(paths, key=lambda path: path.path)}
        for part in parts:
            shared.update(part.shared)
        return v2_frame(written, schemas, shared, f"v{self._release}"), parts

    def v3(self, snapshot: Snapshot, kept: dict[str, tuple[object, Packed]]) -> dict[str, tuple[object, Packed]]:
        """
        All documents of v3, by their names.

        @param kept: What this returned last time; what has not changed since is not made again.
        """
        sources: dict[str, tuple[object, GroupVersion | None]] = {
            name: (path, None) for name, path in document_paths([one for one, _ in snapshot])
        }
        for group_version, resources in snapshot:
            sources[root_path(group_version)] = resources, group_version
        found = {name: kept[name] for name, (source, _) in sources.items() if name in kept and kept[name][0] == source}
        if len(found) < len(sources):
            schemas = v3_schemas(self._definitions)
            names = _names(schemas)
            for name, (source, about) in sources.items():
                if name in found:
                    continue
                if isinstance(source, Path):
                    paths = [source]
                else:
                    assert about is not None
                    resources = cast("Sequence[InstalledResource]", source)
                    if any(one.custom for one in resources):
                        found[name] = source, self._custom(about, resources, schemas, names)
                        continue
                    paths = resource_paths(about, resources, names, self._rules)
                found[name] = source, Packed.pack(v3_document(paths, schemas, self._release, about))
        return found

    def _custom(
        self,
        about: GroupVersion,
        resources: Sequence[InstalledResource],
        schemas: dict[str, JSONObject],
        names: Definitions,
    ) -> Packed:
        """The v3 document of custom resources."""
        parts = self._parts.of(openapi_parts.V3, about, resources, names)
        needs = {name for part in parts for name in part.needs}
        frame: JSONObject = {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
            "paths": {},
            "components": {"schemas": known_to_middle(reachable(schemas, needs, None))},
        }
        paths, inside = (part.inside()[0] for part in parts), (part.inside()[1] for part in parts)
        return Packed.pieces(joined(frame, paths, inside, ("components", "schemas")), b"application/json")


def _names(schemas: dict[str, JSONObject]) -> Definitions:
    return Definitions((name, schema.get("x-kubernetes-group-version-kind", ())) for name, schema in schemas.items())


class _Shelf:
    """What is built of one version of OpenAPI: at most one thread is at work on it, and all who ask wait for that."""

    def __init__(
        self, installed: IInstalled, run: IRunInThread, build: Callable[[Snapshot, Any], Any], empty: Any
    ) -> None:
        self._installed = installed
        self._run = run
        self._build = build
        self._built = empty
        self._generation = -1
        self._waiting: list[Deferred[Any]] | None = None

    def get(self) -> Any:
        """What is built, or a Deferred of it."""
        if self._waiting is None and self._generation == self._installed.generation:
            return self._built
        waiter: Deferred[Any] = Deferred()
        if self._waiting is None:
            self._waiting = [waiter]
            self._begin()
        else:
            self._waiting.append(waiter)
        return waiter

    def _begin(self) -> None:
        installed = self._installed
        generation = installed.generation
        snapshot = [(one, tuple(installed.resources(one))) for one in installed.group_versions()]
        self._run(self._build, snapshot, self._built).addCallbacks(
            self._finished, self._failed, callbackArgs=(generation,)
        )

    def _finished(self, built: Any, generation: int) -> None:
        self._built, self._generation = built, generation
        waiting, self._waiting = self._waiting or (), None
        for waiter in waiting:
            waiter.callback(built)

    def _failed(self, failure: Failure) -> None:
        waiting, self._waiting = self._waiting or (), None
        for waiter in waiting:
            waiter.errback(failure)


class _OpenAPI(Leaf):
    _log = Logger()

    def answer_from(self, shelf: _Shelf, request: Request) -> bytes | int:
        """Answer any method, at once or when the documents are built."""
        built = shelf.get()
        if not isinstance(built, Deferred):
            return self.answer(request, built)
        gone: list[object] = []
        request.notifyFinish().addErrback(gone.append)

        def ready(result: Any) -> None:
            if not gone:
                self._send(request, self.answer(request, result))

        def failed(failure: Failure) -> None:
            self._log.failure("building OpenAPI documents", failure)
            if not gone:
                answer_bare(request, 503)

        built.addCallbacks(ready, failed)
        return NOT_DONE_YET

    def answer(self, request: Request, built: Any) -> bytes | int:
        """Set the head of the response, and return its body."""
        raise NotImplementedError

    def _send(self, request: Request, body: bytes | int) -> None:
        if isinstance(body, bytes):
            if body:
                request.write(body)
            request.finish()


class OpenAPIV2(_OpenAPI):
    """C{/openapi/v2}."""

    def __init__(self, installed: IInstalled, builder: Builder, run: IRunInThread) -> None:
        self._json = _Shelf(installed, run, lambda snapshot, before: builder.v2(snapshot), None)
        self._protobuf = _Shelf(installed, run, lambda snapshot, before: builder.v2_protobuf(snapshot), None)

    def render(self, request: Request) -> bytes | int:
        """Answer any method."""
        if _path(request) != "/openapi/v2":
            return page_not_found(request)
        request.responseHeaders.addRawHeader(b"vary", b"Accept-Encoding")
        request.responseHeaders.addRawHeader(b"vary", b"Accept")
        subtype = _accepted(request, "json", V2_PROTOBUF, _V2_PROTOBUF_OLD)
        if not subtype:
            return answer_bare(request, 406)
        return self.answer_from(self._json if subtype == "json" else self._protobuf, request)

    def answer(self, request: Request, built: Packed) -> bytes | int:
        """@see: L{_OpenAPI.answer}."""
        return _answer_packed(request, built)


class OpenAPIV3(_OpenAPI):
    """C{/openapi/v3}, which lists the documents, and the documents, below it."""

    def __init__(
        self,
        installed: IInstalled,
        builder: Builder,
        run: IRunInThread,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """@param now: The time of day, for the header C{Expires}."""
        self._shelf = _Shelf(installed, run, builder.v3, {})
        self._now = now

    def render(self, request: Request) -> bytes | int:
        """Answer any method."""
        return self.answer_from(self._shelf, request)

    def answer(self, request: Request, built: dict[str, tuple[object, Packed]]) -> bytes | int:
        """@see: L{_OpenAPI.answer}."""
        path = _path(request)
        if path == _V3:
            return self._index(request, built)
        name = path.removeprefix(f"{_V3}/")
        if name not in built:
            return answer_bare(request, 404)
        request.setHeader(b"vary", b"Accept")
        if not _accepted(request, "json"):
            return answer_bare(request, 406)
        packed = built[name][1]
        wanted = parse_qs(request.uri.partition(b"?")[2].decode("latin-1")).get("hash", [""])[0]
        if wanted and wanted != packed.hash:
            request.setHeader(b"content-type", b"application/json")
            request.setHeader(b"etag", b'"%b"' % packed.hash.encode())
            request.setHeader(b"location", _hashed_url(name, packed).encode())
            request.setResponseCode(301)
            return b""
        if wanted:
            # What a hash names never changes.
            expires = self._now() + timedelta(days=365)
            request.setHeader(b"cache-control", b"public, immutable")
            request.setHeader(b"expires", expires.strftime("%a, %d %b %Y %H:%M:%S GMT").encode())
        return _answer_packed(request, packed)

    def _index(self, request: Request, built: dict[str, tuple[object, Packed]]) -> bytes:
        paths = {name: {"serverRelativeURL": _hashed_url(name, packed)} for name, (_, packed) in sorted(built.items())}
        body = orjson.dumps({"paths": paths})
        # The reference leaves the type to a function that knows texts from binaries and nothing more.
        request.setHeader(b"content-type", b"text/plain; charset=utf-8")
        request.setHeader(b"content-length", b"%d" % len(body))
        return b"" if request.method == b"HEAD" else body


_V3: Final = "/openapi/v3"

#: Clients still ask by the older name, which is no media type, as it has an C{@}.
V2_PROTOBUF: Final = "com.github.proto-openapi.spec.v2.v1.0+protobuf"
_V2_PROTOBUF_OLD: Final = "com.github.proto-openapi.spec.v2@v1.0+protobuf"


def _hashed_url(name: str, packed: Packed) -> str:
    return f"{_V3}/{name}?hash={packed.hash}"


def _path(request: Request) -> str:
    path: bytes = request.uri.partition(b"?")[0]
    return unquote(path.decode("latin-1"))


def _accepted(request: Request, *subtypes: str) -> str:
    """Which of C{subtypes} of C{application} the client would rather have, the first where it has no wish, or none."""
    accept = header(request, b"accept")
    for clause in parse_accept(accept.decode("latin-1") if accept else "*/*"):
        if clause.type in ("application", "*"):
            for subtype in subtypes:
                if clause.subtype in (subtype, "*"):
                    return subtype
    return ""


def _answer_packed(request: Request, packed: Packed) -> bytes | int:
    etag = b'"%b"' % packed.hash.encode()
    request.setHeader(b"etag", etag)
    known = header(request, b"if-none-match")
    if known is not None and _matches(known, etag):
        return answer_bare(request, 304)
    request.setHeader(b"content-type", packed.media)
    body: bytes
    if takes_gzip(request):
        body = packed.body
        request.setHeader(b"content-encoding", b"gzip")
        if b"Accept-Encoding" not in request.responseHeaders.getRawHeaders(b"vary", []):
            request.responseHeaders.addRawHeader(b"vary", b"Accept-Encoding")
        length = len(body)
    else:
        length = packed.size
        body = b"" if request.method == b"HEAD" else packed.unpacked()
    request.setHeader(b"content-length", b"%d" % length)
    return b"" if request.method == b"HEAD" else body


def _matches(known: bytes, etag: bytes) -> bool:
    tags = [tag.strip().removeprefix(b"W/") for tag in known.split(b",")]
    return etag in tags or b"*" in tags
