"""Tests for L{kubetwist.controllers.endpoints.endpoint}."""

from __future__ import annotations

from typing import Any

from kubetwist.controllers.endpoints.endpoint import (
    CAPACITY,
    EndpointsController,
)
from tests.controllers.services import ServiceTestCase

MANAGED = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}


class EndpointsControllerTests(ServiceTestCase):
    """Endpoints of services."""

    def endpoints(self, name: str = "web") -> Any:
        """Return the Endpoints of a service."""
        return self.find("endpoints", name, "default")

    def subsets(self, name: str = "web") -> Any:
        """Return the subsets of the Endpoints."""
        return self.endpoints(name).get("subsets")

    def test_created(self) -> None:
        """A service has Endpoints from the start, with ready and not ready addresses."""
        self.start(EndpointsController)
        service = self.service()
        self.settle()
        found = self.endpoints()
        self.assertNotIn("subsets", found)
        self.assertEqual(found["metadata"]["labels"], {"tier": "a", **MANAGED})
        made = service["metadata"]["creationTimestamp"]
        self.assertEqual(found["metadata"]["annotations"], {"endpoints.kubernetes.io/last-change-trigger-time": made})
        self.pod("b", "10.1.0.2")
        self.pod("a", "10.1.0.1")
        self.pod("c", "10.1.0.3", ready=False)
        self.settle()
        uids = {name: self.find("pods", name, "default")["metadata"]["uid"] for name in "abc"}

        def address(ip: str, name: str) -> Any:
            target = {"kind": "Pod", "namespace": "default", "name": name, "uid": uids[name]}
            return {"ip": ip, "nodeName": "n1", "targetRef": target}

        self.assertEqual(
            self.subsets(),
            [
                {
                    "addresses": [address("10.1.0.1", "a"), address("10.1.0.2", "b")],
                    "notReadyAddresses": [address("10.1.0.3", "c")],
                    "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
                }
            ],
        )

    def test_changes(self) -> None:
        """Endpoints follow changes of pods, and have the trigger time."""
        self.start(EndpointsController)
        self.service()
        self.pod("a", "10.1.0.1")
        self.settle()
        self.set_ready("a", False)
        self.settle()
        self.assertEqual([list(one) for one in self.subsets()], [["notReadyAddresses", "ports"]])
        self.assertEqual(
            self.endpoints()["metadata"]["annotations"],
            {"endpoints.kubernetes.io/last-change-trigger-time": "2031-01-01T00:00:00Z"},
        )
        self.change("pods", "a", lambda pod: pod["metadata"].update(labels={"app": "other"}), "default")
        self.settle()
        self.assertNotIn("subsets", self.endpoints())
        self.change("pods", "a", lambda pod: pod["metadata"].update(labels={"app": "web"}), "default")
        self.change("pods", "a", lambda pod: pod["status"].update(phase="Failed"), "default", subresource="status")
        self.settle()
        self.assertNotIn("subsets", self.endpoints())

    def test_terminating(self) -> None:
        """Terminating pods are omitted, unless the service publishes not ready addresses."""
        self.start(EndpointsController)
        self.service()
        self.service("all", publishNotReadyAddresses=True, clusterIP="None")
        self.pod("a", "10.1.0.1", ready=False)
        self.remove("pods", "a", "default")
        self.settle()
        self.assertNotIn("subsets", self.endpoints())
        self.assertEqual([one["ip"] for one in self.subsets("all")[0]["addresses"]], ["10.1.0.1"])
        self.assertEqual(self.endpoints("all")["metadata"]["labels"]["service.kubernetes.io/headless"], "")

    def test_ports(self) -> None:
        """Ports are resolved by number or name. Pods with other ports are in other subsets."""
        self.start(EndpointsController)
        self.service(
            ports=[
                {"name": "a", "port": 80, "targetPort": "web"},
                {"name": "b", "port": 81, "targetPort": 9090, "appProtocol": "h2c"},
            ]
        )
        self.pod("a", "10.1.0.1")
        self.pod("b", "10.1.0.2", containers=[{"name": "c", "image": "i"}])
        self.settle()
        named = {"name": "a", "port": 8080, "protocol": "TCP"}
        numbered = {"name": "b", "port": 9090, "protocol": "TCP", "appProtocol": "h2c"}
        self.assertEqual(
            [([one["ip"] for one in each["addresses"]], each["ports"]) for each in self.subsets()],
            [(["10.1.0.1"], [named, numbered]), (["10.1.0.2"], [numbered])],
        )

    def test_headless_without_ports(self) -> None:
        """A headless service needs no ports. Its pods may have host names."""
        self.start(EndpointsController)
        self.service(ports=[], clusterIP="None")
        self.pod("a", "10.1.0.1", hostname="first", subdomain="web")
        self.settle()
        (subset,) = self.subsets()
        self.assertEqual((list(subset), subset["addresses"][0]["hostname"]), (["addresses"], "first"))

    def test_unmanaged(self) -> None:
        """Endpoints of services without selector, or with an external name, are not changed."""
        self.start(EndpointsController)
        self.service(selector=None)
        self.make("endpoints", "web", "default", subsets=[{"addresses": [{"ip": "1.2.3.4"}]}])
        self.make("endpoints", "alone", "default", subsets=[{"addresses": [{"ip": "1.2.3.4"}]}])
        self.pod("a", "10.1.0.1")
        self.settle()
        self.assertEqual(self.subsets(), [{"addresses": [{"ip": "1.2.3.4"}]}])
        self.assertIsNotNone(self.endpoints("alone"))

    def test_deleted_service(self) -> None:
        """Endpoints of a deleted service are deleted, also after downtime. Deleted ones are recreated."""
        self.make("endpoints", "old", "default")
        self.start(EndpointsController)
        self.service()
        self.service("other", clusterIP="10.0.0.11")
        self.settle()
        self.assertEqual(self.names("endpoints"), ["other", "web"])
        self.remove("services", "web", "default")
        self.remove("endpoints", "other", "default")
        self.settle()
        self.assertEqual(self.names("endpoints"), ["other"])

    def test_over_capacity(self) -> None:
        """Endpoints have at most 1000 addresses, ready ones first. Truncation sets an annotation."""
        self.service()
        for number in range(CAPACITY + 20):
            self.pod(f"p{number}", f"10.1.{number // 200}.{number % 200 + 1}", ready=number >= 40)
        self.start(EndpointsController)
        (subset,) = self.subsets()
        self.assertEqual((len(subset["addresses"]), len(subset["notReadyAddresses"])), (CAPACITY - 20, 20))
        self.assertEqual(
            self.endpoints()["metadata"]["annotations"]["endpoints.kubernetes.io/over-capacity"], "truncated"
        )
        for number in range(20):
            self.remove("pods", f"p{number}", "default", grace=0)
        self.settle()
        self.assertNotIn("endpoints.kubernetes.io/over-capacity", self.endpoints()["metadata"].get("annotations") or {})

    def test_unchanged(self) -> None:
        """Irrelevant changes of pods cause no write."""
        self.start(EndpointsController)
        self.service()
        self.pod("a", "10.1.0.1")
        self.settle()
        before = self.endpoints()
        self.change("pods", "a", lambda pod: pod["metadata"].update(annotations={"x": "y"}), "default")
        self.settle()
        self.restart(EndpointsController)
        self.assertEqual(self.endpoints(), before)

    def test_faults_and_restart(self) -> None:
        """With failing writes and after a kill, the Endpoints are correct in the end."""
        self.start(EndpointsController)
        for number in range(20):
            self.service(f"s{number}", clusterIP=f"10.0.0.{number + 1}")
        self.pod("a", "10.1.0.1")
        self.backend.fails = lambda number: number % 10 == 0
        self.settle(60)
        self.backend.fails = lambda number: False
        self.assertEqual(
            [self.subsets(f"s{number}")[0]["addresses"][0]["ip"] for number in range(20)], ["10.1.0.1"] * 20
        )
        for subscription in self.running[0]._registrations:
            subscription.stop()
        self.remove("services", "s0", "default")
        self.set_ready("a", False)
        self.restart(EndpointsController)
        self.settle(1)
        self.assertIsNone(self.endpoints("s0"))
        for number in range(1, 20):
            self.assertNotIn("addresses", self.subsets(f"s{number}")[0])
