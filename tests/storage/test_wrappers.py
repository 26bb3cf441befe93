"""Tests for L{kubetwist.storage.wrappers}."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import alsoProvides, implementer

from kubetwist.interfaces import ISharedStorage, IStorageWrapper
from kubetwist.storage.memory import MemoryStorage
from kubetwist.storage.wrappers import find_shared_storage, unwrap_backend


@implementer(IStorageWrapper)
class Wrapper:
    """A wrapper of a backend."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner


class WrapperTests(SynchronousTestCase):
    """Tests for wrapped backends."""

    def setUp(self) -> None:
        """Create a backend with two wrappers."""
        self.backend = MemoryStorage(Clock())
        self.outer: Any = Wrapper(Wrapper(self.backend))

    def test_innermost(self) -> None:
        """unwrap_backend() returns the backend below all wrappers."""
        self.assertIs(unwrap_backend(self.outer), self.backend)
        self.assertIs(unwrap_backend(self.backend), self.backend)

    def test_shared(self) -> None:
        """A shared storage is found below wrappers; the store of one server is not shared."""
        self.assertIsNone(find_shared_storage(self.outer))
        alsoProvides(self.backend, ISharedStorage)
        self.assertIs(find_shared_storage(self.outer), self.backend)

    def test_shared_wrapper(self) -> None:
        """A wrapper that shares the store of one server is found before the store."""
        alsoProvides(self.outer.inner, ISharedStorage)
        self.assertIs(find_shared_storage(self.outer), self.outer.inner)
