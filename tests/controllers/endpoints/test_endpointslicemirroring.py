"""Tests for L{kubetwist.controllers.endpoints.endpointslicemirroring}."""

from __future__ import annotations

from typing import Any

from kubetwist.controllers.endpoints.endpointslice import GROUP
from kubetwist.controllers.endpoints.endpointslicemirroring import (
    SKIP,
    EndpointSliceMirroringController,
)
from tests.controllers.services import ServiceTestCase

SUBSET = {
    "addresses": [{"ip": "1.2.3.4", "nodeName": "n1"}],
    "notReadyAddresses": [{"ip": "fd00::1"}],
    "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
}


class EndpointSliceMirroringTests(ServiceTestCase):
    """Mirroring of custom Endpoints."""

    def slices(self) -> list[Any]:
        """Return all slices."""
        return [self.find("endpointslices", name, "default", GROUP) for name in self.names("endpointslices", "", GROUP)]

    def shown(self) -> list[Any]:
        """Return the endpoints in the slices."""
        return sorted(
            (one["addressType"], [(end["addresses"], end["conditions"]["ready"]) for end in one["endpoints"]])
            for one in self.slices()
        )

    def test_mirrored(self) -> None:
        """Endpoints of a service without a selector have a slice for each address family."""
        self.start(EndpointSliceMirroringController)
        self.service(selector=None)
        meta = {"labels": {"a": "b"}, "annotations": {"x": "y"}}
        made = self.make("endpoints", "web", "default", metadata=meta, subsets=[SUBSET])
        self.settle()
        self.assertEqual(self.shown(), [("IPv4", [(["1.2.3.4"], True)]), ("IPv6", [(["fd00::1"], False)])])
        one = self.slices()[0]
        self.assertEqual(one["ports"], SUBSET["ports"])
        self.assertEqual(one["metadata"]["annotations"], {"x": "y"})
        self.assertEqual(
            one["metadata"]["labels"],
            {
                "a": "b",
                "kubernetes.io/service-name": "web",
                "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
            },
        )
        self.assertEqual(one["metadata"]["ownerReferences"][0]["uid"], made["metadata"]["uid"])

    def test_changes(self) -> None:
        """Slices are updated in place. Changes by other clients are reverted."""
        self.start(EndpointSliceMirroringController)
        self.service(selector=None)
        self.make("endpoints", "web", "default", subsets=[SUBSET])
        self.settle()
        names = self.names("endpointslices", "", GROUP)
        other = {"addresses": [{"ip": "1.2.3.5"}, {"ip": "1.2.3.4"}], "ports": [{"port": 81}]}
        self.change("endpoints", "web", lambda obj: obj.update(subsets=[other]), "default")
        self.settle()
        self.assertEqual(self.shown(), [("IPv4", [(["1.2.3.5"], True), (["1.2.3.4"], True)])])
        (name,) = self.names("endpointslices", "", GROUP)
        self.assertIn(name, names)
        self.change("endpointslices", name, lambda obj: obj.update(endpoints=[]), "default", GROUP)
        self.settle()
        self.assertEqual(len(self.shown()[0][1]), 2)
        self.remove("endpointslices", name, "default", GROUP)
        self.settle()
        self.assertEqual(len(self.shown()[0][1]), 2)

    def test_not_mirrored(self) -> None:
        """Slices are deleted with the Endpoints or the service, and if mirroring is disabled."""
        self.start(EndpointSliceMirroringController)
        endings: list[Any] = [
            lambda: self.remove("endpoints", "web", "default"),
            lambda: self.remove("services", "web", "default"),
            lambda: self.change("services", "web", lambda obj: obj["spec"].update(selector={"a": "b"}), "default"),
            lambda: self.change(
                "endpoints", "web", lambda obj: obj["metadata"].update(labels={SKIP: "true"}), "default"
            ),
        ]
        for end in endings:
            self.service(selector=None)
            self.make("endpoints", "web", "default", subsets=[SUBSET])
            self.settle()
            self.assertEqual(len(self.slices()), 2)
            end()
            self.settle()
            self.assertEqual(self.slices(), [])
            for resource in ("services", "endpoints"):
                if self.find(resource, "web", "default"):
                    self.remove(resource, "web", "default")

    def test_repacked(self) -> None:
        """Addresses of several subsets are in a slice with all their ports."""
        self.start(EndpointSliceMirroringController)
        self.service(selector=None)
        first = {"addresses": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.2"}], "ports": [{"name": "a", "port": 1}]}
        second = {"addresses": [{"ip": "1.1.1.1"}], "ports": [{"name": "b", "port": 2}]}
        self.make("endpoints", "web", "default", subsets=[first, second])
        self.settle()
        found = sorted((len(one["ports"]), one["endpoints"][0]["addresses"]) for one in self.slices())
        self.assertEqual(found, [(1, ["1.1.1.2"]), (2, ["1.1.1.1"])])

    def test_faults_and_restart(self) -> None:
        """With failing writes and after a kill, the slices are correct in the end."""
        self.start(EndpointSliceMirroringController)
        for number in range(20):
            self.service(f"s{number}", selector=None, clusterIP=f"10.0.0.{number + 1}")
            self.make("endpoints", f"s{number}", "default", subsets=[SUBSET])
        self.backend.fails = lambda number: number % 10 == 0
        self.settle(60)
        self.backend.fails = lambda number: False
        self.assertEqual(len(self.slices()), 40)
        for subscription in self.running[0]._registrations:
            subscription.stop()
        self.remove("services", "s0", "default")
        before = {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in self.slices()}
        self.restart(EndpointSliceMirroringController)
        self.settle(1)
        after = {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in self.slices()}
        self.assertEqual((len(after), after.items() <= before.items()), (38, True))
