"""
Aggregated API servers, and the group-versions of all APIServices.

Everything here follows the cache of APIServices synchronously: it is updated in the reactor iteration of the write.
"""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import choice
from typing import TYPE_CHECKING, Final

import orjson
from attrs import define, field, frozen

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from ...api.identityheaders import identity_fields
from ...api.record import Record
from ...api.resource import GroupVersion, JSONObject, UserInfo
from ...client.errors import InvalidRESTConfig, Unreachable
from ...client.restconfig import RESTConfig
from ...registry.generic.store import Store
from ...registry.generic.versionorder import version_preference
from ...registry.kinds import Priority
from ...storage.cache.window import DELETED
from ..machinery.informer import Informer, StoreSource

if TYPE_CHECKING:
    from ...client.factory import ClientFactory
    from ...client.httpclient import Response, WebhookClient
    from ...client.streaming import StreamingClient

#: The group of APIServices, which is never aggregated.
GROUP: Final = "apiregistration.k8s.io"
#: The user of the server's own requests to aggregated servers.
AGGREGATOR: Final = "system:kube-aggregator"
MASTERS: Final = "system:masters"
#: Maximum size, in bytes, of a discovery or OpenAPI document.
DOCUMENT_LIMIT: Final = 32 * 1024 * 1024

#: Called with a group-version and its aggregated server, L{None} if it is served locally.
Listener = Callable[[GroupVersion, "AggregatedServer | None"], object]
#: Returns the hosts and ports of a service. Raises L{kubetwist.client.errors.Unreachable}.
Resolve = Callable[["ServiceReference"], Sequence[tuple[str, int]]]


@frozen
class ServiceReference:
    """The service of an APIService."""

    namespace: str
    name: str
    port: int

    @property
    def host(self) -> str:
        """The DNS name that the certificate must contain."""
        return f"{self.name}.{self.namespace}.svc"


@frozen
class APIServiceSpec:
    """
    The parsed spec of an APIService.

    @ivar service: The service; L{None} if the group-version is served locally.
    @ivar ca: The CA bundle for the server's certificate, PEM.
    @ivar problem: Why it is invalid; C{""} if it is valid.
    """

    name: str
    group_version: GroupVersion
    priority: Priority
    service: ServiceReference | None = None
    ca: bytes = field(default=b"", repr=False)
    insecure: bool = False
    problem: str = ""

    @classmethod
    def from_object(cls, name: str, spec: JSONObject) -> APIServiceSpec:
        """Parse a validated C{spec}."""
        priority = Priority(spec.get("groupPriorityMinimum") or 0, spec.get("versionPriority") or 0)
        group_version = GroupVersion(spec.get("group") or "", spec.get("version") or "")
        service = spec.get("service")
        if service is None:
            return cls(name, group_version, priority)
        service_reference = ServiceReference(
            service.get("namespace") or "", service.get("name") or "", service.get("port") or 443
        )
        problem, ca = "", b""
        try:
            ca = base64.b64decode(spec.get("caBundle") or "", validate=True)
        except (binascii.Error, ValueError):
            problem = "the caBundle is no base64"
        return cls(
            name, group_version, priority, service_reference, ca, bool(spec.get("insecureSkipTLSVerify")), problem
        )


@frozen
class Condition:
    """The condition C{Available} of an APIService."""

    status: str = "Unknown"
    reason: str = ""
    message: str = ""

    @classmethod
    def from_object(cls, obj: JSONObject) -> Condition:
        """Return the condition of an APIService; status C{Unknown} if it has none."""
        for one in (obj.get("status") or {}).get("conditions") or ():
            if one.get("type") == "Available":
                return cls(one.get("status") or "", one.get("reason") or "", one.get("message") or "")
        return cls()


LOCAL: Final = Condition("True", "Local", "Local APIServices are always available")


class APIServiceIndex:
    """
    The group-versions of all APIServices, sorted by priority.

    @ivar generation: Incremented after every change.
    @ivar groups: Number of versions of each group.
    """

    def __init__(self) -> None:
        self.generation = 0
        self.groups: Counter[str] = Counter()
        self._by_name: dict[str, APIServiceSpec] = {}
        self._listeners: list[Callable[[GroupVersion], object]] = []
        self._sorted: tuple[int, dict[str, list[GroupVersion]]] = (-1, {})

    def subscribe(self, listener: Callable[[GroupVersion], object]) -> Callable[[], None]:
        """
        Call C{listener} with the group-version after every change.

        @return: A function that ends the subscription.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def get(self, name: str) -> APIServiceSpec | None:
        """Return the spec of an APIService by name."""
        return self._by_name.get(name)

    def priority(self, group_version: GroupVersion) -> Priority | None:
        """Return the priority of a group-version, or L{None} without an APIService for it."""
        spec = self._by_name.get(api_service_name(group_version))
        return None if spec is None else spec.priority

    def group_versions(self) -> list[GroupVersion]:
        """Return all group-versions, sorted by the priorities of groups and of versions within their group."""
        return [one for versions in self._groups().values() for one in versions]

    def versions(self, group: str) -> list[str]:
        """Return the versions of a group, the preferred version first."""
        return [one.version for one in self._groups().get(group, ())]

    def _groups(self) -> Mapping[str, list[GroupVersion]]:
        generation, groups = self._sorted
        if generation != self.generation:
            groups = {}
            specs = self._by_name.values()
            # The position of a group is the one of its first APIService.
            for one in sorted(specs, key=lambda one: (-one.priority.group, one.name)):
                groups.setdefault(one.group_version.group, []).append(one.group_version)
            for versions in groups.values():
                if len(versions) > 1:
                    versions.sort(key=self._version_key)
            self._sorted = self.generation, groups
        return groups

    def _version_key(self, one: GroupVersion) -> tuple[float, object]:
        return -self._by_name[api_service_name(one)].priority.version, version_preference(one.version)

    def _count(self, group: str, difference: int) -> None:
        self.groups[group] += difference
        if not self.groups[group]:
            del self.groups[group]

    def put(self, name: str, spec: APIServiceSpec | None) -> APIServiceSpec | None:
        """Replace the spec of an APIService, L{None} if deleted, and return the previous one."""
        previous = self._by_name.get(name)
        if spec is None:
            self._by_name.pop(name, None)
        else:
            self._by_name[name] = spec
        if _sort_key(previous) != _sort_key(spec):
            self.generation += 1
            if previous is not None:
                self._count(previous.group_version.group, -1)
            if spec is not None:
                self._count(spec.group_version.group, 1)
            changed = spec or previous
            assert changed is not None, "there is a previous or a new spec"
            for listener in tuple(self._listeners):
                listener(changed.group_version)
        return previous


@define(eq=False)
class AggregatedServer:
    """
    The API server behind an APIService. It is replaced when the spec of the APIService changes.

    @ivar condition: The condition Available of the APIService.
    """

    registration: APIServiceSpec
    _aggregation: Aggregation
    condition: Condition = Condition()
    _client: WebhookClient | None = None
    _streaming: StreamingClient | None = None
    _chosen: tuple[str, int] | None = None

    @property
    def name(self) -> str:
        """The name of the APIService."""
        return self.registration.name

    def identity_fields(self, user: UserInfo) -> list[tuple[bytes, bytes]]:
        """See L{kubetwist.api.identityheaders.identity_fields}."""
        return identity_fields(user, with_uid=self._aggregation.sends_uids)

    @property
    def group_version(self) -> GroupVersion:
        """The group and version of the APIService."""
        return self.registration.group_version

    @property
    def priority(self) -> Priority:
        """The priority of the group and version."""
        return self.registration.priority

    @property
    def available(self) -> bool:
        """Whether the condition Available is true."""
        return self.condition.status == "True"

    @property
    def service(self) -> ServiceReference:
        """The service of the APIService."""
        service = self.registration.service
        assert service is not None, "a remote has a service"
        return service

    @property
    def path(self) -> str:
        """The path of the resource list: C{"/apis/GROUP/VERSION"}."""
        group, version = self.group_version
        return f"/apis/{group}/{version}" if group else f"/api/{version}"

    # --- requests

    def target(self) -> tuple[str, int]:
        """
        Return the host and port to connect to. An endpoint is kept as long as it is among the service's endpoints.

        @raise Unreachable: The service has no endpoints.
        """
        targets = self._aggregation.resolve(self.service)
        chosen = self._chosen
        if chosen is None or chosen not in targets:
            chosen = self._chosen = choice(targets)
        return chosen

    def failed(self) -> None:
        """Forget the chosen endpoint after a failed request. The next request may choose another one."""
        self._chosen = None

    @property
    def origin(self) -> str:
        """
        The origin (scheme, host and port) of requests.

        @raise Unreachable: The service has no endpoints.
        """
        from ...client.dialing import join_host_port

        return f"https://{join_host_port(*self.target())}"

    def settings(self) -> RESTConfig:
        """
        Return the client settings for the server.

        @raise InvalidRESTConfig: The settings are invalid.
        """
        spec, service = self.registration, self.service
        if spec.problem:
            raise InvalidRESTConfig(spec.problem)
        certificate, key = self._aggregation.identity
        return RESTConfig(
            url=f"https://{service.host}:{service.port}/",
            ca=spec.ca if spec.ca.strip() else b"",
            insecure=spec.insecure,
            certificate=certificate,
            key=key,
            server_name=service.host,
            resolve_address=self.target,
            deny_internal=True,
            allow_loopback=self._aggregation.loopback,
        )

    async def fetch(
        self,
        path: str,
        *,
        accept: str = "application/json",
        etag: str = "",
        query: str = "",
        timeout: float = 5.0,
        user: str = AGGREGATOR,
    ) -> Response:
        """
        Get a document as the server itself, regardless of the condition Available.

        @param path: The path, escaped.
        @param accept: The Accept header.
        @param query: The query string, escaped.
        @param timeout: Timeout in seconds.
        @param etag: The ETag of a cached response; then the response may be a 304.
        @param user: The user name; the request is in the group system:masters.
        @return: The response, with any status code.
        @raise CallError: The call failed.
        @raise Unreachable: The service has no endpoints, or the CA bundle of the APIService is invalid.
        """
        headers = {"Accept": [accept]}
        if etag:
            headers["If-None-Match"] = [etag]
        user_info = UserInfo(user, groups=(MASTERS,))
        return await self.call("GET", path, user_info, headers=headers, query=query, timeout=timeout)

    async def call(
        self,
        method: str,
        path: str,
        user: UserInfo,
        *,
        headers: Mapping[str, Sequence[str]],
        body: bytes = b"",
        query: str = "",
        timeout: float = 30.0,
    ) -> Response:
        """
        Send a request on behalf of a user. For the errors see L{fetch}.

        @param method: The HTTP method.
        @param path: The path, escaped.
        @param user: The user, who is already authorized.
        @param headers: The request headers. The headers with the user are added.
        @param body: The body of the request.
        @param query: The query string, escaped.
        @param timeout: Timeout in seconds.
        @return: The response, with any status code.
        """
        if self._client is None:
            try:
                self._client = self._aggregation.outgoing.client(self.settings(), limit=DOCUMENT_LIMIT)
            except InvalidRESTConfig as error:
                raise Unreachable(str(error)) from error
        all_headers = {name: list(values) for name, values in headers.items()}
        for name, value in self.identity_fields(user):
            all_headers.setdefault(name.decode(), []).append(value.decode())
        try:
            return await self._client.fetch(
                path, timeout=timeout, method=method, body=body, origin=self.origin, query=query, headers=all_headers
            )
        except Exception:
            self.failed()
            raise

    @property
    def streaming(self) -> StreamingClient:
        """
        The client that proxies requests.

        @raise InvalidRESTConfig: The settings are invalid.
        """
        if self._streaming is None:
            self._streaming = self._aggregation.outgoing.stream_client(self.settings())
        return self._streaming

    def retire(self) -> None:
        """Close the connections when they are idle."""
        for client in (self._client, self._streaming):
            if client is not None:
                client.retire()
        self._client = self._streaming = None


class Aggregation:
    """
    All APIServices and the aggregated API servers.

    @ivar aggregated_servers: The aggregated servers by group-version. Must not be changed.
    @ivar api_services: The group-versions of all APIServices.
    @ivar identity: The client certificate and key for requests to aggregated servers, PEM; empty if there are none.
    @ivar loopback: Whether aggregated servers may have loopback addresses.
    @ivar sends_uids: Whether requests have the uid of their user.
    """

    _log = Logger()

    def __init__(
        self,
        store: Store,
        outgoing: ClientFactory,
        clock: IReactorTime,
        resolve: Resolve | None = None,
        *,
        loopback: bool = False,
        sends_uids: bool = True,
    ) -> None:
        """
        @param store: The store of APIServices.
        @param resolve: Returns the endpoints of a service; by default the cluster IP.
        @param loopback: Whether aggregated servers may have loopback addresses.
        @param sends_uids: Whether requests have the uid of their user.
        """
        self.store = store
        self.outgoing = outgoing
        self.aggregated_servers: dict[GroupVersion, AggregatedServer] = {}
        self.api_services = APIServiceIndex()
        self.identity = (b"", b"")
        self.loopback = loopback
        self.sends_uids = sends_uids
        self.resolve: Resolve = resolve or self._cluster_ip
        self._listeners: list[Listener] = []
        self._informer = Informer(StoreSource(store), clock)

    def _cluster_ip(self, service: ServiceReference) -> Sequence[tuple[str, int]]:
        return (self.outgoing.services.resolve(service.namespace, service.name, service.port),)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """
        Call C{listener} after every change of an aggregated server.

        @return: A function that ends the subscription.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @property
    def informer(self) -> Informer:
        """The informer of APIServices."""
        return self._informer

    def start(self) -> Deferred[None]:
        """
        Start the informer. The cache must be filled.

        @return: Fires when all stored APIServices are routed.
        """
        self._informer.add_event_handler(self._changed)
        self._informer.start()
        routed: Deferred[None] = Deferred()
        self._informer.when_handlers_synced(lambda: routed.callback(None))
        return routed

    def stop(self) -> None:
        """Stop the informer."""
        self._informer.stop()

    def use_identity(self, certificate: bytes, key: bytes) -> None:
        """Use another client certificate for new connections."""
        self.identity = certificate, key
        for remote in list(self.aggregated_servers.values()):
            remote.retire()
            self._notify_listeners(remote.group_version, remote)

    def _changed(self, event_type: str, record: Record, old: Record | None) -> None:
        spec, condition = None, Condition()
        if event_type != DELETED:
            obj = orjson.loads(record.item)
            spec = APIServiceSpec.from_object(record.name, obj["spec"])
            condition = Condition.from_object(obj)
        previous = self.api_services.put(record.name, spec)
        changed = spec or previous
        if changed is not None and changed.group_version.group != GROUP:
            self._route(changed.group_version, spec, condition)

    def _route(self, group_version: GroupVersion, spec: APIServiceSpec | None, condition: Condition) -> None:
        remote = self.aggregated_servers.get(group_version)
        if spec is None or spec.service is None:
            if remote is not None:
                del self.aggregated_servers[group_version]
                remote.retire()
                self._notify_listeners(group_version, None)
            return
        if remote is not None and remote.registration == spec:
            if remote.condition == condition:
                return
        else:
            if remote is not None:
                remote.retire()
            remote = self.aggregated_servers[group_version] = AggregatedServer(spec, self)
        remote.condition = condition
        self._notify_listeners(group_version, remote)

    def _notify_listeners(self, group_version: GroupVersion, remote: AggregatedServer | None) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(group_version, remote)
            except Exception:
                self._log.failure(
                    "listener of aggregated servers failed: group_version={group_version}",
                    group_version=str(group_version),
                )


def api_service_name(group_version: GroupVersion) -> str:
    """Return the name of the APIService of a group-version."""
    return f"{group_version.version}.{group_version.group}"


def _sort_key(one: APIServiceSpec | None) -> tuple[GroupVersion, Priority] | None:
    return None if one is None else (one.group_version, one.priority)
