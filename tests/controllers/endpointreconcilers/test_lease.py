"""Tests for L{kubetwist.controllers.endpointreconcilers.lease}."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.options import DeleteOptions
from kubetwist.api.storage import Write
from kubetwist.controllers.endpointreconcilers.lease import (
    INTERVAL,
    LEASE_TTL,
    LeaseEndpointReconciler,
    endpoint_addresses,
    lease_value,
)
from kubetwist.schema.protobuf.codec import read_envelope
from kubetwist.storage.errors import RevisionCompacted, StorageUnavailable
from tests.registry.sharedstores import SharedStoresTestCase
from tests.resources.server import definitions
from tests.schema.protobuf.encoder import delimited

PREFIX = "/registry/masterleases/"


class PureTests(SynchronousTestCase):
    """Values of keys."""

    def test_value(self) -> None:
        """The value of a key is equal to kube-apiserver's."""
        self.assertEqual(
            lease_value("192.0.2.1", 3),
            b'{"kind":"Endpoints","apiVersion":"v1","metadata":{"generation":3},'
            b'"subsets":[{"addresses":[{"ip":"192.0.2.1"}]}]}\n',
        )

    def test_addresses(self) -> None:
        """Addresses are of one family and sorted. Invalid ones are omitted."""
        names = ["192.0.2.9", "192.0.2.10", "x", "2001:db8::1"]
        self.assertEqual(endpoint_addresses(names), ["192.0.2.10", "192.0.2.9"])
        self.assertEqual(endpoint_addresses(["2001:db8::1", "?"]), ["2001:db8::1"])
        self.assertEqual(endpoint_addresses([]), [])


class EndpointReconcilerTests(SharedStoresTestCase):
    """Two servers of one service."""

    resources = ("endpoints", "endpointslices")

    def reconciler(self, stores: Any, address: str, port: int = 6443) -> LeaseEndpointReconciler:
        """Return the reconciler of a server that is not ready."""
        reconciler = LeaseEndpointReconciler(stores, self.backend, "/registry/", self.clock, lambda: (address, port))
        self.addCleanup(reconciler.end)
        self.done(reconciler.prepare())
        return reconciler

    def started(self, stores: Any, address: str, port: int = 6443) -> LeaseEndpointReconciler:
        """Return the reconciler of a started server."""
        reconciler = self.reconciler(stores, address, port)
        reconciler.start()
        self.clock.advance(0)
        return reconciler

    def addresses(self) -> list[str]:
        """Return the addresses in the endpoints, which are equal to those in the slice."""
        endpoints = self.one.get_copy("", "endpoints", "default", "kubernetes")
        slice_ = self.other.get_copy("discovery.k8s.io", "endpointslices", "default", "kubernetes")
        if endpoints is None or slice_ is None:
            self.assertIs(endpoints, slice_)
            return []
        found = [one["ip"] for one in endpoints["subsets"][0]["addresses"]]
        self.assertEqual([one["addresses"] for one in slice_["endpoints"]], [[one] for one in found])
        self.assertTrue(all(one["conditions"] == {"ready": True} for one in slice_["endpoints"]))
        return found

    def leases(self) -> list[str]:
        """Return the names of the keys."""
        return [item.key[len(PREFIX) :] for item in self.done(self.backend.read_page(PREFIX)).items]

    def test_start_and_stop(self) -> None:
        """A server is added when it is ready, and removed when it stops. The last one remains."""
        self.assertEqual(self.addresses(), [])
        first = self.started(self.one, "192.0.2.1")
        self.assertEqual(self.addresses(), ["192.0.2.1"])
        second = self.started(self.other, "192.0.2.2")
        self.assertEqual(self.addresses(), ["192.0.2.1", "192.0.2.2"])
        self.done(first.stop())
        self.assertEqual(self.addresses(), ["192.0.2.2"])
        self.assertEqual(self.leases(), ["192.0.2.2"])
        self.done(second.stop())
        self.assertEqual((self.addresses(), self.leases()), (["192.0.2.2"], []))
        self.clock.pump([INTERVAL] * 3)
        self.assertEqual(self.leases(), [])

    def test_protobuf(self) -> None:
        """If endpoints are stored as protobuf, the keys are, too. Servers that write JSON read them."""
        self.types = definitions()
        self.one = self.server()
        self.options = {"protobuf": True}  # type: ignore[misc]
        third = self.server()
        self.started(self.one, "192.0.2.1")
        self.started(third, "192.0.2.3")
        self.assertEqual(self.addresses(), ["192.0.2.1", "192.0.2.3"])
        value = self.done(self.backend.read(f"{PREFIX}192.0.2.3")).value
        envelope = read_envelope(value)
        self.assertEqual((envelope.api_version, envelope.kind), ("v1", "Endpoints"))
        self.assertTrue(envelope.raw.endswith(delimited(2, delimited(1, delimited(1, "192.0.2.3"), delimited(3)))))

    def test_death(self) -> None:
        """A killed server is removed when its key expires. Other servers remain."""
        dead = self.started(self.one, "192.0.2.1")
        self.started(self.other, "192.0.2.2")
        dead.end()
        for _ in range(int(LEASE_TTL) + 1):
            self.assertIn("192.0.2.2", self.addresses())
            self.clock.advance(1)
        self.assertEqual(self.addresses(), ["192.0.2.2"])
        self.clock.pump([INTERVAL] * 5)
        self.assertEqual(self.addresses(), ["192.0.2.2"])

    def test_stale_key(self) -> None:
        """A server that is not ready is not in the endpoints, even if an old key exists."""
        self.started(self.other, "192.0.2.2")
        self.started(self.one, "192.0.2.1").end()
        self.assertEqual(self.addresses(), ["192.0.2.1", "192.0.2.2"])
        again = self.reconciler(self.one, "192.0.2.1")
        self.assertEqual(self.addresses(), ["192.0.2.2"])
        again.start()
        self.clock.advance(0)
        self.assertEqual(self.addresses(), ["192.0.2.1", "192.0.2.2"])

    def test_loopback(self) -> None:
        """A server with a loopback address has no key and does not change the endpoints."""
        local = self.started(self.one, "")
        self.clock.advance(INTERVAL)
        self.assertEqual((self.addresses(), self.leases()), ([], []))
        self.done(local.stop())

    def test_corrected(self) -> None:
        """Changed or deleted endpoints are restored. Ports of other servers are kept."""
        self.started(self.one, "192.0.2.1")
        self.started(self.other, "192.0.2.2", 7443)
        self.done(self.one.get("", "endpoints").delete(self.scope, "kubernetes", DeleteOptions()))
        spoilt = self.one.get_copy("discovery.k8s.io", "endpointslices", "default", "kubernetes")
        assert spoilt is not None
        spoilt["endpoints"] = []
        self.change_slice(spoilt)
        revision = self.backend.revision
        self.clock.advance(INTERVAL)
        self.assertEqual(self.addresses(), ["192.0.2.1", "192.0.2.2"])
        mended = self.one.get_copy("discovery.k8s.io", "endpointslices", "default", "kubernetes")
        assert mended is not None
        self.assertEqual(mended["ports"][0]["port"], 6443)
        self.assertGreater(self.backend.revision, revision)

    def change_slice(self, obj: dict[str, Any]) -> None:
        """Replace the slice."""
        store = self.one.get("discovery.k8s.io", "endpointslices")
        record = store.cache.get("default/kubernetes")
        assert record is not None
        value = store.encode_value(store.encode(obj))
        self.successResultOf(
            self.backend.commit([Write(store.storage_key("default/kubernetes"), value, record.revision)])
        )

    def test_new_port(self) -> None:
        """The port of a server that is alone is updated."""
        self.done(self.started(self.one, "192.0.2.1").stop())
        self.started(self.one, "192.0.2.1", 7443)
        endpoints = self.one.get_copy("", "endpoints", "default", "kubernetes")
        assert endpoints is not None
        self.assertEqual(endpoints["subsets"][0]["ports"][0]["port"], 7443)

    def test_other_family(self) -> None:
        """A slice of another address family is replaced, as the family is immutable."""
        self.done(self.started(self.one, "192.0.2.1").stop())
        self.started(self.one, "2001:db8::1")
        self.assertEqual(self.addresses(), ["2001:db8::1"])
        found = self.one.get_copy("discovery.k8s.io", "endpointslices", "default", "kubernetes")
        assert found is not None
        self.assertEqual(found["addressType"], "IPv6")

    def test_nothing_changes(self) -> None:
        """If nothing changes, only the keys are written."""
        self.started(self.one, "192.0.2.1")
        self.started(self.other, "192.0.2.2")
        self.clock.advance(INTERVAL)
        before = self.backend.revision
        self.clock.pump([INTERVAL] * 3)
        self.assertEqual(self.backend.revision, before + 6)
        value = self.done(self.backend.read(f"{PREFIX}192.0.2.1")).value
        self.assertEqual(orjson.loads(value)["metadata"]["generation"], 5)

    def test_storage_outage(self) -> None:
        """After an outage of the storage the keys are renewed."""
        first = self.started(self.one, "192.0.2.1")
        second = self.started(self.other, "192.0.2.2")
        backend, self.calls = first._backend, 0

        class UnavailableBackend:
            def commit(backend, writes: Any) -> Any:
                self.calls += 1
                raise StorageUnavailable("gone")

        first._backend = UnavailableBackend()
        first.ended(RevisionCompacted(1, 2))
        self.clock.pump([5] * 6)
        self.assertGreater(self.calls, 1)
        self.assertEqual(self.addresses(), ["192.0.2.2"])
        first._backend = backend
        self.clock.advance(INTERVAL)
        self.assertEqual(self.addresses(), ["192.0.2.1", "192.0.2.2"])
        self.done(second.stop())
        self.clock.advance(0)
        self.assertEqual(self.addresses(), ["192.0.2.1"])
