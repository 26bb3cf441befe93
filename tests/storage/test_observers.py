"""Tests for L{kubetwist.storage._observers}."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from kubetwist.api.storage import StorageEvent
from kubetwist.interfaces import IStorageObserver, IStorageWatch
from kubetwist.storage import _observers as module
from kubetwist.storage._observers import Observers


@implementer(IStorageObserver)
class EventRecorder:
    """Records its events; raises if requested."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.fails = False

    def committed(self, events: Sequence[StorageEvent]) -> None:
        """Record events."""
        if self.fails:
            raise ValueError("no")
        self.events.append([event.key for event in events])

    def progressed(self, revision: int) -> None:
        """Record progress."""
        self.events.append(revision)

    def ended(self, error: Any) -> None:
        """Record the end."""
        self.events.append(type(error))


def event(key: str, revision: int = 1) -> StorageEvent:
    """Return a change of a key."""
    return StorageEvent(key, b"", revision, 0)


class ObserverTests(SynchronousTestCase):
    """Tests for L{Observers}."""

    def setUp(self) -> None:
        """Add an observer of all keys, and one of a namespace."""
        self.observers = Observers()
        self.all, self.one = EventRecorder(), EventRecorder()
        self.watch_all = self.observers.add("/pods/", self.all)
        self.watch = self.observers.add("/pods/a/", self.one)

    def deliver(self, *keys: str, revision: int = 5) -> None:
        """Deliver changes of keys."""
        self.observers.deliver([event(key) for key in keys], revision)

    def test_interface(self) -> None:
        """A watch provides L{IStorageWatch}."""
        verifyObject(IStorageWatch, self.watch)

    def test_prefixes(self) -> None:
        """Each observer gets the events below its prefix in one call, and all get the progress."""
        self.deliver("/pods/a/x", "/pods/b/y", "/pods/a/z")
        self.assertEqual(self.all.events, [["/pods/a/x", "/pods/b/y", "/pods/a/z"], 5])
        self.assertEqual(self.one.events, [["/pods/a/x", "/pods/a/z"], 5])
        self.deliver("/podsecurity/a/x")
        self.assertEqual(self.all.events[2:], [5])

    def test_slash(self) -> None:
        """A prefix must end with a slash."""
        self.assertRaises(ValueError, self.observers.add, "/pods", self.all)

    def test_stopped(self) -> None:
        """A stopped watch delivers nothing; stopping it again has no effect."""
        self.watch.stop()
        self.watch.stop()
        self.deliver("/pods/a/x")
        self.assertEqual((self.one.events, self.all.events), ([], [["/pods/a/x"], 5]))

    def test_added_later(self) -> None:
        """An observer that is added later gets the events of directories that were written before."""
        self.deliver("/pods/a/x")
        late = EventRecorder()
        self.observers.add("/pods/a/", late)
        self.deliver("/pods/a/y", revision=6)
        self.assertEqual(late.events, [["/pods/a/y"], 6])

    def test_held(self) -> None:
        """While past events are read, new events are held; then both are delivered in one call."""
        self.watch.hold()
        self.deliver("/pods/a/new")
        self.assertEqual(self.one.events, [])
        self.watch.catch_up([event("/pods/a/old")], 5)
        self.assertEqual(self.one.events, [["/pods/a/old", "/pods/a/new"], 5])

    def test_failing(self) -> None:
        """An observer that raises loses its watch; the other watches continue."""
        self.one.fails = True
        self.deliver("/pods/a/x")
        self.assertFalse(self.watch.active)
        self.assertEqual((self.one.events, self.all.events), ([ValueError], [["/pods/a/x"], 5]))
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)

    def test_end(self) -> None:
        """At the end all observers get the reason, except the given ones."""
        self.observers.end(KeyError(), silently=[self.watch_all])
        self.assertEqual((self.all.events, self.one.events), ([], [KeyError]))
        self.assertFalse(self.watch.active or self.watch_all.active)

    def test_bounded(self) -> None:
        """The number of cached directories is limited."""
        self.patch(module, "PREFIX_CACHE_SIZE", 3)
        for number in range(10):
            self.deliver(f"/pods/{number}/x")
        self.assertLessEqual(len(self.observers._by_directory), 3)
        self.assertEqual(len(self.all.events), 20)
