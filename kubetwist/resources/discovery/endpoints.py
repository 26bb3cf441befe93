"""
Serves discovery: C{/}, C{/api}, C{/apis}, the paths directly below them, and the responses for unknown paths.

All are leaf resources of a L{kubetwist.resources.mux.DelegatingMux}. They compare the whole path of the request, and
respond 404 for paths below it. Documents that kube-apiserver serves behind its router support GET only; all further
documents accept any method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from twisted.web.server import Request

from ...api.errors import APIStatusError
from ...api.resource import GroupVersion, JSONObject
from ...http.negotiation import (
    Negotiated,
    Negotiator,
    NotAcceptable,
    negotiate_aggregated,
    negotiate_aggregated_with_beta,
    negotiate_document,
    negotiate_unrouted,
)
from ..cacheddocuments import (
    CachedDocument,
    Document,
    Leaf,
    answer,
    answer_bare,
    answer_document,
    answer_error,
    header,
    indented,
)
from ..servedresources import IServedResources
from .documents import (
    EncodedVersions,
    IRemoteVersions,
    aggregated_discovery,
    api_group,
    api_group_list,
    api_resource_list,
    api_versions,
)

#: Returns the entries of other servers; L{None} while there are no other servers.
FindRemote = Callable[[], IRemoteVersions | None]


def page_not_found(request: Request) -> bytes:
    """Answer a path that no server of the chain serves: a 404 in plain text, without negotiation."""
    request.setHeader(b"x-content-type-options", b"nosniff")
    return answer(request, 404, b"404 page not found\n", b"text/plain; charset=utf-8")


class PathNotFound(Leaf):
    """Answers an unknown resource or version of a served group: a 404 Status."""

    def render(self, request: Request) -> bytes:
        """Handle any method."""
        return answer_error(request, APIStatusError.path_not_found())


class _Routed(Leaf):
    """
    Serves a document at one path, with or without a trailing slash, as the reference's router does: by GET.

    @ivar depth: The number of segments of the path.
    """

    depth = 0

    def render(self, request: Request) -> bytes | int:
        """Answer the document's path; errors are checked in the order of kube-apiserver's router."""
        if len(parts(request)) != self.depth:
            return answer_error(request, APIStatusError.path_not_found())
        if request.method != b"GET":
            return answer_error(request, APIStatusError.method_not_allowed())
        try:
            return self.document(request, header(request, b"accept"))
        except NotAcceptable as error:
            return answer_error(request, error)

    def document(self, request: Request, accept: bytes | None) -> bytes | int:
        """
        Answer with the document.

        @raise NotAcceptable: The client accepts none of its media types.
        """
        raise NotImplementedError


class Index(Leaf):
    """C{/} and C{/index.html}: lists all paths, in one media type, by any method."""

    def __init__(self, paths: Callable[[], Iterable[str]]) -> None:
        """@param paths: Returns the paths of the servers of the chain, including the L{index_paths} of groups."""
        self._paths = paths

    def render(self, request: Request) -> bytes:
        """Handle any method."""
        body = indented({"paths": sorted(set(self._paths()))})
        return answer(request, 200, body, b"application/json")


def index_paths(served_resources: IServedResources) -> list[str]:
    """Return the paths of groups and versions, as the index lists them."""
    paths = ["/api", "/apis", "/apis/"] if served_resources.versions("") else ["/apis", "/apis/"]
    for group, version in served_resources.group_versions():
        paths += [f"/apis/{group}", f"/apis/{group}/{version}"] if group else [f"/api/{version}"]
    return paths


class _Aggregated:
    """The aggregated documents of C{/api} or C{/apis}, for clients that accept them."""

    def __init__(
        self,
        served_resources: IServedResources,
        core: bool,
        beta: bool,
        remote: FindRemote,
        on_build: Callable[[], object],
    ) -> None:
        """
        @param served_resources: The local resources.
        @param core: Whether the document is C{/api} instead of C{/apis}.
        @param beta: Whether the beta version is served, too.
        @param remote: Returns the entries of aggregated servers.
        @param on_build: Called when a document is built.
        """
        self._negotiate: Negotiator = negotiate_aggregated_with_beta if beta else negotiate_aggregated

        def generation() -> int:
            remote_versions = remote()
            return served_resources.generation + (0 if remote_versions is None else remote_versions.generation)

        encoded = EncodedVersions(served_resources)

        def build(version: str) -> JSONObject:
            on_build()
            encoded.begin()
            return aggregated_discovery(served_resources, core, version, remote(), encoded)

        self._documents = {
            version: CachedDocument(generation, partial(build, version)) for version in ("v2", "v2beta1")
        }

    def answer(self, request: Request, accept: bytes | None) -> bytes | int | None:
        """Return the document; L{None} if the client does not accept aggregated discovery."""
        if not accept:
            return None
        try:
            negotiated = self._negotiate(accept)
        except NotAcceptable:
            return None
        document = self._documents[negotiated.version].get()
        assert document is not None
        request.setHeader(b"etag", document.etag)
        request.setHeader(b"vary", b"Accept")
        request.setHeader(b"cache-control", b"public")
        if header(request, b"if-none-match") == document.etag:
            return answer_bare(request, 304)
        return answer_document(request, document, negotiated)


class CoreVersions(_Routed):
    """C{/api}."""

    depth = 1

    def __init__(
        self,
        served_resources: IServedResources,
        address: Callable[[], str],
        beta: bool = False,
        on_build: Callable[[], object] = lambda: None,
    ) -> None:
        """
        @param served_resources: The local resources.
        @param address: Returns the address and port of this server, for clients.
        @param beta: Whether aggregated discovery is served in its beta version, too.
        @param on_build: Called when an aggregated document is built.
        """
        self._address = address
        self._served_resources = served_resources
        self._aggregated = _Aggregated(served_resources, core=True, beta=beta, remote=lambda: None, on_build=on_build)

    def document(self, request: Request, accept: bytes | None) -> bytes | int:
        """@see: L{_Routed.document}."""
        aggregated = self._aggregated.answer(request, accept)
        if aggregated is not None:
            return aggregated
        negotiated = negotiate_document(accept)
        return answer_document(request, Document(api_versions(self._served_resources, self._address())), negotiated)


class Groups(Leaf):
    """C{/apis}, by any method."""

    def __init__(
        self,
        served_resources: IServedResources,
        beta: bool = False,
        remote: FindRemote = lambda: None,
        apis_groups: IServedResources | None = None,
        on_build: Callable[[], object] = lambda: None,
    ) -> None:
        """
        @param served_resources: The local resources.
        @param beta: Whether aggregated discovery is served in its beta version, too.
        @param remote: Returns the entries of aggregated servers; L{None} without such servers.
        @param apis_groups: The groups and versions in the C{APIGroupList}; L{None} lists C{served_resources}.
        @param on_build: Called when an aggregated document is built.
        """
        groups = apis_groups or served_resources
        self._aggregated = _Aggregated(served_resources, core=False, beta=beta, remote=remote, on_build=on_build)
        self._document = CachedDocument(lambda: groups.generation, lambda: api_group_list(groups))

    def render(self, request: Request) -> bytes | int:
        """Handle any method."""
        accept = header(request, b"accept")
        # In the reference, only the path without a slash serves the aggregated document.
        has_slash = request.uri.partition(b"?")[0].endswith(b"/")
        aggregated = None if has_slash else self._aggregated.answer(request, accept)
        return _unrouted(request, self._document.get(), accept) if aggregated is None else aggregated


class Group(Leaf):
    """C{/apis/<group>}, by any method; paths below it are not found."""

    def __init__(self, served_resources: IServedResources, group: str) -> None:
        self._document = CachedDocument(lambda: served_resources.generation, lambda: api_group(served_resources, group))

    def render(self, request: Request) -> bytes:
        """Handle any method."""
        if len(parts(request)) != 2:
            return answer_error(request, APIStatusError.path_not_found())
        return _unrouted(request, self._document.get(), header(request, b"accept"))


class GroupVersionResources(_Routed):
    """C{/api/v1} or C{/apis/<group>/<version>}; paths below it are not found."""

    def __init__(self, served_resources: IServedResources, group_version: GroupVersion) -> None:
        self.depth = 3 if group_version.group else 2
        self._document = CachedDocument(
            lambda: served_resources.generation, lambda: api_resource_list(served_resources, group_version)
        )

    def document(self, request: Request, accept: bytes | None) -> bytes | int:
        """@see: L{_Routed.document}."""
        negotiated: Negotiated = negotiate_document(accept)
        document = self._document.get()
        if document is None:
            return answer_error(request, APIStatusError.path_not_found())
        return answer_document(request, document, negotiated)


class DefinedGroupVersion(Leaf):
    """C{/apis/<group>/<version>} of custom resources, by any method."""

    def __init__(self, served_resources: IServedResources, group_version: GroupVersion) -> None:
        self._document = CachedDocument(
            lambda: served_resources.generation, lambda: api_resource_list(served_resources, group_version)
        )

    def render(self, request: Request) -> bytes:
        """Handle any method."""
        return _unrouted(request, self._document.get(), header(request, b"accept"))


def _unrouted(request: Request, document: Document | None, accept: bytes | None) -> bytes:
    if document is None:
        return page_not_found(request)
    try:
        negotiated = negotiate_unrouted(accept)
    except NotAcceptable as error:
        return answer_error(request, error)
    return answer_document(request, document, negotiated)


def parts(request: Request) -> Sequence[bytes]:
    """Return the segments of the path, without empty ones."""
    return [part for part in request.uri.partition(b"?")[0].split(b"/") if part]
