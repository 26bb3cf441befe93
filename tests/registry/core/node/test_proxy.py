"""Tests of L{kubetwist.registry.core.node.proxy}."""

from __future__ import annotations

from kubetwist.registry.core.node.kubelets import SIMULATED_RUNTIME_PREFIX
from tests.registry.core.connectioncase import ProxyTestCase


class ProxyTests(ProxyTestCase):
    """Tests of L{kubetwist.registry.core.node.proxy}."""

    def test_nodes(self) -> None:
        """Without a port the target is the kubelet; other ports are called without the kubelet's credentials."""
        self.node()
        for name, expected in (
            ("n", (True, "https://10.1.2.3:10250/m")),
            ("http:n:10250", (True, "https://10.1.2.3:10250/m")),
            ("n:9100", (False, "http://10.1.2.3:9100/m")),
            ("https:n:9100", (False, "https://10.1.2.3:9100/m")),
        ):
            target = self.connect("nodes", "proxy", name, "/m")
            assert target is not None
            self.assertEqual((target.kubelet, self.target_url("nodes", "proxy", name, "/m")), expected)
        self.assertEqual(self.connection_error("nodes", "proxy", "gone"), (404, 'nodes "gone" not found'))
        self.made(self.store("nodes"), {"metadata": {"name": "new"}})
        self.assertEqual(
            self.connection_error("nodes", "proxy", "new")[1], "no preferred addresses found; known addresses: []"
        )

    def test_simulated_nodes(self) -> None:
        """Requests for pods on a simulated node are rejected with the reason."""
        self.running()
        self.node(nodeInfo={"containerRuntimeVersion": f"{SIMULATED_RUNTIME_PREFIX}1.0.0"})
        self.set_status("pods", "p", podIP="10.1.2.3", podIPs=[{"ip": "10.1.2.3"}])
        self.made(self.store("services"), {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "name": "w"}]}})
        reference = {"kind": "Pod", "name": "p", "namespace": "default"}
        self.endpoints("s", addresses=[{"ip": "10.1.2.3", "targetRef": reference}])
        error = (503, "n is a simulated node: it has no kubelet, and no container runs on it")
        for resource, subresource, name in (
            ("pods", "log", "p"),
            ("pods", "exec", "p"),
            ("pods", "attach", "p"),
            ("pods", "portforward", "p"),
            ("pods", "proxy", "p:80"),
            ("services", "proxy", "s:80"),
            ("nodes", "proxy", "n"),
            ("nodes", "proxy", "n:9100"),
        ):
            self.assertEqual(self.connection_error(resource, subresource, name), error, (resource, subresource, name))
        self.set_status("nodes", "n", nodeInfo={"containerRuntimeVersion": "containerd://2.0.0"})
        self.assertEqual(self.target_url("pods", "proxy", "p:80", "/x"), "http://10.1.2.3:80/x")
