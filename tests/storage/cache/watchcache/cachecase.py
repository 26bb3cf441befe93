"""A watch cache with its storage, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import orjson

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from kubetwist.api.record import (
    Draft,
    Record,
)
from kubetwist.api.storage import Write
from kubetwist.interfaces import IWatchSink
from kubetwist.storage.cache.watchcache import WatchCache
from kubetwist.storage.cache.watches import CacheWatch
from kubetwist.storage.memory import MemoryStorage

PREFIX = "/registry/pods/"


def drafted(name: str, **labels: str) -> Draft:
    """Return an object."""
    return Draft(orjson.dumps({"metadata": {"name": name, "labels": labels}}), labels, {})


def decode(key: str, value: bytes, revision: int) -> Record:
    """A codec for objects that are stored as JSON."""
    return Record.from_draft(key, revision, Draft(value, orjson.loads(value)["metadata"]["labels"], {}))


@implementer(IWatchSink)
class RecordingSink:
    """
    A sink that records events.

    @ivar then: Called after each event.
    """

    def __init__(self, then: Callable[[], object] = lambda: None) -> None:
        self.sent: list[tuple[str, Record, Any]] = []
        self.ends: list[Any] = []
        self.then = then

    def send(self, event_type: str, record: Record, event: Any) -> None:
        """See L{IWatchSink.send}."""
        self.sent.append((event_type, record, event))
        self.then()

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """See L{IWatchSink.bookmark}."""

    def end(self, error: Any) -> None:
        """See L{IWatchSink.end}."""
        self.ends.append(error)

    def wait_until_fresh_or_timeout(self) -> list[tuple[str, str, int]]:
        """Return type, key and revision of every event, and clear the list."""
        wait_until_fresh_or_timeout = [(kind, record.key, record.revision) for kind, record, _ in self.sent]
        self.sent.clear()
        return wait_until_fresh_or_timeout


def labelled(**labels: str) -> Callable[[Record], bool]:
    """Match records with these labels."""
    return lambda record: all(record.labels.get(name) == value for name, value in labels.items())


class CacheCase(SynchronousTestCase):
    """Has a cache over a store in memory."""

    limits: ClassVar[dict[str, int]] = {}

    def setUp(self) -> None:
        """Start a cache."""
        self.clock = Clock()
        self.storage = MemoryStorage(self.clock)
        self.successResultOf(self.storage.open())
        self.cache = self.started()

    def started(self) -> WatchCache:
        """Return a cache that watches the store."""
        cache = WatchCache(self.storage, PREFIX, decode, self.clock, **self.limits)
        self.successResultOf(cache.start())
        return cache

    def put(self, key: str, **labels: str) -> int:
        """Write an object; the decoded object is attached to the write."""
        draft = drafted(key, **labels)
        return self.successResultOf(self.storage.commit([Write(PREFIX + key, draft.body, None, attachment=draft)]))

    def delete(self, key: str) -> int:
        """Delete an object."""
        return self.successResultOf(self.storage.commit([Write(PREFIX + key, None, None)]))

    def listed(self, *args: Any, **kwargs: Any) -> list[tuple[str, int]]:
        """Return the keys and revisions of a list."""
        return [(record.key, record.revision) for record in self.cache.list(*args, **kwargs).records]

    def watch(self, scope: str = "", **options: Any) -> tuple[CacheWatch, RecordingSink]:
        """Start a watch."""
        sink = RecordingSink()
        return self.cache.watch(scope, sink=sink, **options), sink
