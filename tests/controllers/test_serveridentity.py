"""Tests for L{kubetwist.controllers.serveridentity}."""

from __future__ import annotations

from typing import Any

from kubetwist.api import times
from kubetwist.api.options import DeleteOptions
from kubetwist.api.requestscope import RequestScope
from kubetwist.controllers.serveridentity import (
    DURATION,
    GC_INTERVAL,
    INTERVAL,
    IdentityLeaseController,
    IdentityLeaseGC,
    is_expired,
    server_name,
)
from kubetwist.registry.generic.bootstrap import ensure
from tests.registry.sharedstores import SharedStoresTestCase


class IdentityTests(SharedStoresTestCase):
    """Leases of API servers."""

    resources = ("leases",)

    def setUp(self) -> None:
        """Create a clock."""
        super().setUp()
        times.use_clock(self.clock.seconds)
        self.addCleanup(times.use_clock)
        self.leases = self.one.get("coordination.k8s.io", "leases")

    def identity(self, hostname: str, process: str = "p") -> IdentityLeaseController:
        """Return the controller of a started server."""
        identity = IdentityLeaseController(self.leases, self.clock, hostname, process)
        self.addCleanup(identity.stop)
        identity.start()
        return identity

    def lease(self, identity: IdentityLeaseController) -> Any:
        """Return the stored Lease."""
        return self.leases.get_copy("kube-system", identity.name)

    def test_name(self) -> None:
        """The name is derived from the host name, as in kube-apiserver."""
        self.assertEqual(server_name("vm"), "apiserver-wlv32tlttr4jl3gtroqexyxapa")

    def test_lease(self) -> None:
        """The Lease has the identity of the server, and is renewed every ten seconds."""
        identity = self.identity("vm", "1234")
        lease = self.lease(identity)
        self.assertEqual(
            lease["metadata"]["labels"],
            {"apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": "vm"},
        )
        began = lease["spec"]["renewTime"]
        self.assertEqual(
            lease["spec"],
            {"holderIdentity": f"{identity.name}_1234", "leaseDurationSeconds": 3600, "renewTime": began},
        )
        self.clock.advance(INTERVAL)
        self.assertGreater(self.lease(identity)["spec"]["renewTime"], began)

    def test_next_process(self) -> None:
        """A restarted server takes over its Lease."""
        self.identity("vm", "1").stop()
        again = self.identity("vm", "2")
        self.assertEqual(self.lease(again)["spec"]["holderIdentity"], f"{again.name}_2")

    def test_deleted(self) -> None:
        """A deleted Lease is created again."""
        identity = self.identity("vm")
        self.delete_lease(identity.name)
        self.clock.advance(INTERVAL)
        self.assertIsNotNone(self.lease(identity))

    def delete_lease(self, name: str) -> None:
        """Delete a Lease."""
        self.done(self.leases.delete(RequestScope("kube-system"), name, DeleteOptions()))

    def test_garbage_collection(self) -> None:
        """Expired Leases of servers are deleted. Other Leases are kept."""
        dead, alive = self.identity("dead"), self.identity("alive")
        dead.stop()
        other = {"metadata": {"name": "other", "namespace": "kube-system"}, "spec": {}}
        self.done(ensure(self.leases, other))
        collector = IdentityLeaseGC(self.leases, self.clock)
        self.addCleanup(collector.stop)
        collector.start()
        self.assertIsNotNone(self.lease(dead))
        for _ in range(int((DURATION + GC_INTERVAL) / INTERVAL)):
            self.clock.advance(INTERVAL)
        self.assertIsNone(self.lease(dead))
        self.assertIsNotNone(self.lease(alive))
        self.assertIsNotNone(self.leases.get_copy("kube-system", "other"))

    def test_expired(self) -> None:
        """A Lease without a duration or renew time is expired."""
        now = times.now_micro()
        self.assertFalse(is_expired({"spec": {"renewTime": now, "leaseDurationSeconds": 1}}))
        for spec in (
            {},
            {"renewTime": now},
            {"leaseDurationSeconds": 5},
            {"renewTime": now, "leaseDurationSeconds": -1},
        ):
            self.assertTrue(is_expired({"spec": spec}))
