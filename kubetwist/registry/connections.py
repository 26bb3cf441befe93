"""
Subresources that lead to another process: a pod's logs and streams, the proxies of pods, services and nodes.

What is decided here is whether there is anything to lead to. Nothing leads on from here yet: where a node or endpoint
is there, the answer is that it can not be reached.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import orjson

from zope.interface import implementer

from ..api.errors import APIStatusError, Cause, forbidden, invalid, not_supported
from ..api.resource import GroupKind, JSONObject
from ..interfaces import IConnecter
from .admitting import admit_connection
from .connectoptions import connect_options
from .kinds import ResourceInfo, SubresourceInfo
from .scope import RequestScope

if TYPE_CHECKING:
    from .stores import Stores

ALL_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
#: What C{log} takes of its query as numbers.
LOG_LIMITS = ("sinceSeconds", "tailLines", "limitBytes")
LOG_STREAMS = ("All", "Stdout", "Stderr")
#: Where a node is looked for, best first.
NODE_ADDRESSES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")


@implementer(IConnecter)
class Connection:
    """One of these subresources."""

    def __init__(
        self, info: ResourceInfo, name: str, methods: Sequence[str], stores: Stores, *, subpaths: bool
    ) -> None:
        self.info = info
        self.name = name
        self.methods = methods
        self.subpaths = subpaths
        self._stores = stores

    async def connect(self, scope: RequestScope, name: str, path: str, request: Any) -> Any:
        """See L{IConnecter.connect}."""
        if self.name != "log":
            if any(request.query.get("dryRun") or ()):
                raise APIStatusError.bad_request("dryRun is not supported")
            options = connect_options(self.info.resource, self.name, request.query, path)
            await admit_connection(self.info, self._stores, scope, name, self.name, options)
        whole = name
        port = ""
        if self.name == "proxy":
            name, port = self._behind(name)
        if self.info.resource == "services":
            self._service(scope, name, port, whole)
        store = self._stores.get(self.info.group, self.info.resource)
        obj = orjson.loads(store.existing(scope, name).item)
        if self.info.resource == "pods" and self.name != "proxy":
            query = {key: values[0] for key, values in request.query.items()}
            if self.name == "log":
                check_log_options(name, query)
            container = chosen_container(obj, query.get("container", ""))
            if not (obj.get("spec") or {}).get("nodeName"):
                if self.name == "log":
                    request.respond(204, b"", b"")
                    return
                raise APIStatusError.bad_request(f"pod {name} does not have a host assigned")
            raise APIStatusError.service_unavailable(f"the node of container {container} can not be reached")
        if self.info.resource == "pods":
            check_proxied(((obj.get("status") or {}).get("podIP")) or "")
        elif self.info.resource == "nodes":
            check_proxied(await self._address(node_host(obj)))
        raise APIStatusError.service_unavailable(f'{self.info.resource} "{name}" can not be reached')

    async def _address(self, host: str) -> str:
        """
        The address of a host.

        @raise APIStatusError: It has none (400).
        """
        try:
            return str(ipaddress.ip_address(host))
        except ValueError:
            pass
        resolver: Any = self._stores.reactor
        try:
            return str(await resolver.resolve(host))
        except Exception:
            # Resolvers fail in many ways, which are the same to the client.
            raise APIStatusError.bad_request(f"lookup {host}: no such host") from None

    def _behind(self, text: str) -> tuple[str, str]:
        """
        The name and the port in C{name}, C{name:port} or C{scheme:name:port}.

        @raise APIStatusError: It is none of these (400).
        """
        parts = text.split(":")
        scheme, name = parts[0] if len(parts) == 3 else "", parts[len(parts) // 3]
        if len(parts) > 3 or scheme not in ("", "http", "https") or not name:
            raise APIStatusError.bad_request(f'invalid {self.info.singular} request "{text}"')
        return name, parts[-1] if len(parts) > 1 else ""

    def _service(self, scope: RequestScope, name: str, port: str, whole: str) -> None:
        """
        Look for somebody who answers for a service.

        @raise APIStatusError: There is no such service (404), port or endpoint (503).
        """
        if port.isascii() and port.isdigit():
            service = self._stores.lookup("", "services", scope.namespace, name)
            if service is None:
                raise self._stores.get("", "services").not_found(name)
            if not any(one.get("port") == int(port) for one in service["spec"].get("ports") or ()):
                raise APIStatusError.service_unavailable(f'no service port {int(port)} found for service "{name}"')
        endpoints = self._stores.lookup("", "endpoints", scope.namespace, name)
        if endpoints is None:
            raise self._stores.get("", "services").not_found(name)
        if not any(subset.get("addresses") for subset in endpoints.get("subsets") or []):
            raise APIStatusError.service_unavailable(f'no endpoints available for service "{whole}"')


def chosen_container(pod: JSONObject, name: str) -> str:
    """
    The container that is meant.

    @raise APIStatusError: There is none of that name, or it has to be chosen among several (400).
    """
    spec = pod.get("spec") or {}
    names = [one["name"] for one in spec.get("containers") or []]
    others = [one["name"] for field in ("initContainers", "ephemeralContainers") for one in spec.get(field) or []]
    pod_name = pod["metadata"]["name"]
    if name:
        if name not in (*names, *others):
            raise APIStatusError.bad_request(f"container {name} is not valid for pod {pod_name}")
        return name
    if len(names) == 1:
        return str(names[0])
    default = (pod["metadata"].get("annotations") or {}).get("kubectl.kubernetes.io/default-container")
    if default in names:
        return str(default)
    text = f"a container name must be specified for pod {pod_name}, choose one of: [{' '.join(names)}]"
    init = [one["name"] for one in spec.get("initContainers") or []]
    if init:
        text += f" or one of the init containers: [{' '.join(init)}]"
    raise APIStatusError.bad_request(text)


def check_log_options(name: str, query: dict[str, str]) -> None:
    """
    Refuse impossible limits.

    @raise APIStatusError: One is no number (400) or too small (422).
    """
    numbers: dict[str, int] = {}
    for field in LOG_LIMITS:
        text = query.get(field)
        if text is None:
            continue
        try:
            numbers[field] = int(text)
        except ValueError:
            shown = orjson.dumps(text).decode()
            raise APIStatusError.bad_request(f"strconv.ParseInt: parsing {shown}: invalid syntax") from None
    causes: list[Cause] = []
    if numbers.get("tailLines", 0) < 0:
        causes.append(invalid("tailLines", numbers["tailLines"], "must be greater than or equal to 0"))
    if numbers.get("limitBytes", 1) < 1:
        causes.append(invalid("limitBytes", numbers["limitBytes"], "must be greater than 0"))
    if "sinceSeconds" in numbers and query.get("sinceTime"):
        # The reference's path has no name in it.
        causes.append(forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif numbers.get("sinceSeconds", 1) < 1:
        causes.append(invalid("sinceSeconds", numbers["sinceSeconds"], "must be greater than 0"))
    stream = query.get("stream")
    if stream is not None and stream not in LOG_STREAMS:
        causes.append(not_supported("stream", stream, LOG_STREAMS))
    elif stream in LOG_STREAMS[1:] and "tailLines" in numbers:
        causes.append(forbidden("[]", "`tailLines` and specific `stream` are mutually exclusive for now"))
    if causes:
        raise APIStatusError.invalid(GroupKind("", "PodLogOptions"), name, causes)


def check_proxied(text: str) -> None:
    """
    Refuse what must not be reached through this server: itself, its neighbours, and what is no address.

    @raise APIStatusError: It is one of these (400).
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise APIStatusError.bad_request("address not allowed") from None
    if address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast:
        raise APIStatusError.bad_request("address not allowed")


def node_host(node: JSONObject) -> str:
    """
    Where a node's kubelet is reached.

    @raise APIStatusError: The node does not tell (500).
    """
    known = (node.get("status") or {}).get("addresses") or []
    for kind in NODE_ADDRESSES:
        for one in known:
            if one.get("type") == kind:
                return str(one["address"])
    shown = " ".join(f"{{{one.get('type', '')} {one.get('address', '')}}}" for one in known)
    raise APIStatusError.unknown(f"no preferred addresses found; known addresses: [{shown}]")


def connection_storage(info: ResourceInfo, subresource: SubresourceInfo, stores: Stores, context: Any) -> Any:
    """The storage object of such a subresource."""
    if subresource.name == "proxy":
        return Connection(info, "proxy", ALL_METHODS, stores, subpaths=True)
    methods = ("GET",) if subresource.name == "log" else ("GET", "POST")
    return Connection(info, subresource.name, methods, stores, subpaths=False)
