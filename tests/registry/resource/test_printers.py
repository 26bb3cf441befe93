"""Tests for L{kubetwist.registry.resource.printers}."""

from __future__ import annotations

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
