"""Tests for L{kubetwist.controllers.machinery.parallel}."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.controllers.machinery.parallel import parallelize
from kubetwist.storage.errors import StorageUnavailable


async def no_pause() -> None:
    """Return immediately."""


class ParallelizeTests(SynchronousTestCase):
    """Tests for L{parallelize}."""

    def test_concurrency(self) -> None:
        """The concurrency is bounded, and all items are processed."""
        waiting: list[Deferred[None]] = []
        started: list[int] = []

        async def work(item: int) -> None:
            started.append(item)
            done: Deferred[None] = Deferred()
            waiting.append(done)
            await done

        found = Deferred.fromCoroutine(parallelize(range(5), work, no_pause, 2))
        self.assertEqual(started, [0, 1])
        for count in (3, 4, 5):
            waiting.pop(0).callback(None)
            self.assertEqual(len(started), count)
        self.assertNoResult(found)
        for one in waiting:
            one.callback(None)
        self.assertEqual(self.successResultOf(found), [])
        self.assertEqual(started, [0, 1, 2, 3, 4])

    def test_errors(self) -> None:
        """An error does not stop the other calls. A 404 is not an error."""
        done = []

        async def work(item: str) -> None:
            done.append(item)
            if item == "gone":
                raise APIStatusError.path_not_found()
            if item == "taken":
                raise APIStatusError.method_not_allowed()
            if item == "lost":
                raise StorageUnavailable("no place")

        items = ["gone", "taken", "fine", "lost", "last"]
        errors = self.successResultOf(Deferred.fromCoroutine(parallelize(items, work, no_pause, 2)))
        self.assertEqual(sorted(done), sorted(items))
        self.assertEqual({type(error) for error in errors}, {APIStatusError, StorageUnavailable})
        self.assertEqual(len(errors), 2)

    def test_bug(self) -> None:
        """An unexpected exception is raised."""

        async def work(item: int) -> None:
            raise ZeroDivisionError

        self.failureResultOf(Deferred.fromCoroutine(parallelize([1], work, no_pause, 1)))
