"""Tests for L{kubetwist.storage.worker}."""

from __future__ import annotations

import threading
from typing import Any

from twisted.internet import reactor as the_reactor
from twisted.trial.unittest import TestCase

from kubetwist.storage.worker import Worker

reactor: Any = the_reactor


class WorkerTests(TestCase):
    """Tests for L{Worker}."""

    def setUp(self) -> None:
        """Create a worker."""
        self.worker = Worker("worker of a test", reactor)

    async def test_order(self) -> None:
        """Jobs run one after the other in another thread; results are delivered in the reactor's thread."""
        done: list[tuple[int, str]] = []

        def job(number: int) -> Any:
            def call() -> int:
                done.append((number, threading.current_thread().name))
                return number

            return call

        results = [self.worker.run(job(number)) for number in range(5)]
        self.worker.start()
        self.assertEqual([await result for result in results], [0, 1, 2, 3, 4])
        self.assertEqual(done, [(number, "worker of a test") for number in range(5)])
        await self.worker.stop()

    async def test_failure(self) -> None:
        """The error of a job is delivered to its caller, and the next job runs."""
        self.worker.start()
        failing = self.worker.run(lambda: 1 // 0)
        good = self.worker.run(lambda: "good")
        with self.assertRaises(ZeroDivisionError):
            await failing
        self.assertEqual(await good, "good")
        await self.worker.stop()

    async def test_stop(self) -> None:
        """Jobs that were submitted before stop() are finished; the thread ends afterwards."""
        self.worker.start()
        last = self.worker.run(lambda: "last")
        await self.worker.stop()
        self.assertEqual(self.successResultOf(last), "last")
        self.assertNotIn("worker of a test", [thread.name for thread in threading.enumerate()])

    async def test_never_started(self) -> None:
        """A worker that was not started stops immediately."""
        await self.worker.stop()
        self.assertNotIn("worker of a test", [thread.name for thread in threading.enumerate()])
