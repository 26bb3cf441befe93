"""Tests of L{kubetwist.registry.core.service.ipaddresses}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.api.options import CreateOptions, DeleteOptions, UpdateOptions
from kubetwist.api.requestscope import RequestScope
from kubetwist.registry.assembly import ResourceRegistry
from kubetwist.registry.core.service.addressranges import AddressRange
from kubetwist.registry.core.service.ipaddresses import ALLOCATOR, MANAGED_BY, IPAddressStore
from kubetwist.registry.core.service.ipallocator import ClusterIPAllocator
from kubetwist.registry.core.service.numberallocator import AllocationError
from kubetwist.registry.generic.parts import status_rules
from kubetwist.storage.errors import StorageUnavailable
from tests.registry.storetools import StoreTestCase


def service(name: str, address: str = "", **spec: Any) -> dict[str, Any]:
    """Return a service."""
    given = {"clusterIP": address} if address else {}
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **given, **spec}}


class IPAddressTests(StoreTestCase):
    """Tests of IPAddresses of services."""

    resources = ("services", "ipaddresses")

    def setUp(self) -> None:
        """Create the stores of services and IPAddresses."""
        super().setUp()
        self.services = self.store("services")
        addresses = self.store("ipaddresses", "networking.k8s.io")
        assert isinstance(addresses, IPAddressStore)
        self.addresses = addresses

    def address(self, name: str) -> Any:
        """Return the object of an address."""
        return self.stored(self.addresses, name, "")

    def test_created_and_deleted(self) -> None:
        """The object exists as long as the service, and refers to it."""
        made = self.made(self.services, service("s"))
        ip = made["spec"]["clusterIP"]
        obj = self.address(ip)
        self.assertEqual(obj["spec"]["parentRef"], {"resource": "services", "namespace": "default", "name": "s"})
        self.assertEqual(obj["metadata"]["labels"][MANAGED_BY], ALLOCATOR)
        self.assertEqual(obj["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"])
        self.delete(self.services, "s")
        self.assertIsNone(self.address(ip))
        self.assertFalse(self.server.registry.allocators.services.ips["IPv4"].has(ip))

    def test_type_change(self) -> None:
        """An update that releases an address deletes its object."""
        made = self.made(self.services, service("s"))
        ip = made["spec"]["clusterIP"]
        made["spec"] = {"type": "ExternalName", "externalName": "example.org"}
        self.services.strategy.default(made)
        self.put(self.services, made)
        self.assertIsNone(self.address(ip))

    def test_first_error(self) -> None:
        """If the allocation fails, only its error is reported, and nothing is reserved."""
        self.made(self.services, service("s", "10.0.0.7"))

        def refusal(obj: dict[str, Any]) -> str:
            self.services.strategy.default(obj)
            return self.refused(self.services.create(self.scope, obj, CreateOptions())).message

        wrong = "spec.sessionAffinity: Unsupported value"
        self.assertIn("already allocated", refusal(service("t", "10.0.0.7", sessionAffinity="X")))
        self.assertNotIn(wrong, refusal(service("t", "10.0.0.7", sessionAffinity="X")))
        self.assertIn(wrong, refusal(service("t", "10.0.0.8", sessionAffinity="X")))
        self.assertIn("spec.clusterIPs[0]: Invalid value", refusal(service("t", "x", sessionAffinity="X")))
        self.assertFalse(self.server.registry.allocators.services.ips["IPv4"].has("10.0.0.8"))

        def change(stored: Any) -> Any:
            stored["spec"].update(sessionAffinity="X", ipFamilyPolicy="RequireDualStack")
            return stored

        error = self.refused(self.services.update(self.scope, "s", change, UpdateOptions(), patching=True))
        self.assertIn("this cluster is not configured for dual-stack services", error.message)

    def test_headless(self) -> None:
        """A headless service has no IPAddress, and a dry run creates none."""
        self.made(self.services, service("h", "None"))
        self.made(self.services, service("d"), dry_run=True)
        self.assertEqual(self.addresses.cache.list().records, [])

    def test_failed_write(self) -> None:
        """If the service cannot be written, neither is the IPAddress, and the address is free."""

        def fail() -> None:
            raise StorageUnavailable("gone")

        self.racing_backend(self.services).before.append(fail)
        obj = service("s", "10.0.0.7")
        self.services.strategy.default(obj)
        self.failureResultOf(
            Deferred.fromCoroutine(self.services.create(self.scope, obj, CreateOptions())), StorageUnavailable
        )
        self.assertIsNone(self.address("10.0.0.7"))
        self.assertFalse(self.server.registry.allocators.services.ips["IPv4"].has("10.0.0.7"))

    def test_address_of_client(self) -> None:
        """An address with an IPAddress of a client is not allocated until it is deleted."""
        parent = {"resource": "gateways", "group": "example.org", "name": "g"}
        self.made(self.addresses, {"metadata": {"name": "10.0.0.9"}, "spec": {"parentRef": parent}})
        obj = service("s", "10.0.0.9")
        self.services.strategy.default(obj)
        error = self.refused(self.services.create(self.scope, obj, CreateOptions()))
        self.assertEqual(error.code, 422)
        self.assertIn("already allocated", error.message)
        self.delete(self.addresses, "10.0.0.9")
        self.made(self.services, service("s", "10.0.0.9"))

    def test_client_first(self) -> None:
        """An IPAddress that a client creates concurrently is kept, and the service is rejected."""
        others = self.addresses.create_write("10.0.0.9", "default", "other")
        self.racing_backend(self.services).before.append(lambda: self.server.backend.commit([others]))
        obj = service("s", "10.0.0.9")
        self.services.strategy.default(obj)
        error = self.refused(self.services.create(self.scope, obj, CreateOptions()))
        self.assertIn("already allocated", error.message)
        self.assertTrue(self.server.registry.allocators.services.ips["IPv4"].has("10.0.0.9"))

    def test_deleted_by_a_client(self) -> None:
        """An address whose IPAddress a client deleted is still that of the service, which can be deleted."""
        self.made(self.services, service("s", "10.0.0.9"))
        self.delete(self.addresses, "10.0.0.9")
        self.assertTrue(self.server.registry.allocators.services.ips["IPv4"].has("10.0.0.9"))
        self.delete(self.services, "s")
        self.assertFalse(self.server.registry.allocators.services.ips["IPv4"].has("10.0.0.9"))

    def test_repair(self) -> None:
        """At start, missing IPAddresses are created and unused ones deleted; those of clients are kept."""
        self.made(self.services, service("s", "10.0.0.9"))
        self.delete(self.addresses, "10.0.0.9")
        self.successResultOf(self.server.backend.commit([self.addresses.create_write("10.0.0.8", "default", "gone")]))
        parent = {"resource": "gateways", "group": "example.org", "name": "g"}
        self.made(self.addresses, {"metadata": {"name": "10.0.0.7"}, "spec": {"parentRef": parent}})
        self.successResultOf(Deferred.fromCoroutine(self.addresses.repair()))
        names = [record.name for record in self.addresses.cache.list().records]
        self.assertEqual(names, ["10.0.0.7", "10.0.0.9"])

    def test_loaded(self) -> None:
        """After a restart, the addresses of stored objects are in use."""
        self.made(self.services, service("s", "10.0.0.9", type="NodePort"))
        port = self.stored(self.services, "s")["spec"]["ports"][0]["nodePort"]
        self.successResultOf(self.server.backend.commit([self.addresses.create_write("10.0.0.8", "default", "gone")]))
        again = ResourceRegistry(self.server.backend, self.server.clock, self.server.infos)
        self.successResultOf(Deferred.fromCoroutine(again.start()))
        allocator = again.allocators.services
        self.assertTrue(allocator.ips["IPv4"].has("10.0.0.9") and allocator.ips["IPv4"].has("10.0.0.8"))
        self.assertTrue(allocator.ports.in_use(port))


class FurtherRangeTests(StoreTestCase):
    """Tests of ServiceCIDRs."""

    resources = ("services", "ipaddresses", "servicecidrs")

    def setUp(self) -> None:
        """Create a ServiceCIDR besides the range of the command line."""
        super().setUp()
        self.services = self.store("services")
        self.ranges = self.store("servicecidrs", "networking.k8s.io")
        spec = {"cidrs": ["10.77.0.0/24", "fd77::/64"]}
        self.made(self.ranges, {"metadata": {"name": "more"}, "spec": spec}, RequestScope(""))

    def refusal(self, address: str) -> str:
        """Return the error of a service with an address."""
        obj = service("x", address)
        self.services.strategy.default(obj)
        error = self.refused(self.services.create(self.scope, obj, CreateOptions()))
        return error.message.rpartition(f"failed to allocate IP {address}: ")[2]

    def ready(self, status: str) -> None:
        """Set the condition of the ServiceCIDR."""
        new_status = {"conditions": [{"type": "Ready", "status": status}]}

        def change(stored: Any) -> Any:
            stored["status"] = new_status
            return stored

        scope, rules = RequestScope(""), status_rules(self.ranges)
        self.successResultOf(self.ranges.update(scope, "more", change, UpdateOptions(), rules, patching=True))

    def test_addresses(self) -> None:
        """A service can request an address of the range, except unusable ones."""
        made = self.made(self.services, service("s", "10.77.0.5"))
        self.assertEqual(made["spec"]["clusterIPs"], ["10.77.0.5"])
        self.assertIsNotNone(self.stored(self.store("ipaddresses", "networking.k8s.io"), "10.77.0.5", ""))
        self.assertEqual(self.refusal("10.77.0.5"), "provided IP is already allocated")
        for address in ("10.77.0.0", "10.77.0.255", "10.78.0.1"):
            self.assertEqual(self.refusal(address), "the provided network does not match the current range")

    def test_not_ready(self) -> None:
        """Addresses of a range that is not ready cannot be requested; allocated ones are kept."""
        self.made(self.services, service("s", "10.77.0.5"))
        self.ready("False")
        self.assertIn("does not match", self.refusal("10.77.0.6"))
        self.ready("True")
        self.made(self.services, service("t", "10.77.0.6"))
        self.successResultOf(self.ranges.delete(RequestScope(""), "more", DeleteOptions()))
        self.assertIn("does not match", self.refusal("10.77.0.7"))
        self.assertTrue(self.server.registry.allocators.services.ips["IPv4"].has("10.77.0.5"))

    def test_when_full(self) -> None:
        """Dynamic allocation uses the range only if the other range is full."""
        allocator = ClusterIPAllocator("10.0.0.0/30")
        more = AddressRange.read("10.77.0.0/30")
        for _ in range(2):
            allocator.add(more)
        found = [allocator.allocate_next() for _ in range(4)]
        self.assertEqual(set(found[:2]), {"10.0.0.1", "10.0.0.2"})
        self.assertEqual(set(found[2:]), {"10.77.0.1", "10.77.0.2"})
        allocator.remove(more)
        allocator.check_in_range("10.77.0.1")
        allocator.remove(more)
        self.assertRaises(AllocationError, allocator.check_in_range, "10.77.0.1")
