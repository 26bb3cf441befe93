"""
The thread that writes the SQLite file.

All transactions that wait are written in one transaction of SQLite: a single client waits for one sync per write, many
clients share the syncs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from queue import Empty
from threading import Event
from time import perf_counter
from typing import Final, Protocol, TypeVar

from twisted.internet.defer import Deferred

from .._groupcommit import GroupCommit
from ..embedded import Transaction
from ..errors import StorageError
from ..worker import Job, ThreadedReactor, Worker
from ._checksums import row_sum
from ._format import PLACE_BITS
from ._metrics import SQLiteMetrics
from .logfile import MAX_INSERT_ROWS, LogFile, Row

T = TypeVar("T")

#: Maximum size in bytes of the values in one SQLite transaction, beyond the first of its writes.
MAX_TRANSACTION_BYTES: Final = 16 << 20


def rows_of(transaction: Transaction) -> list[Row]:
    """Return the rows to append for a transaction."""
    first = transaction.revision << PLACE_BITS
    expiries = transaction.expiration_times
    rows: list[Row] = []
    for number, event in enumerate(transaction.events, first):
        expires = expiries[number - first] if expiries else None
        key, previous, value = event.key, event.previous, event.value
        rows.append((number, key, previous, expires, value, row_sum(number, key, previous, expires, value)))
    return rows


def size_of(rows: list[Row]) -> int:
    """Return the bytes of the values in some rows."""
    return sum(len(row[4] or b"") for row in rows)


class WritingStore(Protocol):
    """The receiver of a writer's reports, in the reactor's thread: C{SQLiteStorage}."""

    def finish(self, batch: list[Transaction]) -> None:
        """Handle that the oldest pending transactions are durable."""

    def written(self, size: int) -> None:
        """
        Handle that a transaction of SQLite was written, after L{finish}.

        @param size: The size of its values in bytes.
        """

    def _write_failed(self, error: Exception) -> None:
        """Handle that no pending transaction was written."""

    def _writes_again(self) -> None:
        """Handle a write that succeeds after earlier ones failed."""


class Writer(Worker):
    """The thread that writes; its queue holds transactions and jobs."""

    def __init__(self, file: LogFile, store: WritingStore, reactor: ThreadedReactor, metrics: SQLiteMetrics) -> None:
        super().__init__(f"kubetwist writes {file.path}", reactor)
        self._metrics = metrics
        self._file = file
        self._store = store
        self._resume = Event()
        self._failing = False
        self._group = GroupCommit(reactor, self._enqueue)

    def submit(self, transaction: Transaction) -> None:
        """Write a transaction, after all earlier ones."""
        events = transaction.events
        size = 0
        for event in events:
            if event.value is not None:
                size += len(event.value)
        self._group.add(transaction, len(events), size)

    def _enqueue(self, group: list[Transaction]) -> None:
        for transaction in group:
            self._queue.put(transaction)

    def run(self, call: Callable[[], T]) -> Deferred[T]:
        self._group.flush()
        return super().run(call)

    async def stop(self) -> None:
        self._group.flush()
        await super().stop()

    def _work(self) -> None:
        item: Transaction | Job | None = None
        while True:
            if item is None:
                item = self._queue.get()
            if isinstance(item, Transaction):
                item = self._write_group(item)
            elif self._do(item):
                item = None
            else:
                return

    def _write_group(self, first: Transaction) -> Transaction | Job | None:
        """
        Write a transaction together with those queued after it.

        @return: The first item of the queue that did not fit; L{None} if all did.
        """
        batch = [first]
        following: Transaction | Job | None = None
        try:
            rows = rows_of(first)
            size = size_of(rows)
            while size < MAX_TRANSACTION_BYTES:
                following = self._queue.get_nowait()
                if not isinstance(following, Transaction) or len(rows) + len(following.events) > MAX_INSERT_ROWS:
                    break
                more = rows_of(following)
                size += size_of(more)
                rows += more
                batch.append(following)
                following = None
        except Empty:
            pass
        except MemoryError as error:
            if isinstance(following, Transaction) and following is not batch[-1]:
                batch.append(following)
            self._failed(batch, error)
            return None
        began = perf_counter()
        try:
            self._file.append(rows)
        except Exception as error:
            self._failed(batch, error)
            return None if isinstance(following, Transaction) else following
        self._metrics.commits.observe(perf_counter() - began)
        self._metrics.transactions.observe(len(batch))
        if self._failing:
            self._failing = False
            self._reactor.callFromThread(self._store._writes_again)
        self._reactor.callFromThread(self._written, batch, size)
        return following

    def _written(self, batch: list[Transaction], size: int) -> None:
        """In the reactor thread: report durable transactions."""
        self._group.finished(len(batch))
        self._store.finish(batch)
        self._store.written(size)

    def _failed(self, batch: list[Transaction], error: Exception) -> None:
        self._failing = True
        with suppress(StorageError, MemoryError):  # Writing may be the operation that fails.
            self._file.reserve_revision(batch[-1].revision)
        # Nothing more is written before the reactor thread knows: its submissions until then depend on this batch.
        self._resume.clear()
        self._reactor.callFromThread(self._give_up, error)
        self._resume.wait()

    def _give_up(self, error: Exception) -> None:
        """In the reactor thread: take back all transactions, keep the jobs."""
        self._group.discard()
        jobs = []
        while not self._queue.empty():
            item = self._queue.get_nowait()
            if type(item) is not Transaction:
                jobs.append(item)
        for job in jobs:
            self._queue.put(job)
        self._resume.set()
        self._store._write_failed(error)
