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
class Noting:
    """Notes what it is told; fails if it is to."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.fails = False

    def committed(self, events: Sequence[StorageEvent]) -> None:
        """Events."""
        if self.fails:
            raise ValueError("no")
        self.told.append([event.key for event in events])

    def progressed(self, revision: int) -> None:
        """Progress."""
        self.told.append(revision)

    def ended(self, error: Any) -> None:
        """The end."""
        self.told.append(type(error))


def event(key: str, revision: int = 1) -> StorageEvent:
    """A change of a key."""
    return StorageEvent(key, b"", revision, 0)


class ObserverTests(SynchronousTestCase):
    """Tests for L{Observers}."""

    def setUp(self) -> None:
        """Have an observer of all, and one of a namespace."""
        self.observers = Observers()
        self.all, self.one = Noting(), Noting()
        self.watch_all = self.observers.add("/pods/", self.all)
        self.watch = self.observers.add("/pods/a/", self.one)

    def deliver(self, *keys: str, revision: int = 5) -> None:
        """Commit changes of keys."""
        self.observers.deliver([event(key) for key in keys], revision)

    def test_interface(self) -> None:
        """A watch is one."""
        verifyObject(IStorageWatch, self.watch)

    def test_prefixes(self) -> None:
        """Each observer gets the events below its prefix in one piece, and everybody the progress."""
        self.deliver("/pods/a/x", "/pods/b/y", "/pods/a/z")
        self.assertEqual(self.all.told, [["/pods/a/x", "/pods/b/y", "/pods/a/z"], 5])
        self.assertEqual(self.one.told, [["/pods/a/x", "/pods/a/z"], 5])
        self.deliver("/podsecurity/a/x")
        self.assertEqual(self.all.told[2:], [5])

    def test_slash(self) -> None:
        """A prefix ends with a slash, or it would have keys of others."""
        self.assertRaises(ValueError, self.observers.add, "/pods", self.all)

    def test_stopped(self) -> None:
        """A watch that is stopped is told nothing more; stopping it again does no harm."""
        self.watch.stop()
        self.watch.stop()
        self.deliver("/pods/a/x")
        self.assertEqual((self.one.told, self.all.told), ([], [["/pods/a/x"], 5]))

    def test_added_later(self) -> None:
        """An observer that comes later is told of directories that were written to before."""
        self.deliver("/pods/a/x")
        late = Noting()
        self.observers.add("/pods/a/", late)
        self.deliver("/pods/a/y", revision=6)
        self.assertEqual(late.told, [["/pods/a/y"], 6])

    def test_held(self) -> None:
        """While the past is read, what happens is held; then both come in one piece."""
        self.watch.hold()
        self.deliver("/pods/a/new")
        self.assertEqual(self.one.told, [])
        self.watch.catch_up([event("/pods/a/old")], 5)
        self.assertEqual(self.one.told, [["/pods/a/old", "/pods/a/new"], 5])

    def test_failing(self) -> None:
        """An observer that fails has lost its place: its watch ends, and the others go on."""
        self.one.fails = True
        self.deliver("/pods/a/x")
        self.assertFalse(self.watch.active)
        self.assertEqual((self.one.told, self.all.told), ([ValueError], [["/pods/a/x"], 5]))
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)

    def test_end(self) -> None:
        """At the end everyone is told why, but for those who are told otherwise."""
        self.observers.end(KeyError(), silently=[self.watch_all])
        self.assertEqual((self.all.told, self.one.told), ([], [KeyError]))
        self.assertFalse(self.watch.active or self.watch_all.active)

    def test_bounded(self) -> None:
        """Only so many directories are remembered."""
        self.patch(module, "PREFIX_CACHE_SIZE", 3)
        for number in range(10):
            self.deliver(f"/pods/{number}/x")
        self.assertLessEqual(len(self.observers._by_directory), 3)
        self.assertEqual(len(self.all.told), 20)
