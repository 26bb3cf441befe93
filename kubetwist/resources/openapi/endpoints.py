"""
OpenAPI over HTTP: C{/openapi/v2} and C{/openapi/v3}.

Documents are built in a thread at their first request, and again after the served resources have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar
from urllib.parse import parse_qs

import orjson

from klein import Klein
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from ...api.resource import GroupVersion
from ...http.negotiation import parse_accept
from ...http.request import KubeRequest
from ..cacheddocuments import answer_bare, header
from ..remotedocuments import FAILURES
from ..routing import add_route, new_app
from ..servedresources import APIResource, IServedResources
from .compressed import V2_PROTOBUF, V3_PROTOBUF, CompressedDocument, answer_compressed, needs_decompression

if TYPE_CHECKING:
    from ...http.collaborators import DeferToThread
    from .builder import Builder, Remote
    from .schemas import IDefinitions


def builder_of(
    definitions: IDefinitions,
    release: str,
    non_api_paths: Callable[[], Collection[str]] = tuple,
    cbor: bool = False,
) -> Callable[[], Builder]:
    """
    Return the builder of a release, created on first use in a thread, since importing it takes time as well.

    @param definitions: The types of the release.
    @param release: Major and minor version: C{"1.36"}.
    @param non_api_paths: Returns the paths outside of C{/api} and C{/apis}; called in that thread.
    @param cbor: Whether CBOR is a media type of resources.
    """
    builders: list[Builder] = []

    def get() -> Builder:
        from .builder import Builder

        if not builders:
            builders.append(Builder(definitions, release, frozenset(non_api_paths()), cbor))
        return builders[0]

    return get


def _in_protobuf(document: CompressedDocument) -> CompressedDocument:
    from .builder import v3_protobuf

    return v3_protobuf(document)


class IRemoteDocuments(Protocol):
    """The OpenAPI documents of other servers: L{kubetwist.resources.aggregation.openapi.RemoteOpenAPI}."""

    @property
    def generation(self) -> int:
        """Return a number that changes with every update of their v2 documents."""

    def specs(self) -> Remote:
        """Return the specs for the v2 document."""

    def listed(self) -> Mapping[str, str]:
        """Return the hashes of their v3 documents, by name."""

    def document(self, name: str) -> CompressedDocument | Deferred[CompressedDocument]:
        """Return one of these documents."""


T = TypeVar("T")
#: The served resources of each group-version.
Snapshot = list[tuple[GroupVersion, tuple[APIResource, ...]]]
#: Returns the documents of other servers; L{None} while there are no other servers.
FindRemote = Callable[[], IRemoteDocuments | None]


class _DocumentCache(Generic[T]):
    """
    Cache of the built documents of one version of OpenAPI.

    At most one thread builds, and concurrent requests share its result.
    """

    def __init__(
        self,
        served_resources: IServedResources,
        defer_to_thread: DeferToThread,
        build: Callable[[Snapshot, T | None, Remote], T],
        remote: FindRemote,
    ) -> None:
        """
        @param served_resources: The served resources.
        @param defer_to_thread: Runs C{build}.
        @param build: Called in a thread with the served resources, the previous result, and the documents of aggregated
            servers.
        @param remote: Returns the documents of aggregated servers.
        """
        self._served_resources = served_resources
        self._defer_to_thread = defer_to_thread
        self._build = build
        self._remote = remote
        self._built: T | None = None
        self._generation = -1, -1
        self._waiters: list[Deferred[T]] | None = None

    def get(self) -> T | Deferred[T]:
        """Return the built value, or a Deferred of it."""
        if self._waiters is None and self._built is not None and self._generation == self._now():
            return self._built
        waiter: Deferred[T] = Deferred()
        if self._waiters is None:
            self._waiters = [waiter]
            self._begin()
        else:
            self._waiters.append(waiter)
        return waiter

    def _now(self) -> tuple[int, int]:
        remote = self._remote()
        return self._served_resources.generation, 0 if remote is None else remote.generation

    def _begin(self) -> None:
        served_resources = self._served_resources
        generation = self._now()
        listed = [(one, tuple(served_resources.resources(one))) for one in served_resources.group_versions()]
        snapshot = [(one, resources) for one, resources in listed if all(found.documented for found in resources)]
        remote = self._remote()
        specs: Remote = [] if remote is None else remote.specs()
        self._defer_to_thread(self._build, snapshot, self._built, specs).addCallbacks(
            self._finished, self._failed, callbackArgs=(generation,)
        )

    def _finished(self, built: T, generation: tuple[int, int]) -> None:
        self._built, self._generation = built, generation
        waiters, self._waiters = self._waiters or (), None
        for waiter in waiters:
            waiter.callback(built)

    def _failed(self, failure: Failure) -> None:
        waiters, self._waiters = self._waiters or (), None
        for waiter in waiters:
            waiter.errback(failure)


class _OpenAPI:
    """One version of OpenAPI."""

    _log = Logger()

    def __init__(self, defer_to_thread: DeferToThread) -> None:
        self._defer_to_thread = defer_to_thread

    def answer_compressed(self, request: KubeRequest, document: CompressedDocument) -> bytes | None:
        """Answer as L{answer_compressed} does, but decompress large documents in a thread."""
        if not needs_decompression(request, document):
            return answer_compressed(request, document)

        def answer(request: KubeRequest, decompressed: bytes) -> bytes | None:
            return answer_compressed(request, document, decompressed)

        return self.answer_from(self._defer_to_thread(document.decompress), request, answer)

    def answer_from(
        self, found: T | Deferred[T], request: KubeRequest, answer: Callable[[KubeRequest, T], bytes | None]
    ) -> bytes | None:
        """Answer any method, immediately or when the document is built."""
        if not isinstance(found, Deferred):
            return answer(request, found)
        disconnected: list[object] = []
        request.notifyFinish().addErrback(disconnected.append)

        def ready(result: T) -> None:
            if not disconnected:
                self._send(request, answer(request, result))

        def failed(failure: Failure) -> None:
            if failure.check(*FAILURES):
                self._log.info(
                    "fetching an OpenAPI document of an aggregated server failed: {error}", error=failure.value
                )
            else:
                self._log.failure("building OpenAPI documents failed", failure)
            if not disconnected:
                answer_bare(request, 503)

        found.addCallback(ready).addErrback(failed)
        return None

    def _send(self, request: KubeRequest, body: bytes | None) -> None:
        if body is not None:
            if body:
                request.write(body)
            request.finish()


class OpenAPIV2(_OpenAPI):
    """C{/openapi/v2}."""

    def __init__(
        self,
        served_resources: IServedResources,
        builder: Callable[[], Builder],
        defer_to_thread: DeferToThread,
        remote: FindRemote = lambda: None,
    ) -> None:
        """
        @param served_resources: The served resources.
        @param builder: See L{builder_of}.
        @param defer_to_thread: Runs a function in a thread.
        @param remote: Returns the documents of aggregated servers; L{None} without such servers.
        """
        super().__init__(defer_to_thread)
        self._json = _DocumentCache(
            served_resources, defer_to_thread, lambda now, before, remote_specs: builder().v2(now, remote_specs), remote
        )
        self._protobuf = _DocumentCache(
            served_resources,
            defer_to_thread,
            lambda now, before, remote_specs: builder().v2_protobuf(now, remote_specs),
            remote,
        )

    def route(self, app: Klein) -> None:
        """Add the route to an app."""
        add_route(app, None, "/openapi/v2", self._respond, slashes=False)

    def _respond(self, request: KubeRequest) -> bytes | None:
        request.responseHeaders.addRawHeader(b"vary", b"Accept-Encoding")
        request.responseHeaders.addRawHeader(b"vary", b"Accept")
        subtype = _accepted(request, "json", V2_PROTOBUF, _V2_PROTOBUF_OLD)
        if not subtype:
            answer_bare(request, 406)
            return None
        cache = self._json if subtype == "json" else self._protobuf
        return self.answer_from(cache.get(), request, self.answer_compressed)


class OpenAPIV3(_OpenAPI):
    """C{/openapi/v3}, which lists the documents, and the documents below it."""

    def __init__(
        self,
        served_resources: IServedResources,
        builder: Callable[[], Builder],
        defer_to_thread: DeferToThread,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        remote: FindRemote = lambda: None,
    ) -> None:
        """
        @param served_resources: The served resources.
        @param builder: See L{builder_of}.
        @param defer_to_thread: Runs a function in a thread.
        @param now: Returns the current time, for the header C{Expires}.
        @param remote: Returns the documents of aggregated servers; L{None} without such servers.
        """
        super().__init__(defer_to_thread)
        # Other servers have separate v3 documents.
        self._cache = _DocumentCache(
            served_resources, defer_to_thread, lambda now, before, _: builder().v3(now, before or {}), lambda: None
        )
        self._now = now
        self._remote = remote
        #: By name: a document, and its protobuf form.
        self._protobuf: dict[str, tuple[CompressedDocument, CompressedDocument]] = {}

    def route(self, app: Klein) -> None:
        """Add the routes to an app."""
        add_route(app, None, _V3, self._list_documents, slashes=False)
        add_route(app, None, f"{_V3}/<rest:name>", self._respond)

    def _list_documents(self, request: KubeRequest) -> bytes | None:
        return self.answer_from(self._cache.get(), request, self._index)

    def _respond(self, request: KubeRequest, name: str) -> bytes | None:
        remote = self._remote()
        if remote is not None and name in remote.listed():
            return self.answer_from(remote.document(name), request, partial(self._document, name))
        return self.answer_from(self._cache.get(), request, partial(self._local_document, name))

    def _local_document(
        self, name: str, request: KubeRequest, built: dict[str, tuple[object, CompressedDocument]]
    ) -> bytes | None:
        if name not in built:
            answer_bare(request, 404)
            return None
        return self._document(name, request, built[name][1])

    def _document(self, name: str, request: KubeRequest, document: CompressedDocument) -> bytes | None:
        request.setHeader(b"vary", b"Accept")
        subtype = _accepted(request, "json", V3_PROTOBUF, _V3_PROTOBUF_OLD)
        if not subtype:
            answer_bare(request, 406)
            return None
        requested_hash = parse_qs(request.uri.partition(b"?")[2].decode("latin-1")).get("hash", [""])[0]
        if requested_hash and requested_hash != document.hash:
            media = "json" if subtype == "json" else V3_PROTOBUF
            request.setHeader(b"content-type", b"application/" + media.encode())
            request.setHeader(b"etag", b'"%b"' % document.hash.encode())
            request.setHeader(b"location", _url(name, document.hash).encode())
            request.setResponseCode(301)
            return b""
        if requested_hash:
            # The content for a hash never changes.
            expires = self._now() + timedelta(days=365)
            request.setHeader(b"cache-control", b"public, immutable")
            request.setHeader(b"expires", expires.strftime("%a, %d %b %Y %H:%M:%S GMT").encode())
        if subtype == "json":
            return self.answer_compressed(request, document)
        return self.answer_from(self._in_protobuf(name, document), request, self.answer_compressed)

    def _in_protobuf(
        self, name: str, document: CompressedDocument
    ) -> CompressedDocument | Deferred[CompressedDocument]:
        cached = self._protobuf.get(name)
        if cached is not None and cached[0] is document:
            return cached[1]

        def store(protobuf: CompressedDocument) -> CompressedDocument:
            self._protobuf[name] = document, protobuf
            return protobuf

        return self._defer_to_thread(_in_protobuf, document).addCallback(store)

    def _index(self, request: KubeRequest, built: dict[str, tuple[object, CompressedDocument]]) -> bytes:
        hashes = {name: document.hash for name, (_, document) in built.items()}
        remote = self._remote()
        if remote is not None:
            hashes |= remote.listed()
        paths = {name: {"serverRelativeURL": _url(name, found)} for name, found in sorted(hashes.items())}
        body = orjson.dumps({"paths": paths})
        # The reference detects only text and binary content here.
        request.setHeader(b"content-type", b"text/plain; charset=utf-8")
        request.setHeader(b"content-length", b"%d" % len(body))
        return b"" if request.method == b"HEAD" else body


def openapi_app(v2: OpenAPIV2, v3: OpenAPIV3) -> Klein:
    """Return the Klein app of both versions."""
    app = new_app()
    v2.route(app)
    v3.route(app)
    return app


_V3: Final = "/openapi/v3"

#: Clients still send the older name, which is not a valid media type, as it has an C{@}.
_V2_PROTOBUF_OLD: Final = "com.github.proto-openapi.spec.v2@v1.0+protobuf"
_V3_PROTOBUF_OLD: Final = "com.github.proto-openapi.spec.v3@v1.0+protobuf"


def _url(name: str, found: str) -> str:
    return f"{_V3}/{name}?hash={found}" if found else f"{_V3}/{name}"


def _accepted(request: KubeRequest, *subtypes: str) -> str:
    """
    Return the one of C{subtypes} of C{application} that the client prefers: the first without a preference, or C{""}.
    """
    accept = header(request, b"accept")
    for clause in parse_accept(accept.decode("latin-1") if accept else "*/*"):
        if clause.type in ("application", "*"):
            for subtype in subtypes:
                if clause.subtype in (subtype, "*"):
                    return subtype
    return ""
