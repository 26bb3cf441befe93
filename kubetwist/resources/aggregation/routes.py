"""
The front of the aggregator: routes group-versions by their APIServices.

A group-version whose APIService has a service is routed to the server behind it; all further paths are delegated to the
servers of the chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

from attrs import frozen

from klein import Klein
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from ...api.go.url import escape_path, normalized_query
from ...api.identityheaders import AmbiguousHeaderError
from ...api.resource import GroupVersion
from ...client.errors import InvalidRESTConfig, Unreachable
from ...controllers.aggregation.apiservices import (
    GROUP,
    AggregatedServer,
    Aggregation,
    APIServiceIndex,
    ServiceReference,
    api_service_name,
)
from ...http.request import KubeRequest
from ...metrics.registry import MetricSnapshot, Registry
from ...registry.kinds import Priority
from ...tracing.propagation import BAGGAGE, TRACEPARENT, TRACESTATE
from ...tracing.spans import CLIENT, Value, current
from ..discovery.endpoints import GroupDocuments
from ..mux import DelegatingMux
from ..routing import RoutedApp, add_route, new_app
from ..servedresources import APIResource, IServedResources

if TYPE_CHECKING:
    from ...controllers.aggregation.availability import AvailableConditionController
    from ...controllers.aggregation.serviceendpoints import ServiceEndpoints
    from ...registry.stores import Stores
    from ..hosting import APIConfig, APIHost

UNAVAILABLE: Final = "service unavailable\n"
#: Maximum number of proxies of a request: the service of an APIService may lead back to this server.
MAX_PROXIES: Final = 16
LOOP: Final = "loop detected: the request came through too many proxies\n"
#: Seconds that another server has to answer discovery; clients query all servers.
DISCOVERY_TIMEOUT: Final = 5.0


class RegisteredGroups:
    """
    The groups and versions that C{/apis} lists: one of each APIService, available or not.

    The group of APIServices comes first. Groups without any APIService are listed if this server serves them.
    """

    def __init__(self, served_resources: IServedResources, registered: APIServiceIndex) -> None:
        self._served_resources = served_resources
        self._registered = registered

    @property
    def generation(self) -> int:
        """@see: L{IServedResources}."""
        return self._served_resources.generation + self._registered.generation

    @property
    def priorities(self) -> Mapping[GroupVersion, Priority]:
        """@see: L{IServedResources}."""
        registered = ((one, self._registered.priority(one)) for one in self._registered.group_versions())
        return {
            **self._served_resources.priorities,
            **{one: priority for one, priority in registered if priority is not None},
        }

    def group_versions(self) -> Sequence[GroupVersion]:
        """@see: L{IServedResources}."""
        aggregator_versions = [GroupVersion(GROUP, version) for version in self._served_resources.versions(GROUP)]
        return [*aggregator_versions, *(one for one in self._registered.group_versions() if one.group != GROUP)]

    def versions(self, group: str) -> Sequence[str]:
        """@see: L{IServedResources}."""
        if group == GROUP:
            return self._served_resources.versions(group)
        return self._registered.versions(group) or self._served_resources.versions(group)

    def resources(self, group_version: GroupVersion) -> Sequence[APIResource]:
        """@see: L{IServedResources}."""
        return self._served_resources.resources(group_version)


class APIServiceRoutes:
    """
    Routes the paths of group-versions to other servers, while these serve them.

    @ivar apis_groups: Groups and versions as C{/apis} lists them.
    """

    def __init__(self, front: DelegatingMux, aggregation: Aggregation, served_resources: IServedResources) -> None:
        """
        @param front: The aggregator's mux.
        @param served_resources: The resources of the whole chain.
        """
        self.apis_groups = RegisteredGroups(served_resources, aggregation.api_services)
        self._front = front
        self._aggregation = aggregation
        self._built_in = frozenset(one.group for one in served_resources.group_versions())
        self._groups: set[str] = set()
        self._documents = GroupDocuments(self.apis_groups)
        self._group_app = RoutedApp(self._documents.make_app)
        self._proxies = APIServiceProxies()
        self._proxy_app = RoutedApp(self._proxies.make_app)
        self._prefixes: dict[GroupVersion, tuple[bytes, ...]] = {}
        self._proxied_prefixes: set[tuple[bytes, ...]] = set()
        aggregation.subscribe(self._changed)
        aggregation.api_services.subscribe(self._registered)

    def is_proxy_stream(self, request: KubeRequest) -> bool:
        """Return whether the body of a request is streamed to a backend."""
        if not self._proxied_prefixes:
            return False
        path = request.path
        parts = (unquote_to_bytes(path) if b"%" in path else path).split(b"/", 4)[1:]
        return tuple(parts[:3]) in self._proxied_prefixes or tuple(parts[:1]) in self._proxied_prefixes

    def _changed(self, group_version: GroupVersion, remote: AggregatedServer | None) -> None:
        path = f"/apis/{group_version}" if group_version.group else "/api"
        old_prefix = self._prefixes.pop(group_version, None)
        if old_prefix is not None:
            self._proxied_prefixes.discard(old_prefix)
        if remote is None:
            self._front.remove_override(path)
            self._proxies.remotes.pop(path, None)
            return
        self._proxies.remotes[path] = remote
        self._front.override(path, self._proxy_app)
        prefix = tuple(part.encode() for part in path.split("/") if part)
        self._prefixes[group_version] = prefix
        self._proxied_prefixes.add(prefix)

    def _registered(self, group_version: GroupVersion) -> None:
        """List groups that exist only as APIServices, too."""
        group = group_version.group
        if group in self._built_in:
            return
        is_registered = group in self._aggregation.api_services.groups
        if is_registered and group not in self._groups:
            self._groups.add(group)
            self._front.handle(f"/apis/{group}", self._group_app)
        elif not is_registered:
            self._groups.discard(group)
            self._documents.forget(group)
            self._front.unregister(f"/apis/{group}")


class APIServiceProxies:
    """
    Forwards requests to other servers.

    @ivar remotes: The servers by the path of their group-version; C{/api} is the path of the core group.
    """

    def __init__(self) -> None:
        self.remotes: dict[str, AggregatedServer] = {}

    def make_app(self) -> Klein:
        """Return the Klein app, which passes on any method and path of a group-version."""
        app = new_app()
        for path in ("/apis/<group>/<version>", "/api"):
            add_route(app, None, path, self._proxy)
            add_route(app, None, f"{path}/<rest:path>", self._proxy)
        return app

    def _proxy(self, request: KubeRequest, group: str = "", version: str = "", path: str = "") -> None:
        remote = self.remotes[f"/apis/{group}/{version}" if group else "/api"]
        if not remote.available:
            request.respond_text(503, UNAVAILABLE)
            return
        if sum(value.count(b",") + 1 for value in request.fields.get(b"x-forwarded-for", ())) > MAX_PROXIES:
            request.respond_text(508, LOOP)
            return
        Deferred.fromCoroutine(self._forward(request, remote)).addErrback(request.handle_failure)

    async def _forward(self, request: KubeRequest, remote: AggregatedServer) -> None:
        from ...client.dialing import join_host_port
        from ..proxy.reverseproxy import ProxyError, fail_with_text, proxy_request

        try:
            client = remote.streaming
        except InvalidRESTConfig as error:
            request.respond_text(500, f"{error}\n")
            return
        try:
            host = join_host_port(*remote.target()).encode()
        except Unreachable:
            request.respond_text(503, UNAVAILABLE)
            return
        user = request.user
        assert user is not None, "requests are authenticated"
        try:
            identity = [
                *remote.identity_fields(user),
                (b"X-Forwarded-Host", host),
                (b"X-Forwarded-Proto", b"https"),
            ]
        except AmbiguousHeaderError as error:
            request.respond_text(503, f"{error}\n")
            return

        def fail(request: KubeRequest, error: ProxyError) -> None:
            if error.transport:
                remote.failed()
            fail_with_text(request, error)

        info = request.info
        is_discovery = not info.is_resource_request and info.path.strip("/").count("/") == 2
        forward = partial(
            proxy_request,
            request,
            client,
            normalized_target(request.uri),
            host=host,
            fail=fail,
            response_header_timeout=DISCOVERY_TIMEOUT if is_discovery else None,
        )
        parent = current.get()
        if parent is None:
            await forward(identity=identity)
            return
        # The client's trace headers are stale, or were not trusted.
        for name in (TRACEPARENT, TRACESTATE, BAGGAGE):
            request.fields.pop(name, None)
        method = request.method.decode("latin-1")
        attributes: dict[str, Value] = {"http.request.method": method, "server.address": host.decode("latin-1")}
        with parent.child(f"HTTP {method}", attributes, CLIENT) as span:
            await forward(identity=[*identity, *span.propagation_headers()])
            span.set_attribute("http.response.status_code", request.code)


class ServiceResolver:
    """The endpoints of services, watched from the first request on."""

    def __init__(self, stores: Stores, reactor: IReactorTime) -> None:
        """@param stores: The stores with the services and their endpoints."""
        self._stores = stores
        self._reactor = reactor
        self._backends: ServiceEndpoints | None = None

    @property
    def backends(self) -> ServiceEndpoints:
        """Return the endpoints of services."""
        if self._backends is None:
            from ...controllers.aggregation.serviceendpoints import ServiceEndpoints

            self._backends = ServiceEndpoints(self._stores, self._reactor)
            self._backends.start()
        return self._backends

    def resolve(self, service: ServiceReference) -> Sequence[tuple[str, int]]:
        """Return the hosts and ports of the endpoints of a service."""
        return self.backends.endpoints(service.namespace, service.name, service.port)

    def stop(self) -> None:
        """Stop the watches."""
        if self._backends is not None:
            self._backends.stop()


class AvailabilityChecks:
    """Checks the availability of other servers, once there is one."""

    def __init__(self, aggregation: Aggregation, endpoints: ServiceResolver, reactor: IReactorTime) -> None:
        """
        @param aggregation: The servers behind APIServices.
        @param endpoints: Resolves their services.
        """
        self._aggregation = aggregation
        self._endpoints = endpoints
        self._reactor = reactor
        self._availability: AvailableConditionController | None = None
        self._enabled = False
        aggregation.subscribe(self._changed)

    @property
    def idle(self) -> bool:
        """Return whether no availability check is running."""
        return self._availability is None or self._availability.idle

    def enqueue(self, name: str) -> None:
        """Check an APIService as soon as possible."""
        if self._availability is not None:
            self._availability.enqueue(name)

    def begin(self) -> None:
        """Start the checks when there is a server to check."""
        self._enabled = True
        if self._aggregation.aggregated_servers:
            self._start()

    def _changed(self, group_version: GroupVersion, remote: AggregatedServer | None) -> None:
        if self._enabled and self._availability is None and remote is not None:
            self._start()

    def _start(self) -> None:
        from ...controllers.aggregation.availability import AvailableConditionController

        self._availability = AvailableConditionController(self._aggregation, self._endpoints.backends, self._reactor)
        self._availability.start()

    async def stop(self) -> None:
        """Stop the checks."""
        self._enabled = False
        if self._availability is not None:
            await self._availability.stop()
        self._endpoints.stop()


@frozen
class Aggregator:
    """
    The aggregation of other servers.

    @ivar paths: The routes to the servers.
    @ivar checks: The checks of their availability.
    """

    paths: APIServiceRoutes
    checks: AvailabilityChecks


def add_aggregator(
    config: APIConfig,
    endpoints: ServiceResolver,
    aggregation: Aggregation,
    front: APIHost,
    served_resources: IServedResources,
) -> Aggregator:
    """
    Route the group-versions of APIServices to other servers.

    @param endpoints: Resolves their services.
    @param aggregation: The servers behind APIServices.
    @param front: The first server of the chain.
    @param served_resources: The resources of the chain itself.
    """
    paths = APIServiceRoutes(front.mux, aggregation, served_resources)
    checks = AvailabilityChecks(aggregation, endpoints, config.reactor)
    front.add_post_start_hook("apiservice-status-remote-available-controller", checks.begin)
    front.register_destroy_func("availability of other servers", checks.stop)
    register_availability_metrics(config.metrics, aggregation)
    return Aggregator(paths, checks)


def register_availability_metrics(metrics: Registry, aggregation: Aggregation) -> None:
    """Add metrics of the APIServices that are unavailable, and of how often they became so."""
    unavailable_total = metrics.counter(
        "aggregator_unavailable_apiservice_total",
        "Number of times APIServices became unavailable, by name and reason.",
        ("name", "reason"),
    )
    was_available: dict[GroupVersion, bool] = {}

    def changed(group_version: GroupVersion, remote: AggregatedServer | None) -> None:
        available = was_available.pop(group_version, False)
        if remote is None:
            return
        was_available[group_version] = remote.available
        if available and not remote.available:
            unavailable_total.with_label_values(remote.name, remote.condition.reason or "UnknownReason").value += 1

    def collect() -> Iterator[MetricSnapshot]:
        remotes = aggregation.aggregated_servers
        values = []
        for one in aggregation.api_services.group_versions():
            remote = remotes.get(one)
            values.append(((api_service_name(one),), 0.0 if remote is None or remote.available else 1.0))
        text = "Gauge of APIServices which are marked as unavailable, by name."
        yield MetricSnapshot("aggregator_unavailable_apiservice", "gauge", text, ("name",), values)

    aggregation.subscribe(changed)
    metrics.register_collector(collect)


def normalized_target(uri: bytes) -> bytes:
    """Return the path and query of a request in the normal form that is passed on."""
    path, _, query = uri.partition(b"?")
    target = escape_path(unquote_to_bytes(path))
    encoded = normalized_query(query) if query else ""
    return (f"{target}?{encoded}" if encoded else target).encode("ascii")
