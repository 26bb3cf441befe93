"""A thread that runs jobs in order and reports to the reactor."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from ._expiry import Timer

T = TypeVar("T")


class ThreadedReactor(Timer, Protocol):
    """The parts of a reactor that a worker needs: its clock, and C{callFromThread}."""

    def callFromThread(self, call: Callable[..., object], /, *args: object, **kw: object) -> None:
        """Call something in the reactor thread."""


class Job:
    """A call for the thread, and the Deferred of its result."""

    __slots__ = ("call", "result")

    def __init__(self, call: Callable[[], object] | None) -> None:
        self.call = call
        self.result: Deferred[Any] = Deferred()


class Worker:
    """
    A thread and its queue of jobs.

    It is a daemon thread: a process that dies without L{stop} does not wait for it. L{stop} finishes submitted work.
    """

    def __init__(self, name: str, reactor: ThreadedReactor) -> None:
        self._reactor = reactor
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._thread = Thread(target=self._work, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def run(self, call: Callable[[], T]) -> Deferred[T]:
        """Run C{call} in the thread, after the earlier jobs."""
        job = Job(call)
        self._queue.put(job)
        return job.result

    async def stop(self) -> None:
        """End the thread after the queued jobs."""
        if self._thread.is_alive():
            last = Job(None)
            self._queue.put(last)
            await last.result
            self._thread.join()

    def _work(self) -> None:
        while self._do(self._queue.get()):
            pass

    def _do(self, job: Job) -> bool:
        """Run a job; return false for the last one."""
        if job.call is None:
            self._reactor.callFromThread(job.result.callback, None)
            return False
        try:
            result = job.call()
        except Exception:
            self._reactor.callFromThread(job.result.errback, Failure())
        else:
            self._reactor.callFromThread(job.result.callback, result)
        return True
