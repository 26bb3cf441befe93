"""Tests of L{kubetwist.registry.core.service.allocator}."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.registry.core.service.allocator import (
    NO_ALLOCATIONS,
    ObservedAllocations,
    ServiceAllocator,
    allocations_of_service,
)
from kubetwist.registry.core.service.portallocator import NodePortAllocator
from tests.registry.core.service.allocators import service


class ServiceAllocatorTests(SynchronousTestCase):
    """Tests of L{ServiceAllocator}."""

    def test_plain(self) -> None:
        """A service gets an address and the default IP family."""
        obj = service()
        ServiceAllocator().allocate(obj, None)
        spec = obj["spec"]
        self.assertEqual((spec["ipFamilies"], spec["ipFamilyPolicy"]), (["IPv4"], "SingleStack"))
        self.assertEqual(spec["clusterIPs"], [spec["clusterIP"]])

    def test_headless(self) -> None:
        """A headless service gets no address; without a selector it has both IP families."""
        allocator = ServiceAllocator()
        obj = service(clusterIP="None", clusterIPs=["None"], selector={"a": "b"})
        self.assertEqual(allocator.allocate(obj, None).ips, [])
        self.assertEqual(obj["spec"]["ipFamilies"], ["IPv4"])
        free = service(clusterIP="None", clusterIPs=["None"])
        allocator.allocate(free, None)
        self.assertEqual(
            (free["spec"]["ipFamilies"], free["spec"]["ipFamilyPolicy"]), (["IPv4", "IPv6"], "RequireDualStack")
        )

    def test_external_name(self) -> None:
        """An ExternalName service has neither IP families nor addresses."""
        obj = service(type="ExternalName")
        ServiceAllocator().allocate(obj, None)
        self.assertNotIn("clusterIP", obj["spec"])
        self.assertNotIn("ipFamilies", obj["spec"])

    def test_already_allocated(self) -> None:
        """An address or node port in use cannot be allocated again; a failed allocation reserves nothing."""
        allocator = ServiceAllocator()
        allocator.allocate(service(clusterIP="10.0.0.7", clusterIPs=["10.0.0.7"]), None)
        obj = service(type="NodePort", clusterIP="10.0.0.7", clusterIPs=["10.0.0.7"])
        error = self.assertRaises(APIStatusError, allocator.allocate, obj, None)
        self.assertEqual(error.code, 422)
        self.assertIn("provided IP is already allocated", error.message)
        ports = [{"port": 80, "protocol": "TCP", "nodePort": 30001}]
        allocator.allocate(service(type="NodePort", ports=ports), None)
        clash = service(type="NodePort", clusterIP="10.0.0.9", clusterIPs=["10.0.0.9"], ports=[dict(ports[0])])
        self.assertRaises(APIStatusError, allocator.allocate, clash, None)
        self.assertFalse(allocator.ips["IPv4"].has("10.0.0.9"))

    def test_cancel(self) -> None:
        """A failed write releases its numbers."""
        allocator = ServiceAllocator()
        obj = service(type="NodePort")
        reservation = allocator.allocate(obj, None)
        number = obj["spec"]["ports"][0]["nodePort"]
        self.assertTrue(allocator.ports.in_use(number))
        allocator.finish(reservation)
        self.assertFalse(allocator.ports.in_use(number) or allocator.ips["IPv4"].has(obj["spec"]["clusterIP"]))

    def test_type_change(self) -> None:
        """Released numbers are free after the write, and not before."""
        allocator = ServiceAllocator()
        old = service(type="NodePort")
        allocator.finish(allocator.allocate(old, None))
        allocator.change(NO_ALLOCATIONS, allocations_of_service(old))
        number, address = old["spec"]["ports"][0]["nodePort"], old["spec"]["clusterIP"]
        new = service(clusterIP=address, clusterIPs=[address])
        reservation = allocator.allocate(new, old)
        self.assertTrue(allocator.ports.in_use(number))
        allocator.change(allocations_of_service(old), allocations_of_service(new))
        allocator.finish(reservation)
        self.assertFalse(allocator.ports.in_use(number))
        self.assertTrue(allocator.ips["IPv4"].has(address))

    def test_two_protocols(self) -> None:
        """The same port in several protocols has one node port."""
        ports = [{"name": one, "port": 53, "protocol": one.upper()} for one in ("tcp", "udp")]
        obj = service(type="NodePort", ports=ports)
        ServiceAllocator().allocate(obj, None)
        self.assertEqual(obj["spec"]["ports"][0]["nodePort"], obj["spec"]["ports"][1]["nodePort"])

    def test_number_that_a_later_port_asks_for(self) -> None:
        """Ports with the same number share the node port that any of them requests."""
        ports = [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP", "nodePort": 30099}]
        obj = service(type="NodePort", ports=ports)
        ServiceAllocator().allocate(obj, None)
        self.assertEqual([port["nodePort"] for port in obj["spec"]["ports"]], [30099, 30099])

    def test_duplicate_node_port_in_update(self) -> None:
        """
        An update with a node port twice in one protocol is a 500 and allocates nothing; two protocols may share one.
        """
        allocator = ServiceAllocator()
        old = service(type="NodePort", ports=[{"port": 1, "protocol": "TCP", "nodePort": 30001}])
        allocator.allocate(old, None)
        first = old["spec"]["ports"][0]
        for number in (30001, 30002):
            more = [{"port": port, "protocol": "TCP", "nodePort": number} for port in (2, 3)]
            new = service(**{**old["spec"], "ports": [first, *more]})
            error = self.assertRaises(APIStatusError, allocator.allocate, new, old)
            self.assertEqual((error.code, error.message), (500, f"duplicate nodePort: {{TCP {number}}}"))
            self.assertEqual(error.reason, "")
        self.assertFalse(allocator.ports.in_use(30002))
        new = service(**{**old["spec"], "ports": [first, {**first, "port": 2, "protocol": "UDP"}]})
        self.assertEqual(allocator.allocate(new, old).ports, [])

    def test_ports_in_an_update(self) -> None:
        """An update allocates a node port for each new port, and releases unused ones."""
        allocator = ServiceAllocator()
        old = service(type="NodePort", ports=[{"port": 53, "protocol": "TCP", "nodePort": 30001}])
        allocator.allocate(old, None)
        new = service(**{**old["spec"], "ports": [*old["spec"]["ports"], {"port": 53, "protocol": "UDP"}]})
        reservation = allocator.allocate(new, old)
        self.assertEqual(reservation.ports, [new["spec"]["ports"][1]["nodePort"]])
        self.assertNotEqual(new["spec"]["ports"][1]["nodePort"], 30001)
        none = service(**{**old["spec"], "ports": []})
        self.assertEqual(allocator.allocate(none, old).freed_ports, [30001])

    def test_changed_address(self) -> None:
        """An update that changes an address allocates none: validation rejects the change."""
        allocator = ServiceAllocator()
        old = service()
        allocator.allocate(old, None)
        for address in ("10.0.0.77", "10.9.9.9"):
            new = service(**{**old["spec"], "clusterIP": address, "clusterIPs": [address]})
            reservation = allocator.allocate(new, old)
            self.assertEqual((reservation.ips, reservation.freed_ips), ([], []))

    def test_headless_update(self) -> None:
        """An update of a service to a headless one with two families allocates nothing."""
        allocator = ServiceAllocator()
        old = service()
        allocator.allocate(old, None)
        new = service(clusterIP="None", clusterIPs=["None"], ipFamilyPolicy="RequireDualStack")
        self.assertEqual(allocator.allocate(new, old).ips, [])

    def test_second_family_without_policy(self) -> None:
        """The second family is removed only with the policy C{SingleStack}."""
        allocator = ServiceAllocator()
        old = service(clusterIP="None", clusterIPs=["None"])
        allocator.allocate(old, None)
        self.assertEqual(old["spec"]["ipFamilies"], ["IPv4", "IPv6"])
        new = service(**{**old["spec"], "ipFamilies": ["IPv4"]})
        error = self.assertRaises(APIStatusError, allocator.allocate, new, old)
        self.assertIn("must be 'SingleStack' to release the secondary IP family", error.message)
        allocator = ServiceAllocator(["10.0.0.0/24", "fd00::/112"])
        old = service(ipFamilyPolicy="PreferDualStack")
        allocator.allocate(old, None)
        one = {"clusterIPs": old["spec"]["clusterIPs"][:1], "ipFamilies": ["IPv4"]}
        for policy in ("PreferDualStack", None):
            new = service(**{**old["spec"], **one, "ipFamilyPolicy": policy})
            error = self.assertRaises(APIStatusError, allocator.allocate, new, old)
            self.assertEqual(error.message.count("must be 'SingleStack' to release the secondary"), 2)

    def test_health_check(self) -> None:
        """A load balancer service with external traffic policy Local gets a health check port."""
        allocator = ServiceAllocator()
        obj = service(type="LoadBalancer", externalTrafficPolicy="Local", allocateLoadBalancerNodePorts=False)
        allocator.allocate(obj, None)
        self.assertTrue(allocator.ports.in_use(obj["spec"]["healthCheckNodePort"]))
        self.assertNotIn("nodePort", obj["spec"]["ports"][0])

    def test_dual_stack(self) -> None:
        """A dual-stack service gets addresses of both families."""
        allocator = ServiceAllocator(["10.0.0.0/24", "fd00::/112"])
        obj = service(ipFamilyPolicy="PreferDualStack")
        allocator.allocate(obj, None)
        self.assertEqual(obj["spec"]["ipFamilies"], ["IPv4", "IPv6"])
        self.assertIn(":", obj["spec"]["clusterIPs"][1])
        error = self.assertRaises(
            APIStatusError, ServiceAllocator().allocate, service(ipFamilyPolicy="RequireDualStack"), None
        )
        self.assertIn("this cluster is not configured for dual-stack services", error.message)

    def test_families_without_policy(self) -> None:
        """A service is single-stack unless its policy is dual-stack, with any number of families."""
        for ranges in (["10.0.0.0/24"], ["10.0.0.0/24", "fd00::/112"]):
            error = self.assertRaises(
                APIStatusError, ServiceAllocator(ranges).allocate, service(ipFamilies=["IPv4", "IPv6"]), None
            )
            self.assertEqual(
                error.message,
                'Service "s" is invalid: spec.ipFamilyPolicy: Invalid value: "SingleStack": must be '
                "'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified",
            )

    def test_family_released(self) -> None:
        """The policy C{SingleStack} releases the second family; without a policy both are kept."""
        allocator = ServiceAllocator(["10.0.0.0/24", "fd00::/112"])
        old = service(ipFamilyPolicy="RequireDualStack")
        allocator.finish(allocator.allocate(old, None))
        new = service(**{**old["spec"], "ipFamilyPolicy": "SingleStack"})
        self.assertEqual(allocator.allocate(new, old).freed_ips, old["spec"]["clusterIPs"][1:])
        self.assertEqual(new["spec"]["ipFamilies"], ["IPv4"])
        same = service(**{**old["spec"], "ipFamilyPolicy": None})
        allocator.allocate(same, old)
        self.assertEqual(same["spec"], old["spec"])

    def test_families_of_cluster_changed(self) -> None:
        """A service with PreferDualStack keeps its families when those of the cluster change."""
        old = service(ipFamilyPolicy="PreferDualStack")
        two = ServiceAllocator(["10.0.0.0/24", "fd00::/112"])
        two.allocate(old, None)
        new = service(**old["spec"])
        self.assertEqual(ServiceAllocator().allocate(new, old).ips, [])
        self.assertEqual(new["spec"], old["spec"])
        one = service(ipFamilyPolicy="PreferDualStack")
        ServiceAllocator().allocate(one, None)
        new = service(**one["spec"])
        two.allocate(new, one)
        self.assertEqual(new["spec"]["ipFamilies"], ["IPv4"])

    def test_dry_run(self) -> None:
        """A dry run checks neither used addresses nor the range of node ports, but used node ports."""
        allocator = ServiceAllocator()
        allocator.change(NO_ALLOCATIONS, ObservedAllocations(("10.0.0.7",), (30001,)))
        address = {"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "type": "NodePort"}
        port = {"port": 80, "protocol": "TCP"}
        obj = service(**address, ports=[{**port, "nodePort": 80}])
        self.assertEqual(allocator.allocate(obj, None, dry_run=True).ips, [])
        self.assertRaises(APIStatusError, allocator.allocate, obj, None)
        obj = service(**address, ports=[{**port, "nodePort": 30001}])
        error = self.assertRaises(APIStatusError, allocator.allocate, obj, None, dry_run=True)
        self.assertIn("provided port is already allocated", error.message)

    def test_full(self) -> None:
        """If all addresses are in use, the error contains the service."""
        allocator = ServiceAllocator(["10.0.0.0/30"])
        for _ in range(2):
            allocator.allocate(service(), None)
        error = self.assertRaises(APIStatusError, allocator.allocate, service(), None)
        self.assertIn('failed to allocate a serviceIP for Service "s": range is full', error.message)

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.sampled_from(["create", "cancel", "delete"]), max_size=30))
    def test_no_leak(self, steps: list[str]) -> None:
        """After any creations, failures and deletions, exactly the numbers of existing services are in use."""
        allocator = ServiceAllocator(["10.0.0.0/26"], NodePortAllocator(30000, 30040))
        existing: list[dict[str, Any]] = []
        for step in steps:
            if step == "delete" and existing:
                allocator.change(allocations_of_service(existing.pop()), NO_ALLOCATIONS)
                continue
            obj = service(type="NodePort")
            reservation = allocator.allocate(obj, None)
            if step != "cancel":
                allocator.change(NO_ALLOCATIONS, allocations_of_service(obj))
                existing.append(obj)
            allocator.finish(reservation)
        addresses = {one["spec"]["clusterIP"] for one in existing}
        self.assertEqual(len(addresses), len(existing))
        usable = [f"10.0.0.{number}" for number in range(1, 63)]
        self.assertEqual({one for one in usable if allocator.ips["IPv4"].has(one)}, addresses)
        ports = {one["spec"]["ports"][0]["nodePort"] for one in existing}
        self.assertEqual({port for port in range(30000, 30041) if allocator.ports.in_use(port)}, ports)
