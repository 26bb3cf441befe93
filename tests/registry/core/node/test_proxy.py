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
        """Requests for a simulated node and its pods stay in the process, and its addresses are not checked."""
        self.running()
        self.node(nodeInfo={"containerRuntimeVersion": f"{SIMULATED_RUNTIME_PREFIX}1.0.0"})
        self.set_status("pods", "p", podIP="10.1.2.3", podIPs=[{"ip": "10.1.2.3"}])
        self.made(self.store("services"), {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "name": "w"}]}})
        reference = {"kind": "Pod", "name": "p", "namespace": "default"}
        self.endpoints("s", addresses=[{"ip": "10.1.2.3", "targetRef": reference}])
        for resource, subresource, name, address in (
            ("pods", "log", "p", ("n", 10250)),
            ("pods", "exec", "p", ("n", 10250)),
            ("pods", "attach", "p", ("n", 10250)),
            ("pods", "portforward", "p", ("n", 10250)),
            ("pods", "proxy", "https:p:80", ("10.1.2.3", 80)),
            ("services", "proxy", "s:80", ("10.1.2.3", 8080)),
            ("nodes", "proxy", "n", ("n", 10250)),
            ("nodes", "proxy", "n:9100", ("n", 9100)),
        ):
            with self.subTest((resource, subresource, name)):
                target = self.connect(resource, subresource, name)
                assert target is not None
                self.assertTrue(target.simulated)
                self.assertEqual((target.scheme, target.host, target.port), ("http", *address))
        self.set_status("nodes", "n", nodeInfo={"containerRuntimeVersion": "containerd://2.0.0"})
        target = self.connect("pods", "proxy", "p:80", "/x")
        assert target is not None
        self.assertFalse(target.simulated)
