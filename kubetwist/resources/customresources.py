"""
Serves custom resources: their paths, their entries in discovery, and their handlers.

Resources are added and removed while the server runs. There may be thousands, most of them rarely used, so only an
entry is kept of each until the first request for its objects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final

from klein import Klein
from twisted.logger import Logger

from ..api.errors import APIStatusError, named
from ..api.featuregates import FeatureGates
from ..api.resource import GroupResource, GroupVersion, GroupVersionKind, JSONObject
from ..flowcontrol.computing import Computing
from ..http.negotiation import CUSTOM_PATCH_TYPES, patch_media
from ..registry.customresources.codec import CustomCodec, CustomScaleCodec
from ..registry.customresources.crd import CustomDefinition, CustomVersion
from ..registry.customresources.fieldmanager import SCALE, field_manager, scale_manager
from ..registry.customresources.served import ServedResource
from ..registry.generic.capabilities import UnopenedResource
from ..registry.generic.parts import StatusStore
from .capabilities import discovered_names, is_namespaced
from .discovery.endpoints import GroupDocuments, ResourceLists, page_not_found
from .endpoint import Endpoint, no_strategy, thread_deferrer
from .handlers.read import ReadHandlers
from .handlers.write import WriteHandlers
from .routing import RoutedApp, add_route, new_app
from .servedresources import APIResource, IServedResources, Priority, ServedResources
from .traced import traced_handler

if TYPE_CHECKING:
    from ..http.collaborators import DeferToThread
    from ..http.request import KubeRequest
    from ..http.requestinfo import RequestInfo
    from ..interfaces import IAuthorizer, IServerReactor
    from ..registry.assembly import ResourceRegistry
    from ..registry.customresources.conversion import CRConverter
    from ..registry.generic.codec import Codec
    from ..schema.definitions import Definitions
    from .handlers.watch import WatchFlusher
    from .mux import DelegatingMux

#: The priority of groups of custom resources.
PRIORITY: Final = Priority(1000, 100)
VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
#: The verbs while the definition is being deleted.
FINAL_VERBS: Final = ("delete", "deletecollection", "get", "list", "watch")
SUBRESOURCE_VERBS: Final = ("get", "patch", "update")

#: The verbs that need no namespace in the path of a namespaced resource.
_ACROSS_NAMESPACES: Final = frozenset(("list", "watch"))


class CRDVersionHandlers:
    """
    The handlers of one version of a custom resource, created at its first request.

    @ivar served: The served resource, with its store.
    """

    def __init__(self, served: ServedResource, version: CustomVersion, server: CustomResources) -> None:
        self.served = served
        self.version = version
        self._server = server
        # Imported lazily: a server without definitions has no such schemas.
        from .openapi.custom import CustomSchemas

        self._schemas = CustomSchemas(version)
        self._handlers: dict[tuple[str, str], Callable[..., Any]] = {}

    def subresources(self) -> set[str]:
        """Return the names of the served subresources."""
        names = {""}
        if self.version.has_status:
            names.add("status")
        if self.version.scale is not None:
            names.add("scale")
        return names

    def handler(self, subresource: str, verb: str) -> Callable[..., object] | None:
        """Return the handler of a verb; L{None} if there is none. Requires the served objects."""
        if not self._handlers:
            for name in self.subresources():
                for supported_verb, handler in self.handlers(name).items():
                    traced = self._server.traced
                    self._handlers[name, supported_verb] = (
                        traced_handler(handler, supported_verb) if traced else handler
                    )
        return self._handlers.get((subresource, verb))

    def verbs(self) -> tuple[str, ...]:
        """Return the verbs of the resource, in the order of discovery."""
        return FINAL_VERBS if self.served.terminating else VERBS

    def handlers(self, subresource: str) -> dict[str, Callable[..., object]]:
        """Return the handlers of one of its L{subresources}, by verb."""
        endpoint = self.endpoint(subresource)
        reads = ReadHandlers(endpoint, self._server.reactor, self._server.flusher)
        writes = WriteHandlers(endpoint, reads)
        handlers: dict[str, Callable[..., Any]] = {"get": reads.get, "update": writes.update, "patch": writes.patch}
        if not subresource:
            handlers |= {
                "list": reads.list,
                "watch": reads.watch,
                "create": writes.create,
                "delete": writes.delete,
                "deletecollection": writes.delete_collection,
            }
        return handlers

    def endpoint(self, subresource: str) -> Endpoint:
        """Return the endpoint of one of the L{subresources}. Requires the served objects."""
        version = self.version
        definition = version.definition
        store = self.served.store(version)
        storage: Any = store
        codec: Codec = CustomCodec(version, checks_kind=not subresource)
        gvk = version.gvk
        if subresource == "status":
            storage = StatusStore(store)
        if subresource == "scale":
            from ..registry.customresources.scale import CustomScaleStore

            assert version.scale is not None
            storage, gvk = CustomScaleStore(store, version.scale), SCALE
            codec = CustomScaleCodec(definition.definitions, SCALE, SCALE)
            fields = scale_manager(definition.definitions)
        else:
            fields = field_manager(version, self.served.versions, storage.reset_fields, subresource)
        return Endpoint(
            storage,
            definition.info,
            is_namespaced(store, definition.name),
            GroupVersion(definition.group, version.name),
            gvk,
            codec,
            self._server.defer_to_thread,
            store.find_strategy if subresource != "scale" else no_strategy,
            subresource,
            list_items_have_kind=True,
            list_kind=definition.list_kind,
            patch_types=CUSTOM_PATCH_TYPES,
            field_manager=fields,
            authorizer=self._server.authorizer,
            min_request_timeout=self._server.min_request_timeout,
            traced=self._server.traced,
            features=self._server.features,
        )

    def described(self) -> object:
        """Return the object that states the names of the resource; it does not need the served objects."""
        return UnopenedResource(self.served.definition.info)

    def api_resources(self) -> list[APIResource]:
        """Return the entries for discovery and OpenAPI."""
        definition, version = self.served.definition, self.version
        group_version = GroupVersion(definition.group, version.name)
        described = self.described()
        names, namespaced = discovered_names(described), is_namespaced(described, definition.name)
        has_hash = self._server.features.enabled("StorageVersionHash")

        def api_resource(subresource: str, kind: GroupVersionKind, verbs: tuple[str, ...]) -> APIResource:
            main = not subresource
            return APIResource(
                group=definition.group,
                version=version.name,
                resource=definition.plural,
                subresource=subresource,
                kind=kind,
                kind_shown_group_version=kind.group_version != group_version,
                singular=names.singular if main else "",
                namespaced=namespaced,
                short_names=names.short_names if main else (),
                categories=names.categories if main else (),
                verbs=verbs,
                storage_version_hash=names.storage_version_hash if main and has_hash else "",
                list_kind=definition.list_kind if main else "",
                custom=self._schemas,
            )

        entries = [api_resource("", version.gvk, self.verbs())]
        if version.has_status:
            entries.append(api_resource("status", version.gvk, SUBRESOURCE_VERBS))
        if version.scale is not None:
            entries.append(api_resource("scale", SCALE, SUBRESOURCE_VERBS))
        return entries


class CustomRoutes:
    """
    The routes of all custom resources: their rules name group, version and resource.

    @ivar versions: The handlers of the served versions, by group-version and resource.
    @ivar groups: The documents of their groups.
    """

    def __init__(self, served_resources: IServedResources) -> None:
        """@param served_resources: The resources of the whole chain."""
        self.versions: dict[GroupVersion, dict[str, CRDVersionHandlers]] = {}
        self.groups = GroupDocuments(served_resources)
        self._resource_lists = ResourceLists(served_resources)

    def make_app(self) -> Klein:
        """Return the Klein app; it accepts any method, as each definition decides about the verbs of its resources."""
        app = new_app()
        self.groups.route(app)
        add_route(app, None, "/apis/<group>/<version>", self._list_resources)
        for namespace in ("", "/namespaces/<namespace>"):
            for path in ("<plural>", "<plural>/<name>", "<plural>/<name>/<subresource>"):
                add_route(app, None, f"/apis/<group>/<version>{namespace}/{path}", self._serve)
        # Deprecated forms, such as /watch/<plural>, and paths that are not found.
        add_route(app, None, "/apis/<group>/<version>/<rest:path>", self._serve)
        return app

    def remove(self, group_version: GroupVersion) -> None:
        """Stop serving a group-version."""
        del self.versions[group_version]
        self._resource_lists.forget(group_version)

    def _list_resources(self, request: KubeRequest, group: str, version: str) -> bytes:
        return self._resource_lists.respond(request, GroupVersion(group, version))

    def _serve(self, request: KubeRequest, group: str, version: str, plural: str = "", **named: str) -> object:
        info = request.info
        if plural != info.resource:
            # The request was authorized for this resource: the rules do not know C{namespaces/<namespace>/status}.
            plural = info.resource
        # A tuple is a faster key than the equal GroupVersion.
        served = self.versions.get((group, version))  # type: ignore[call-overload] # equal
        resource = None if served is None else served.get(plural)
        if resource is None or (
            resource.served.definition.namespaced != bool(info.namespace)
            and (info.namespace or info.verb not in _ACROSS_NAMESPACES)
        ):
            return page_not_found(request)
        if resource.version.warning:
            request.warn(resource.version.warning)
        if resource.served.ready:
            return self._handle(request, resource)
        return self._handle_when_started(request, resource)

    async def _handle_when_started(self, request: KubeRequest, resource: CRDVersionHandlers) -> None:
        await resource.served.start()
        result = self._handle(request, resource)
        if isawaitable(result):
            await result

    def _handle(self, request: KubeRequest, resource: CRDVersionHandlers) -> object:
        info = request.info
        verb, parts = info.verb, info.parts
        handler = resource.handler(info.subresource, verb)
        if handler is None or len(parts) > 3:
            raise _unsupported(resource, info)
        arguments = {"namespace": info.namespace}
        has_name = len(parts) > 1
        if verb in ("get", "update", "patch", "delete"):
            if not has_name:
                if verb == "patch":
                    patch_media(request.getHeader(b"content-type"), CUSTOM_PATCH_TYPES, routed=False)
                raise APIStatusError.bad_request("name must be provided")
            arguments["name"] = parts[1]
        elif verb == "watch" and has_name:
            arguments["name"] = parts[1]
        return handler(request, **arguments)


def _unsupported(resource: CRDVersionHandlers, info: RequestInfo) -> APIStatusError:
    """Return the error for a subresource or verb that is not served."""
    definition = resource.served.definition
    group_resource = GroupResource(definition.group, definition.plural)
    if info.subresource not in resource.subresources() or len(info.parts) > 3:
        return APIStatusError.not_found(group_resource, info.name)
    message = f'{info.verb} is not supported on resources of kind "{group_resource}"'
    return APIStatusError(405, "MethodNotAllowed", message, named(group_resource, ""))


class CustomResources:
    """
    The custom resources of the extensions server.

    @ivar served_resources: The entries for discovery and OpenAPI, together with the server's own.
    """

    _log = Logger()

    def __init__(
        self,
        mux: DelegatingMux,
        served_resources: ServedResources,
        all_resources: IServedResources,
        registry: ResourceRegistry,
        definitions: Definitions,
        reactor: IServerReactor,
        flusher: WatchFlusher,
        *,
        make_converter: Callable[[JSONObject], CRConverter | None] = lambda crd: None,
        min_request_timeout: float = 1800.0,
        defer_to_thread: DeferToThread | None = None,
        traced: bool = False,
        features: FeatureGates | None = None,
    ) -> None:
        """
        @param mux: The server that serves the paths.
        @param served_resources: Receives the entries for discovery and OpenAPI.
        @param all_resources: The resources of the whole chain.
        @param registry: Provides the stores of built-in resources; the stores of custom resources are added to it.
        @param definitions: The types of the release.
        @param reactor: Runs the timers of watches.
        @param flusher: Writes the events of all watches of the server.
        @param make_converter: Returns the converter of a CRD; L{None} if its objects are not converted by a webhook or
            plugin.
        @param min_request_timeout: Minimum duration of watches without a timeout, in seconds.
        @param defer_to_thread: Runs long computations; by default one at a time in a thread of C{reactor}.
        @param traced: Whether requests are traced.
        @param features: The feature gates and the release of the server; L{None} for the default release.
        """
        self.served_resources = served_resources
        self.reactor = reactor
        self.flusher = flusher
        self.min_request_timeout = min_request_timeout
        self._computing: Computing | None = None
        if defer_to_thread is None:
            defer_to_thread = self._computing = Computing(thread_deferrer(reactor), reactor)
        self.defer_to_thread = defer_to_thread
        self.traced = traced
        self.features = features or FeatureGates()
        self._mux = mux
        self._all_resources = all_resources
        self._registry = registry
        self._definitions = definitions
        self._make_converter = make_converter
        self._served = registry.stores.custom
        self._listeners: list[Callable[[], None]] = []
        self._routes = CustomRoutes(all_resources)
        self._app = RoutedApp(self._routes.make_app)
        #: Group-versions that other servers of the chain serve: custom resources do not shadow them.
        self._reserved = frozenset(all_resources.group_versions())
        self._reserved_groups = frozenset(one.group for one in self._reserved)

    @property
    def authorizer(self) -> IAuthorizer | None:
        """Return the authorizer, for requests that need another check than the one of their verb."""
        return self._registry.context.authorizer

    def group_versions(self) -> set[GroupVersion]:
        """Return the group-versions that are served now."""
        return set(self._routes.versions)

    def served(self, name: str) -> ServedResource | None:
        """Return the served resource of the definition with the name."""
        return self._served.get(name)

    def all_served(self) -> Collection[ServedResource]:
        """Return the served resources of all definitions."""
        return self._served.values()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """
        Call C{listener} after changes of the served resources and after their objects have been cached.

        @return: A function that unsubscribes the listener.
        """
        self._listeners.append(listener)
        unsubscribe = self.served_resources.subscribe(listener)

        def unsubscribe_all() -> None:
            self._listeners.remove(listener)
            unsubscribe()

        return unsubscribe_all

    def _notify_listeners(self) -> None:
        for listener in list(self._listeners):
            listener()

    def install(self, crd: JSONObject, *, terminating: bool) -> ServedResource:
        """Serve an established definition; changes nothing if it is served already."""
        definition = CustomDefinition(crd, self._definitions, self._make_converter)
        previous = self._served.get(definition.name)
        if previous is not None and previous.definition.same_as(definition):
            if previous.terminating != terminating:
                previous.terminating = terminating
                self._publish_definition(previous.definition)
            return previous
        served = ServedResource(
            definition,
            self._registry.custom_environment,
            self._registry.caches,
            self.defer_to_thread,
            terminating=terminating,
            on_ready=self._notify_listeners,
        )
        if previous is not None:
            self._unroute(previous)
            previous.stop()
        self._served[definition.name] = served
        for version in definition.served:
            group_version = GroupVersion(definition.group, version.name)
            if group_version in self._reserved:
                self._log.warn("{crd} is not served: {version} is built in", crd=definition.name, version=group_version)
                continue
            self._claim(group_version)[definition.plural] = self.version_handlers(served, version)
        changed_groups = {one.definition.group for one in (served, previous) if one is not None}
        for group in changed_groups:
            self._update_group(group)
        return served

    def version_handlers(self, served: ServedResource, version: CustomVersion) -> CRDVersionHandlers:
        """Return the handlers of a version."""
        return CRDVersionHandlers(served, version, self)

    def remove(self, name: str) -> None:
        """Stop serving the definition with the name."""
        served = self._served.pop(name, None)
        if served is not None:
            self._unroute(served)
            served.stop()
            self._update_group(served.definition.group)

    def stop(self) -> None:
        """End all watches and release the backend."""
        for served in self._served.values():
            served.stop()
        if self._computing is not None:
            self._computing.stop()

    def _claim(self, group_version: GroupVersion) -> dict[str, CRDVersionHandlers]:
        """Route the paths of a group-version, if they are not routed yet; return its handlers by resource."""
        resources = self._routes.versions.get(group_version)
        if resources is None:
            resources = self._routes.versions[group_version] = {}
            self._mux.handle_prefix(f"/apis/{group_version}", self._app)
            if group_version.group not in self._reserved_groups:
                self._mux.handle(f"/apis/{group_version.group}", self._app)
        return resources

    def _unroute(self, served: ServedResource) -> None:
        for version in served.definition.served:
            resources = self._routes.versions.get(GroupVersion(served.definition.group, version.name), {})
            resources.pop(served.definition.plural, None)

    def _update_group(self, group: str) -> None:
        """Update the documents of a group to match its routes."""
        versions = self._routes.versions
        for group_version, resources in list(versions.items()):
            if group_version.group != group:
                continue
            if resources:
                self._publish(group_version, resources)
            else:
                self._routes.remove(group_version)
                self._mux.unregister(f"/apis/{group_version}")
                self.served_resources.remove_group_version(group_version)
        if group not in self._reserved_groups and not any(one.group == group for one in versions):
            self._mux.unregister(f"/apis/{group}")
            self._routes.groups.forget(group)

    def _publish_definition(self, definition: CustomDefinition) -> None:
        for version in definition.served:
            group_version = GroupVersion(definition.group, version.name)
            resources = self._routes.versions.get(group_version)
            if resources is not None:
                self._publish(group_version, resources)

    def _publish(self, group_version: GroupVersion, resources: dict[str, CRDVersionHandlers]) -> None:
        entries = [entry for name in sorted(resources) for entry in resources[name].api_resources()]
        if tuple(entries) != tuple(self.served_resources.resources(group_version)):
            self.served_resources.set_group_version(group_version, entries, PRIORITY)
