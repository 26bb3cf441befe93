"""Tests of L{kubetwist.registry.generic.caches}."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.record import (
    Draft,
    Record,
)
from kubetwist.registry.generic.caches import WatchCaches
from kubetwist.registry.generic.resourceinfo import ResourceInfo
from kubetwist.storage.memory import MemoryStorage
from tests.resources.server import all_kinds


def record(key: str, value: bytes, revision: int) -> Record:
    """Return a record without content."""
    return Record.from_draft(key, revision, Draft(b"{}", {}, {}))


def infos(resource: str) -> list[ResourceInfo]:
    """Return the descriptions of the resources with a name."""
    return [info for info in all_kinds() if info.resource == resource]


class WatchCachesTests(SynchronousTestCase):
    """Tests of L{WatchCaches}."""

    def setUp(self) -> None:
        """Configure sizes for two resources."""
        self.clock = Clock()
        self.caches = WatchCaches(
            MemoryStorage(self.clock),
            self.clock,
            prefix="/x/",
            sizes={"pods": 0, "deployments.apps": 5000},
            default_size=7,
        )

    def test_shared(self) -> None:
        """Resources with the same storage prefix share a cache; other resources have separate caches."""
        one, other = (self.caches.shared(info, record) for info in infos("events"))
        self.assertIs(one, other)
        (pods,) = infos("pods")
        self.assertIsNot(self.caches.shared(pods, record), one)
        self.assertEqual(one.prefix, "/x/events/")

    def test_created(self) -> None:
        """A created cache is not shared."""
        (pods,) = infos("pods")
        self.assertIsNot(self.caches.create(pods, record), self.caches.create(pods, record))

    def test_reads(self) -> None:
        """With size 0, the backend answers reads."""
        (pods,), (deployments,), (secrets,) = infos("pods"), infos("deployments"), infos("secrets")
        self.assertFalse(self.caches.answers_reads(pods))
        self.assertTrue(self.caches.answers_reads(deployments))
        self.assertTrue(self.caches.answers_reads(secrets))
