"""Tests of L{kubetwist.registry.core.resourcequota.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class QuotaTests(SynchronousTestCase):
    """Tests of rows of ResourceQuotas."""

    def test_quota(self) -> None:
        """Limits are in a separate cell."""
        status = {"hard": {"pods": "4", "limits.cpu": "2", "cpu": "1"}, "used": {"pods": "1"}}
        shown = cells("", "ResourceQuota", made({"status": status}), NOW)
        self.assertEqual(shown, ["x", "cpu: 0/1, pods: 1/4", "limits.cpu: 0/2", "3m"])
