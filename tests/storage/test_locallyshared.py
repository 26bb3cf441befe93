"""Tests for L{kubetwist.storage.locallyshared}."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import Write
from kubetwist.storage.locallyshared import LocallySharedStorage
from kubetwist.storage.memory import MemoryStorage
from kubetwist.storage.wrappers import find_shared_storage, unwrap_backend
from kubetwist.testing.storage import storage_tests


class LocallySharedStorageTests(
    storage_tests(lambda case, reactor: LocallySharedStorage(MemoryStorage(reactor)))  # type: ignore[misc]
):
    """L{LocallySharedStorage} passes the tests of all stores."""


class SharingTests(SynchronousTestCase):
    """Tests for the sharing."""

    def test_shared(self) -> None:
        """The store is found as a shared storage, but only its process runs controllers."""
        inner = MemoryStorage(Clock())
        storage = LocallySharedStorage(inner)
        self.assertIs(find_shared_storage(storage), storage)
        self.assertIs(unwrap_backend(storage), inner)
        self.assertFalse(storage.shared)

    def test_current_revision(self) -> None:
        """The current revision includes writes that fronts have made in the inner store."""
        inner = MemoryStorage(Clock())
        storage = LocallySharedStorage(inner)
        self.successResultOf(storage.open())
        revision = self.successResultOf(inner.commit([Write("/registry/a", b"1", 0)]))
        self.assertEqual(self.successResultOf(storage.current_revision()), revision)

    def test_compaction(self) -> None:
        """The storage process compacts."""
        self.assertTrue(self.successResultOf(LocallySharedStorage(MemoryStorage(Clock())).claim_compaction(1)))
