"""Tests of L{kubetwist.registry.core.node.kubelets}."""

from __future__ import annotations

from kubetwist.registry.core.node.kubelets import ConnectionRules
from tests.registry.core.connectioncase import ConnectionCase
from tests.resources.server import pod


class KubeletTests(ConnectionCase):
    """Tests of L{kubetwist.registry.core.node.kubelets}."""

    def test_no_node(self) -> None:
        """Streams of a pod without a node are an error, and its log is empty."""
        self.made(self.store("pods"), pod("p"))
        for stream in ("exec", "attach", "portforward"):
            self.assertEqual(self.connection_error("pods", stream, "p"), (400, "pod p does not have a host assigned"))
        self.assertIsNone(self.connect("pods", "log", "p"))

    def test_missing_node(self) -> None:
        """A pod on a missing node is a 404; as in the reference, the message names the node as a pod."""
        self.running()
        for stream in ("log", "exec", "attach", "portforward"):
            self.assertEqual(self.connection_error("pods", stream, "p"), (404, 'pods "n" not found'))

    def test_ports(self) -> None:
        """Ports are numbers of 16 bits, one or several in each parameter."""
        self.made(self.store("pods"), pod("p"))
        unbound = (400, "pod p does not have a host assigned")
        for ports in (["80"], ["80,81"], ["0", "65535"], ["00080"]):
            self.assertEqual(self.connection_error("pods", "portforward", "p", ports=ports), unbound)
        for port, problem in (
            ("x", "invalid syntax"),
            ("-1", "invalid syntax"),
            ("", "invalid syntax"),
            ("65536", "value out of range"),
            ("9" * 5000, "value out of range"),
        ):
            code, message = self.connection_error("pods", "portforward", "p", ports=[f"80,{port}"])
            self.assertEqual(code, 400)
            self.assertEqual(message, f'cannot convert to []int32: strconv.ParseUint: parsing "{port}": {problem}')

    def test_addresses(self) -> None:
        """A kubelet is called at the preferred address of its node, and the port in its status."""
        self.running()
        addresses = [{"type": "InternalIP", "address": "10.1.2.3"}, {"type": "Hostname", "address": "h"}]
        self.node(addresses=addresses)
        self.assertEqual(self.target_url("pods", "log", "p"), "https://h:10250/containerLogs/default/p/main?")
        self.set_status("nodes", "n", daemonEndpoints={"kubeletEndpoint": {"Port": 10300}})
        self.rules = ConnectionRules(("ExternalIP", "InternalIP"), 10251)
        self.assertEqual(self.target_url("pods", "log", "p"), "https://10.1.2.3:10300/containerLogs/default/p/main?")
        self.set_status("nodes", "n", daemonEndpoints={"kubeletEndpoint": {"Port": 0}})
        self.assertEqual(self.target_url("nodes", "proxy", "n", "/pods"), "https://10.1.2.3:10251/pods")
        self.rules = ConnectionRules(("ExternalIP",))
        message = "no preferred addresses found; known addresses: [{InternalIP 10.1.2.3} {Hostname h}]"
        self.assertEqual(self.connection_error("pods", "log", "p"), (500, message))
