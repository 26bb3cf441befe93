"""Registers the paths of the documents that describe a server: the index, discovery, OpenAPI."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..api.featuregates import FeatureGates, format_release, parse_release
from .aggregation.remotes import AggregatedDocuments, IRemotes
from .discovery.endpoints import DiscoveryDocuments, index_paths, unknown_paths_app
from .endpoint import thread_deferrer
from .install import group_version_path
from .mux import DelegatingMux
from .openapi.endpoints import IRemoteDocuments, OpenAPIV2, OpenAPIV3, builder_of, openapi_app
from .openapi.schemas import WithoutEnums
from .routing import RoutedApp
from .servedresources import IServedResources

if TYPE_CHECKING:
    from ..interfaces import IServerReactor
    from ..schema.definitions import Definitions


def install_documents(
    front: DelegatingMux,
    served_resources: IServedResources,
    definitions: Definitions,
    reactor: IServerReactor,
    address: Callable[[], str],
    non_api_paths: Callable[[], list[str]],
    apis_groups: IServedResources | None = None,
    aggregation: IRemotes | None = None,
    on_build: Callable[[], object] = lambda: None,
    features: FeatureGates | None = None,
) -> AggregatedDocuments | None:
    """
    Serve the documents that describe the whole chain from its first server.

    @param front: The mux of the first server of the chain.
    @param served_resources: The resources of the whole chain.
    @param definitions: The types of the release.
    @param reactor: Provides the threads in which documents are built.
    @param address: Returns the address and port of this server.
    @param non_api_paths: Returns the paths outside of C{/api} and C{/apis}, for the index and OpenAPI; also called in
        a thread.
    @param apis_groups: The groups and versions that C{/apis} lists; L{None} lists C{served_resources}.
    @param aggregation: The aggregated servers, whose documents are merged; L{None} without aggregation.
    @param on_build: Called when a document of aggregated discovery is built.
    @param features: The feature gates and the release; by default the release of C{definitions}.
    @return: The clients of the aggregated servers' documents, which the caller starts and stops; L{None} without
        aggregation.
    """
    features = features or FeatureGates(parse_release(definitions.minor))
    apis_groups = apis_groups or served_resources
    defer_to_thread = thread_deferrer(reactor)
    aggregated_documents = None if aggregation is None else AggregatedDocuments(aggregation, reactor, defer_to_thread)
    discovery = DiscoveryDocuments(
        served_resources,
        address,
        lambda: [*index_paths(served_resources), *non_api_paths()],
        beta=not features.enabled("AggregatedDiscoveryRemoveBetaType"),
        remote=lambda: None if aggregated_documents is None else aggregated_documents.discovery,
        apis_groups=apis_groups,
        on_build=on_build,
    )
    app = RoutedApp(discovery.make_app)
    for path in ("/", "/index.html"):
        front.handle(path, app, exposed=False)
    front.handle("/apis", app, slashes=False)
    front.handle("/api", app)
    for group_version in served_resources.group_versions():
        front.handle(group_version_path(group_version), app)
        if group_version.group:
            front.handle(f"/apis/{group_version.group}", app)
    cbor = features.enabled("CBORServingAndStorage")
    types = definitions if features.enabled("OpenAPIEnums") else WithoutEnums(definitions)
    builder = builder_of(types, format_release(features.emulated), non_api_paths, cbor)

    def documents() -> IRemoteDocuments | None:
        return None if aggregated_documents is None else aggregated_documents.openapi

    v2 = OpenAPIV2(served_resources, builder, defer_to_thread, documents)
    v3 = OpenAPIV3(served_resources, builder, defer_to_thread, remote=documents)
    openapi = RoutedApp(lambda: openapi_app(v2, v3))
    front.handle_prefix("/openapi/v2", openapi)
    # The index lists this path with and without a slash.
    front.handle_prefix("/openapi/v3", openapi, listed_subpaths=lambda: ("",))
    return aggregated_documents


def install_group_not_found(last: DelegatingMux, served_resources: IServedResources) -> None:
    """
    Answer unknown versions of known groups with a Status, on the last server of the chain.

    Unknown groups get a 404 in plain text.
    """
    app = RoutedApp(unknown_paths_app)
    last.handle_prefix("/api", app)
    for group in {one.group for one in served_resources.group_versions()}:
        if group:
            last.handle_prefix(f"/apis/{group}", app)
