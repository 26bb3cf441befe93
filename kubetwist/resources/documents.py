"""Registers the paths of the documents that describe a server: the index, discovery, OpenAPI."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .aggregation.remotes import AggregatedDocuments, IRemotes
from .discovery.endpoints import CoreVersions, Group, Groups, GroupVersionResources, Index, PathNotFound, index_paths
from .endpoint import thread_deferrer
from .install import group_version_path
from .mux import DelegatingMux
from .openapi.endpoints import IRemoteDocuments, OpenAPIV2, OpenAPIV3, builder_of
from .servedresources import IServedResources

if TYPE_CHECKING:
    from ..interfaces import IServerReactor
    from ..schema.definitions import Definitions


def install_documents(
    front: DelegatingMux,
    installed: IServedResources,
    definitions: Definitions,
    reactor: IServerReactor,
    address: Callable[[], str],
    other_paths: Callable[[], list[str]],
    listed: IServedResources | None = None,
    aggregation: IRemotes | None = None,
    made: Callable[[], object] = lambda: None,
) -> AggregatedDocuments | None:
    """
    Serve the documents that describe the whole chain from its first server.

    @param address: The server's own address and port.
    @param other_paths: Returns paths other than those of APIs, for the index and for OpenAPI; also called in a thread.
    @param listed: The groups and versions that C{/apis} lists, if not those of C{installed}.
    @param aggregation: The other servers, whose documents are merged.
    @param made: Called when a document of aggregated discovery is built.
    @return: The clients of the other servers' documents, to be started and stopped.
    """
    listed = listed or installed
    run = thread_deferrer(reactor)
    others = None if aggregation is None else AggregatedDocuments(aggregation, reactor, run)
    beta = int(definitions.minor.partition(".")[2]) < 33
    for path in ("/", "/index.html"):
        front.handle(path, Index(lambda: [*index_paths(installed), *other_paths()]), exposed=False)
    groups = Groups(installed, beta, lambda: None if others is None else others.discovery, listed, made)
    front.handle("/apis", groups, slashes=False)
    front.handle("/api", CoreVersions(installed, address, beta, made))
    for group_version in installed.group_versions():
        group = group_version.group
        front.handle(group_version_path(group_version), GroupVersionResources(installed, group_version))
        if group:
            front.handle(f"/apis/{group}", Group(listed, group))
    builder = builder_of(definitions, definitions.minor, other_paths)

    def documents() -> IRemoteDocuments | None:
        return None if others is None else others.openapi

    front.handle_prefix("/openapi/v2", OpenAPIV2(installed, builder, run, documents))
    # The index lists this path with and without a slash.
    v3 = OpenAPIV3(installed, builder, run, remote=documents)
    front.handle_prefix("/openapi/v3", v3, listed_subpaths=lambda: ("",))
    return others


def install_group_ends(last: DelegatingMux, installed: IServedResources) -> None:
    """
    Answer unknown versions of known groups on the last server: in JSON, while unknown groups are answered in text.
    """
    last.handle_prefix("/api", PathNotFound())
    for group in {one.group for one in installed.group_versions()}:
        if group:
            last.handle_prefix(f"/apis/{group}", PathNotFound())
