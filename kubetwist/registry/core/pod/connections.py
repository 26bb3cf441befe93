"""
Subresources of pods that connect to the kubelet or the pod: log, exec, attach, portforward and proxy.

@see: kubernetes/kubernetes, C{pkg/registry/core/pod/strategy.go}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

from zope.interface import implementer

from ....api.errors import APIStatusError
from ....api.podspecs import containers
from ....api.requestscope import RequestScope
from ....api.resource import GroupVersionKind, JSONObject
from ....api.targets import (
    Target,
    split_name,
)
from ....interfaces import IGetterWithOptions, IStorageMetadata
from ..connection import ConnectSubresource, ForwardedSubresource, Query, proxy_target
from ..node.kubelets import check_proxyable_ip, get_connection_info, is_on_simulated_node
from ..service.backends import pod_addresses
from .logoptions import LogOptions, log_options

#: The parameters of streams in the options and in requests to kubelets.
_STREAMS: Final = (("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty"))


@implementer(IGetterWithOptions, IStorageMetadata)
class PodLog(ForwardedSubresource):
    """C{pods/log}, answered by the kubelet; the log of a pod without a node is empty."""

    options_kind = GroupVersionKind("", "v1", "PodLogOptions")

    def produced_media_types(self, verb: str) -> Sequence[str]:
        """See L{IStorageMetadata.produced_media_types}. Errors have the other media types."""
        return ("text/plain",)

    def produced_kind(self, verb: str) -> None:
        """See L{IStorageMetadata.produced_kind}."""

    def decode_options(self, query: Query) -> LogOptions:
        """See L{IGetterWithOptions.decode_options}."""
        return log_options(query)

    async def get_with_options(self, scope: RequestScope, name: str, options: LogOptions) -> Target | None:
        """
        See L{IGetterWithOptions.get_with_options}.

        @param name: The name of the pod.
        @param options: The options.
        @return: The target; L{None} for a pod without a node.
        """
        rules = self._rules
        options.check(name, split_streams=rules.split_streams)
        pod = self.pod(scope, name)
        container = chosen_container(pod, options.container)
        node = (pod.get("spec") or {}).get("nodeName")
        if not node:
            return None
        kubelet = get_connection_info(self._stores, self._rules, node, "pods")
        path = f"/containerLogs/{scope.namespace}/{name}/{container}"
        kubelet_query = options.kubelet_query(split_streams=rules.split_streams)
        return kubelet.target(path, kubelet_query, insecure=options.insecure, options={})


class PodStream(ConnectSubresource):
    """C{pods/exec}, C{pods/attach} and C{pods/portforward}: streams through the kubelet."""

    def target(self, scope: RequestScope, name: str, options: JSONObject) -> Target:
        """See L{Connection.target}."""
        pod = self.pod(scope, name)
        path = f"{scope.namespace}/{name}"
        if self.name == "portforward":
            path = f"/portForward/{path}"
            ports = ",".join(map(str, options.get("ports") or ()))
            parameters = [("port", ports)] if ports else []
        else:
            path = f"/{self.name}/{path}/{chosen_container(pod, options.get('container', ''))}"
            parameters = [("command", argument) for argument in options.get("command") or ()]
            parameters += [(kubelet_name, "1") for option, kubelet_name in _STREAMS if options.get(option)]
        node = (pod.get("spec") or {}).get("nodeName")
        if not node:
            raise APIStatusError.bad_request(f"pod {name} does not have a host assigned")
        # Sorted by name, as in Go; the order of parameters with the same name is kept.
        query = urlencode(sorted(parameters, key=lambda parameter: parameter[0]))
        return get_connection_info(self._stores, self._rules, node, "pods").target(path, query, options=options)


class PodProxy(ConnectSubresource):
    """C{pods/proxy}: requests to a port of a pod."""

    subpaths = True

    def target(self, scope: RequestScope, name: str, options: JSONObject) -> Target:
        """See L{Connection.target}."""
        scheme, name, port = split_name(name, "pod")
        pod = self.pod(scope, name)
        if not port:
            port = _first_port(pod)
        elif not port.isdigit():
            port = _named_port(pod, port)
        address = next(iter(pod_addresses(pod)), "")
        simulated = is_on_simulated_node(self._stores, pod)
        if not simulated:
            check_proxyable_ip(address, self._rules)
        return proxy_target(scheme, address, port, options, simulated=simulated)


def chosen_container(pod: JSONObject, name: str) -> str:
    """
    Return the name of the container of a request.

    @param name: The name in the request; C{""} for the only container.
    @raise APIStatusError: The container does not exist, or the pod has several and none is named (400).
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
    """Return the number of a port that a container of the pod names; C{name} if there is none."""
    for container in pod["spec"].get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("name") == name:
                return str(port["containerPort"])
    return name
