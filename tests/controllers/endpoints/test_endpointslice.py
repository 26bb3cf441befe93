"""Tests for L{kubetwist.controllers.endpoints.endpointslice}."""

from __future__ import annotations

from typing import Any, ClassVar

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.record import (
    Record,
    without_kind,
)
from kubetwist.controllers.endpoints.endpointslice import (
    CAPACITY,
    GROUP,
    EndpointSliceController,
    _identity,
    reconcile_slices,
)
from tests.controllers.services import ServiceTestCase

LABELS = {
    "tier": "a",
    "kubernetes.io/service-name": "web",
    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
}


class SliceTestCase(ServiceTestCase):
    """Test case for the slices of services."""

    def slices(self) -> list[Any]:
        """Return all slices."""
        return [self.find("endpointslices", name, "default", GROUP) for name in self.names("endpointslices", "", GROUP)]

    def ips(self) -> list[str]:
        """Return all addresses."""
        return sorted(ip for one in self.slices() for end in one["endpoints"] or () for ip in end["addresses"])


class EndpointSliceControllerTests(SliceTestCase):
    """Slices of services with one address family."""

    def test_created(self) -> None:
        """A service has an empty slice from the start, to which endpoints are added."""
        self.start(EndpointSliceController)
        service = self.service()
        self.settle()
        (one,) = self.slices()
        self.assertEqual((one["addressType"], one["endpoints"], one["ports"]), ("IPv4", None, None))
        meta = one["metadata"]
        self.assertEqual(meta["labels"], LABELS)
        self.assertEqual(meta["generateName"], "web-")
        self.assertEqual(
            meta["ownerReferences"],
            [
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "name": "web",
                    "uid": service["metadata"]["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        )
        pod = self.pod("a", "10.1.0.1")
        self.settle()
        (after,) = self.slices()
        self.assertEqual(after["metadata"]["name"], meta["name"])
        self.assertEqual(after["ports"], [{"name": "http", "port": 8080, "protocol": "TCP"}])
        self.assertEqual(
            after["endpoints"],
            [
                {
                    "addresses": ["10.1.0.1"],
                    "conditions": {"ready": True, "serving": True, "terminating": False},
                    "nodeName": "n1",
                    "zone": "z1",
                    "targetRef": {
                        "kind": "Pod",
                        "namespace": "default",
                        "name": "a",
                        "uid": pod["metadata"]["uid"],
                    },
                }
            ],
        )
        self.assertEqual(
            after["metadata"]["annotations"],
            {"endpoints.kubernetes.io/last-change-trigger-time": "2030-01-01T00:00:00Z"},
        )
        self.remove("pods", "a", "default", grace=0)
        self.settle()
        (left,) = self.slices()
        self.assertEqual((left["endpoints"], left["ports"]), (None, None))

    def test_conditions(self) -> None:
        """Conditions of endpoints: ready ones serve and do not terminate."""
        self.start(EndpointSliceController)
        self.service()
        self.service("all", publishNotReadyAddresses=True, clusterIP="10.0.0.11")
        self.pod("a", "10.1.0.1", ready=False)
        self.pod("b", "10.1.0.2")
        self.remove("pods", "b", "default")
        self.settle()
        found = {
            (one["metadata"]["labels"]["kubernetes.io/service-name"], end["addresses"][0]): [
                end["conditions"][name] for name in ("ready", "serving", "terminating")
            ]
            for one in self.slices()
            for end in one["endpoints"]
        }
        self.assertEqual(
            found,
            {
                ("web", "10.1.0.1"): [False, False, False],
                ("web", "10.1.0.2"): [False, True, True],
                ("all", "10.1.0.1"): [True, False, False],
                ("all", "10.1.0.2"): [True, True, True],
            },
        )

    def test_nodes(self) -> None:
        """An endpoint is published when its node exists, or if the service publishes not ready addresses."""
        self.start(EndpointSliceController)
        self.service()
        self.pod("a", "10.1.0.1", node="n2")
        self.settle()
        self.assertEqual(self.ips(), [])
        self.make("nodes", "n2")
        self.settle()
        self.assertEqual(self.ips(), ["10.1.0.1"])
        self.assertNotIn("zone", self.slices()[0]["endpoints"][0])
        self.pod("b", "10.1.0.2", node="n3")
        self.change("services", "web", lambda obj: obj["spec"].update(publishNotReadyAddresses=True), "default")
        self.settle()
        self.assertEqual(self.ips(), ["10.1.0.1", "10.1.0.2"])

    def test_distribution(self) -> None:
        """Hints have the zone or node of an endpoint, depending on trafficDistribution."""
        self.start(EndpointSliceController)
        self.service(trafficDistribution="PreferClose")
        self.pod("a", "10.1.0.1")
        self.settle()
        self.assertEqual(self.slices()[0]["endpoints"][0]["hints"], {"forZones": [{"name": "z1"}]})
        self.change("services", "web", lambda obj: obj["spec"].update(trafficDistribution="PreferSameNode"), "default")
        self.settle()
        self.assertEqual(
            self.slices()[0]["endpoints"][0]["hints"], {"forZones": [{"name": "z1"}], "forNodes": [{"name": "n1"}]}
        )
        self.change("services", "web", lambda obj: obj["spec"].pop("trafficDistribution"), "default")
        self.settle()
        self.assertNotIn("hints", self.slices()[0]["endpoints"][0])

    def test_many(self) -> None:
        """Slices have at most 100 endpoints. A changed endpoint changes one slice."""
        self.service()
        for number in range(250):
            self.pod(f"p{number}", f"10.1.{number // 200}.{number % 200 + 1}")
        self.start(EndpointSliceController)
        self.assertEqual(sorted(len(one["endpoints"]) for one in self.slices()), [50, 100, 100])
        before = {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in self.slices()}
        self.set_ready("p0", False)
        self.settle()
        after = {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in self.slices()}
        self.assertEqual(sum(before[name] != after[name] for name in before), 1)
        self.assertEqual(len(self.ips()), 250)

    def test_foreign_changes(self) -> None:
        """Changes by other clients are reverted. Slices that are managed by other controllers are kept."""
        self.start(EndpointSliceController)
        self.service()
        self.pod("a", "10.1.0.1")
        self.make(
            "endpointslices",
            "other",
            "default",
            GROUP,
            metadata={"labels": {"kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "me"}},
            addressType="IPv4",
            endpoints=[{"addresses": ["1.2.3.4"]}],
            ports=[],
        )
        self.settle()
        (name,) = (name for name in self.names("endpointslices", "", GROUP) if name != "other")
        self.change("endpointslices", name, lambda obj: obj.update(endpoints=[]), "default", GROUP)
        self.settle()
        self.assertEqual(self.ips(), ["1.2.3.4", "10.1.0.1"])
        self.remove("endpointslices", name, "default", GROUP)
        self.settle()
        self.assertEqual(self.ips(), ["1.2.3.4", "10.1.0.1"])
        self.change("services", "web", lambda obj: obj["metadata"].update(labels={"tier": "b"}), "default")
        self.settle()
        self.assertEqual(
            [one["metadata"]["labels"].get("tier") for one in self.slices()].count("b"), 1, "labels are the service's"
        )

    def test_recreated_service(self) -> None:
        """A recreated service has new slices."""
        self.start(EndpointSliceController)
        self.service()
        self.pod("a", "10.1.0.1")
        self.settle()
        self.remove("services", "web", "default")
        service = self.service()
        self.settle()
        (one,) = self.slices()
        self.assertEqual(one["metadata"]["ownerReferences"][0]["uid"], service["metadata"]["uid"])

    def test_faults_and_restart(self) -> None:
        """With failing writes and after a kill, the slices are correct in the end."""
        self.start(EndpointSliceController)
        for number in range(20):
            self.service(f"s{number}", clusterIP=f"10.0.0.{number + 1}")
        self.pod("a", "10.1.0.1")
        self.backend.fails = lambda number: number % 10 == 0
        self.settle(60)
        self.backend.fails = lambda number: False
        self.assertEqual(self.ips(), ["10.1.0.1"] * 20)
        for subscription in self.running[0]._registrations:
            subscription.stop()
        self.pod("b", "10.1.0.2")
        self.remove("pods", "a", "default", grace=0)
        self.restart(EndpointSliceController)
        self.settle(1)
        self.assertEqual(self.ips(), ["10.1.0.2"] * 20)
        revisions = [one["metadata"]["resourceVersion"] for one in self.slices()]
        self.restart(EndpointSliceController)
        self.settle(1)
        self.assertEqual([one["metadata"]["resourceVersion"] for one in self.slices()], revisions)


def _end(number: int, ready: bool) -> Any:
    return {
        "addresses": [f"10.0.{number // 250}.{number % 250}"],
        "conditions": {"ready": ready},
        "targetRef": {"namespace": "d", "name": f"p{number}"},
    }


class ReconcileSlicesTests(SynchronousTestCase):
    """Assignment of endpoints to slices."""

    @given(
        st.lists(st.lists(st.integers(0, 300), max_size=CAPACITY), max_size=3),
        st.dictionaries(st.integers(0, 300), st.booleans()),
    )
    def test_each_endpoint_once(self, stored: list[list[int]], desired: dict[int, bool]) -> None:
        """
        Each endpoint is in one slice, no slice exceeds its capacity, and unchanged slices are not marked as changed.
        """
        seen: set[int] = set()
        records = []
        for index, numbers in enumerate(stored):
            mine = [number for number in dict.fromkeys(numbers) if number not in seen]
            seen.update(mine)
            obj = {"metadata": {"name": f"s{index}"}, "endpoints": [_end(number, True) for number in mine]}
            records.append(Record(f"d/s{index}", 1, without_kind(obj), {}, {}))
        desired = {_identity(end): end for end in (_end(number, ready) for number, ready in desired.items())}
        slices, empty = reconcile_slices(records, desired, "IPv4", ())
        there = [_identity(end) for one in slices for end in one.endpoints]
        self.assertEqual(sorted(there), sorted(desired))
        self.assertTrue(all(0 < len(one.endpoints) <= CAPACITY for one in slices))
        self.assertEqual(len([one for one in slices if one.record]) + len(empty), len(records))
        again, _ = reconcile_slices([one.record for one in slices if one.record and not one.changed], {}, "IPv4", ())
        self.assertEqual(again, [])


class DualStackTests(SliceTestCase):
    """Slices of services with two address families."""

    options: ClassVar[dict[str, Any]] = {"service_ranges": ("10.0.0.0/24", "fd00:1::/112")}

    def test_families(self) -> None:
        """A dual-stack service has slices of both families."""
        self.start(EndpointSliceController)
        self.service(ipFamilies=["IPv4", "IPv6"], ipFamilyPolicy="RequireDualStack", clusterIP="None")
        self.pod("a", "10.1.0.1,fd00::1")
        self.settle()
        self.assertEqual(
            sorted((one["addressType"], one["endpoints"][0]["addresses"]) for one in self.slices()),
            [("IPv4", ["10.1.0.1"]), ("IPv6", ["fd00::1"])],
        )
        for one in self.slices():
            self.assertEqual(one["metadata"]["labels"]["service.kubernetes.io/headless"], "")
