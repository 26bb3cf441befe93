"""Test case for services and pods."""

from __future__ import annotations

from typing import Any

from tests.controllers.harness import ControllerTestCase

CONTAINER = {"name": "c", "image": "i", "ports": [{"name": "web", "containerPort": 8080, "protocol": "TCP"}]}


class ServiceTestCase(ControllerTestCase):
    """Test case with a namespace and a service C{web}, which selects C{app=web}."""

    resources = ("namespaces", "services", "pods", "endpoints", "endpointslices", "nodes", "events")

    def setUp(self) -> None:
        """Create a namespace and a node."""
        super().setUp()
        self.make("namespaces", "default")
        self.make("nodes", "n1", metadata={"labels": {"topology.kubernetes.io/zone": "z1"}})

    def service(self, name: str = "web", labels: Any = None, **spec: Any) -> Any:
        """Create a service."""
        wanted = {
            "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"}],
            "ipFamilies": ["IPv4"],
            "clusterIP": "10.0.0.10",
            **spec,
        }
        return self.make("services", name, "default", metadata={"labels": labels or {"tier": "a"}}, spec=wanted)

    def pod(self, name: str, ip: str, *, ready: bool = True, node: str = "n1", **spec: Any) -> Any:
        """Create a running pod."""
        addresses = ip.split(",")
        self.make(
            "pods",
            name,
            "default",
            metadata={"labels": {"app": "web"}},
            spec={"containers": [CONTAINER], "nodeName": node, **spec},
            status={
                "phase": "Running",
                "podIP": addresses[0],
                "podIPs": [{"ip": address} for address in addresses],
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True" if ready else "False",
                        "lastTransitionTime": "2030-01-01T00:00:00Z",
                    }
                ],
            },
        )
        return self.find("pods", name, "default")

    def set_ready(self, name: str, ready: bool, time: str = "2031-01-01T00:00:00Z") -> None:
        """Set the condition Ready of a pod."""

        def change(pod: Any) -> None:
            pod["status"]["conditions"][0].update(status="True" if ready else "False", lastTransitionTime=time)

        self.change("pods", name, change, "default", subresource="status")
