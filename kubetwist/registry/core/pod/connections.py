"""
Subresources that lead to another server: a pod's log and streams, the proxies of pods, services and nodes.

What is decided here is where they lead, and whether one may go there. Who goes is
L{kubetwist.resources.handlers.connect}.

@see: kubernetes/kubernetes, C{pkg/registry/core/pod/strategy.go}, C{pkg/registry/core/node/strategy.go}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from zope.interface import implementer

from ....api.errors import APIStatusError
from ....api.podspecs import containers
from ....api.requestscope import RequestScope
from ....api.resource import JSONObject
from ....interfaces import IConnecter
from ...generic.admitting import admit_connection
from ...generic.resourceinfo import ResourceInfo, SubresourceInfo
from ...generic.targets import Target, clean_path, proxied_port, split_name
from ..connectoptions import connect_options
from ..node.kubelets import check_proxied, check_runs, kubelet_of
from ..service.backends import pod_addresses, service_backend
from .logoptions import log_options

if TYPE_CHECKING:
    from ...stores import Stores

Query = Mapping[str, Sequence[str]]

ALL_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
#: What kubelets call the switches of a stream.
_SWITCHES: Final = (("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty"))


@implementer(IConnecter)
class Connection:
    """One of these subresources."""

    subpaths = False

    def __init__(self, info: ResourceInfo, name: str, methods: Sequence[str], stores: Stores) -> None:
        self.info = info
        self.name = name
        self.methods = methods
        self._stores = stores

    async def connect(self, scope: RequestScope, name: str, path: str, query: Query) -> Target | None:
        """See L{IConnecter.connect}."""
        if "dryRun" in query:
            raise APIStatusError.bad_request("dryRun is not supported")
        options = connect_options(self.info.resource, self.name, query, path)
        await admit_connection(self.info, self._stores, scope, name, self.name, options)
        return self.target(scope, name, options)

    def target(self, scope: RequestScope, name: str, options: JSONObject) -> Target:
        """
        Where such a request goes.

        @raise APIStatusError: Nowhere.
        """
        raise NotImplementedError

    def pod(self, scope: RequestScope, name: str) -> JSONObject:
        """
        The pod that is meant.

        @raise APIStatusError: There is none (404).
        """
        pods = self._stores.get("", "pods")
        pods.requested_key(scope, name)
        pod = self._stores.view("", "pods", scope.namespace, name)
        if pod is None:
            raise pods.not_found(name)
        return pod


class PodLog(Connection):
    """C{pods/log}: text from the kubelet; a pod that is on no node has none."""

    async def connect(self, scope: RequestScope, name: str, path: str, query: Query) -> Target | None:
        """See L{IConnecter.connect}; nobody admits who only reads."""
        rules = self._stores.connection_rules
        asked = log_options(query)
        asked.check(name, split_streams=rules.split_streams)
        pod = self.pod(scope, name)
        container = chosen_container(pod, asked.container)
        node = (pod.get("spec") or {}).get("nodeName")
        if not node:
            return None
        kubelet = kubelet_of(self._stores, node, "pods")
        path = f"/containerLogs/{scope.namespace}/{name}/{container}"
        wanted = asked.kubelet_query(split_streams=rules.split_streams)
        return kubelet.target(path, wanted, insecure=asked.insecure, options={})


class PodStream(Connection):
    """C{pods/exec}, C{pods/attach} and C{pods/portforward}: bytes both ways, through the kubelet."""

    def target(self, scope: RequestScope, name: str, options: JSONObject) -> Target:
        """See L{Connection.target}."""
        pod = self.pod(scope, name)
        path = f"{scope.namespace}/{name}"
        if self.name == "portforward":
            path = f"/portForward/{path}"
            ports = ",".join(map(str, options.get("ports") or ()))
            asked = [("port", ports)] if ports else []
        else:
            path = f"/{self.name}/{path}/{chosen_container(pod, options.get('container', ''))}"
            asked = [("command", part) for part in options.get("command") or ()]
            asked += [(there, "1") for here, there in _SWITCHES if options.get(here)]
        node = (pod.get("spec") or {}).get("nodeName")
        if not node:
            raise APIStatusError.bad_request(f"pod {name} does not have a host assigned")
        # Sorted by name, as Go has it; of one name in their order.
        query = urlencode(sorted(asked, key=lambda one: one[0]))
        return kubelet_of(self._stores, node, "pods").target(path, query, options=options)


class PodProxy(Connection):
    """C{pods/proxy}: a port of a pod."""

    subpaths = True

    def target(self, scope: RequestScope, name: str, options: JSONObject) -> Target:
        """See L{Connection.target}."""
        scheme, name, port = split_name(name, "pod")
        pod = self.pod(scope, name)
        check_runs(self._stores, pod)
        if not port:
            port = _first_port(pod)
        elif not port.isdigit():
            port = _named_port(pod, port)
        address = next(iter(pod_addresses(pod)), "")
        check_proxied(address, self._stores.connection_rules)
        return proxy_target(scheme, address, port, options)


class ServiceProxy(Connection):
    """C{services/proxy}: a port of some ready pod of a service."""

    subpaths = True

    def target(self, scope: RequestScope, name: str, options: JSONObject) -> Target:
        """See L{Connection.target}."""
        scheme, service, port = split_name(name, "service")
        self._stores.get("", "services").requested_key(scope, service)
        address, number = service_backend(self._stores, scope.namespace, service, port, name)
        return proxy_target(scheme, address, str(number), options)


class NodeProxy(Connection):
    """C{nodes/proxy}: the kubelet, or another port of its node."""

    subpaths = True

    def target(self, scope: RequestScope, name: str, options: JSONObject) -> Target:
        """See L{Connection.target}."""
        scheme, name, port = split_name(name, "node")
        kubelet = kubelet_of(self._stores, name)
        check_proxied(kubelet.host, self._stores.connection_rules)
        if not port or port == str(kubelet.port):
            return kubelet.target(clean_path(options.get("path", "")), options=options)
        return proxy_target(scheme, kubelet.host, port, options)


def proxy_target(scheme: str, host: str, port: str, options: JSONObject) -> Target:
    """
    What a proxy leads to that is no kubelet.

    @raise APIStatusError: There is no such port.
    """
    scheme = scheme or "http"
    return Target(
        scheme=scheme,
        host=host,
        port=proxied_port(port, scheme, host),
        path=clean_path(options.get("path", "")),
        insecure=True,
        options=options,
    )


def chosen_container(pod: JSONObject, name: str) -> str:
    """
    The container that is meant.

    @raise APIStatusError: There is none of that name, or it has to be chosen among several (400).
    """
    spec = pod.get("spec") or {}
    pod_name = pod["metadata"]["name"]
    names = [container["name"] for container, _, _ in containers(spec)]
    if name:
        if name not in names:
            raise APIStatusError.bad_request(f"container {name} is not valid for pod {pod_name}")
        return name
    main: Sequence[JSONObject] = spec.get("containers") or ()
    if len(main) == 1:
        return str(main[0]["name"])
    choice = f", choose one of: [{' '.join(names)}]" if main else ""
    raise APIStatusError.bad_request(f"a container name must be specified for pod {pod_name}{choice}")


def _first_port(pod: JSONObject) -> str:
    for container in pod["spec"].get("containers") or ():
        for port in container.get("ports") or ():
            return str(port["containerPort"])
    return ""


def _named_port(pod: JSONObject, name: str) -> str:
    """The number of a port that a container names; what no container names stays as it is."""
    for container in pod["spec"].get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("name") == name:
                return str(port["containerPort"])
    return name


_PROXIES: Final = {"pods": PodProxy, "services": ServiceProxy, "nodes": NodeProxy}


def connection_storage(info: ResourceInfo, subresource: SubresourceInfo, stores: Stores, context: Any) -> Connection:
    """The storage object of such a subresource."""
    if subresource.name == "proxy":
        return _PROXIES[info.resource](info, "proxy", ALL_METHODS, stores)
    if subresource.name == "log":
        return PodLog(info, "log", ("GET",), stores)
    return PodStream(info, subresource.name, ("GET", "POST"), stores)
