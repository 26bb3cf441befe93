"""C{nodes/proxy}; see kubernetes/kubernetes, C{pkg/registry/core/node/strategy.go}."""

from __future__ import annotations

from ....api.requestscope import RequestScope
from ....api.resource import JSONObject
from ....api.targets import (
    Target,
    clean_path,
    split_name,
)
from ..connection import ConnectSubresource, proxy_target
from .kubelets import check_proxyable_ip, get_connection_info


class NodeProxy(ConnectSubresource):
    """C{nodes/proxy}: requests to the kubelet, or another port of its node."""

    subpaths = True

    def target(self, scope: RequestScope, name: str, options: JSONObject) -> Target:
        """See L{Connection.target}."""
        scheme, name, port = split_name(name, "node")
        kubelet = get_connection_info(self._stores, self._rules, name)
        if not kubelet.simulated:
            check_proxyable_ip(kubelet.host, self._rules)
        if not port or port == str(kubelet.port):
            return kubelet.target(clean_path(options.get("path", "")), options=options)
        return proxy_target(scheme, kubelet.host, port, options, simulated=kubelet.simulated)
