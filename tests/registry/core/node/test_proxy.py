"""Tests for L{kubetwist.registry.core.node.proxy}."""

from __future__ import annotations

from kubetwist.registry.core.node.kubelets import SIMULATED_RUNTIME_PREFIX
from tests.registry.core.connectioncase import ProxyTestCase


class ProxyTests(ProxyTestCase):
    """Tests for L{kubetwist.registry.core.node.proxy}."""

    def test_nodes(self) -> None:
        """The kubelet is what a node's proxy leads to, and other ports are called as nobody in particular."""
        self.node()
        for name, expected in (
            ("n", (True, "https://10.1.2.3:10250/m")),
            ("http:n:10250", (True, "https://10.1.2.3:10250/m")),
            ("n:9100", (False, "http://10.1.2.3:9100/m")),
            ("https:n:9100", (False, "https://10.1.2.3:9100/m")),
        ):
            target = self.leads("nodes", "proxy", name, "/m")
            assert target is not None
            self.assertEqual((target.kubelet, self.shown("nodes", "proxy", name, "/m")), expected)
        self.assertEqual(self.why("nodes", "proxy", "gone"), (404, 'nodes "gone" not found'))
        self.made(self.store("nodes"), {"metadata": {"name": "new"}})
        self.assertEqual(self.why("nodes", "proxy", "new")[1], "no preferred addresses found; known addresses: []")

    def test_pretend_nodes(self) -> None:
        """What is on a node that is there in appearance only leads nowhere, and why is said."""
        self.running()
        self.node(nodeInfo={"containerRuntimeVersion": f"{SIMULATED_RUNTIME_PREFIX}1.0.0"})
        self.tell("pods", "p", podIP="10.1.2.3", podIPs=[{"ip": "10.1.2.3"}])
        self.made(self.store("services"), {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "name": "w"}]}})
        reference = {"kind": "Pod", "name": "p", "namespace": "default"}
        self.endpoints("s", addresses=[{"ip": "10.1.2.3", "targetRef": reference}])
        told = (503, "n is a pretend node: it has no kubelet, and no container runs on it")
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
            self.assertEqual(self.why(resource, subresource, name), told, (resource, subresource, name))
        self.tell("nodes", "n", nodeInfo={"containerRuntimeVersion": "containerd://2.0.0"})
        self.assertEqual(self.shown("pods", "proxy", "p:80", "/x"), "http://10.1.2.3:80/x")
