"""C{services/proxy}."""

from __future__ import annotations

from ....api.requestscope import RequestScope
from ....api.resource import JSONObject
from ....api.targets import (
    Target,
    split_name,
)
from ..connection import ConnectSubresource, proxy_target
from .backends import service_backend


class ServiceProxy(ConnectSubresource):
    """C{services/proxy}: requests to a port of a ready pod of a service."""

    subpaths = True

    def target(self, scope: RequestScope, name: str, options: JSONObject) -> Target:
        """See L{Connection.target}."""
        scheme, service, port = split_name(name, "service")
        self._stores.get("", "services").requested_key(scope, service)
        address, number, simulated = service_backend(self._stores, scope.namespace, service, port, name)
        return proxy_target(scheme, address, str(number), options, simulated=simulated)
