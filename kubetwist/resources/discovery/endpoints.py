"""
Serves discovery: C{/}, C{/api}, C{/apis}, the paths directly below them, and the responses for unknown paths.

Documents that kube-apiserver serves behind its router support GET only; all further documents accept any method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from klein import Klein

from ...api.errors import APIStatusError
from ...api.resource import GroupVersion, JSONObject
from ...http.negotiation import (
    Negotiated,
    Negotiator,
    NotAcceptable,
    negotiate_aggregated,
    negotiate_aggregated_with_beta,
    negotiate_document,
    negotiate_document_with_cbor,
    negotiate_unrouted,
)
from ...http.request import KubeRequest
from ..cacheddocuments import (
    CachedDocument,
    Document,
    answer,
    answer_bare,
    answer_document,
    header,
    indented,
)
from ..routing import add_route, new_app, path_not_found
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


def page_not_found(request: KubeRequest) -> bytes:
    """Answer a path that no server of the chain serves: a 404 in plain text, without negotiation."""
    request.setHeader(b"x-content-type-options", b"nosniff")
    return answer(request, 404, b"404 page not found\n", b"text/plain; charset=utf-8")


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

    def negotiate(self, accept: bytes | None) -> Negotiated | None:
        """Return the form of aggregated discovery that the client accepts; L{None} if it accepts none."""
        if not accept:
            return None
        try:
            return self._negotiate(accept)
        except NotAcceptable:
            return None

    def respond(self, request: KubeRequest, negotiated: Negotiated) -> bytes | None:
        """Return the document in the negotiated form; L{None} after an answer without a body."""
        document = self._documents[negotiated.version].get()
        assert document is not None
        request.setHeader(b"etag", document.etag)
        request.setHeader(b"vary", b"Accept")
        request.setHeader(b"cache-control", b"public")
        if header(request, b"if-none-match") == document.etag:
            answer_bare(request, 304)
            return None
        return answer_document(request, document, negotiated)


class DiscoveryDocuments:
    """The documents of a whole chain, for its first server."""

    def __init__(
        self,
        served_resources: IServedResources,
        address: Callable[[], str],
        paths: Callable[[], Iterable[str]],
        *,
        beta: bool = False,
        remote: FindRemote = lambda: None,
        apis_groups: IServedResources | None = None,
        on_build: Callable[[], object] = lambda: None,
    ) -> None:
        """
        @param served_resources: The local resources.
        @param address: Returns the address and port of this server, for clients.
        @param paths: Returns the paths that the index lists, including the L{index_paths} of groups.
        @param beta: Whether aggregated discovery is served in its beta version, too.
        @param remote: Returns the entries of aggregated servers; L{None} without such servers.
        @param apis_groups: The groups and versions in the C{APIGroupList}; L{None} lists C{served_resources}.
        @param on_build: Called when an aggregated document is built.
        """
        groups = apis_groups or served_resources
        self._served_resources = served_resources
        self._address = address
        self._paths = paths
        self._aggregated_core = _Aggregated(served_resources, True, beta, lambda: None, on_build)
        self._aggregated = _Aggregated(served_resources, False, beta, remote, on_build)
        self._group_list = CachedDocument(lambda: groups.generation, lambda: api_group_list(groups))
        self._groups = GroupDocuments(groups)
        self._resource_lists = ResourceLists(served_resources)

    def make_app(self) -> Klein:
        """Return the Klein app."""
        app = new_app()
        for path in ("/", "/index.html"):
            add_route(app, None, path, self._index)
        add_route(app, "GET", "/api", self._core_versions)
        add_route(app, None, "/apis", self._list_groups)
        add_route(app, "GET", "/api/<version>", self._list_resources)
        add_route(app, "GET", "/apis/<group>/<version>", self._list_resources)
        self._groups.route(app)
        return app

    def _index(self, request: KubeRequest) -> bytes:
        body = indented({"paths": sorted(set(self._paths()))})
        return answer(request, 200, body, b"application/json")

    def _core_versions(self, request: KubeRequest) -> bytes | None:
        accept = header(request, b"accept")
        aggregated = self._aggregated_core.negotiate(accept)
        if aggregated is not None:
            return self._aggregated_core.respond(request, aggregated)
        negotiated = negotiate_document(accept)
        return answer_document(request, Document(api_versions(self._served_resources, self._address())), negotiated)

    def _list_groups(self, request: KubeRequest) -> bytes | None:
        # In the reference, only the path without a slash serves the aggregated document.
        has_slash = request.path.endswith(b"/")
        aggregated = None if has_slash else self._aggregated.negotiate(header(request, b"accept"))
        if aggregated is not None:
            return self._aggregated.respond(request, aggregated)
        return _respond_unrouted(request, self._group_list.get())

    def _list_resources(self, request: KubeRequest, version: str, group: str = "") -> bytes:
        # In the reference, all other documents of discovery have no CBOR, also the resources of a custom group.
        negotiate = negotiate_document_with_cbor if request.site.serves_cbor else negotiate_document
        negotiated = negotiate(header(request, b"accept"))
        document = self._resource_lists.get(GroupVersion(group, version))
        if document is None:
            raise APIStatusError.path_not_found()
        return answer_document(request, document, negotiated)


class GroupDocuments:
    """C{/apis/<group>}, by any method."""

    def __init__(self, served_resources: IServedResources) -> None:
        self._served_resources = served_resources
        self._documents: dict[str, CachedDocument] = {}

    def make_app(self) -> Klein:
        """Return a Klein app with this route only."""
        app = new_app()
        self.route(app)
        return app

    def route(self, app: Klein) -> None:
        """Add the route to an app."""
        add_route(app, None, "/apis/<group>", self._respond)

    def forget(self, group: str) -> None:
        """Drop the document of a group that is no longer served."""
        self._documents.pop(group, None)

    def _respond(self, request: KubeRequest, group: str) -> bytes:
        served_resources = self._served_resources
        document = self._documents.get(group)
        if document is None:
            document = self._documents[group] = CachedDocument(
                lambda: served_resources.generation, lambda: api_group(served_resources, group)
            )
        return _respond_unrouted(request, document.get())


class ResourceLists:
    """The lists of the resources of group-versions."""

    def __init__(self, served_resources: IServedResources) -> None:
        self._served_resources = served_resources
        self._documents: dict[GroupVersion, CachedDocument] = {}

    def get(self, group_version: GroupVersion) -> Document | None:
        """Return the document of a group-version; L{None} if it is not served."""
        served_resources = self._served_resources
        document = self._documents.get(group_version)
        if document is None:
            document = self._documents[group_version] = CachedDocument(
                lambda: served_resources.generation, lambda: api_resource_list(served_resources, group_version)
            )
        return document.get()

    def forget(self, group_version: GroupVersion) -> None:
        """Drop the document of a group-version that is no longer served."""
        self._documents.pop(group_version, None)

    def respond(self, request: KubeRequest, group_version: GroupVersion) -> bytes:
        """Answer as for custom resources, which are not behind kube-apiserver's router."""
        return _respond_unrouted(request, self.get(group_version))


def _respond_unrouted(request: KubeRequest, document: Document | None) -> bytes:
    if document is None:
        return page_not_found(request)
    return answer_document(request, document, negotiate_unrouted(header(request, b"accept")))


def unknown_paths_app() -> Klein:
    """Return the Klein app that answers unknown resources and versions of served groups with a 404 Status."""
    app = new_app()
    for path in ("/<prefix>", "/<prefix>/<rest:path>"):
        add_route(app, None, path, path_not_found)
    return app
