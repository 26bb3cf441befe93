"""Tests for L{kubetwist.controllers.endpointreconcilers.mastercount}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.endpointreconcilers.lease import INTERVAL
from kubetwist.controllers.endpointreconcilers.mastercount import (
    MasterCountEndpointReconciler,
    limit_addresses,
)
from tests.registry.sharedstores import SharedStoresTestCase


class PureTests(SynchronousTestCase):
    """Computation of addresses."""

    def test_room(self) -> None:
        """A server adds its address, in order. An existing address changes nothing."""
        self.assertEqual(limit_addresses([], "b", 3), ["b"])
        self.assertEqual(limit_addresses(["c", "a"], "b", 3), ["a", "b", "c"])
        self.assertEqual(limit_addresses(["a", "b", "c"], "b", 1), ["a", "b", "c"])

    def test_too_many(self) -> None:
        """
        If there are too many addresses, those after the server's address are removed first, and never its address.
        """
        self.assertEqual(limit_addresses(["a", "c", "d"], "b", 2), ["a", "b"])
        self.assertEqual(limit_addresses(["b", "c"], "a", 2), ["a", "c"])
        self.assertEqual(limit_addresses(["a", "b"], "c", 1), ["c"])


class MasterCountTests(SharedStoresTestCase):
    """Two servers of one service."""

    resources = ("endpoints", "endpointslices")

    def started(self, stores: Any, address: str, count: int) -> MasterCountEndpointReconciler:
        """Return the reconciler of a started server."""
        reconciler = MasterCountEndpointReconciler(
            stores, self.backend, "/registry/", self.clock, lambda: (address, 6443), count
        )
        self.addCleanup(reconciler.end)
        self.done(reconciler.prepare())
        reconciler.start()
        self.clock.advance(0)
        return reconciler

    def addresses(self) -> list[str]:
        """Return the addresses in the endpoints."""
        endpoints = self.one.get_copy("", "endpoints", "default", "kubernetes")
        return [one["ip"] for one in endpoints["subsets"][0]["addresses"]]

    def test_start_and_stop(self) -> None:
        """Servers are added at start and removed at stop. Crashed servers remain."""
        first = self.started(self.one, "192.0.2.1", 2)
        self.assertEqual(self.addresses(), ["192.0.2.1"])
        second = self.started(self.other, "192.0.2.2", 2)
        self.assertEqual(self.addresses(), ["192.0.2.1", "192.0.2.2"])
        second.end()
        self.clock.pump([INTERVAL] * 3)
        self.assertEqual(self.addresses(), ["192.0.2.1", "192.0.2.2"])
        self.done(first.stop())
        self.assertEqual(self.addresses(), ["192.0.2.2"])

    def test_replaced(self) -> None:
        """A new server replaces another one if there are enough."""
        first = self.started(self.one, "192.0.2.2", 1)
        first.end()
        self.started(self.other, "192.0.2.1", 1)
        self.assertEqual(self.addresses(), ["192.0.2.1"])
