"""Tests for L{kubetwist.registry.core.node.kubelets}."""

from __future__ import annotations

from kubetwist.registry.core.node.kubelets import ConnectionRules
from tests.registry.core.connectioncase import ConnectionCase
from tests.resources.server import pod


class KubeletTests(ConnectionCase):
    """Tests for L{kubetwist.registry.core.node.kubelets}."""

    def test_no_node(self) -> None:
        """A pod that is nowhere has no streams, and its log is no content."""
        self.made(self.store("pods"), pod("p"))
        for stream in ("exec", "attach", "portforward"):
            self.assertEqual(self.why("pods", stream, "p"), (400, "pod p does not have a host assigned"))
        self.assertIsNone(self.leads("pods", "log", "p"))

    def test_node_that_is_gone(self) -> None:
        """A pod on a missing node is unreachable; as in the reference, the message names the node as a pod."""
        self.running()
        for stream in ("log", "exec", "attach", "portforward"):
            self.assertEqual(self.why("pods", stream, "p"), (404, 'pods "n" not found'))

    def test_ports(self) -> None:
        """Ports are numbers of 16 bits, one or several in each parameter."""
        self.made(self.store("pods"), pod("p"))
        unbound = (400, "pod p does not have a host assigned")
        for ports in (["80"], ["80,81"], ["0", "65535"], ["00080"]):
            self.assertEqual(self.why("pods", "portforward", "p", ports=ports), unbound)
        for port, problem in (
            ("x", "invalid syntax"),
            ("-1", "invalid syntax"),
            ("", "invalid syntax"),
            ("65536", "value out of range"),
            ("9" * 5000, "value out of range"),
        ):
            code, message = self.why("pods", "portforward", "p", ports=[f"80,{port}"])
            self.assertEqual(code, 400)
            self.assertEqual(message, f'cannot convert to []int32: strconv.ParseUint: parsing "{port}": {problem}')

    def test_addresses(self) -> None:
        """A kubelet is called at the best of its node's addresses, and the port that the node tells."""
        self.running()
        known = [{"type": "InternalIP", "address": "10.1.2.3"}, {"type": "Hostname", "address": "h"}]
        self.node(addresses=known)
        self.assertEqual(self.shown("pods", "log", "p"), "https://h:10250/containerLogs/default/p/main?")
        self.tell("nodes", "n", daemonEndpoints={"kubeletEndpoint": {"Port": 10300}})
        self.rules = ConnectionRules(("ExternalIP", "InternalIP"), 10251)
        self.assertEqual(self.shown("pods", "log", "p"), "https://10.1.2.3:10300/containerLogs/default/p/main?")
        self.tell("nodes", "n", daemonEndpoints={"kubeletEndpoint": {"Port": 0}})
        self.assertEqual(self.shown("nodes", "proxy", "n", "/pods"), "https://10.1.2.3:10251/pods")
        self.rules = ConnectionRules(("ExternalIP",))
        told = "no preferred addresses found; known addresses: [{InternalIP 10.1.2.3} {Hostname h}]"
        self.assertEqual(self.why("pods", "log", "p"), (500, told))
