"""
Registers routes for the capabilities of storage objects.

Each group-version has a Klein app, which is created at its first request. Routes, verbs in discovery and operations in
OpenAPI all derive from L{VERBS}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from klein import Klein
from zope.interface import Interface

from ..api.featuregates import FeatureGates
from ..api.resource import GroupVersion, GroupVersionKind
from ..flowcontrol.computing import Computing
from ..interfaces import (
    ICollectionDeleter,
    IConnecter,
    ICreator,
    IGetter,
    IGetterWithOptions,
    IGracefulDeleter,
    ILister,
    INamedCreator,
    IPatcher,
    IResetFieldsProvider,
    IServerReactor,
    IUpdater,
    IWatcher,
)
from ..registry.core.serviceaccount.tokenrequest import TokenRequests
from ..registry.generic.codec import Codec
from ..registry.generic.deprecations import deprecation_warning
from ..registry.generic.fieldmanager.manager import BuiltInVersionConverter, FieldManager, built_in_field_manager
from ..registry.generic.scalestore import ScaleStore
from ..registry.generic.strategy import Strategy
from ..registry.strategies import strategy_finder
from ..registry.subresources import subresource_storage, virtual_storage
from .capabilities import discovered_names, is_namespaced, produced_responses
from .endpoint import Endpoint, no_strategy, thread_deferrer
from .handlers.connect import ConnectHandler, GetWithOptionsHandler
from .handlers.read import ReadHandlers
from .handlers.write import WriteHandlers
from .routing import RoutedApp, add_route, new_app
from .servedresources import APIResource, ServedResources
from .traced import traced_handler

if TYPE_CHECKING:
    from ..http.collaborators import DeferToThread
    from ..http.request import KubeRequest
    from ..registry.core.servercontext import ServerContext
    from ..registry.generic.resourceinfo import ResourceInfo, SubresourceInfo
    from ..schema.definitions import Definitions
    from .handlers.watch import WatchFlusher
    from .mux import DelegatingMux
    from .proxy.upstreamclients import UpstreamClientPool


@frozen
class Verb:
    """
    The HTTP form of a capability.

    @ivar names: The verbs in discovery.
    @ivar method: The HTTP method.
    @ivar has_name: Whether the path names an object.
    @ivar handler: The name of the method of L{ReadHandlers}, L{WriteHandlers} or L{GetWithOptionsHandler}.
    @ivar across_namespaces: Whether it is also served across all namespaces.
    """

    capability: type[Interface]
    names: tuple[str, ...]
    method: str
    has_name: bool
    handler: str
    across_namespaces: bool = False


VERBS: Final = (
    Verb(ICreator, ("create",), "POST", False, "create"),
    Verb(INamedCreator, ("create",), "POST", True, "create_named"),
    Verb(IGetter, ("get",), "GET", True, "get"),
    Verb(IGetterWithOptions, ("get",), "GET", True, "get_with_options"),
    Verb(ILister, ("list",), "GET", False, "list", across_namespaces=True),
    Verb(IWatcher, ("watch",), "GET", False, "watch", across_namespaces=True),
    Verb(IUpdater, ("update",), "PUT", True, "update"),
    Verb(IPatcher, ("patch",), "PATCH", True, "patch"),
    Verb(IGracefulDeleter, ("delete",), "DELETE", True, "delete"),
    Verb(ICollectionDeleter, ("deletecollection",), "DELETE", False, "delete_collection"),
)

#: The verbs of the methods of a connecting subresource.
CONNECT_VERBS: Final = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Installer:
    """
    Registers the paths of the resources of one server of the chain.

    @ivar served_resources: The server's entries for discovery and OpenAPI.
    """

    def __init__(
        self,
        mux: DelegatingMux,
        context: ServerContext,
        definitions: Definitions,
        reactor: IServerReactor,
        flusher: WatchFlusher,
        *,
        min_request_timeout: float = 1800.0,
        clients: UpstreamClientPool | None = None,
        defer_to_thread: DeferToThread | None = None,
        traced: bool = False,
        features: FeatureGates | None = None,
    ) -> None:
        """
        @param context: The stores, and the server's dependencies of actions and reviews.
        @param clients: The clients for proxies, logs and streams; L{None} if these are not served.
        @param defer_to_thread: Runs long computations; by default one at a time in a thread of C{reactor}.
        @param traced: Whether requests are traced.
        @param features: The feature gates and the release of the server; L{None} if the stores have them.
        """
        self.mux = mux
        self.served_resources = ServedResources()
        self._definitions = definitions
        self._reactor = reactor
        self._flusher = flusher
        self._min_request_timeout = min_request_timeout
        self._context = context
        self._clients = clients
        self._traced = traced
        self._features = features or context.environment.features
        self._defer_to_thread = defer_to_thread or Computing(thread_deferrer(reactor), reactor)

    def install(self, infos: Iterable[ResourceInfo]) -> None:
        """Serve C{infos}, in all enabled versions."""
        by_version: dict[GroupVersion, list[Endpoint]] = {}
        for info in infos:
            for version in info.versions:
                endpoints = by_version.setdefault(GroupVersion(info.group, version), [])
                endpoints.extend(self.endpoints(info, version))
        for group_version, endpoints in by_version.items():
            self.served_resources.set_group_version(group_version, [api_resource(endpoint) for endpoint in endpoints])
            path = group_version_path(group_version)
            self.mux.handle_prefix(path, self._routed_app(path, endpoints))

    def _routed_app(self, path: str, endpoints: list[Endpoint]) -> RoutedApp:
        def make() -> Klein:
            app = new_app()
            for endpoint in endpoints:
                self._route(app, path, endpoint)
            return app

        return RoutedApp(make)

    def endpoints(self, info: ResourceInfo, version: str) -> Iterable[Endpoint]:
        """Return the endpoints of a resource and its subresources in one version."""
        storage: object
        if info.stored:
            storage = self._context.stores.get(info.group, info.resource)
        else:
            storage = virtual_storage(info, self._context)
        gvk = info.gvk(version)
        namespaced = is_namespaced(storage, info.resource)
        yield self._endpoint(storage, info, namespaced, version, gvk, info.storage_kind if info.stored else gvk)
        for subresource in info.subresources:
            subresource_store = subresource_storage(info, version, subresource, self._context)
            subresource_gvk = subresource_kind(info, subresource, version)
            same_kind = subresource.kind == info.kind
            storage_gvk = info.storage_kind if same_kind else subresource_gvk
            yield self._endpoint(
                subresource_store, info, namespaced, version, subresource_gvk, storage_gvk, subresource.name, same_kind
            )

    def _endpoint(
        self,
        storage: object,
        info: ResourceInfo,
        namespaced: bool,
        version: str,
        gvk: GroupVersionKind,
        stored: GroupVersionKind,
        subresource: str = "",
        defaults: bool = True,
    ) -> Endpoint:
        codec = Codec(self._definitions, gvk, stored)
        field_manager = None
        find_strategy: Callable[[], Strategy | None] = no_strategy
        if isinstance(storage, TokenRequests):
            find_strategy = strategy_finder(gvk.group, gvk.kind, self._features)
        elif defaults and info.stored:
            find_strategy = self._context.stores.get(info.group, info.resource).find_strategy
        elif defaults:
            find_strategy = strategy_finder(info.group, info.kind, self._features)
        if isinstance(storage, ScaleStore | TokenRequests):
            versions = BuiltInVersionConverter(self._definitions, {gvk.api_version: gvk})
            field_manager = FieldManager(gvk, versions, codec.zero, subresource=subresource)
        elif not info.stored and not subresource:
            field_manager = FieldManager(
                gvk, BuiltInVersionConverter(self._definitions, {gvk.api_version: gvk}), codec.zero
            )
        elif info.stored and defaults:
            reset_fields = storage.reset_fields if IResetFieldsProvider.providedBy(storage) else {}
            field_manager = built_in_field_manager(self._definitions, info, version, reset_fields, subresource)
        return Endpoint(
            storage,
            info,
            namespaced,
            GroupVersion(info.group, version),
            gvk,
            codec,
            self._defer_to_thread,
            find_strategy,
            subresource,
            field_manager=field_manager,
            authorizer=self._context.authorizer,
            min_request_timeout=self._min_request_timeout,
            traced=self._traced,
            features=self._features,
        )

    def _route(self, app: Klein, base: str, endpoint: Endpoint) -> None:
        handlers = Handlers(endpoint, self._reactor, self._flusher, self._clients)
        info, storage = endpoint.info, endpoint.storage
        collection = f"/{info.resource}"
        scoped = f"/namespaces/<namespace>{collection}" if endpoint.namespaced else collection
        tail = f"/{endpoint.subresource}" if endpoint.subresource else ""
        warning = deprecation_warning(endpoint.gvk, int(self._definitions.minor.partition(".")[2]))
        for verb in VERBS:
            if not verb.capability.providedBy(storage):
                continue
            handler = handlers.handler_for(verb)
            if endpoint.traced:
                handler = traced_handler(handler, verb.handler)
            if warning:
                handler = with_warning(handler, warning)
            if verb.capability is IWatcher:
                # These are the deprecated watch paths, from before watches were list queries.
                add_route(app, "GET", f"{base}/watch{scoped}", handler)
                add_route(app, "GET", f"{base}/watch{scoped}/<name>", handler)
                if endpoint.namespaced:
                    add_route(app, "GET", f"{base}/watch{collection}", handler)
                continue
            if verb.has_name:
                add_route(app, verb.method, f"{base}{scoped}/<name>{tail}", handler)
            elif endpoint.subresource:
                continue
            else:
                add_route(app, verb.method, f"{base}{scoped}", handler)
                if verb.across_namespaces and endpoint.namespaced:
                    add_route(app, verb.method, f"{base}{collection}", handler)
        if IConnecter.providedBy(storage):
            connect = ConnectHandler(endpoint, self._clients).connect
            for method in storage.methods:
                add_route(app, method, f"{base}{scoped}/<name>{tail}", connect)
                if storage.subpaths:
                    add_route(app, method, f"{base}{scoped}/<name>{tail}/<path:path>", connect)


class Handlers:
    """The handlers of one endpoint."""

    def __init__(
        self,
        endpoint: Endpoint,
        reactor: IServerReactor,
        flusher: WatchFlusher,
        clients: UpstreamClientPool | None = None,
    ) -> None:
        """
        @param endpoint: The endpoint.
        @param reactor: Runs the timers of watches.
        @param flusher: Writes the events of watches.
        @param clients: The clients for other servers; L{None} if their responses are not served.
        """
        reads = ReadHandlers(endpoint, reactor, flusher)
        self._handlers = reads, WriteHandlers(endpoint, reads), GetWithOptionsHandler(endpoint, clients)

    def handler_for(self, verb: Verb) -> Callable[..., object]:
        """Return the handler of a verb."""
        for handlers in self._handlers:
            handler: Callable[..., Any] | None = getattr(handlers, verb.handler, None)
            if handler is not None:
                return handler
        raise AssertionError(f"no handler for {verb.names}")


def with_warning(handler: Callable[..., object], warning: str) -> Callable[..., object]:
    """Return a handler that adds a warning to every response, also to errors, and records it in audit events."""

    @wraps(handler)
    def handle(request: KubeRequest, *arguments: str, **named: str) -> object:
        request.warn(warning)
        request.annotate("k8s.io/deprecated", "true", "Metadata")
        return handler(request, *arguments, **named)

    return handle


def group_version_path(group_version: GroupVersion) -> str:
    """Return the path of a group-version."""
    return f"/apis/{group_version}" if group_version.group else f"/api/{group_version.version}"


def subresource_kind(info: ResourceInfo, subresource: SubresourceInfo, version: str) -> GroupVersionKind:
    """Return the kind that a subresource reads and returns."""
    if subresource.version:
        return GroupVersionKind(subresource.group, subresource.version, subresource.kind)
    return GroupVersionKind(info.group, version, subresource.kind)


def verbs(storage: object) -> tuple[str, ...]:
    """Return the verbs that a storage object supports, sorted."""
    names = {name for verb in VERBS if verb.capability.providedBy(storage) for name in verb.names}
    if IConnecter.providedBy(storage):
        names.update(CONNECT_VERBS[method] for method in storage.methods if method in CONNECT_VERBS)
    return tuple(sorted(names))


def api_resource(endpoint: Endpoint) -> APIResource:
    """Return the entry of an endpoint for discovery and OpenAPI."""
    info, storage, gvk = endpoint.info, endpoint.storage, endpoint.gvk
    connects = IConnecter.providedBy(storage)
    names = discovered_names(storage)
    return APIResource(
        group=info.group,
        version=endpoint.version.version,
        resource=info.resource,
        subresource=endpoint.subresource,
        kind=gvk,
        kind_shown_group_version=gvk.group_version != endpoint.version,
        singular=names.singular,
        namespaced=endpoint.namespaced,
        short_names=names.short_names,
        categories=names.categories,
        verbs=verbs(storage),
        storage_version_hash=names.storage_version_hash if endpoint.features.enabled("StorageVersionHash") else "",
        list_kind=f"{info.kind}List" if ILister.providedBy(storage) else "",
        delete_returns_object=endpoint.delete_returns_object,
        connect_methods=tuple(storage.methods) if connects else (),
        connect_subpath=connects and bool(storage.subpaths),
        options=storage.options_kind.kind if IGetterWithOptions.providedBy(storage) else "",
        produced=produced_responses(storage, verbs(storage)),
    )
