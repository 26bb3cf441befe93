"""Tests for L{kubetwist.registry.resource.printers}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class ClaimTests(SynchronousTestCase):
    """Tests for rows of ResourceClaims."""

    def test_resource_claim(self) -> None:
        """The state of a claim has all states that it reached."""
        kind = ("resource.k8s.io", "ResourceClaim")
        deleted = {"deletionTimestamp": "2026-01-01T00:00:01Z"}
        reserved = {"status": {"allocation": {}, "reservedFor": [{}]}}
        self.assertEqual(cells(*kind, made(), NOW)[1], "pending")
        self.assertEqual(cells(*kind, made(reserved), NOW)[1], "allocated,reserved")
        self.assertEqual(cells(*kind, made(**deleted), NOW)[1], "deleted")


class PoolStatusTests(SynchronousTestCase):
    """Tests for rows of ResourcePoolStatusRequests."""

    def shown(self, status: Any) -> list[Any]:
        """Return the cells of a request with a status."""
        obj = made({"spec": {"driver": "d"}, **({} if status is None else {"status": status})})
        return cells("resource.k8s.io", "ResourcePoolStatusRequest", obj, NOW)

    def test_pending(self) -> None:
        """A request without a status has no numbers."""
        self.assertEqual(self.shown(None), ["x", "d", "-", "-", "-", "-", "-", 0, "Pending", "<none>"])

    def test_complete(self) -> None:
        """The numbers of devices are sums over the listed pools; a truncated list is marked."""
        pools = [{"totalDevices": 2, "availableDevices": 1, "allocatedDevices": 1}, {"validationError": "bad"}]
        complete = {"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {"pools": pools, "poolCount": 3, "conditions": [complete]}
        self.assertEqual(self.shown(status), ["x", "d", "2", "1", "1", "0", "1", 3, "Complete (2/3 pools)", "3m"])

    def test_failed(self) -> None:
        """A failed request has no numbers."""
        status = {"pools": [{"totalDevices": 2}], "conditions": [{"type": "Failed", "status": "True"}]}
        self.assertEqual(self.shown(status)[2:], ["-", "-", "-", "-", "-", 0, "Failed", "<none>"])
