"""
Base class of subresources that connect to another server, for pods, services and nodes.

They determine the target of a request and check that it is allowed; L{kubetwist.resources.proxy} proxies the request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from zope.interface import implementer

from ...api.errors import APIStatusError
from ...api.requestscope import RequestScope
from ...api.resource import JSONObject
from ...api.targets import (
    Target,
    clean_path,
    proxied_port,
)
from ...interfaces import IConnecter
from ..generic.admitting import admit_connection
from ..generic.resourceinfo import ResourceInfo
from .connectoptions import connect_options

if TYPE_CHECKING:
    from .servercontext import ServerContext


Query = Mapping[str, Sequence[str]]
ALL_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")


class ForwardedSubresource:
    """A subresource whose requests are answered by another server."""

    def __init__(self, info: ResourceInfo, context: ServerContext) -> None:
        self.info = info
        self._stores = context.stores
        self._rules = context.connection_rules

    def pod(self, scope: RequestScope, name: str) -> JSONObject:
        """
        Return the pod of a request.

        @raise APIStatusError: The pod does not exist (404).
        """
        pods = self._stores.get("", "pods")
        pods.requested_key(scope, name)
        pod = self._stores.get_decoded("", "pods", scope.namespace, name)
        if pod is None:
            raise pods.not_found(name)
        return pod


@implementer(IConnecter)
class ConnectSubresource(ForwardedSubresource):
    """A subresource whose requests of several methods are proxied (Go: C{rest.Connecter})."""

    subpaths = False

    def __init__(self, info: ResourceInfo, name: str, methods: Sequence[str], context: ServerContext) -> None:
        super().__init__(info, context)
        self.name = name
        self.methods = methods
        self._environment = context.environment

    async def connect(self, scope: RequestScope, name: str, path: str, query: Query) -> Target | None:
        """
        See L{IConnecter.connect}.

        @param name: The name of the object.
        @param path: The path below the subresource.
        @param query: The query of the request.
        """
        if "dryRun" in query:
            raise APIStatusError.bad_request("dryRun is not supported")
        options = connect_options(self.info.resource, self.name, query, path)
        await admit_connection(self.info, self._environment, scope, name, self.name, options)
        return self.target(scope, name, options)

    def target(self, scope: RequestScope, name: str, options: JSONObject) -> Target:
        """
        Return the target of a request.

        @param options: The options in the query, as an object of their kind.
        @raise APIStatusError: There is no target.
        """
        raise NotImplementedError


def proxy_target(scheme: str, host: str, port: str, options: JSONObject, *, simulated: bool = False) -> Target:
    """
    Return the target of a proxy request that is not for a kubelet.

    @param scheme: C{"http"}, C{"https"}, or C{""} for the default.
    @param host: The address.
    @param port: The number of the port.
    @param options: The options in the query, as an object of their kind.
    @param simulated: Whether the host is a simulated node or a pod on one, which have no TLS.
    @raise APIStatusError: The port is invalid.
    """
    scheme = scheme or "http"
    return Target(
        scheme="http" if simulated else scheme,
        host=host,
        port=proxied_port(port, scheme, host),
        path=clean_path(options.get("path", "")),
        insecure=True,
        options=options,
        simulated=simulated,
    )
