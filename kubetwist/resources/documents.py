"""Gives the documents that describe a server their paths: the index, discovery, OpenAPI."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .aggregation.remotes import IRemotes, Others
from .discovery.endpoints import CoreVersions, Group, Groups, GroupVersionResources, Index, PathNotFound, index_paths
from .endpoint import in_threads_of
from .install import group_version_path
from .mux import Layer
from .openapi.endpoints import IRemoteDocuments, OpenAPIV2, OpenAPIV3, builder_of
from .servedresources import IInstalled

if TYPE_CHECKING:
    from ..interfaces import IServerReactor
    from ..schema.definitions import Definitions


def install_documents(
    front: Layer,
    installed: IInstalled,
    definitions: Definitions,
    reactor: IServerReactor,
    address: Callable[[], str],
    other_paths: Callable[[], list[str]],
    listed: IInstalled | None = None,
    aggregation: IRemotes | None = None,
    made: Callable[[], object] = lambda: None,
) -> Others | None:
    """
    Let the first server of the chain answer the documents that describe the whole chain.

    @param address: The server's own address and port.
    @param other_paths: Returns paths other than those of APIs, for the index and for OpenAPI; also called in a thread.
    @param listed: The groups and versions that C{/apis} lists, if not those of C{installed}.
    @param aggregation: The other servers, whose documents are merged.
    @param made: Called when a document of aggregated discovery is built.
    @return: The clients of the other servers' documents, to be started and stopped.
    """
    listed = listed or installed
    run = in_threads_of(reactor)
    others = None if aggregation is None else Others(aggregation, reactor, run)
    beta = int(definitions.minor.partition(".")[2]) < 33
    for path in ("/", "/index.html"):
        front.claim(path, Index(lambda: [*index_paths(installed), *other_paths()]), listed=False)
    groups = Groups(installed, beta, lambda: None if others is None else others.discovery, listed, made)
    front.claim("/apis", groups, slashes=False)
    front.claim("/api", CoreVersions(installed, address, beta, made))
    for group_version in installed.group_versions():
        group = group_version.group
        front.claim(group_version_path(group_version), GroupVersionResources(installed, group_version))
        if group:
            front.claim(f"/apis/{group}", Group(listed, group))
    builder = builder_of(definitions, definitions.minor, other_paths)

    def documents() -> IRemoteDocuments | None:
        return None if others is None else others.openapi

    front.claim_below("/openapi/v2", OpenAPIV2(installed, builder, run, documents))
    # The index has this one with a slash and without.
    v3 = OpenAPIV3(installed, builder, run, remote=documents)
    front.claim_below("/openapi/v3", v3, beneath=lambda: ("",))
    return others


def install_group_ends(last: Layer, installed: IInstalled) -> None:
    """Have the last server answer for versions that its groups do not have: in JSON, where unknown groups are text."""
    last.claim_below("/api", PathNotFound())
    for group in {one.group for one in installed.group_versions()}:
        if group:
            last.claim_below(f"/apis/{group}", PathNotFound())
