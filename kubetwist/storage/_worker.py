"""A thread that does one job after another and reports to the reactor."""

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
    """A call to make in the thread, and who waits for what it returns."""

    __slots__ = ("answer", "call")

    def __init__(self, call: Callable[[], object] | None) -> None:
        self.call = call
        self.answer: Deferred[Any] = Deferred()


class Worker:
    """
    One thread and the queue of what it has to do.

    It is a daemon thread: a process that dies without L{stop} does not wait for it. L{stop} finishes submitted work.
    """

    def __init__(self, name: str, reactor: ThreadedReactor) -> None:
        self._reactor = reactor
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._thread = Thread(target=self._work, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def run(self, call: Callable[[], T]) -> Deferred[T]:
        """Do C{call} in the thread, after all that was asked for before."""
        job = Job(call)
        self._queue.put(job)
        return job.answer

    async def stop(self) -> None:
        """End the thread once everything that was asked for is done."""
        if self._thread.is_alive():
            last = Job(None)
            self._queue.put(last)
            await last.answer
            self._thread.join()

    def _work(self) -> None:
        while self._do(self._queue.get()):
            pass

    def _do(self, job: Job) -> bool:
        """Do a job; false for the last one."""
        if job.call is None:
            self._reactor.callFromThread(job.answer.callback, None)
            return False
        try:
            result = job.call()
        except Exception:
            self._reactor.callFromThread(job.answer.errback, Failure())
        else:
            self._reactor.callFromThread(job.answer.callback, result)
        return True
