"""Tests for L{kubetwist.registry.apiserverinternal.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class RowTests(SynchronousTestCase):
    """Tests for rows of StorageVersions."""

    def test_storage_version(self) -> None:
        """A row has the common encoding version, and the versions of the first three servers."""
        servers = [{"apiServerID": f"s{number}", "encodingVersion": "v1"} for number in range(5)]
        obj = made({"status": {"commonEncodingVersion": "v1", "storageVersions": servers}})
        result = cells("internal.apiserver.k8s.io", "StorageVersion", obj, NOW)
        self.assertEqual(result, ["x", "v1", "s0=v1,s1=v1,s2=v1 + 2 more...", "3m"])

    def test_none(self) -> None:
        """Without servers there is no common version."""
        result = cells("internal.apiserver.k8s.io", "StorageVersion", made(), NOW)
        self.assertEqual(result[1], "<unset>")
