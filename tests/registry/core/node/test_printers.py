"""Tests of L{kubetwist.registry.core.node.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class NodeTests(SynchronousTestCase):
    """Tests of rows of Nodes."""

    def test_node(self) -> None:
        """A row contains the roles, and the kernel with the architecture."""
        labels = {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge", "node-role.kubernetes.io/": ""}
        status = {
            "conditions": [{"type": "Ready", "status": "False"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1", "kernelVersion": "6.8", "architecture": "arm64"},
        }
        obj = made({"spec": {"unschedulable": True}, "status": status}, labels=labels)
        self.assertEqual(
            cells("", "Node", obj, NOW)[1:],
            [
                "NotReady,SchedulingDisabled",
                "edge,worker",
                "3m",
                "v1",
                "10.0.0.1",
                "<none>",
                "<unknown>",
                "6.8 (arm64)",
                "<unknown>",
            ],
        )
