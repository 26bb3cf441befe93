"""
Registers routes for the capabilities of storage objects.

One Klein app per group-version, created at its first request. Routes, verbs in discovery and operations in OpenAPI all
derive from L{VERBS}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from klein import Klein
from zope.interface import Interface

from ..api.resource import GroupVersion, GroupVersionKind
from ..flowcontrol.computing import Computing
from ..interfaces import (
    ICollectionDeleter,
    IConnecter,
    ICreator,
    IGetter,
    IGracefulDeleter,
    ILister,
    INamedCreator,
    IPatcher,
    IServerReactor,
    IUpdater,
    IWatcher,
)
from ..registry.core.serviceaccount.tokenrequest import TokenRequests
from ..registry.generic.codec import Codec
from ..registry.generic.deprecations import deprecation_warning
from ..registry.generic.fieldmanager.manager import BuiltInVersionConverter, FieldManager, built_in_field_manager
from ..registry.generic.scalestore import ScaleStore
from ..registry.strategies import strategy_for
from ..registry.subresources import subresource_storage, virtual_storage
from .endpoint import Endpoint, thread_deferrer
from .handlers.connect import ConnectHandler
from .handlers.read import ReadHandlers
from .handlers.write import WriteHandlers
from .routing import RoutedResource, resource_routes, route_method
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
    @ivar named: Whether the path names an object.
    @ivar anywhere: Whether it is also served across all namespaces.
    """

    capability: type[Interface]
    names: tuple[str, ...]
    method: str
    named: bool
    handler: str
    anywhere: bool = False


VERBS: Final = (
    Verb(ICreator, ("create",), "POST", False, "create"),
    Verb(INamedCreator, ("create",), "POST", True, "create_named"),
    Verb(IGetter, ("get",), "GET", True, "get"),
    Verb(ILister, ("list",), "GET", False, "list", anywhere=True),
    Verb(IWatcher, ("watch",), "GET", False, "watch", anywhere=True),
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

    @ivar installed: The server's entries for discovery and OpenAPI.
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
    ) -> None:
        """
        @param context: The stores, and the server's dependencies of actions and reviews.
        @param clients: The clients for proxies, logs and streams; L{None} if these are not served.
        @param defer_to_thread: Runs long computations; by default one at a time in a thread of C{reactor}.
        @param traced: Whether requests are traced.
        """
        self.mux = mux
        self.installed = ServedResources()
        self._definitions = definitions
        self._reactor = reactor
        self._flusher = flusher
        self._min_request_timeout = min_request_timeout
        self._context = context
        self._clients = clients
        self._traced = traced
        self._in_thread = defer_to_thread or Computing(thread_deferrer(reactor), reactor)

    def install(self, infos: Iterable[ResourceInfo]) -> None:
        """Serve C{infos}, in all enabled versions."""
        by_version: dict[GroupVersion, list[Endpoint]] = {}
        for info in infos:
            for version in info.versions:
                endpoints = by_version.setdefault(GroupVersion(info.group, version), [])
                endpoints.extend(self._endpoints(info, version))
        for group_version, endpoints in by_version.items():
            self.installed.set_group_version(group_version, [line(endpoint) for endpoint in endpoints])
            path = group_version_path(group_version)
            self.mux.handle_prefix(path, self._leaf(path, endpoints))

    def _leaf(self, path: str, endpoints: list[Endpoint]) -> Callable[[], RoutedResource]:
        def make() -> RoutedResource:
            app = resource_routes()
            for endpoint in endpoints:
                self._route(app, path, endpoint)
            return RoutedResource(app)

        return make

    def _endpoints(self, info: ResourceInfo, version: str) -> Iterable[Endpoint]:
        storage: object
        if info.stored:
            storage = self._context.stores.get(info.group, info.resource)
        else:
            storage = virtual_storage(info, self._context)
        gvk = info.gvk(version)
        yield self._endpoint(storage, info, version, gvk, info.storage_kind if info.stored else gvk)
        for subresource in info.subresources:
            part = subresource_storage(info, version, subresource, self._context)
            part_gvk = subresource_kind(info, subresource, version)
            same = subresource.kind == info.kind
            stored = info.storage_kind if same else part_gvk
            yield self._endpoint(part, info, version, part_gvk, stored, subresource.name, same)

    def _endpoint(
        self,
        storage: object,
        info: ResourceInfo,
        version: str,
        gvk: GroupVersionKind,
        stored: GroupVersionKind,
        subresource: str = "",
        defaults: bool = True,
    ) -> Endpoint:
        codec = Codec(self._definitions, gvk, stored)
        fields = None
        strategy = strategy_for(info.group, info.kind) if defaults else None
        if isinstance(storage, TokenRequests):
            strategy = strategy_for(gvk.group, gvk.kind)
        if isinstance(storage, ScaleStore | TokenRequests):
            versions = BuiltInVersionConverter(self._definitions, {gvk.api_version: gvk})
            fields = FieldManager(gvk, versions, codec.zero, subresource=subresource)
        elif not info.stored and not subresource:
            fields = FieldManager(gvk, BuiltInVersionConverter(self._definitions, {gvk.api_version: gvk}), codec.zero)
        elif info.stored and defaults:
            fields = built_in_field_manager(self._definitions, info, version, subresource)
        return Endpoint(
            storage,
            info,
            GroupVersion(info.group, version),
            gvk,
            codec,
            self._in_thread,
            strategy,
            subresource,
            field_manager=fields,
            authorizer=self._context.authorizer,
            min_request_timeout=self._min_request_timeout,
            traced=self._traced,
        )

    def _route(self, app: Klein, base: str, endpoint: Endpoint) -> None:
        handlers = Handlers(endpoint, self._reactor, self._flusher)
        info, storage = endpoint.info, endpoint.storage
        collection = f"/{info.resource}"
        inside = f"/namespaces/<namespace>{collection}" if info.namespaced else collection
        tail = f"/{endpoint.subresource}" if endpoint.subresource else ""
        warning = deprecation_warning(endpoint.gvk, int(self._definitions.minor.partition(".")[2]))
        for verb in VERBS:
            if not verb.capability.providedBy(storage):
                continue
            handler = handlers.of(verb)
            if warning:
                handler = warned(handler, warning)
            if verb.capability is IWatcher:
                # These are the deprecated watch paths, from before watches were list queries.
                add(app, "GET", f"{base}/watch{inside}", handler)
                add(app, "GET", f"{base}/watch{inside}/<name>", handler)
                if info.namespaced:
                    add(app, "GET", f"{base}/watch{collection}", handler)
                continue
            if verb.named:
                add(app, verb.method, f"{base}{inside}/<name>{tail}", handler)
            elif endpoint.subresource:
                continue
            else:
                add(app, verb.method, f"{base}{inside}", handler)
                if verb.anywhere and info.namespaced:
                    add(app, verb.method, f"{base}{collection}", handler)
        if IConnecter.providedBy(storage):
            connect = ConnectHandler(endpoint, self._clients).connect
            for method in storage.methods:
                add(app, method, f"{base}{inside}/<name>{tail}", connect)
                if storage.subpaths:
                    add(app, method, f"{base}{inside}/<name>{tail}/<path:path>", connect)


class Handlers:
    """The handlers of one endpoint."""

    def __init__(self, endpoint: Endpoint, reactor: IServerReactor, flusher: WatchFlusher) -> None:
        self._reads = ReadHandlers(endpoint, reactor, flusher)
        self._writes = WriteHandlers(endpoint, self._reads)
        self._traced = endpoint.traced

    def of(self, verb: Verb) -> Callable[..., object]:
        """Return the handler of a verb."""
        for part in (self._reads, self._writes):
            handler: Callable[..., Any] | None = getattr(part, verb.handler, None)
            if handler is not None:
                return traced_handler(handler, verb.handler) if self._traced else handler
        raise AssertionError(f"no handler for {verb.names}")


def add(app: Klein, method: str, path: str, handler: Callable[..., object]) -> None:
    """Register a route with a Klein app."""
    app.route(path, methods=[route_method(method)], endpoint=f"{method} {path}", strict_slashes=False)(bare(handler))


def warned(handler: Callable[..., object], warning: str) -> Callable[..., object]:
    """Return a handler that adds a warning to every answer, also to errors, and records it in audit events."""

    def handle(request: KubeRequest, *arguments: str, **named: str) -> object:
        request.warn(warning)
        request.annotate("k8s.io/deprecated", "true", "Metadata")
        return handler(request, *arguments, **named)

    return handle


def bare(handler: Callable[..., object]) -> Callable[..., Any]:
    """Return a handler as a plain function for Klein, which cannot wrap bound methods."""

    def handle(request: KubeRequest, **arguments: str) -> object:
        return handler(request, **arguments)

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
    """Return the verbs that a storage object supports, sorted as in discovery."""
    found = {name for verb in VERBS if verb.capability.providedBy(storage) for name in verb.names}
    if IConnecter.providedBy(storage):
        found.update(CONNECT_VERBS[method] for method in storage.methods if method in CONNECT_VERBS)
    return tuple(sorted(found))


def line(endpoint: Endpoint) -> APIResource:
    """Return the entry of an endpoint for discovery and OpenAPI."""
    info, storage, gvk = endpoint.info, endpoint.storage, endpoint.gvk
    connects = IConnecter.providedBy(storage)
    main = not endpoint.subresource
    return APIResource(
        group=info.group,
        version=endpoint.version.version,
        resource=info.resource,
        subresource=endpoint.subresource,
        kind=gvk,
        kind_shown_group_version=gvk.group_version != endpoint.version,
        singular=info.singular if main else "",
        namespaced=info.namespaced,
        short_names=info.short_names if main else (),
        categories=info.categories if main else (),
        verbs=verbs(storage),
        storage_version_hash=info.storage_version_hash if main else "",
        list_kind=f"{info.kind}List" if ILister.providedBy(storage) else "",
        delete_returns_object=endpoint.strategy is not None and endpoint.strategy.delete_returns_object,
        connect_methods=tuple(storage.methods) if connects else (),
        connect_subpath=connects and bool(storage.subpaths),
    )
