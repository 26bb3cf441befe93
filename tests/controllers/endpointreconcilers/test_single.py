"""Tests for L{kubetwist.controllers.endpointreconcilers.single}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.api.errors import APIStatusError
from kubetwist.api.options import CreateOptions
from kubetwist.controllers.endpointreconcilers.lease import INTERVAL
from kubetwist.controllers.endpointreconcilers.single import SingleEndpointReconciler
from tests.registry.sharedstores import SharedStoresTestCase


class SingleEndpointTests(SharedStoresTestCase):
    """The only server of a service."""

    resources = ("endpoints", "endpointslices")

    def started(self, address: str) -> SingleEndpointReconciler:
        """Return the reconciler of a started server."""
        reconciler = SingleEndpointReconciler(self.one, self.backend, "/registry/", self.clock, lambda: (address, 6443))
        self.addCleanup(reconciler.end)
        self.done(reconciler.prepare())
        reconciler.start()
        self.clock.advance(0)
        return reconciler

    def addresses(self) -> list[list[str]]:
        """Return the addresses in the endpoints and in the slice."""
        endpoints = self.one.get_copy("", "endpoints", "default", "kubernetes")
        slices = self.one.get_copy("discovery.k8s.io", "endpointslices", "default", "kubernetes")
        return [
            [one["ip"] for one in endpoints["subsets"][0]["addresses"]],
            [address for one in slices["endpoints"] for address in one["addresses"]],
        ]

    def test_kept(self) -> None:
        """The endpoints have the server's address. Nothing is written while they are correct."""
        self.started("192.0.2.1")
        self.assertEqual(self.addresses(), [["192.0.2.1"]] * 2)
        revision = self.backend.revision
        self.clock.pump([INTERVAL] * 5)
        self.assertEqual(self.backend.revision, revision)

    def test_deleted(self) -> None:
        """Deleted endpoints are created again soon."""
        self.started("192.0.2.1")
        self.delete(self.one, "endpoints", "kubernetes")
        self.clock.advance(INTERVAL)
        self.assertEqual(self.addresses(), [["192.0.2.1"]] * 2)

    def test_moved(self) -> None:
        """A server that starts with another address, of any family, replaces the previous one."""
        self.done(self.started("192.0.2.1").stop())
        self.assertEqual(self.addresses(), [["192.0.2.1"]] * 2)
        for address in ("192.0.2.2", "fd00::1"):
            self.done(self.started(address).stop())
            self.assertEqual(self.addresses(), [[address]] * 2)

    def test_loopback(self) -> None:
        """A host without another address uses its loopback address; clients cannot write such endpoints."""
        self.started("127.0.0.1")
        self.assertEqual(self.addresses(), [["127.0.0.1"]] * 2)
        obj: Any = {
            "metadata": {"name": "x", "namespace": "default"},
            "subsets": [{"addresses": [{"ip": "127.0.0.1"}]}],
        }
        create = self.one.get("", "endpoints").create(self.scope, obj, CreateOptions())
        self.failureResultOf(Deferred.fromCoroutine(create), APIStatusError)
